# The number of lines of every file of a known language; with ALL also the other files, unopened.
BEGIN { for (i = 1; i < ARGC; i++) { g = lang(ARGV[i]); if (g == "" || (ONLY != "" && g != ONLY)) { if (ENVIRON["ALL"] != "" && ONLY == "") item(0, "file", ARGV[i], 1, 0, ""); ARGV[i] = "" } else size[ARGV[i]] = 0 } }
{ if (FILENAME != "") size[FILENAME] = FNR }
END { for (p in size) item(ENVIRON["ALL"] != "" ? 0 : size[p], "file", p, 1, size[p], "") }
