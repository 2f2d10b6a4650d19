//! The stage in a real terminal: nothing printed is lost, nothing of old regions is left, and whatever ends
//! or stops the program, in either picture, leaves a terminal that can be used.

use nix::sys::signal::Signal;

use crate::pane::{Pane, program};

/// The two pictures.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Picture {
    Inline,
    Whole,
}

const BOTH: [Picture; 2] = [Picture::Inline, Picture::Whole];

fn open(picture: Picture) -> Pane {
    let pane = Pane::with_program();
    if picture == Picture::Whole {
        pane.keys(&["w"]);
        pane.sees("WHOLE 80x24");
        assert_eq!(pane.knows("#{alternate_on}"), "1");
    }
    assert_eq!(pane.programs(true).len(), 1, "there is a guard");
    pane
}

/// Every printed row is there once, in order, and there is one region.
fn check_scrollback(pane: &Pane, printed: usize) {
    let all = pane.all();
    let rows: Vec<&str> = all.lines().filter(|line| line.starts_with("row ")).map(str::trim_end).collect();
    let expected: Vec<String> = (1..=printed).map(|n| format!("row {n:04}.")).collect();
    assert_eq!(rows, expected, "{all}");
    for mark in ["STATUS count", "> input", "───"] {
        assert_eq!(all.lines().filter(|line| line.contains(mark)).count(), 1, "{mark} is there once:\n{all}");
    }
}

#[test]
fn the_scrollback_holds_every_printed_row_exactly_once() {
    let pane = Pane::with_program();
    pane.keys(&["r", "r", "r"]);
    pane.sees("row 0300.");
    check_scrollback(&pane, 300);
    pane.keys(&["b"]);
    pane.sees("BIG 3");
    pane.keys(&["b"]);
    pane.until("a small region", || !pane.screen().contains("BIG"));
    check_scrollback(&pane, 300);
    pane.keys(&["q"]);
    pane.until("the prompt", || pane.screen().trim_end().ends_with("ready>"));
    let all = pane.all();
    assert!(!all.contains("STATUS") && !all.contains("> input"), "nothing of the region is left:\n{all}");
    pane.is_usable();
}

#[test]
fn a_resized_terminal_holds_no_remains_of_old_regions() {
    let pane = Pane::with_program();
    pane.keys(&["r", "b"]);
    pane.sees("BIG 3");
    for columns in [40, 120, 60, 80, 40, 120] {
        pane.resize(columns);
        pane.sees(&format!("at {columns}\n"));
        check_scrollback(&pane, 100);
        let all = pane.all();
        assert_eq!(all.matches("BIG").count(), 3, "at {columns} columns:\n{all}");
        assert!(
            !all.trim_end().lines().any(|line| line.trim().is_empty()),
            "no gaps at {columns} columns:\n{all}"
        );
    }
    pane.keys(&["r"]);
    pane.sees("row 0200.");
    check_scrollback(&pane, 200);
}

#[test]
fn a_resize_on_the_whole_screen_draws_it_anew_and_the_region_afterwards() {
    let pane = Pane::with_program();
    pane.keys(&["r", "w"]);
    pane.sees("WHOLE 80x24");
    for columns in [40, 120, 50] {
        pane.resize(columns);
        pane.sees(&format!("WHOLE {columns}x24"));
        assert_eq!(pane.screen().matches("count").count(), 1, "{}", pane.screen());
    }
    pane.keys(&["r", "w"]);
    pane.sees("row 0200.");
    pane.sees(&"─".repeat(50));
    check_scrollback(&pane, 200);
}

#[test]
fn a_signal_that_ends_the_program_leaves_a_usable_terminal() {
    for picture in BOTH {
        for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGHUP] {
            let pane = open(picture);
            pane.keys(&["r"]);
            pane.signal(signal);
            pane.is_usable();
        }
    }
}

#[test]
fn what_no_shell_sets_back_is_set_back_by_the_guard() {
    for picture in BOTH {
        let pane = Pane::open();
        let again = "while sleep 0.1; do stty -a | grep -o \"[- ]icanon\"; done";
        pane.enter(&format!("sh -c '{}; {again}'", program().display()));
        pane.sees("STATUS count");
        if picture == Picture::Whole {
            pane.keys(&["w"]);
            pane.sees("WHOLE");
        }
        pane.signal(Signal::SIGKILL);
        pane.until("lines again", || pane.screen().lines().any(|line| line == " icanon"));
        pane.until("the end of the guard", || pane.programs(true).is_empty());
        pane.keys(&["C-c"]);
        pane.is_usable();
    }
}

