# What each source file defines at its top level, and what it says of itself in its first lines. The first of all files come first.
function first_line() { FILE = FILENAME; defs = 0; total = 0; doc = 0 }
function last_line(f) { if (!skip) item(3000, "file", f, defs, total, "") }
function each_line(    c) {
  total = FNR; c = CODE
  if (!doc && !defs && FNR <= 5 && $0 !~ /^#!/ && $0 !~ /coding[:=]/) {
    if (lg == "Python" && at == "" && $0 ~ /^[rRuU]?("""|\047\047\047)[^ \t]/) says()
    else if (lg != "Python" && CODE !~ /[^ \t]/ && COMM ~ /[A-Za-z]/ && COMM !~ /SPDX|[Cc]opyright|[Ll]icen[sc]e/) says()
  }
  if (at != "" || c ~ /^[ \t]/ || !defines(c)) return
  defs++
  item(2000 - (defs > 1999 ? 1999 : defs), "def", FILENAME, FNR, FNR, $0)
}
function says() { doc = 1; item(2500, "doc", FILENAME, FNR, FNR, $0) }
function defines(c) {
  if (lg == "Python") return c ~ /^(async[ \t]+)?(def|class)[ \t]+[A-Za-z_]/
  if (lg == "Rust") return c ~ /^(pub([(][^)]*[)])?[ \t]+)?((async|unsafe|const|extern[ \t]+"")[ \t]+)*(fn|struct|enum|union|trait|mod|type|const|static|macro_rules!)[ \t]+[A-Za-z_]/
  if (lg == "Go") return c ~ /^(func|type)[ \t(]/
  if (lg ~ /Script/) return c ~ /^(export[ \t]+)?(default[ \t]+)?(declare[ \t]+)?(abstract[ \t]+)?((async[ \t]+)?function|class|interface|enum)([ \t*]|$)/ || c ~ /^export[ \t]+(const|let|var|type)[ \t]+[A-Za-z_$]/ || c ~ /^(const|let|var)[ \t]+[A-Za-z_$][A-Za-z0-9_$]*[^=]*=[ \t]*(async[ \t]*)?([(].*=>|function)/
  if (lg == "Java") return c ~ /^((public|protected|private|abstract|final|static|sealed)[ \t]+)*(class|interface|enum|record)[ \t]+[A-Za-z_]/
  if (lg == "Shell") return c ~ /^(function[ \t]+)?[A-Za-z_][A-Za-z0-9_-]*[ \t]*[(][)]/ || c ~ /^function[ \t]+[A-Za-z_]/
  return c ~ /^(typedef|struct|class|enum|union|namespace|template|#[ \t]*define)[ \t]*[A-Za-z_<]/ || (c ~ /^[A-Za-z_][A-Za-z0-9_:<>,*& \t]*[ \t*&]~?[A-Za-z_][A-Za-z0-9_:]*[ \t]*[(][^;]*$/ && c !~ /^(return|else|if|for|while|switch|case|do|using|extern)[^A-Za-z0-9_]/)
}
