# JSON, TOML and YAML files that no reader of these formats accepts. What may be a dialect (comments, templates, one document
# per line) is not judged. Of each file the first fault is reported.
FNR == 1 { if (NR > 1) close_file(last_name); last_name = FILENAME; start() }
END { if (last_name != "") close_file(last_name); print "N\tlooked\t" files + 0; print "N\tunjudged\t" unjudged + 0 }
function start() {
  files++; done = testpath(FILENAME) || fixture(FILENAME) || FILENAME ~ /\/(templates?|[.]vscode|[.]devcontainer|[.]zed)\// || FILENAME ~ /(^|\/)(tsconfig|jsconfig|deno|turbo|biome|wrangler|api-extractor)[^\/]*[.]json$/ || FILENAME ~ /\/[.](eslintrc|swcrc|babelrc|jshintrc)/
  form = FILENAME; sub(/.*[.]/, "", form)
  depth = 0; want = "v"; any = 0; ends = 0
  multi = ""; open = 0; arrays = 0; split("", tables)
  block = -1
}
function give_up() { done = 1; unjudged++ }
function bad(kind, what) { DETAIL = what; item(0, kind, FILENAME, FNR, FNR, $0); done = 1 }
function close_file(f) {
  if (done || form != "json" || !any || want == "e") return
  DETAIL = "it ends before its last bracket is closed"; item(0, "invalid_json", f, last_line_nr, last_line_nr, last_text)
}
done { next }
length($0) > 4000 { give_up(); next }
{ sub(/\r$/, "") }
form == "json" { json($0); if (/[^ \t]/) { last_line_nr = FNR; last_text = $0 } next }
form == "toml" { toml($0); next }
form ~ /^ya?ml$/ { yaml($0) }
function json(s,    t, q) {
  if (FNR == 1) sub(/^\357\273\277/, "", s)
  while (!done) {
    sub(/^[ \t]+/, "", s)
    if (s == "") return
    if (s ~ /^(\/\/|\/\*|#)/ || s ~ /^([{][{%]|<[%?#]|\$[{])/) { give_up(); return }
    if (!match(s, /^("([^"\\]|\\.)*"|-?[0-9][0-9]*([.][0-9]+)?([eE][-+]?[0-9]+)?|true|false|null|[][{},:])/)) {
      bad("invalid_json", want == ":" ? "a colon is missing after a key" : "something stands here that is no JSON value"); return
    }
    t = substr(s, 1, RLENGTH); s = substr(s, RLENGTH + 1); q = substr(t, 1, 1); any = 1
    if (want == "e") { if (q ~ /[{\[]/ && ends < FNR) give_up(); else bad("invalid_json", "something follows the end of the document"); return }
    if (want == "v" || want == "V") {
      if (q == "{") { kind_of[++depth] = "{"; want = "K" }
      else if (q == "[") { kind_of[++depth] = "["; want = "V" }
      else if (q == "]" && want == "V") up()
      else if (q ~ /[]},:]/) { bad("invalid_json", q ~ /[]}]/ ? "a comma stands before a closing bracket" : "a value is missing"); return }
      else after()
    } else if (want == "k" || want == "K") {
      if (q == "\"") want = ":"
      else if (q == "}" && want == "K") up()
      else { bad("invalid_json", q == "}" ? "a comma stands before a closing bracket" : "a key in double quotes is missing"); return }
    } else if (want == ":") {
      if (q != ":") { bad("invalid_json", "a colon is missing after a key"); return }
      want = "v"
    } else {
      if (q == ",") want = kind_of[depth] == "{" ? "k" : "v"
      else if ((q == "}" && kind_of[depth] == "{") || (q == "]" && kind_of[depth] == "[")) up()
      else { bad("invalid_json", q ~ /[]}]/ ? "the wrong bracket closes here" : "a comma is missing before this"); return }
    }
  }
}
function up() { depth--; after() }
function after() { want = depth == 0 ? "e" : ","; if (!depth) ends = FNR }
function toml(s,    t, v) {
  if (s ~ /[{][{%]|<[%?]/ && s !~ /=/) { give_up(); return }
  if (multi != "") { if (index(s, multi)) multi = ""; return }
  if (open > 0) { open += brackets(s); return }
  sub(/^[ \t]+/, "", s)
  if (s == "" || s ~ /^#/) return
  if (s ~ /^\[/) {
    if (s !~ /^\[\[?[^]]+\]\]?[ \t]*(#.*)?$/) { bad("invalid_toml", "the name of a table is not closed"); return }
    if (s ~ /^\[\[/) { arrays = 1; return }
    t = s; sub(/\].*/, "", t); gsub(/[ \t]/, "", t)
    if (!arrays && (t in tables)) bad("invalid_toml", "this table is defined twice")
    tables[t] = 1; return
  }
  if (!match(s, /^("[^"]*"|\047[^\047]*\047|[A-Za-z0-9_.-]+|[ \t]*[.][ \t]*)+[ \t]*=/)) { bad("invalid_toml", "neither a table nor a key with a value"); return }
  v = substr(s, RLENGTH + 1); sub(/^[ \t]+/, "", v)
  if (v == "" || v ~ /^#/) { bad("invalid_toml", "a key without a value"); return }
  if (v ~ /^"""/ || v ~ /^\047\047\047/) { t = substr(v, 1, 3); if (!index(substr(v, 4), t)) multi = t; return }
  if (v ~ /^[[{]/) { open = brackets(v); return }
  if (v ~ /^"/ && v !~ /^"([^"\\]|\\.)*"[ \t]*(#.*)?$/) { bad("invalid_toml", "a text is not closed, or something follows it"); return }
  if (v ~ /^[A-Za-z_]/ && v !~ /^(true|false|inf|nan)[ \t]*(#.*)?$/) bad("invalid_toml", "a value that is neither quoted nor a number, a date, true or false")
}
function brackets(s,    n, t) {
  if (s ~ /"""|\047\047\047/) { give_up(); return 0 }
  gsub(/"([^"\\]|\\.)*"/, "", s); gsub(/\047[^\047]*\047/, "", s); sub(/#.*/, "", s)
  t = s; n = gsub(/[[{]/, "", t); t = s; n -= gsub(/[]}]/, "", t)
  return n
}
function yaml(s,    n) {
  if (s !~ /[^ \t]/) return
  match(s, /^ */); n = RLENGTH
  if (block >= 0) { if (n > block || s ~ /^ *\t/) return; block = -1 }
  if (s ~ /^ *\t[ \t]*([A-Za-z_][A-Za-z0-9_. -]*:([ \t]|$)|-[ \t])/) { bad("invalid_yaml", "it is indented with a tab"); return }
  if (s ~ /[:-][ \t]+([!&][^ \t]*[ \t]+)?[|>][-+0-9]*[ \t]*(#.*)?$/) block = n
}
