# Aids for debugging that were left in, outside of what looks like tests.
function first_line() { blocks_reset(); above = ""; FILE = FILENAME; tests = testpath(FILENAME); tool = FILENAME ~ /\/(bin|scripts?|cli|tools?)\// || FILENAME ~ /(cli|[.]config|gulpfile|Gruntfile|build)[.][a-z]+$/ }
function last_line(f) {}
function opened(a, line, raw, plain) {}
function closed() {}
# A comment that says that it is meant shows that it was not forgotten.
function meant(s) { return tolower(s) ~ /(^|[^a-z])(intentional|noqa)/ }
function found(what) { if (meant($0) || meant(above)) return; DETAIL = what; item(0, "debug", FILENAME, FNR, FNR, $0) }
function says(call) { return CODE ~ call && tolower($0) ~ /(print[a-z]*!?|log)[ \t]*[(][ \t]*[bfru]?["\047`][ \t]*[[(<*>=#-]*(debug|xxx|here[ \t!.:"\047])/ }
function each_line(    intest) {
  if (tests) return
  if (FNR == 1 && /^#!/) tool = 1
  if (lg == "Rust") {
    intest = td >= 0 || tattr; blocks(CODE); if (intest || td >= 0 || tattr) return
    if (CODE ~ /(^|[^A-Za-z0-9_])dbg![ \t]*[({[]/) found("`dbg!`")
    else if (says("e?print(ln)?![ \t]*[(]")) found("a debugging `println!`")
    return
  }
  if (lg == "Python") {
    if (CODE ~ /(^|[^A-Za-z0-9_.])breakpoint[(][)]/) found("`breakpoint()`")
    else if (CODE ~ /(^|[^A-Za-z0-9_.])i?pdb[.]set_trace[(][)]/) found("`pdb.set_trace()`")
    else if (says("(^|[^A-Za-z0-9_.])print[ \t]*[(]")) found("a debugging `print`")
  } else if (lg ~ /Script/) {
    if (CODE ~ /(^|[;{}( \t])debugger[ \t]*(;|$)/) found("`debugger`")
    else if (!tool && CODE ~ /(^|[^A-Za-z0-9_$.])console[.](log|debug)[ \t]*[(]/) found("`console.log`")
    else if (tool && says("console[.]log[ \t]*[(]")) found("a debugging `console.log`")
  } else if (lg == "Go") {
    if (says("fmt[.]Print(ln|f)?[(]")) found("a debugging `fmt.Print`")
  } else if (lg == "Java") {
    if (says("System[.]out[.]print(ln|f)?[(]")) found("a debugging `System.out.println`")
  }
}
{ above = $0 }
