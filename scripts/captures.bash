# What scripts/capture-teams and scripts/capture-prompts share: a small repository for each chapter, commands
# with what they really print, and the place between two marks of a page where that goes. Sourced, not run.
#
# CONVOKE=path takes that binary; else it is built. Of stderr the [team] lines are kept. An answer that was
# printed before is shortened to "…".
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ -z "${CONVOKE:-}" ]; then
  (cd "$root" && cargo build -q -p convoke-cli)
  CONVOKE=$root/target/debug/convoke
fi
place=$(mktemp -d) && trap 'rm -rf "$place"' EXIT

chapter() { # chapter TITLE: a repository of a few files and a home of its own, and a heading
  home=$place/$1/home work=$place/$1/work run='' said=''
  mkdir -p "$home" "$work/src"
  printf 'fn main() {\n    // TODO: greet by name\n    println!("hi");\n}\n' >"$work/src/main.rs"
  printf '# Sample\n' >"$work/README.md"
  printf 'def add(a, b):\n    return a + b\n' >"$work/add.py"
  if declare -F more_files >/dev/null; then more_files; fi
  git -C "$work" -c init.defaultBranch=main init -q
  git -C "$work" add -A
  git -C "$work" -c user.name=Me -c user.email=me@example.invalid commit -q -m first
  printf '\n### %s\n' "$1"
}

ask() { # ask COMMAND: runs it in the chapter's repository; what it prints is in $place/out and $place/err
  (cd "$work" && eval "env -i HOME='$home' PATH='$PATH' '$CONVOKE' ${1#convoke }") >"$place/out" 2>"$place/err" </dev/null
}

remember() { # remember COMMAND: RUN is the run so far
  case $1 in
    *--offline* | 'convoke resume '*) run=$(grep -o 's_[a-z2-7]*$' "$place/err" | tail -n 1) ;;
  esac
}

show() { # show COMMAND…: runs them one after the other and prints them with what they print; RUN is the run so far
  local command out
  printf '\n```console\n'
  for command in "$@"; do
    command=${command//RUN/${run:0:10}}
    printf '$ %s\n' "$command"
    ask "$command" || { echo "failed: $command" >&2; cat "$place/err" >&2; exit 1; }
    grep '^\[team\]' "$place/err" || true
    out=$(cat "$place/out")
    remember "$command"
    case $command in
      *--offline* | 'convoke resume '*)
        if [ -n "$said" ] && [ "${out#"$said"}" != "$out" ]; then printf '…%s\n' "${out#"$said"}"; else printf '%s\n' "$out"; fi
        said=$out
        ;;
      *) printf '%s\n' "$out" ;;
    esac
  done
  printf '```\n'
}

captured() { # captured PAGE WRITER [--print]: puts what `captures` prints between the marks of the page, or prints it
  local docs=$root/docs/$1 begin="<!-- captures: written by scripts/$2 -->" end='<!-- end of captures -->'
  captures >"$place/captures.md"
  if [ "${3:-}" = --print ]; then
    cat "$place/captures.md"
    return
  fi
  grep -qF "$begin" "$docs" && grep -qF "$end" "$docs" || { echo "$docs has not both marks: $begin … $end" >&2; exit 1; }
  awk -v begin="$begin" -v end="$end" -v captures="$place/captures.md" '
    $0 == begin { print; while ((getline line < captures) > 0) print line; print ""; skip = 1 }
    $0 == end { skip = 0 }
    !skip { print }' "$docs" >"$place/page.md"
  cp "$place/page.md" "$docs"
  echo "wrote $docs" >&2
}
