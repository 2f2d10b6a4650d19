# Functions of more than 80 lines. Brace languages: the closing brace must stand under the first line, else the function
# is counted as unsure and left out.
function report(first, last, raw) { DETAIL = last - first + 1; if (last - first + 1 > 80) item(last - first + 1, "long_function", FILE, first, last, raw) }
function first_line() { FILE = FILENAME; blocks_reset(); F = 0; P = 0; ppd = 0 }
function last_line(f) {
  while (P > 0) pop_python()
  if (KINDS != "" && !skip && OLD_COUNT > 1000) { DETAIL = OLD_COUNT; item(OLD_COUNT, "long_file", f, 1, OLD_COUNT, OLD_HEAD) }
}
function each_line() {
  if (lg == "Python") python()
  else if (lg != "Shell") {
    blocks(CODE)
    if (at == "" && F > 0 && CODE ~ /^[}]/ && fi[1] == "" && fl[1] < FNR) { if (FNR - fl[1] + 1 > 80) unsure++; F = 0; D = 0; pd = 0; apd = 0; acc = "" }
  }
}
function is_function(a,    n, b) {
  sub(/^[ \t]+/, "", a); sub(/[ \t]+$/, "", a)
  if (lg == "Rust") return a ~ /(^|[^A-Za-z0-9_])fn[ \t]+[A-Za-z_]/
  if (lg == "Go") return a ~ /^func[ \t(]/
  if (lg ~ /Script/) {
    if (a ~ /(^|[^A-Za-z0-9_$.])function[ \t]*[*]?[ \t]*[A-Za-z0-9_$]*[ \t]*(<[^(]*>)?[(].*[)][^=()]*$/) return 1
    if (a ~ /=>$/) return a ~ /^(export[ \t]+)?(default[ \t]+)?((const|let|var)[ \t]+)?[A-Za-z_$][A-Za-z0-9_$]*[^=()]*=[ \t]*(async[ \t]*)?([(]|[A-Za-z_$][A-Za-z0-9_$]*[ \t]*=>)/
    if (a ~ /^(if|for|while|switch|catch|with|return|new|else|do|try)[^A-Za-z0-9_$]/) return 0
    return a ~ /^((public|private|protected|static|async|get|set|override|abstract)[ \t]+)*[*]?[ \t]*[#A-Za-z_$][A-Za-z0-9_$]*[ \t]*(<[^(]*>)?[(].*[)]([ \t]*:[^=]*)?$/
  }
  if (F > 0) return 0
  gsub(/@[A-Za-z_.]+([(][^()]*[)])?/, "", a)
  b = a; sub(/[)][ \t]*:[^:].*/, ")", b)
  while (gsub(/[(][^()]*[)]/, "@", b)) {}
  if (gsub(/@/, "", b) > 1) return 0
  n = a; if (!sub(/[ \t]*[(].*/, "", n)) return 0
  if (n ~ /=/ && n !~ /operator/) return 0
  if (!match(n, /[A-Za-z_~][A-Za-z0-9_]*$/) && n !~ /operator[^A-Za-z0-9_]*$/) return 0
  n = substr(n, RSTART)
  if (n ~ /^(if|for|while|switch|catch|synchronized|return|sizeof|do|else|try|new|case|throw|defined|decltype|alignas|__attribute__|requires|assert|static_assert|extern|union|struct|enum|class)$/) return 0
  return a ~ /[)][ \t]*((const|noexcept|override|final|volatile|throws)[^()=]*|->[^=]*|:[^=]*)?$/
}
function opened(a, line, raw, plain) {
  if (!plain || !is_function(a)) return
  F++; fd[F] = D; fl[F] = line; fr[F] = raw; fi[F] = indent(raw)
}
function closed() {
  if (F > 0 && fd[F] == D) {
    if (CODE ~ /^[ \t]*[}]/ && indent($0) == fi[F]) report(fl[F], FNR, fr[F])
    else if (FNR - fl[F] + 1 > 80) unsure++
    F--
  }
}
function python(    i, c) {
  if (at != "") { for (i = 1; i <= P; i++) pe[i] = FNR; if (CODE ~ /[^ \t"]/) parens(CODE); return }
  if (CODE !~ /[^ \t]/) return
  if (ppd == 0) while (P > 0 && length(indent($0)) <= pi[P]) pop_python()
  if (ppd == 0 && CODE ~ /^[ \t]*(async[ \t]+)?def[ \t]/) { P++; pi[P] = length(indent($0)); pl[P] = FNR; pr[P] = $0 }
  for (i = 1; i <= P; i++) pe[i] = FNR
  parens(CODE)
}
function pop_python() { report(pl[P], pe[P], pr[P]); P-- }
function parens(c,    t) { t = c; ppd += gsub(/[[({]/, "", t); t = c; ppd -= gsub(/[])}]/, "", t); if (ppd < 0) ppd = 0 }
END { print "N\tunsure\t" unsure + 0 }
