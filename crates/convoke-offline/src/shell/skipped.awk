# Tests that are switched off, or on alone.
function first_line() {}
function last_line(f) {}
function off(what) { DETAIL = what; item(0, "test_skipped", FILENAME, FNR, FNR, $0) }
function each_line() {
  if (lg ~ /Script/) {
    if (CODE ~ /(^|[^A-Za-z0-9_$.])(describe|context|it|test)[.]only[ \t]*[(]/) { DETAIL = "`.only`"; item(1, "test_only", FILENAME, FNR, FNR, $0) }
    else if (CODE ~ /(^|[^A-Za-z0-9_$.])(describe|context|it|test)[.]skip[ \t]*[(]/) off("`.skip`")
    else if (testpath(FILENAME) && CODE ~ /^[ \t]*(xit|xdescribe|xtest)[ \t]*[(]/) off("`xit`")
  } else if (lg == "Rust") {
    if (CODE ~ /^[ \t]*#\[ignore\]/) off("`#[ignore]`")
  } else if (lg == "Python") {
    if (CODE ~ /^[ \t]*@(pytest[.]mark[.]skip|unittest[.]skip)[ \t]*([(]|$)/) off("`skip`")
  }
}
