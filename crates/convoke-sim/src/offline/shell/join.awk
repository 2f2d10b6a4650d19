# Keeps the source files whose name no test mentions.
BEGIN { FS = "\t" }
$1 == "W" { seen[$2] = 1; next }
$1 == "S" { s[++n] = $0; next }
{ print }
END { for (i = 1; i <= n; i++) { split(s[i], f, "\t"); if (!(f[3] in seen)) print "I\t" f[2] "\tuntested\t" f[4] "\t" f[5] "\t" f[5] "\t" f[6] "\t." } }
