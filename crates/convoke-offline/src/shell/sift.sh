# What only a team needs of the functions over files. A review alone sends two commands in one reply, where room is short.
picked() { files pick | small | over "$P"; }
# Runs the program over those files of kind $1 that hold a line which fits $2; how many were searched is said.
sifted() {
  { files "$1" | small | R=$2 xargs -0 sh -c 'printf "N\tlooked\t%s\n" "$#" >&5; grep -lIE --null -e "$R" -- "$@"' _ 2>/dev/null | over "$P"; } 5>&1
}
