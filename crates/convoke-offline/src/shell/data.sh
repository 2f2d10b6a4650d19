# Leaves out a file that a real reader of its format accepts, where there is one: python3 for JSON and TOML, else jq for JSON.
accepts() {
  case $1 in
    invalid_json)
      if python3 -c 'import json' >/dev/null 2>&1; then python3 -c 'import json, sys; json.load(open(sys.argv[1], encoding="utf-8-sig"))' "$2"
      else jq empty "$2"; fi ;;
    invalid_toml) python3 -c 'import sys, tomllib; tomllib.load(open(sys.argv[1], "rb"))' "$2" ;;
    *) false ;;
  esac >/dev/null 2>&1
}
doubted() {
  local l k p
  while IFS= read -r l; do
    case $l in I"$T"*) ;; *) printf '%s\n' "$l"; continue ;; esac
    k=${l#I"$T"*"$T"}; p=${k#*"$T"}; k=${k%%"$T"*}; p=${p%%"$T"*}
    if accepts "$k" "./$p"; then printf 'N\tunjudged\t1\n'; else printf '%s\n' "$l"; fi
  done
}
