# Remembers of each file how many lines it has and the first one with a letter; stands before LEX, which passes over lines.
FNR == 1 { OLD_COUNT = COUNT; OLD_HEAD = HEAD_LINE; HEAD_LINE = "" }
{ COUNT = FNR; if (HEAD_LINE == "" && /[A-Za-z]/) HEAD_LINE = $0 }
END { OLD_COUNT = COUNT; OLD_HEAD = HEAD_LINE }
