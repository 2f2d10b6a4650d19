# A finding of a worker: the kinds in KINDS alone, nothing from fixtures, with a detail and the beginning of the line.
BEGIN { KINDS = ENVIRON["KINDS"]; if (!QUOTE) QUOTE = 200 }
function flat(s) { gsub(/[\001-\037\177]/, " ", s); return substr(s, 1, 100) }
function quote(s) {
  sub(/\r$/, "", s); sub(/[\001-\010\013-\037\177].*/, "", s); gsub(/\t/, " ", s)
  sub(/^ +/, "", s)
  if (length(s) > QUOTE) { s = substr(s, 1, QUOTE); sub(/[\300-\377][\200-\277]*$/, "", s); if (s ~ /[^A-Za-z0-9_\200-\377]/) sub(/[A-Za-z0-9_\200-\377]+$/, "", s) }
  sub(/ +$/, "", s)
  return s
}
function fixture(p) { return p ~ /\/(fixtures?|testdata|test-data|test_data|golden|snapshots?|__snapshots__)\// }
function item(weight, kind, path, first, last, s,    d) {
  d = DETAIL; DETAIL = ""
  if (index(KINDS, " " kind " ") == 0 || fixture(path)) return
  print "I\t" weight "\t" kind "\t" enc(path) "\t" first "\t" last "\t" quote(s) "\t" flat(d) "\t."
}
