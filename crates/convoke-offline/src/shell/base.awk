# What every program over files shares: the language by the extension, paths and texts that fit on one line.
BEGIN {
  nl = split("@LANGUAGES@", la, " ")
  for (i = 1; i < nl; i += 2) L[la[i]] = la[i + 1]
  ONLY = ENVIRON["ONLY"]
  nl = split(ENVIRON["MODS"], la, "\n")
  for (i = 1; i <= nl; i++) MOD[la[i]] = 1
}
function lang(p) {
  sub(/.*\//, "", p)
  if (p !~ /\./) return (p == "Makefile" || p == "Dockerfile") ? p : ""
  sub(/.*\./, "", p)
  return L[p]
}
function enc(p) {
  sub(/^\.\//, "", p)
  gsub(/%/, "%25", p); gsub(/\t/, "%09", p); gsub(/\n/, "%0A", p); gsub(/\r/, "%0D", p)
  return p
}
function clean(s) {
  gsub(/[\001-\037\177]/, " ", s)
  sub(/^ +/, "", s); sub(/ +$/, "", s)
  return substr(s, 1, 120)
}
# Whether a file holds tests: by its path, or because it is a module that is compiled for tests only.
function testpath(p,    q) {
  if (p ~ /[.]rs$/) for (q = substr(p, 1, length(p) - 3); q ~ /\//; sub(/\/[^\/]*$/, "", q)) if (q in MOD) return 1
  return p ~ /\/(tests?|__tests__|specs?|testing|testdata|fixtures|benches|examples)\// || p ~ /(_test|_tests|_spec|[.]test|[.]spec|Test|Tests)[.][a-z]+$/ || p ~ /\/(tests?|conftest)[.][a-z]+$/ || p ~ /\/tests?_[^\/]*$/
}
function is_test_mark(c) {
  if (c ~ /#\[([a-z_]+::)*test[](]/) return 1
  return c ~ /#!?\[cfg\(/ && c ~ /[(, ]test[ ,)]/ && c !~ /not\(test/
}
