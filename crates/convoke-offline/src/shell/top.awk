# Sums the counts, counts the findings by kind and passes on the first ones of each kind, in less than 7,500 bytes. The
# first line is for people. Without the last one nothing counts: it is held back when a file could not be opened.
BEGIN { FS = "\t"; most = HEAD == "inventory" ? 3000 : 6000 }
$1 == "N" { c[$2] += $3; next }
$1 == "I" {
  if (!items++) longest = $6
  if (!($4 in all)) { all[$4] = 1; places++ }
  k[$3]++; if (!(($3, $4) in in_file)) { in_file[$3, $4] = 1; kf[$3]++ }
  if (k[$3] <= MAX && room + length($0) < most) { room += length($0) + 1; o[++m] = $0 }
}
function grouped(n,    s, out) {
  s = sprintf("%d", n); out = ""
  while (length(s) > 3) { out = "," substr(s, length(s) - 2) out; s = substr(s, 1, length(s) - 3) }
  return s out
}
function many(n, one, more) { return grouped(n) " " (n == 1 ? one : more) }
function headline(    h, x, files, lines) {
  if (HEAD == "inventory") {
    for (x in c) { if (x ~ /^files_/) files += c[x]; if (x ~ /^lines_/) lines += c[x] }
    return many(files + c["big"] + c["locked"], "file", "files") ", " many(lines, "line", "lines")
  }
  if (HEAD == "largest") return items ? "the largest file has " many(longest, "line", "lines") : "no file with lines to count"
  split(HEAD, h, "|")
  if (h[3] == "judged" && c["stopped"] + c["capped"] > 0) return "not judged: there are too many source files"
  return many(items, h[1], h[2]) (items && h[3] == "in" ? " in " many(places, "file", "files") : "")
}
END {
  if (c["broken"]) { print "# a file could not be opened while the command ran"; exit }
  head = headline()
  if (c["stopped"] + c["capped"] > 0) head = head ", in a part of the source files"
  if (c["locked"] + c["closed"] > 0) head = head "; could not be read: " grouped(c["locked"] + c["closed"])
  print "# " head
  for (x in c) if (c[x] != "") print "N\t" x "\t" c[x] "\t."
  for (x in k) print "K\t" x "\t" k[x] "\t" kf[x] "\t."
  for (i = 1; i <= m; i++) print o[i]
  print "end"
}
