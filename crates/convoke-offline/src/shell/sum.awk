# Sums the rows of one area and language, which may come in pieces.
BEGIN { FS = "\t" }
$1 == "A" { a = $2 "\t" $3; f[a] += $4; n[a] += $5; t[a] += $6; next }
{ print }
END { for (a in f) print "A\t" a "\t" f[a] "\t" n[a] "\t" t[a] }
