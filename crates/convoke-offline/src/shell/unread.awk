# Counts the files and directories that may not be read, each once; with NAMED also names them.
BEGIN { FS = "\t" }
$1 == "N" { o[++m] = $0; next }
$0 in known { next }
{ known[$0] = 1 }
$1 == "D" { o[++m] = "N\tclosed\t1"; kind = "closed" }
$1 == "F" {
  g = lang($2)
  if (ONLY != "" && g != ONLY) next
  o[++m] = "N\tlocked\t1"; o[++m] = "N\tlocked_" (g == "" ? "other" : g) "\t1"; kind = "locked"
}
ENVIRON["NAMED"] != "" { o[++m] = "I\t0\t" kind "\t" $2 "\t1\t0\t\t." }
END { for (i = 1; i <= m; i++) print o[i] }
