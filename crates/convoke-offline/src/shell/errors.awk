# Errors that are not handled, outside of what looks like tests. A build script of Rust panics to fail the build, which is what it is for.
function first_line() { blocks_reset(); FILE = FILENAME; tests = testpath(FILENAME) || (FILENAME ~ /\/build[.]rs$/ && FILENAME !~ /\/src\//); wait = ""; safe = 0; bang = "" }
function last_line(f) { if (bang != "" && !safe) item(0, "sh_no_errexit", f, 1, 1, bang) }
function opened(a, line, raw, plain) {}
function closed() {}
function found(kind) { item(0, kind, FILENAME, FNR, FNR, $0) }
function each_line(    intest) {
  if (tests) return
  if (lg == "Rust") {
    intest = td >= 0 || tattr; blocks(CODE); if (intest || td >= 0 || tattr) return
    if (CODE ~ /[.]unwrap[(][)]/) found("rust_unwrap")
    if (CODE ~ /[.]expect[(](""|&format!)/ || (CODE ~ /[.]expect[(]"$/ && st != "")) found("rust_expect")
    if (CODE ~ /(^|[^A-Za-z0-9_])panic![ \t]*[({[]/) found("rust_panic")
    if (KINDS != "" && CODE ~ /(^|[^A-Za-z0-9_])(todo|unimplemented)![ \t]*[({[]/) found("rust_todo")
    return
  }
  if (lg == "Shell") {
    if (FNR == 1 && $0 ~ /^#!.*sh/) { bang = $0; if ($0 ~ /[ \t]-[a-z]*e/) safe = 1 }
    if (CODE ~ /(^|[;&|{( \t])set[ \t][^;|&]*(-[a-zA-Z]*e|errexit)/) safe = 1
    return
  }
  if (wait != "") {
    if (COMM ~ /[^ \t]/) wait = ""
    else if (CODE ~ /[^ \t]/) {
      if (wait == "py_except_pass" ? CODE ~ /^[ \t]*pass[ \t]*$/ : CODE ~ /^[ \t]*[}]/) item(0, wait, FILENAME, wl, wl, wr)
      wait = ""
    }
  }
  if (at != "") return
  if (lg == "Python") {
    if (CODE ~ /^[ \t]*except[ \t]*:/) found("py_bare_except")
    else if (CODE ~ /^[ \t]*except[ \t]+(Base)?Exception([ \t]+as[ \t]+[A-Za-z_0-9]+)?[ \t]*:[ \t]*pass[ \t]*$/ && COMM !~ /[^ \t]/) found("py_except_pass")
    else if (CODE ~ /^[ \t]*except[ \t]+(Base)?Exception([ \t]+as[ \t]+[A-Za-z_0-9]+)?[ \t]*:[ \t]*$/ && COMM !~ /[^ \t]/) later("py_except_pass")
  } else if (lg ~ /Script/ || lg == "Java") {
    if (COMM ~ /[^ \t]/) return
    if (CODE ~ /(^|[^A-Za-z0-9_$])catch[ \t]*([(][^()]*[)])?[ \t]*[{][ \t]*[}]/ || CODE ~ /[.]catch[(][ \t]*[(]?[A-Za-z_$0-9]*[)]?[ \t]*=>[ \t]*[{][ \t]*[}][ \t]*[)]/) found("empty_catch")
    else if (CODE ~ /(^|[^A-Za-z0-9_$.])catch[ \t]*([(][^()]*[)])?[ \t]*[{][ \t]*$/) later("empty_catch")
  } else if (lg == "Go") {
    if (COMM ~ /[^ \t]/) return
    if (CODE ~ /^[ \t]*_([ \t]*,[ \t]*_)*[ \t]*=[ \t]*[A-Za-z_][A-Za-z0-9_.]*[(]/) found("go_dropped")
    else if (CODE ~ /(^|[^A-Za-z0-9_])if[ \t].*err[ \t]*!=[ \t]*nil[ \t]*[{][ \t]*[}]/) found("go_empty_if")
    else if (CODE ~ /(^|[^A-Za-z0-9_])if[ \t].*err[ \t]*!=[ \t]*nil[ \t]*[{][ \t]*$/) later("go_empty_if")
  }
}
function later(kind) { wait = kind; wl = FNR; wr = $0 }
