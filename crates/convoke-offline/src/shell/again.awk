# Passes on the lines that were read again, with a first line for people.
{ o[NR] = $0 }
END {
  print "# " NR (NR == 1 ? " line" : " lines") " read again"
  for (i = 1; i <= NR; i++) print o[i]
  print "end"
}
