//! `docs/reference.md` has every command and every flag that people are shown.

use clap::{Command, CommandFactory};

use super::Cli;

const PAGE: &str = include_str!("../../../../docs/reference.md");

/// The commands and long flags below a command that are not hidden, commands with all their words.
fn shown(path: &str, command: &Command, into: &mut Vec<String>) {
    let visible = command.get_arguments().filter(|flag| !flag.is_hide_set());
    into.extend(visible.filter_map(|flag| Some(format!("--{}", flag.get_long()?))));
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        let path = format!("{path} {}", below.get_name());
        // What only groups others is named with each of them.
        if !below.has_subcommands() {
            into.push(path.clone());
        }
        shown(&path, below, into);
    }
}

/// Whether the page has these words, and nothing that only begins with them.
fn is_named(words: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
    PAGE.match_indices(words).any(|(at, _)| ends(&PAGE[at + words.len()..]))
}

#[test]
fn the_reference_has_every_command_and_every_flag() {
    let mut all = Vec::new();
    shown("convoke", &Cli::command(), &mut all);
    all.sort();
    all.dedup();
    assert!(all.len() > 100, "{}", all.len());
    let missing: Vec<String> = all.into_iter().filter(|words| !is_named(words)).collect();
    assert!(missing.is_empty(), "docs/reference.md does not have {missing:#?}");
}
