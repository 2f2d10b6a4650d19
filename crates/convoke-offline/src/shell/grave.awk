# Puts the severity of a finding before its weight, so that what is cut off is what matters least.
BEGIN { FS = OFS = "\t"; n = split(ENVIRON["RANKS"], r, " "); for (i = 1; i < n; i += 2) rank[r[i]] = r[i + 1] }
$1 == "STRAY" { $0 = "I\t0\tstray_file\t" $2 "\t0\t0\t\t\t." }
$1 == "I" { $2 += 100000 * rank[$3] }
{ print }
