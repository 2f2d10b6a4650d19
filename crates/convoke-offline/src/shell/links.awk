# Relative links in Markdown, as candidates: a loop of the shell sees which lead nowhere.
FNR == 1 { fence = 0; remark = 0; files++; dir = FILENAME; sub(/[^\/]*$/, "", dir); out = testpath(FILENAME) || fixture(FILENAME) || FILENAME ~ /\/(templates?|_includes|i18n|locales?)\// }
END { print "N\tlooked\t" files + 0 }
out { next }
{ sub(/\r$/, "") }
/^[ \t]*(```|~~~)/ { fence = !fence; next }
fence { next }
{
  s = $0
  if (remark) { if (!(i = index(s, "-->"))) next; s = substr(s, i + 3); remark = 0 }
  while ((i = index(s, "<!--")) > 0) {
    t = substr(s, i); j = index(t, "-->")
    if (!j) { remark = 1; s = substr(s, 1, i - 1); break }
    s = substr(s, 1, i - 1) substr(t, j + 3)
  }
  if (s ~ /^(    |\t)/ && s !~ /^[ \t]+([-*+]|[0-9]+[.)])[ \t]/) next
  gsub(/``[^`]*``/, "", s); gsub(/`[^`]*`/, "", s); gsub(/\\[][]/, "", s)
  if (match(s, /^ ? ? ?\[[^]^][^]]*\]:[ \t]*[^ \t]+/)) {
    t = substr(s, RSTART, RLENGTH); sub(/^ *\[[^]]*\]:[ \t]*/, "", t); link(t); next
  }
  while (match(s, /\]\([^()]*(\([^()]*\)[^()]*)*\)/)) {
    t = substr(s, RSTART + 2, RLENGTH - 3); before = substr(s, 1, RSTART - 1); s = substr(s, RSTART + RLENGTH)
    if (index(before, "[")) link(t)
  }
}
function link(t,    d, up, n, part, k) {
  gsub(/^[ \t]+|[ \t]+$/, "", t); sub(/[ \t]+["\047(].*$/, "", t); sub(/^</, "", t); sub(/>$/, "", t)
  if (t == "" || t ~ /^[A-Za-z][A-Za-z0-9+.-]*:/ || t ~ /^[#\/?]/ || t ~ /[{}$<>*|\\ \t@"]/ || t ~ /^[.][.][.]/) return
  sub(/[#?].*$/, "", t)
  # A bare word may be the name of an item and a page of HTML may yet be made, in documentation that a tool reads.
  if (t == "" || t !~ /[A-Za-z0-9]/ || t !~ /[.\/]/ || t ~ /[.]html?$/) return
  # A link above this directory may be meant for the site the files are shown on.
  n = split(substr(dir, 3) t, part, "/"); up = 0
  for (k = 1; k <= n; k++) if (part[k] == "..") { if (--up < 0) return } else if (part[k] != "." && part[k] != "") up++
  print "C\t" dir t "\t" enc(FILENAME) "\t" FNR "\t" t "\t" quote($0)
}
