//! The whole screen breaks in each of its views: the terminal is given back, and why it broke can be read on
//! it.

use std::path::Path;

use crate::pane::{Pane, example};

/// A view: how it is called, what is said first, the keys that lead there with what is then seen, and the key
/// after which it breaks.
struct View {
    name: &'static str,
    said: Option<(&'static str, &'static str)>,
    way: &'static [(&'static [&'static str], &'static str)],
    key: &'static str,
    is_whole: bool,
}

const LIST: (&[&str], &str) = (&["C-o"], "[1 Agents 1]");
const PAGE: (&[&str], &str) = (&["Enter"], "turn 2");

const VIEWS: [View; 11] = [
    View { name: "idle", said: None, way: &[], key: "x", is_whole: false },
    View { name: "writing", said: None, way: &[(&["a", "b", "c"], "› abc")], key: "x", is_whole: false },
    View { name: "at work", said: Some(("work", "Streaming words")), way: &[], key: "x", is_whole: false },
    View { name: "a question", said: Some(("ask", "touch asked")), way: &[], key: "x", is_whole: false },
    View { name: "the list", said: None, way: &[LIST], key: "Down", is_whole: true },
    View { name: "a page", said: None, way: &[LIST, PAGE], key: "Up", is_whole: true },
    View {
        name: "a pager",
        said: None,
        way: &[LIST, PAGE, (&["Home", "Down", "Down", "Down", "Enter"], "what it printed")],
        key: "Down",
        is_whole: true,
    },
    View { name: "help", said: None, way: &[LIST, (&["?"], "one step deeper")], key: "Down", is_whole: true },
    View { name: "a letter", said: None, way: &[LIST, (&["m"], "to lead:")], key: "x", is_whole: true },
    View {
        name: "questions",
        said: Some(("ask", "touch asked")),
        way: &[(&["C-o"], "Questions 1"), (&["5"], "[5 Questions 1]")],
        key: "Down",
        is_whole: true,
    },
    // The editor is about to be opened.
    View {
        name: "the editor",
        said: None,
        way: &[(&["/", "e", "d", "i", "t", "o", "r"], "/editor")],
        key: "Enter",
        is_whole: false,
    },
];

fn start(pane: &Pane, breaks: &Path, more: &str) {
    pane.enter(&format!("clear; {} {}{more}; echo code$?", example("views").display(), breaks.display()));
    pane.sees("That was all.");
}

/// The message stands on the normal screen, the program has failed, and the terminal can be used.
fn check_broken(pane: &Pane, name: &str) {
    pane.sees("code3");
    let screen = pane.screen();
    assert_eq!(pane.knows("#{alternate_on}"), "0", "{name}:\n{screen}");
    let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let says = rows
        .iter()
        .position(|row| row.starts_with("thread 'screen'"))
        .unwrap_or_else(|| panic!("{name}:\n{screen}"));
    assert!(rows[says..].contains(&"broken on purpose"), "{name}:\n{screen}");
    pane.is_usable();
}

#[test]
fn a_panic_in_each_view_is_readable_and_leaves_a_usable_terminal() {
    let pane = Pane::open();
    let folder = tempfile::tempdir().unwrap();
    for (number, view) in VIEWS.iter().enumerate() {
        let breaks = folder.path().join(number.to_string());
        start(&pane, &breaks, "");
        if let Some((said, then)) = view.said {
            pane.enter(said);
            pane.sees(then);
        }
        for (keys, then) in view.way {
            pane.keys(keys);
            pane.sees(then);
        }
        assert_eq!(pane.knows("#{alternate_on}"), if view.is_whole { "1" } else { "0" }, "{}", view.name);
        std::fs::write(&breaks, "").unwrap();
        pane.keys(&[view.key]);
        check_broken(&pane, view.name);
    }
    println!("{} views broke", VIEWS.len());
}

#[test]
fn a_panic_where_nothing_is_drawn_is_readable_too() {
    let pane = Pane::open();
    let folder = tempfile::tempdir().unwrap();
    let breaks = folder.path().join("breaks");
    start(&pane, &breaks, " plain");
    pane.enter("work");
    std::fs::write(&breaks, "").unwrap();
    // The clock is read while work is under way.
    check_broken(&pane, "plain");
}

#[test]
fn a_session_that_is_left_ends_well() {
    let pane = Pane::open();
    let folder = tempfile::tempdir().unwrap();
    start(&pane, &folder.path().join("never"), "");
    pane.keys(&["C-d"]);
    pane.sees("once more");
    pane.keys(&["C-d"]);
    pane.sees("code0");
    pane.is_usable();
}
