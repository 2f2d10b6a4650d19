# Sums the counts, counts the findings by kind and passes on the first MAX ones, or those at the places named in AT, in
# less than 7,500 bytes. The first line is for people. Without the last one nothing counts.
BEGIN { FS = "\t"; named = split(ENVIRON["AT"], part, "\n"); for (i = 1; i <= named; i++) want[part[i]] = 1; if (ENVIRON["AT"] == "") named = 0 }
$1 == "N" { c[$2] += $3; next }
$1 == "I" {
  # A quote does not end inside a word.
  if (NF == 8 && length($7) >= 118 && $7 ~ /[^A-Za-z0-9_\200-\377]/) { t = $7; sub(/[A-Za-z0-9_\200-\377]+$/, "", t); $0 = $1 "\t" $2 "\t" $3 "\t" $4 "\t" $5 "\t" $6 "\t" t "\t" $8 }
  if (NF == 8) $0 = $1 "\t" $2 "\t" $3 "\t" $4 "\t" $5 "\t" $6 "\t" $7 "\t\t" $8
  items++; k[$3]++
  if (!($4 in all)) { all[$4] = 1; places++ }
  if (!(($3, $4) in in_file)) { in_file[$3, $4] = 1; kf[$3]++ }
  if (named ? (($4 ":" $5) in want) : m < MAX) if (room + length($0) < 6500) { room += length($0) + 1; o[++m] = $0 }
}
END {
  if (c["broken"]) { print "# a file could not be opened while the command ran"; exit }
  print "# " items + 0 (items == 1 ? " finding" : " findings") (items ? " in " places (places == 1 ? " file" : " files") : "")
  for (x in c) if (c[x] != "") print "N\t" x "\t" c[x] "\t."
  for (x in k) print "K\t" x "\t" k[x] "\t" kf[x] "\t."
  for (i = 1; i <= m; i++) print o[i]
  print "end"
}
