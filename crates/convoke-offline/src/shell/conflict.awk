# Merge conflicts that are not resolved: the three marks at the beginning of lines, in order. With LEX before it (sources) a mark
# inside a string does not count, else one inside a fenced block of Markdown does not.
function conflict(inside,    t) {
  t = $0; sub(/\r$/, "", t)
  if (t ~ /^<<<<<<< ./) { begun_at = inside ? 0 : FNR; begun_with = t; middle = 0 }
  else if (begun_at && t == "=======") middle = 1
  else if (begun_at && middle && t ~ /^>>>>>>> ./) {
    if (!testpath(FILENAME)) item(0, "conflict", FILENAME, begun_at, FNR, begun_with)
    begun_at = 0
  }
}
