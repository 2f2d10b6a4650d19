# Names of the files below here, NUL-separated and with ./ in front. $1 says which: kept (all but what is left out),
# source (those of the languages that are looked into, at most 5,000) or why (for each file left out the reason, as a line).
export LC_ALL=C GIT_OPTIONAL_LOCKS=0
T=$(printf '\t')
A=$S
[ -z "$S" ] || [ -e "./$S" ] || S=
in_git() { git rev-parse --is-inside-work-tree >/dev/null 2>&1 && ! git check-ignore -q . 2>/dev/null; }
names() {
  if in_git; then git -c core.fsmonitor=false ls-files -z -co --exclude-standard
  else find . -name .git -prune -o -type f -print0; fi 2>/dev/null
}
files() {
  local f k p= n=0
  names | while IFS= read -r -d '' f; do
    f=./${f#./}
    [ "$f" = "$p" ] && continue
    p=$f
    case $S in '' | .) ;; *) case $f in "./$S" | "./$S"/*) ;; *) continue ;; esac ;; esac
    # A target directory below src is a module called target, not what a build left behind.
    case $f in */src/target/* | */src/*/target/*) k=${f//\/target\//\/} ;; *) k=$f ;; esac
    case $k in
      */vendor/* | */vendored/* | */third_party/* | */third-party/* | */node_modules/* | */bower_components/* | */.venv/* | */venv/* | */site-packages/*) k=vendored ;;
      */target/* | */dist/* | */__pycache__/* | */.next/* | *.min.js | *.min.css | *.map | *.pb.go | *.pb.h | *.pb.cc | *_pb2.py | *.pyc) k=generated ;;
      *.lock | */package-lock.json | */npm-shrinkwrap.json | */pnpm-lock.yaml | */go.sum) k=lock ;;
      @SOURCE@) k=source ;;
      *) k=kept ;;
    esac
    case $1$k in
      keptkept | keptsource) printf '%s\0' "$f" ;;
      sourcesource) n=$((n + 1)); [ $n -gt 5000 ] && printf 'N\tcapped\t1\n' >&3 && break; printf '%s\0' "$f" ;;
      whyvendored | whygenerated | whylock) printf 'N\t%s\t1\n' $k ;;
    esac
  done
}
# Only regular files of less than 2 MiB are opened.
small() { xargs -0 sh -c 'find "$@" -prune -type f -size -4096 -print0' _ 2>/dev/null; }
big() { xargs -0 sh -c 'find "$@" -prune -type f -size +4095 -print0' _ 2>/dev/null; }
# Runs an awk program over them.
over() { xargs -0 awk "$1" 2>/dev/null; }
# Runs it over the source files; what is said on descriptor 3 goes the same way as its findings.
scan() { { files source | small | over "$P"; } 3>&1; }
top() { sort -t"$T" -k2,2nr -k4,4 -k5,5n | awk -v MAX="$1" "$TOP"; }
