# Lines of source files that name a testing framework: what they import, or the mark of a test. One line of each file is enough.
function first_line() { split("", told); if (FILENAME ~ /\/conftest[.]py$/) said("pytest") }
function last_line(f) {}
function said(kind) { if (!(kind in told)) { told[kind] = 1; item(1, kind, FILENAME, FNR, FNR, $0) } }
function each_line() {
  if (at != "" || CODE !~ /[^ \t]/) return
  if (lg == "Rust") { if (CODE ~ /^[ \t]*#\[([a-z_]+::)*test[](]/) said("cargo_test") }
  else if (lg == "Python") {
    if (CODE ~ /^[ \t]*(import|from)[ \t]+pytest([ \t.,]|$)/) said("pytest")
    if (CODE ~ /^[ \t]*(import|from)[ \t]+unittest([ \t.,]|$)/) said("unittest")
    if (CODE ~ /doctest[.]testmod[(]/) said("doctest")
  }
  else if (lg == "Go") { if (FILENAME ~ /_test[.]go$/ && $0 ~ /^[ \t]*(import[ \t]+)?"testing"/) said("go_test") }
  else if (lg ~ /Script/) {
    if ($0 ~ /["\047]vitest["\047]/ && CODE ~ /import|require/) said("vitest")
    if ($0 ~ /["\047]@jest\/globals["\047]/ && CODE ~ /import|require/) said("jest")
    if ($0 ~ /["\047]mocha["\047]/ && CODE ~ /import|require/) said("mocha")
    if ($0 ~ /["\047]node:test["\047]/ && CODE ~ /import|require/) said("node_test")
    if ($0 ~ /["\047]@playwright\/test["\047]/ && CODE ~ /import|require/) said("playwright")
  }
  else if (lg == "Java") {
    if (CODE ~ /^[ \t]*import[ \t]+(static[ \t]+)?org[.]junit[.]/) said("junit")
    if (CODE ~ /^[ \t]*import[ \t]+(static[ \t]+)?org[.]testng[.]/) said("testng")
  }
  else if (lg ~ /^C/) {
    if ($0 ~ /^[ \t]*#[ \t]*include[ \t]*[<"]g(test|mock)\//) said("googletest")
    if ($0 ~ /^[ \t]*#[ \t]*include[ \t]*[<"]catch2?[\/.]/) said("catch2")
  }
}
