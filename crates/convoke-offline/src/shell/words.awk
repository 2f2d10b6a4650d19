# Lines that hold at least LEAST of the terms in TERMS, whatever their case; those with most of them come first.
BEGIN { n = split(tolower(ENVIRON["TERMS"]), term, "\n"); least = ENVIRON["LEAST"] + 0; print "N\tlooked\t" ARGC - 1 }
/[\001-\010]/ || length($0) > 4000 { next }
{
  low = tolower($0); held = 0; said = ""
  for (i = 1; i <= n; i++) if (index(low, term[i])) { held++; said = said (said == "" ? "" : ", ") term[i] }
  if (held >= least) { DETAIL = said; item(held, "hit", FILENAME, FNR, FNR, $0) }
}
