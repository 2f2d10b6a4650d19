# Conflicts in all other files.
FNR == 1 { begun_at = 0; fence = 0; md = FILENAME ~ /[.](md|markdown|mdx|rst|adoc|txt)$/ }
md && /^ ? ? ?(```|~~~)/ { fence = !fence; next }
{ conflict(fence) }
