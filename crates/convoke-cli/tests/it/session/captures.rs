//! docs/terminal.md shows pictures of a real terminal. Which agent begins first, ids, times and figures
//! differ from one to the next and are masked; everything else has to be what the binary shows now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const BEGIN: &str = "<!-- captures: written by scripts/capture-terminal -->\n";
const END: &str = "<!-- end of captures -->";

const TITLES: [&str; 9] = [
    "A finding",
    "A question",
    "A review at work",
    "An agent",
    "Plain mode",
    "The first start (80x24)",
    "The fleet (200x60)",
    "The fleet (40x10)",
    "The fleet (80x24)",
];

/// Agents race, so one try may look different by chance; all of them only if something has changed.
const TRIES: usize = 3;

/// The parts of each picture, by its title.
type Pictures = BTreeMap<String, BTreeSet<String>>;

#[tokio::test]
async fn the_pictures_of_the_documentation_are_what_is_shown_now() {
    let docs = std::fs::read_to_string(root().join("docs/terminal.md")).unwrap();
    let (_, rest) = docs.split_once(BEGIN).unwrap();
    let shown = pictures(rest.split_once(END).unwrap().0);
    assert_eq!(shown.keys().collect::<Vec<_>>(), TITLES, "run scripts/capture-terminal");
    let mut wrong = BTreeMap::new();
    for _ in 0..TRIES {
        let now = pictures(&shown_now().await);
        assert_eq!(now.keys().collect::<Vec<_>>(), TITLES);
        wrong = shown
            .iter()
            .filter_map(|(title, was)| Some((title.clone(), difference(was, &now[title])?)))
            .collect();
        if wrong.is_empty() {
            return;
        }
        eprintln!("once more: {wrong:#?}");
    }
    panic!("docs/terminal.md is not what is shown now: run scripts/capture-terminal\n{wrong:#?}");
}

#[test]
fn ids_figures_and_who_comes_first_make_no_difference_and_another_word_does() {
    let check = |a: &str, b: &str, same: bool| {
        let picture = |text: &str| {
            pictures(&format!("### A\n\n```text\n{text}\n```\n")).remove("A").unwrap_or_default()
        };
        assert_eq!(picture(a) == picture(b), same, "{a:?} {b:?}");
    };
    check(
        "s_aaaa · project  $0.00 of $10.00 · 0 running",
        "s_bbbb · project  $0.20 of $10.00 · 7 running",
        true,
    );
    check(
        "s_aaaa · project  $0.00 of $10.00 · 0 running",
        "s_aaaa · project  $0.00 of $10.00 · 0 walking",
        false,
    );
    check(" ✓ Tests that… done   no findings  1 s", " ✓ Hard-coded… done  no findings   2 s", true);
    check(" ✓ Tests that… done   no findings  1 s", " ✓ Hard-coded… failed  no findings   2 s", false);
    check("working: 10 running\n  ▸ Tests\nEsc stops", "working: 3 running · 7 done\nEsc stops", true);
    check("┃lead   ┃│turn 1  look│\n┃ ✓ lead┃│turn 2│", "┃lead┃│turn 2  │\n┃ ✓ lead┃│turn 1 look │", true);
    check("┃lead   ┃│turn 1  look│", "┃lead   ┃│turn 1  leap│", false);
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

async fn shown_now() -> String {
    let mut script = Command::new(root().join("scripts/capture-terminal"));
    script
        .arg("--print")
        .env("CONVOKE", env!("CARGO_BIN_EXE_convoke"))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = timeout(Duration::from_secs(400), script.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What is in one of them alone.
fn difference(was: &BTreeSet<String>, now: &BTreeSet<String>) -> Option<String> {
    let gone: Vec<_> = was.difference(now).collect();
    let new: Vec<_> = now.difference(was).collect();
    let same = gone.is_empty() && new.is_empty();
    (!same).then(|| format!("not shown any more: {gone:#?}; shown and not in the documentation: {new:#?}"))
}

fn pictures(markdown: &str) -> Pictures {
    let mut pictures = Pictures::new();
    let mut title = String::new();
    for line in markdown.lines() {
        match line.strip_prefix("### ") {
            Some(name) => {
                name.clone_into(&mut title);
                pictures.entry(title.clone()).or_default();
            }
            None if line.starts_with("```") || title.is_empty() => {}
            None => {
                // At a wide screen several things stand beside each other.
                let cells = line.split(['┃', '│', '┏', '┓', '┗', '┛', '┌', '┐', '└', '┘']);
                pictures.entry(title.clone()).or_default().extend(cells.filter_map(masked));
            }
        }
    }
    // What scrolls away is gone or not yet, depending on how much came after it.
    let greeting = pictures.get("The first start (80x24)").cloned().unwrap_or_default();
    for (title, parts) in &mut pictures {
        if title == "A review at work" {
            parts.retain(|part| !greeting.contains(part));
        }
    }
    pictures
}

/// A part without ids, figures, and what depends on which agent is faster; `None` if nothing is left.
fn masked(cell: &str) -> Option<String> {
    let passing = ["▸", "working: ", "verifying: ", "more: Ctrl-O", "Workflow: "];
    if passing.iter().any(|sign| cell.contains(sign)) {
        return None;
    }
    let mut text = cell.trim();
    // What was read is as long as it is, and the rest of the row is cut accordingly.
    text = text.split_once(" in (").map_or(text, |(before, _)| before);
    // Of a list only how its rows end: which stands where is chance.
    if text.trim_start_matches('›').starts_with('✓')
        && let Some((_, rest)) = text.rsplit_once('…')
    {
        text = rest;
    }
    let is_word = |word: &&str| {
        let is_id = ["s_", "a_", "wf_"].iter().any(|sign| word.starts_with(sign));
        let is_figure = word.contains(|c: char| c.is_ascii_digit()) || word.contains('…');
        let is_line = word.chars().all(|c| "━─█░▁▂▃▄▅▆▇›>".contains(c));
        !is_id && !is_figure && !is_line
    };
    let words: Vec<&str> = text.split_whitespace().filter(is_word).collect();
    (!words.is_empty()).then(|| words.join(" "))
}
