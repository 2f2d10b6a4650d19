# Names of the files below here, NUL-separated and with ./ in front. $1 says which: kept (all but what is left out),
# source (those of the languages that are looked into, at most 5,000), other (kept and not source), pick (those whose name
# fits a pattern) or why (for each file left out the reason, as a line). The arrays IN and EX name directories or files
# that alone, or not, are looked at.
# What may not be read is said on descriptor 3: a line F and a file, a line D and a directory.
export LC_ALL=C GIT_OPTIONAL_LOCKS=0
exec 3>/dev/null
T=$(printf '\t')
A=$S
# Whether a path lies in a directory that may not be entered, so that it cannot be known whether it exists.
barred() {
  local d=$1
  while [ "$d" != "${d%/*}" ]; do
    d=${d%/*}
    [ -d "$d" ] && { [ ! -x "$d" ]; return; }
  done
  return 1
}
[ -z "$S" ] || [ -e "./$S" ] || barred "./$S" || S=
in_git() { git rev-parse --is-inside-work-tree && ! git check-ignore -q . && git ls-files -z; } >/dev/null 2>&1
listing() {
  if in_git; then git -c core.fsmonitor=false ls-files -z -co --exclude-standard
  else find . -name .git -prune -o -type f -print0; fi
}
names() { { listing 2>&1 >&4 4>&- | closed >&3; } 4>&1; }
# A path on one line.
line() {
  local p=${1#./}
  p=${p//%/%25}; p=${p//$'\t'/%09}; p=${p//$'\n'/%0A}; p=${p//$'\r'/%0D}
  printf '%s\t%s\n' "$2" "$p"
}
# Directories, from the complaints of git or find.
closed() {
  local e f
  while IFS= read -r e; do
    case $e in
      *': No such file or directory') continue ;;
      "find: '"*) e=${e#find: \'}; e=$(printf '%b' "${e%\': *}") ;;
      'find: '*) e=${e#find: }; e=${e%: *} ;;
      "warning: could not open directory '"*) e=${e#warning: could not open directory \'}; e=${e%\': *} ;;
      *) continue ;;
    esac
    e=${e#./}; f=./${e%/}
    case $f in ./.) ;; *) within "$f" || case ./$S in "$f"/*) ;; *) continue ;; esac; esac
    case $(kind "$f/") in source | kept) line "$f" D ;; esac
  done
}
within() {
  listed "$1" || return 1
  case $S in '' | .) return 0 ;; esac
  case $1 in "./$S" | "./$S"/*) return 0 ;; esac
  return 1
}
listed() {
  local d
  for d in "${EX[@]}"; do case $1 in "./$d" | "./$d"/*) return 1 ;; esac; done
  [ ${#IN[@]} -eq 0 ] && return 0
  for d in "${IN[@]}"; do case $1 in "./$d" | "./$d"/*) return 0 ;; esac; done
  return 1
}
kind() { sort_out "$1"; printf '%s' "$k"; }
# Sets k to what a file is.
sort_out() {
  # A target directory below src is a module called target, not what a build left behind.
  case $1 in */src/target/* | */src/*/target/*) k=${1//\/target\//\/} ;; *) k=$1 ;; esac
  case $k in
    */vendor/* | */_vendor/* | */vendored/* | */third_party/* | */third-party/* | */node_modules/* | */bower_components/* | */.venv/* | */venv/* | */site-packages/*) k=vendored ;;
    */target/* | */dist/* | */__pycache__/* | */.next/* | *.min.js | *.min.css | *.map | *.pb.go | *.pb.h | *.pb.cc | *_pb2.py | *.pyc) k=generated ;;
    *.lock | */package-lock.json | */npm-shrinkwrap.json | */pnpm-lock.yaml | */go.sum) k=lock ;;
    @SOURCE@) k=source ;;
    *) k=kept ;;
  esac
}
# Whether a name is UTF-8: another one cannot be written into a report, and could not be looked up again.
utf8() {
  local g=$1 c=[$'\200'-$'\277']
  g=${g//[$'\360'-$'\364']$c$c$c/_}; g=${g//[$'\340'-$'\357']$c$c/_}; g=${g//[$'\302'-$'\337']$c/_}
  [[ $g != *[$'\200'-$'\377']* ]]
}
# Whether a file may be read. Links are not followed, and what was deleted is not there: neither is worth a word.
readable() {
  utf8 "$1" || { printf 'N\tmisnamed\t1\n' >&3; return 1; }
  [ -r "$1" ] && return 0
  [ -L "$1" ] && return 1
  if [ -e "$1" ]; then [ -f "$1" ] && line "$1" F; elif barred "$1"; then line "$1" F; fi >&3
  return 1
}
files() {
  local f k p= n=0
  names | while IFS= read -r -d '' f; do
    f=./${f#./}
    [ "$f" = "$p" ] && continue
    p=$f
    within "$f" || continue
    sort_out "$f"
    case $1$k in
      keptkept | keptsource) readable "$f" && printf '%s\0' "$f" ;;
      sourcesource)
        readable "$f" || continue
        n=$((n + 1)); [ $n -gt 5000 ] && printf 'N\tcapped\t1\n' >&3 && break; printf '%s\0' "$f" ;;
      otherkept) readable "$f" && printf '%s\0' "$f" ;;
      pickkept | picksource) case ${f##*/} in @PICK@) readable "$f" && printf '%s\0' "$f" ;; esac ;;
      whyvendored | whygenerated | whylock) printf 'N\t%s\t1\n' $k ;;
    esac
  done
}
# Only regular files of less than 2 MiB are opened.
small() { xargs -0 sh -c 'find "$@" -prune -type f -size -4096 -print0' _ 2>/dev/null; }
big() { xargs -0 sh -c 'find "$@" -prune -type f -size +4095 -print0' _ 2>/dev/null; }
# Runs an awk program over them. Some awks end at a file that went away, with the files after it unread.
over() { xargs -0 awk "$1" 2>/dev/null || printf 'N\tbroken\t1\n'; }
every() { files kept | small | over "$P"; }
sources() { files source | small | over "$P"; }
# Runs one of these two; what was said on descriptor 3 follows when everything else is written, so that no line is torn.
noting() { { "$1" 3>&1 >&4 4>&- | awk "$UNREAD" >&4; } 4>&1; }
top() { sort -t"$T" -k2,2nr -k4,4 -k5,5n | awk -v MAX="$1" -v HEAD="$2" "$TOP"; }
