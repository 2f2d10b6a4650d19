# Secrets written into files as literals. Documentation, comments, tests and what reads like a placeholder do not count.
# The quote ends before the value, so that reports do not spread it.
FNR == 1 { key = within = 0; tri = ""; tale = was = said = 0; above = ""; python = FILENAME ~ /[.]pyi?$/; braces = FILENAME ~ /[.](rs|c|h|cc|cpp|cxx|hpp|hh|go|js|mjs|cjs|jsx|ts|tsx|java|kt|scala|swift|cs|css|scss|php|proto)$/; doc = FILENAME ~ /[.](md|markdown|mdx|rst|adoc|txt|html|svg|csv|po)$/ || testpath(FILENAME) || FILENAME ~ /[.](example|sample|template|dist)$/ || FILENAME ~ /(example|sample|template)[^\/]*$/; config = FILENAME ~ /[.](ya?ml|env|properties|ini|toml|cfg|conf)$/ || FILENAME ~ /\/[.]env[^\/]*$/ }
# Text between three quotes: was says that the line begins inside or opens a docstring, said that it begins inside any.
python { said = tri != ""; was = said && tale; threes($0); if (!said && tri == "" && tale) was = 1; if (tri != "" && tale) was = 1; if (tri == "") tale = 0; if ($0 !~ /^[ \t]*(#|$)/) above = $0 }
doc || was || length($0) > 4000 { next }
braces && within { if (/\*\//) within = 0; next }
braces && /^[ \t]*\/\*/ && !/\*\/.*[^ \t\r]/ { within = !/\*\//; next }
key && FNR == key + 1 && match($0, /[A-Za-z0-9+\/=]+/) && RLENGTH >= 40 { DETAIL = "A private key"; item(0, "secret", FILENAME, key, FNR, key_line) }
/^[ \t]*([#;*]|\/\/|--[^-]|<!--)/ { next }
/-----BEGIN [A-Z ]*PRIVATE KEY-----[ \t\r]*$/ { key = FNR; key_line = $0; next }
{
  if (token("AKIA[0-9A-Z]+", 20, "An AWS access key")) next
  if (token("gh[pousr]_[A-Za-z0-9]+", 40, "A GitHub token") || token("github_pat_[A-Za-z0-9_]+", 50, "A GitHub token")) next
  if (token("xox[abprs]-[A-Za-z0-9-]+", 30, "A Slack token") || token("sk_live_[A-Za-z0-9]+", 24, "A Stripe key")) next
  if (token("AIza[A-Za-z0-9_-]+", 39, "A Google API key") || token("sk-ant-[A-Za-z0-9_-]+", 40, "An Anthropic API key")) next
  if (said) next
  low = tolower($0)
  name = "(password|passwd|secret|secret_key|api_?key|auth_?token|access_?token|client_?secret)"
  if (match(low, name "[\"\047]?[ \t]*(:[ \t]*&?[a-z]*[ \t]*)?[:=][ \t]*[\"\047][^\"\047 \t]+[\"\047]")) {
    found_at = RSTART; t = substr($0, RSTART, RLENGTH); match(t, /["\047][^"\047]+["\047]$/)
    literal(substr(t, RSTART + 1, RLENGTH - 2), found_at + RSTART)
  } else if (config && match(low, "^[ \t-]*[a-z_.-]*" name "[ \t]*[:=][ \t]*[^ \t\"\047#]+[ \t\r]*$")) {
    t = $0; sub(/[ \t\r]+$/, "", t); match(t, /[^ \t:=]+$/)
    literal(substr(t, RSTART), RSTART)
  }
}
function placeholder(v) {
  v = tolower(v)
  return v ~ /example|sample|change|placeholder|your|dummy|test|xxx|todo|redact|secret|passw|[<>${}%*]|env|none|null|localhost|insert|fake|foo|bar|abc|1234|mock|demo|default/ || v ~ /^[a-z_.-]+$/ || v ~ /^[0-9.]+$/ || v ~ /[(\/]/ || v ~ /^[a-z_]+[.:][a-z_.:]+$/
}
function token(pattern, least, what) {
  if (!match($0, pattern) || RLENGTH < least || (RSTART > 1 && substr($0, RSTART - 1, 1) ~ /[A-Za-z0-9_]/)) return 0
  if (tolower(substr($0, RSTART, RLENGTH)) ~ /example|xxxx|0000|test|dummy|fake/) return 0
  DETAIL = what; hidden(RSTART); return 1
}
function literal(v, at) {
  if (length(v) < 8 || placeholder(v) || v !~ /[0-9]/ || v !~ /[A-Za-z]/) return
  DETAIL = "A password or key"; hidden(at)
}
function hidden(at,    before) {
  before = substr($0, 1, at - 1)
  item(0, "secret", FILENAME, FNR, FNR, before ~ /[A-Za-z0-9]/ ? before : $0)
}
# Follows the quotes of Python. A docstring stands where a statement begins; what is assigned or passed is none.
function threes(s,    q, whole) {
  whole = 1
  while (s != "") {
    if (tri != "") {
      if (!match(s, "\\\\|" tri)) return
      if (substr(s, RSTART, 1) == "\\") { s = substr(s, RSTART + 2); continue }
      s = substr(s, RSTART + 3); tri = ""; continue
    }
    if (!match(s, /["\047#]/)) return
    q = substr(s, RSTART, 1)
    if (q == "#") return
    if (substr(s, RSTART, 3) == q q q) {
      tale = whole && substr(s, 1, RSTART - 1) ~ /^[ \t]*[rRbBuUfF]*$/ && above !~ /[(,=[+\\][ \t\r]*$/
      tri = q q q; s = substr(s, RSTART + 3); whole = 0; continue
    }
    s = substr(s, RSTART + 1); whole = 0
    while (match(s, q == "\"" ? "[\"\\\\]" : "[\047\\\\]")) {
      if (substr(s, RSTART, 1) != "\\") break
      s = substr(s, RSTART + 2)
    }
    if (RSTART == 0) return
    s = substr(s, RSTART + 1)
  }
}
