# Keeps the source files that no test mentions, neither by name nor by a name of more than five letters that they define. A name of several
# words is not mentioned when one of them is not; when all are, perhaps apart, nothing is claimed.
BEGIN { FS = "\t" }
$1 == "W" { seen[$2] = 1; next }
$1 == "S" { s[++n] = $0; next }
{ print }
END {
  for (i = 1; i <= n; i++) {
    split(s[i], f, "\t"); words = split(f[3], w, " "); lacks = 0
    for (j = 1; j <= words; j++) if (!(w[j] in seen)) lacks = 1
    defined = split(f[7], d, " "); inside = 0
    for (j = 1; j <= defined; j++) if (d[j] in seen) inside = 1
    if (lacks && inside) print "N\tby_content\t1"
    else if (lacks) print "I\t" f[2] "\tuntested\t" f[4] "\t" f[5] "\t" f[5] "\t" f[6] "\t."
    else if (words > 1) print "N\tin_parts\t1"
  }
}
