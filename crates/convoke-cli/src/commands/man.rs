//! `convoke man`: the manual pages, made from the very definitions that `--help` is made from, so that
//! neither can say something else. Printed on stdout, or written to a directory with one page for every
//! command.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use convoke_beneath::{Dir, Error};

use crate::args::{Cli, ManArgs, nearest};
use crate::failure::{Exit, Failure};
use crate::stdio;

/// Where the pages belong: commands of users.
const SECTION: &str = "1";

/// What is read from the environment, for the page about everything.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN", "The API key, or a bearer token instead of one."),
    ("ANTHROPIC_BASE_URL, ANTHROPIC_MODEL", "Another server, another model."),
    ("ORCH_JOURNAL", "Where everything is remembered: a file, a postgres:// URL, or host=… dbname=…."),
    ("CONVOKE_INSECURE_HTTP", "on: credentials may go over plain http to another machine."),
    ("ORCH_PLAIN", "1: lines of text alone, as with --plain."),
    (
        "CONVOKE_BUDGET_USD, CONVOKE_BUDGET_AGENTS, CONVOKE_BUDGET_TOKENS, CONVOKE_BUDGET_MINUTES",
        "The budget.",
    ),
    (
        "CONVOKE_MODE, CONVOKE_VERIFY, CONVOKE_MAX_CONCURRENT, CONVOKE_SANDBOX, CONVOKE_NETWORK, \
         CONVOKE_NETWORK_ALLOW, CONVOKE_ASK, CONVOKE_CI_SAFE",
        "As the flags of these names.",
    ),
    ("VISUAL, EDITOR", "What opens a file from a session; vi without either."),
    (
        "NO_COLOR, TERM, COLUMNS",
        "No colour; what the terminal can do; the width of tables where there is none.",
    ),
];

/// Where files are, for the page about everything.
const FILES: &[(&str, &str)] = &[
    (
        "$XDG_CONFIG_HOME/convoke/config.toml",
        "Your configuration; `convoke config show` prints every key and its origin.",
    ),
    (".convoke/config.toml", "A project's, which may only narrow unless you trust it."),
    ("$XDG_STATE_HOME/convoke/journal.db", "The journal."),
    ("$XDG_STATE_HOME/convoke/history", "What you typed in sessions."),
];

/// Prints or writes pages.
pub(crate) fn run(args: &ManArgs) -> Result<Exit, Failure> {
    let root = root();
    let command = find(&root, &args.command)?;
    match &args.dir {
        None => stdio::put(&page(command)?)?,
        Some(dir) => {
            let cannot = |error: Error| {
                Failure::failed(format!(
                    "the pages cannot be written to {}: {}",
                    dir.display(),
                    error.reason()
                ))
            };
            // The directory that it is called in may be one that commands fill.
            let pages = Dir::make_named(dir, Some(Path::new(".")), 0o777).map_err(cannot)?;
            let written = write_all(command, &pages, &cannot)?;
            stdio::tell(&format!("{written} pages are in {}\n", dir.display()));
        }
    }
    Ok(Exit::Done)
}

/// The whole command line, with everything that is derived in it.
fn root() -> Command {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    root
}

/// The command of these words.
fn find<'a>(root: &'a Command, words: &[String]) -> Result<&'a Command, Failure> {
    let mut command = root;
    for word in words {
        let Some(below) = command.find_subcommand(word) else {
            let names = command.get_subcommands().map(Command::get_name);
            let failure =
                Failure::usage(format!("there is no page about '{}': no such command", words.join(" ")));
            return Err(match nearest(word, names) {
                Some(near) => failure.hint(format!("the nearest is '{near}'")),
                None => failure.hint("`convoke man` is about all of them"),
            });
        };
        command = below;
    }
    Ok(command)
}

