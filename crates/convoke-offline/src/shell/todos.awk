# TODO, FIXME, XXX and HACK as words in comments. For a worker (KINDS) only where they mark something to be done: at the
# beginning of the comment or before a colon, and not where a comment speaks about such markers.
function first_line() {}
function last_line(f) {}
function each_line(    rest, word, start) {
  if (!match(COMM, /(^|[^A-Za-z0-9_])(TODO|FIXME|XXX|HACK)([^A-Za-z0-9_]|$)/)) return
  start = substr(COMM, 1, RSTART); rest = substr(COMM, RSTART)
  match(rest, /TODO|FIXME|XXX|HACK/); word = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
  if (KINDS != "" && !marks(start, rest)) return
  DETAIL = word
  item(0, "comment", FILENAME, FNR, FNR, $0)
}
function marks(start, rest) {
  if (rest ~ /^[(][^()]*[)][ \t]*:/ || rest ~ /^:([^:]|$)/) return start !~ /[`"\047]$/
  if (start ~ /[^ \t*!\/#;<>@-][^ \t]*[ \t]/ || start ~ /[A-Za-z0-9`"\047(\[{]$/) return 0
  if (rest ~ /^[`"\047,\/]/) return 0
  return rest !~ /^s?[ \t]+(comments?|markers?|marks?|and|or|in|items?|lists?|is|are|words?|tags?)([^A-Za-z]|$)/
}
