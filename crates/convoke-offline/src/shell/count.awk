# Files and lines by language; files of no known language are counted and not opened.
BEGIN { for (i = 1; i < ARGC; i++) { g = lang(ARGV[i]); print "N\tfiles_" (g == "" ? "other" : g) "\t1"; if (g == "") ARGV[i] = "" } }
FNR == 1 { g = lang(FILENAME) }
{ n[g]++ }
END { for (g in n) if (g != "") print "N\tlines_" g "\t" n[g] }