/// Writes the page about a command and those about everything below it; says how many that are.
fn write_all(command: &Command, dir: &Dir, cannot: &impl Fn(Error) -> Failure) -> Result<usize, Failure> {
    let file = format!("{}.{SECTION}", name(command));
    dir.put(Path::new(&file), page(command)?.as_bytes(), 0o666).map_err(cannot)?;
    let mut written = 1;
    for below in visible(command) {
        written += write_all(below, dir, cannot)?;
    }
    Ok(written)
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// `convoke-sessions-undo`: what `man` is asked for.
fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

/// The page about a command.
fn page(command: &Command) -> Result<String, Failure> {
    let is_root = !name(command).contains('-');
    // All flags one by one would fill the screen before the first sentence.
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let man = Man::new(command.clone().override_usage(usage))
        .title(name(command).to_uppercase())
        .section(SECTION)
        .source(concat!("convoke ", env!("CARGO_PKG_VERSION")))
        .manual("Convoke");
    let mut roff = Vec::new();
    let rendered = (|| {
        man.render_title(&mut roff)?;
        man.render_name_section(&mut roff)?;
        man.render_synopsis_section(&mut roff)?;
        man.render_description_section(&mut roff)?;
        if visible(command).next().is_some() {
            man.render_subcommands_section(&mut roff)?;
        }
        man.render_options_section(&mut roff)
    })();
    rendered.map_err(|error: std::io::Error| Failure::failed(format!("the page cannot be made: {error}")))?;
    let mut text = String::from_utf8_lossy(&roff).into_owned();
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for (title, lines) in sections(&after) {
        text.push_str(&as_it_stands(title, &lines));
    }
    if is_root {
        text.push_str(&listed("ENVIRONMENT", ENVIRONMENT));
        text.push_str(&listed("FILES", FILES));
    }
    text.push_str(&see_also(command, is_root));
    Ok(text)
}

/// What stands at the end of a help page, by headings: `Examples:` and the lines below it.
fn sections(after: &str) -> Vec<(&'static str, Vec<&str>)> {
    let mut sections: Vec<(&'static str, Vec<&str>)> = Vec::new();
    for line in after.lines() {
        let title = match line {
            "Examples:" => Some("EXAMPLES"),
            "Exit codes:" => Some("EXIT STATUS"),
            // What is no example any more begins at the margin.
            line if !line.starts_with(' ') && !line.is_empty() => Some("NOTES"),
            _ => None,
        };
        let is_note = title == Some("NOTES");
        match (title, sections.last_mut()) {
            (Some("NOTES"), Some(("NOTES", lines))) => lines.push(line),
            (Some(title), _) => sections.push((title, if is_note { vec![line] } else { Vec::new() })),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    for (_, lines) in &mut sections {
        while lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
        }
    }
    sections
}

/// A section whose lines stay as they are.
fn as_it_stands(title: &str, lines: &[&str]) -> String {
    let body: String = lines.iter().map(|line| format!("{}\n", literal(line))).collect();
    format!(".SH \"{title}\"\n.nf\n{body}.fi\n")
}

/// A section of names and what they mean.
fn listed(title: &str, rows: &[(&str, &str)]) -> String {
    let rows: String =
        rows.iter().map(|(name, about)| format!(".TP\n{}\n{}\n", literal(name), literal(about))).collect();
    format!(".SH {title}\n{rows}")
}

fn see_also(command: &Command, is_root: bool) -> String {
    let own = name(command);
    let above = own.rsplit_once('-').map(|(above, _)| above);
    let mut pages: Vec<String> = Vec::new();
    if !is_root {
        pages.push(format!("convoke({SECTION}), for what every command shares and for the exit codes"));
        pages.extend(above.filter(|above| above.contains('-')).map(|above| format!("{above}({SECTION})")));
    } else {
        pages.extend(visible(command).map(|below| format!("{}({SECTION})", name(below))));
    }
    format!(".SH \"SEE ALSO\"\n{}\n", literal(&pages.join(", ")))
}

/// A line that means itself: nothing of it is a request or an escape, and a dash can be copied as one.
fn literal(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_below_help_becomes_sections_with_their_lines_as_they_are() {
        let after = "Examples:\n  convoke a\n    -- b\n\nExit codes:\n  0 done\n\nThe answer is on \
            stdout.\nThe rest is not.";
        let expected = vec![
            ("EXAMPLES", vec!["  convoke a", "    -- b"]),
            ("EXIT STATUS", vec!["  0 done"]),
            ("NOTES", vec!["The answer is on stdout.", "The rest is not."]),
        ];
        assert_eq!(sections(after), expected);
        assert_eq!(sections(""), Vec::new());
    }

    #[test]
    fn nothing_in_a_line_is_obeyed() {
        let check = |line: &str, expected: &str| assert_eq!(literal(line), expected);
        check(".SH x", "\\&.SH x");
        check("'x", "\\&'x");
        check("a \\ --b", "a \\e \\-\\-b");
    }

    #[test]
    fn every_command_has_a_page_with_its_name_its_usage_and_its_examples() {
        fn check(command: &Command, pages: &mut usize) {
            let text = page(command).unwrap();
            let title = format!(".TH {} 1", name(command).to_uppercase());
            assert!(text.contains(&title), "{title}: {text}");
            for part in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH \"SEE ALSO\""] {
                assert!(text.contains(part), "{part} in {text}");
            }
            let has_examples =
                command.get_after_help().is_some_and(|help| help.to_string().contains("Examples:"));
            assert_eq!(text.contains(".SH \"EXAMPLES\""), has_examples, "{text}");
            assert_eq!(text.matches("\n.nf\n").count(), text.matches("\n.fi\n").count());
            *pages += 1;
            visible(command).for_each(|below| check(below, pages));
        }
        let mut pages = 0;
        check(&root(), &mut pages);
        assert!(pages > 40, "{pages}");
    }
}
