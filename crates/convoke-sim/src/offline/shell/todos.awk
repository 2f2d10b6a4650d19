# TODO, FIXME, XXX and HACK as words in comments.
function first_line() {}
function last_line(f) {}
function each_line() {
  if (match(COMM, /(^|[^A-Za-z0-9_])(TODO|FIXME|XXX|HACK)([^A-Za-z0-9_]|$)/)) {
    match(substr(COMM, RSTART), /TODO|FIXME|XXX|HACK/)
    item(0, "comment", FILENAME, FNR, FNR, $0)
  }
}
