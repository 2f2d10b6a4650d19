# Conflicts in files that are lexed.
function first_line() { begun_at = 0 }
function last_line(f) {}
function each_line() { conflict(at != "" || hd != "") }
