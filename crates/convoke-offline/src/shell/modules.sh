# Modules of Rust that are compiled for tests only, wherever they are declared.
test_modules() {
  local IN EX S
  IN=(); EX=(); S=
  files source 3>/dev/null | small | xargs -0 grep -lE --null -e '^[[:space:]]*#\[cfg\((all\()?test' -- 2>/dev/null | xargs -0 awk "$1" /dev/null 2>/dev/null | head -c 60000
}
