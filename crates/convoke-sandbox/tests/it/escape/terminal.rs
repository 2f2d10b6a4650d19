//! The terminal that the host was started in: writing to it, and typing into it what its owner would then
//! have said.

use super::attempt::{Attempt, Tried};
use super::world::World;

fn shown(world: &World, tried: &Tried<'_>) -> bool {
    tried.text.contains(&world.mark)
}

pub(super) const ALL: &[Attempt] = &[
    Attempt::new("terminal-written", "terminal", "echo {mark} > /dev/tty", shown).in_terminal(),
    Attempt::new("terminal-written-by-name", "terminal", "echo {mark} > TERMINAL", shown).in_terminal(),
    Attempt::new(
        "terminal-typed",
        "terminal",
        r#"perl -e 'for $t ("/dev/tty", "TERMINAL") { open(T, "+<", $t) || next; ioctl(T, 0x5412, $_) for split(//, "{mark}\n") }'"#,
        shown,
    )
    .in_terminal(),
    Attempt::new(
        "terminal-of-helper",
        "terminal",
        "for p in $PPID {1..4}; do for f in 0 1 2; do echo {mark} > /proc/$p/fd/$f; done; done; echo {mark} \
            > TERMINAL",
        shown,
    )
    .in_terminal(),
    Attempt::new(
        "terminal-taken",
        "terminal",
        r#"setsid perl -e 'open(T, "+<", "TERMINAL"); ioctl(T, 0x540e, 1); syswrite(T, "{mark}\n"); ioctl(T, 0x5412, "x")'"#,
        shown,
    )
    .in_terminal(),
];
