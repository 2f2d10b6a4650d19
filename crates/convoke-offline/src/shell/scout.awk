# Files, lines and test files by directory (two levels deep) and language, the largest first.
BEGIN { for (i = 1; i < ARGC; i++) { g = lang(ARGV[i]); count(ARGV[i], g == "" ? "other" : g); if (g == "") ARGV[i] = "" } }
FNR == 1 && FILENAME != "" { at_area = area(FILENAME) "\t" lang(FILENAME) }
FILENAME != "" { n[at_area]++ }
END { for (a in f) print "A\t" a "\t" f[a] "\t" n[a] + 0 "\t" t[a] + 0 }
function area(p,    part, k) {
  p = enc(p); k = split(p, part, "/")
  return k == 1 ? "." : (k == 2 ? part[1] : part[1] "/" part[2])
}
function count(p, g,    a) { a = area(p) "\t" g; f[a]++; if (testpath(p)) t[a]++ }
