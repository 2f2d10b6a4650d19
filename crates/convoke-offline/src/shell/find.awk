# Lines that hold the text WORD, or with no WORD all the words of WORDS whatever their case.
BEGIN { w = ENVIRON["WORD"]; n = split(tolower(ENVIRON["WORDS"]), part, " "); print "N\tscanned\t" ARGC - 1 }
/[\001-\010]/ { next }
ONLY != "" && lang(FILENAME) != ONLY { next }
{
  if (w != "") { i = index($0, w); if (!i) next; d = substr($0, 1, i - 1) }
  else { low = tolower($0); for (i = 1; i <= n; i++) if (!index(low, part[i])) next; d = "" }
  item(d ~ /(^|[^A-Za-z0-9_])(fn|def|class|struct|enum|trait|type|func|function|const|static|let|var|interface|mod|macro_rules!|#define)[ \t]+$/, "hit", FILENAME, FNR, FNR, $0)
}
