# Sums the counts, counts the findings by kind and passes on the first ones of each kind, in less than 7,500 bytes.
BEGIN { FS = "\t" }
$1 == "N" { c[$2] += $3; next }
$1 == "I" { k[$3]++; if (!(($3, $4) in in_file)) { in_file[$3, $4] = 1; kf[$3]++ } if (k[$3] <= MAX && room + length($0) < 6000) { room += length($0) + 1; o[++m] = $0 } }
END {
  for (x in c) print "N\t" x "\t" c[x] "\t."
  for (x in k) print "K\t" x "\t" k[x] "\t" kf[x] "\t."
  for (i = 1; i <= m; i++) print o[i]
  print "end"
}