#[test]
fn a_panic_is_readable_and_leaves_a_usable_terminal() {
    for picture in BOTH {
        let pane = open(picture);
        pane.keys(&["p"]);
        pane.sees("broken on purpose");
        let screen = pane.screen();
        assert!(!screen.contains("STATUS") && !screen.contains("WHOLE"), "{picture:?}:\n{screen}");
        assert!(screen.lines().any(|line| line.starts_with("thread 'main'")), "{picture:?}:\n{screen}");
        pane.is_usable();
    }
}

#[test]
fn a_panic_in_another_thread_is_said_above_the_region_and_the_session_goes_on() {
    for picture in BOTH {
        let pane = open(picture);
        pane.keys(&["t"]);
        pane.sees("goes on");
        if picture == Picture::Whole {
            assert!(!pane.screen().contains("broken"), "{}", pane.screen());
            pane.keys(&["w"]);
        }
        pane.sees("broken elsewhere");
        pane.keys(&["r"]);
        pane.sees("row 0100.");
        check_scrollback(&pane, 100);
        pane.keys(&["q"]);
        pane.is_usable();
    }
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_brings_everything_back() {
    for picture in BOTH {
        let pane = open(picture);
        for _ in 0..2 {
            pane.keys(&["C-z"]);
            pane.until("the shell", || {
                pane.screen().contains("Stopped") && pane.screen().trim_end().ends_with("ready>")
            });
            assert_eq!(pane.knows("#{alternate_on} #{cursor_flag}"), "0 1");
            assert!(!pane.all().contains("STATUS"), "{}", pane.all());
            pane.enter("clear; echo shell$((40+2)); stty -a | grep -o '[- ]icanon'");
            pane.sees("shell42\n icanon");
            pane.enter("fg");
            pane.sees("continued");
            pane.sees(if picture == Picture::Whole { "WHOLE" } else { "STATUS" });
        }
        assert_eq!(pane.knows("#{alternate_on}"), if picture == Picture::Whole { "1" } else { "0" });
        pane.keys(&["q"]);
        pane.is_usable();
    }
}

#[test]
fn a_program_killed_while_it_is_stopped_leaves_the_shell_alone() {
    let pane = open(Picture::Whole);
    pane.keys(&["C-z"]);
    pane.until("the shell", || {
        pane.screen().contains("Stopped") && pane.screen().trim_end().ends_with("ready>")
    });
    pane.signal(Signal::SIGKILL);
    pane.is_usable();
}

#[test]
fn a_terminal_that_is_closed_leaves_nobody_behind() {
    for picture in BOTH {
        let pane = open(picture);
        let all = [pane.programs(false), pane.programs(true)].concat();
        assert_eq!(all.len(), 2);
        pane.close(&all);
    }
}

#[test]
fn a_lent_terminal_is_the_others_and_comes_back() {
    for picture in BOTH {
        let pane = open(picture);
        pane.keys(&["e"]);
        pane.sees("edited");
        if picture == Picture::Whole {
            pane.keys(&["w"]);
        }
        pane.sees("in the editor");
        check_scrollback(&pane, 0);
        pane.keys(&["q"]);
        pane.is_usable();
    }
}

#[test]
fn what_a_terminal_would_obey_is_seen_instead() {
    let pane = Pane::with_program();
    let title = pane.knows("#{pane_title}");
    pane.keys(&["x"]);
    pane.sees("␛]2;owned␇␛[2J␛[?1049h\u{fffd}5mEVIL");
    assert_eq!((pane.knows("#{pane_title}"), pane.knows("#{alternate_on}")), (title, "0".to_owned()));
    pane.keys(&["q"]);
    pane.is_usable();
}

#[test]
fn a_row_that_was_begun_is_left_as_it_is() {
    let pane = Pane::open();
    pane.enter(&format!("clear; printf unfinished; {}", program().display()));
    pane.sees("STATUS count");
    assert_eq!(pane.screen().lines().next().map(str::trim_end), Some("unfinished"));
    pane.keys(&["q"]);
    pane.is_usable();
}
