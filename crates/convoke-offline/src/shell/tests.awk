# One line for each source file without a test of its own, with the names that it defines, and the words of all test files; joined afterwards.
# An example in documentation is a test where the language runs it. Only files below WITHIN and of the language FOR are judged, but all tests count.
function first_line(    p, n, i, part) {
  FILE = FILENAME; own = 0; fn = 0; ft = ""; total = 0; names = ""; intests = testpath(FILENAME)
  if (intests) { n = split(enc(FILENAME), part, /[^A-Za-z0-9_]+/); for (i = 1; i <= n; i++) word(part[i]) }
  stem = FILENAME; sub(/.*\//, "", stem); sub(/[.][A-Za-z]*$/, "", stem)
  why = ""
  if ((inside != "" && FILENAME != "./" inside && index(FILENAME, "./" inside "/") != 1) || (only != "" && only != lg)) why = "not_asked"
  else if (lg == "Shell") why = "shell"
  else if (stem ~ /^(mod|lib|main|index|build|setup|__init__|__main__)$/) why = "common_name"
  gsub(/[^A-Za-z0-9_]+/, " ", stem); sub(/^ /, "", stem); sub(/ $/, "", stem)
  if (why == "" && stem == "") why = "no_word"
}
BEGIN { inside = ENVIRON["WITHIN"]; only = ENVIRON["FOR"] }
function word(w) { if (w != "" && !(w in seen)) { seen[w] = 1; print "W\t" w } }
function each_line(    n, i, part) {
  total = FNR
  if (intests) { n = split($0, part, /[^A-Za-z0-9_]+/); for (i = 1; i <= n; i++) word(part[i]); return }
  if (lg == "Rust" && is_test_mark(CODE)) own = 1
  if (lg == "Python" && CODE ~ /^[ \t]*(class[ \t]+Test|def[ \t]+test_)/) own = 1
  if (lg == "Rust" && $0 ~ /^[ \t]*\/\/[\/!][ \t]*```(rust|no_run|should_panic|edition20[0-9]*)?[ \t]*$/) own = 1
  if (lg == "Python" && at != "" && $0 ~ /^[ \t]*>>> /) own = 1
  if (at == "" && length(names) < 400 && match(CODE, /(^|[ \t])(fn|def|class|func|function|struct|enum|trait|interface|type)[ \t]+[A-Za-z_][A-Za-z0-9_]*/)) { n = substr(CODE, RSTART, RLENGTH); sub(/.*[ \t]/, "", n); if (length(n) > 5) names = names " " n }
  if (!fn && CODE ~ /[A-Za-z]/) { fn = FNR; ft = $0 }
}
function last_line(f) {
  if (skip) return
  if (intests) { print "N\ttest_files\t1"; return }
  if (!fn) return
  if (why != "") { print "N\t" why "\t1"; return }
  print "N\tjudged\t1"
  if (!own) print "S\t" total "\t" stem "\t" enc(f) "\t" fn "\t" clean(ft) "\t" names
}
