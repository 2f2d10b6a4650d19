# Splits each line into CODE (strings emptied, comments gone) and COMM (the text of its comments), across lines.
BEGIN {
  RX["Rust"] = RX["C"] = RX["C++"] = RX["Java"] = "[\"\047/]"
  RX["Go"] = RX["JavaScript"] = RX["TypeScript"] = "[\"\047`/]"
  RX["Python"] = "[\"\047#]"
  RX["Shell"] = "[\"\047#<\\\\]"
  for (i = 1; i < ARGC; i++) if (ONLY == "" || lang(ARGV[i]) == ONLY) scanned++
}
NR > 700000 { stopped = 1; before = ""; scanned = begun; exit }
END { print "N\tscanned\t" scanned + 0; print "N\tstopped\t" stopped + 0; print "N\tmarked_generated\t" generated + 0; print "N\tlong_lines\t" longs + 0 }
function lex(s,    q, n, o, t, h, whole, next_hd) {
  CODE = ""; COMM = ""; whole = s; next_hd = ""
  if (hd != "") { t = s; if (hdash) sub(/^\t+/, "", t); if (t == hd) hd = ""; return }
  while (s != "") {
    if (st == "*/") {
      n = index(s, "*/"); o = lg == "Rust" ? index(s, "/*") : 0
      if (o && (!n || o < n)) { nest++; COMM = COMM substr(s, 1, o + 1); s = substr(s, o + 2); continue }
      if (!n) { COMM = COMM s; break }
      COMM = COMM substr(s, 1, n - 1); s = substr(s, n + 2)
      if (nest > 0) nest--; else st = ""
      continue
    }
    if (st != "") {
      n = index(s, st)
      if (es) { o = index(s, "\\"); if (o && (!n || o < n)) { s = substr(s, o + 2); continue } }
      if (!n) break
      s = substr(s, n + length(st)); st = ""; CODE = CODE "\""
      continue
    }
    if (!match(s, RX[lg])) { CODE = CODE s; break }
    CODE = CODE substr(s, 1, RSTART - 1); s = substr(s, RSTART); q = substr(s, 1, 1); t = substr(s, 1, 2)
    if (q == "/") {
      if (t == "//") { COMM = COMM substr(s, 3); break }
      if (t == "/*") { st = "*/"; nest = 0; s = substr(s, 3); continue }
      if (lg ~ /Script/ && CODE ~ /(^|[=(,:!&|?{};+~>]|\[|return|typeof|case)[ \t]*$/ && match(s, /^\/(\\.|\[(\\.|[^]\\])*\]|[^\/\\[])+\//)) {
        CODE = CODE "\"\""; s = substr(s, RLENGTH + 1); continue
      }
      CODE = CODE q; s = substr(s, 2); continue
    }
    if (q == "#") {
      if (lg == "Shell" && CODE !~ /(^|[ \t;&|(])$/) { CODE = CODE q; s = substr(s, 2); continue }
      COMM = COMM substr(s, 2); break
    }
    if (q == "\\") { CODE = CODE "x"; s = substr(s, 3); continue }
    if (q == "<") {
      if (t == "<<" && substr(s, 3, 1) != "<" && CODE !~ /\(\([^)]*$/ && match(s, /^<<-?[ \t]*[\\"\047]?[A-Za-z_][A-Za-z0-9_]*/)) {
        h = substr(s, 1, RLENGTH); s = substr(s, RLENGTH + 1); hdash = h ~ /^<<-/
        sub(/^<<-?[ \t]*[\\"\047]?/, "", h); sub(/^["\047]/, "", s); next_hd = h; continue
      }
      if (t == "<<") { CODE = CODE "<<<"; s = substr(s, 3); sub(/^</, "", s); continue }
      CODE = CODE q; s = substr(s, 2); continue
    }
    if (q == "\047" && lg == "Rust") {
      if (match(s, /^\047(\\[^ux]|\\x..|\\u[{][^}]*[}]|[^\\\047\200-\377]|[\300-\377][\200-\277]+)\047/)) { CODE = CODE "0"; s = substr(s, RLENGTH + 1) }
      else { CODE = CODE "@"; s = substr(s, 2) }
      continue
    }
    if (q == "\047" && lg ~ /^C/ && CODE ~ /[0-9]$/ && s ~ /^\047[0-9A-Fa-f]/ && s !~ /^\047.\047/) { s = substr(s, 2); continue }
    es = 1; many = 0; st = q; h = substr(s, 1, 3)
    if ((lg == "Python" || lg == "Java") && h == q q q) { st = h; many = 1; s = substr(s, 3) }
    else if (lg == "Rust") {
      many = 1
      if (match(CODE, /[A-Za-z0-9_]*#*$/) && (h = substr(CODE, RSTART)) ~ /^[bc]?r#*$/) { es = 0; sub(/^[bc]?r/, "", h); st = q h }
    }
    else if (q == "`") { many = 1; es = lg != "Go" }
    else if (lg == "Shell") { many = 1; es = q == "\"" || CODE ~ /\$$/ }
    else if (lg == "C++" && q == "\"" && CODE ~ /R$/ && match(s, /^"[^("]*[(]/)) {
      st = ")" substr(s, 2, RLENGTH - 2) "\""; es = 0; many = 1; s = substr(s, RLENGTH)
    }
    s = substr(s, 2); CODE = CODE "\""
  }
  if (st != "" && st != "*/" && !many && whole !~ /\\$/) st = ""
  if (next_hd != "") hd = next_hd
}
FNR == 1 {
  if (before != "") last_line(before)
  before = FILENAME; lg = lang(FILENAME); st = ""; hd = ""; nest = 0
  skip = ONLY != "" && lg != ONLY
  if (!skip) begun++
  first_line()
}
skip { next }
FNR <= 5 && /@generated|DO NOT EDIT/ { skip = 1; generated++; scanned--; next }
length($0) > 4000 { longs++; next }
{ sub(/\r$/, ""); at = st; lex($0); each_line() }
END { if (before != "") last_line(before) }
