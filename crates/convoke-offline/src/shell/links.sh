# Passes on the links that lead nowhere; a page may be named as it is shown and not as its file is called.
there() {
  local p=$1 e
  case $p in *%[0-9A-Fa-f][0-9A-Fa-f]*) [ -e "$(printf '%b' "${p//%/\\x}")" ] && return 0 ;; esac
  [ -e "$p" ] && return 0
  for e in .md .mdx .markdown .rst .adoc .html /index.md /README.md; do [ -e "${p%/}$e" ] && return 0; done
  return 1
}
dangling() {
  local l c p f n t q
  while IFS= read -r l; do
    case $l in C"$T"*) ;; *) printf '%s\n' "$l"; continue ;; esac
    l=${l#*"$T"}; p=${l%%"$T"*}; l=${l#*"$T"}; f=${l%%"$T"*}; l=${l#*"$T"}; n=${l%%"$T"*}; l=${l#*"$T"}; t=${l%%"$T"*}; q=${l#*"$T"}
    there "$p" || printf 'I\t0\tbroken_link\t%s\t%s\t%s\t%s\t%s\t.\n' "$f" "$n" "$n" "$q" "$t"
  done
}
