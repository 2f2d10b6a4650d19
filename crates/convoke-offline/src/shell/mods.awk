# Modules that are compiled for tests only, by their declarations: their paths without the ending.
FNR == 1 {
  dir = FILENAME; sub(/\/[^\/]*$/, "", dir)
  stem = FILENAME; sub(/.*\//, "", stem); sub(/[.]rs$/, "", stem)
  home = stem ~ /^(mod|lib|main)$/ ? dir : dir "/" stem
  marked = 0; other = ""
}
/^[ \t]*#\[cfg\((all\()?test[,)]/ { marked = 1; rest = $0; sub(/^[ \t]*#\[[^]]*\]/, "", rest); if (rest !~ /[^ \t]/) next; $0 = rest }
marked && match($0, /^[ \t]*#\[path[ \t]*=[ \t]*"[^"]*"/) { other = substr($0, RSTART, RLENGTH - 1); sub(/.*"/, "", other); sub(/[.]rs$/, "", other); next }
marked && /^[ \t]*(#\[|\/\/|$)/ { next }
marked && match($0, /^[ \t]*(pub([(][a-z:A-Z_ ]*[)])?[ \t]+)?mod[ \t]+[A-Za-z0-9_]+[ \t]*;/) {
  name = substr($0, RSTART, RLENGTH); sub(/[ \t]*;$/, "", name); sub(/.*[ \t]/, "", name)
  print other == "" ? home "/" name : dir "/" other
}
{ marked = 0; other = "" }
