# Prints the rows of areas, which come sorted, in less than 7,000 bytes; what does not fit is summed up under the area ".".
BEGIN { FS = "\t" }
$1 == "N" { c[$2] += $3; next }
$1 != "A" { next }
{ files += $4; lines += $5; room += length($0) + 3 }
room < 6000 { o[++m] = $0 "\t."; next }
{ f[$3] += $4; n[$3] += $5; t[$3] += $6 }
END {
  if (c["broken"]) { print "# a file could not be opened while the command ran"; exit }
  print "# " files + 0 (files == 1 ? " file, " : " files, ") lines + 0 (lines == 1 ? " line" : " lines") ", by directory"
  for (i = 1; i <= m; i++) print o[i]
  for (g in f) print "A\t.\t" g "\t" f[g] "\t" n[g] "\t" t[g] "\t."
  print "end"
}
