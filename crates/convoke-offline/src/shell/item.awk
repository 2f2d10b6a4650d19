# A finding of the solo review.
function item(weight, kind, path, first, last, s) {
  print "I\t" weight "\t" kind "\t" enc(path) "\t" first "\t" last "\t" clean(s) "\t."
}
