# What is missing at the top, and what was left lying about. Nothing is said of a directory inside a repository.
stray() {
  [ -e "$1" ] || return 0
  # Cargo puts the manifest it was given beside the one it wrote into a package.
  case $1 in */Cargo.toml.orig) [ -e "${1%.orig}" ] && return 0 ;; esac
  if utf8 "$1"; then line "$1" STRAY; else printf 'N\tmisnamed\t1\n'; fi
}
tidy() {
  local f k r= l= n=0
  while IFS= read -r -d '' f; do
    f=./${f#./}; n=$((n + 1))
    case $f in
      ./[Rr][Ee][Aa][Dd][Mm][Ee]*) r=1 ;;
      ./[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* | ./[Cc][Oo][Pp][Yy][Ii][Nn][Gg]* | ./[Uu][Nn][Ll][Ii][Cc][Ee][Nn][Ss][Ee]*) l=1 ;;
    esac
    case ${f##*/} in *.orig | *.rej | *.swp | *~ | .DS_Store | Thumbs.db) sort_out "$f"; case $f$k in */fixtures/* | *vendored | *generated) ;; *) stray "$f" ;; esac ;; esac
  done < <(names)
  printf 'N\tlooked\t%s\n' "$n"
  [ "$n" -gt 0 ] && [ -z "$(git rev-parse --show-prefix 2>/dev/null)" ] || return 0
  [ "$r" ] || printf 'I\t0\tmissing_readme\t.\t0\t0\t\t\t.\n'
  [ "$l" ] || printf 'I\t0\tmissing_license\t.\t0\t0\t\t\t.\n'
}
