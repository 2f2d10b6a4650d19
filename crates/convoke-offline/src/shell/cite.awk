# The cited lines FROM to TO of one file, as citation NUMBER: at most twelve of them, and whether the file is so long.
NR >= FROM && NR <= TO && NR < FROM + 12 { print "R\t" NUMBER "\t" NR "\t" quote($0) "\t." }
NR == TO { held = 1; exit }
END { print "E\t" NUMBER "\t" (held ? 1 : 0) "\t." }
