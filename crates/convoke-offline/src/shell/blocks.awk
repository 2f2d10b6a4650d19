# Follows braces: opened(text, line, raw) is called for every block with what stands before it, closed() when it ends.
function blocks_reset() { D = 0; pd = 0; apd = 0; acc = ""; al = 0; ar = ""; tattr = 0; td = -1; cpp = 0 }
function take(s) {
  if (s ~ /[^ \t]/) {
    if (acc !~ /[^ \t]/ || (lg == "Rust" && s ~ /(^|[^A-Za-z0-9_])fn[ \t]+[A-Za-z_]/)) { al = FNR; ar = $0 }
  }
  acc = acc s
}
function blocks(c,    ch) {
  if (lg ~ /^C/ && (cpp || (at == "" && c ~ /^[ \t]*#/))) { cpp = c ~ /\\$/; return }
  if (lg == "Go") gsub(/(interface|struct)[ \t]*[{][}]/, "T", c)
  if (lg == "Rust" && is_test_mark(c)) { tattr = 1; if (c ~ /#!/ && D == 0) td = 0 }
  while (match(c, /[][{}();]/)) {
    take(substr(c, 1, RSTART - 1)); ch = substr(c, RSTART, 1); c = substr(c, RSTART + 1)
    if (ch == "(" || ch == "[") { pd++; take(ch) }
    else if (ch == ")" || ch == "]") { if (pd > apd) pd--; take(ch) }
    else if (ch == ";") { if (pd == apd) { acc = ""; tattr = 0 } else take(ch) }
    else if (ch == "{") {
      D++
      sa[D] = acc; sl[D] = al; sr[D] = ar; sp[D] = apd; sd[D] = pd
      if (tattr && pd == apd) { if (td < 0) td = D; tattr = 0 }
      opened(acc, al, ar, pd == apd)
      acc = ""; apd = pd
    }
    else if (D > 0) {
      closed()
      if (td == D) td = -1
      tattr = 0
      pd = sd[D]; apd = sp[D]
      if (pd > apd) { acc = sa[D] "{}"; al = sl[D]; ar = sr[D] } else acc = ""
      D--
    }
  }
  take(c)
  if (pd == apd && (acc ~ /^[ \t]*@[A-Za-z_.]+([(].*[)])?[ \t]*$/ || acc ~ /^[ \t]*#!?\[.*\][ \t]*$/ || acc ~ /^[ \t]*(public|private|protected|default|case [^:]*)[ \t]*:[ \t]*$/)) acc = ""
  else if (pd == apd && (lg == "Go" || (lg ~ /Script/ && acc !~ /[=,(&|+?:][ \t]*$/))) acc = ""
  else acc = acc " "
}
function indent(s) { match(s, /^[ \t]*/); return substr(s, 1, RLENGTH) }
