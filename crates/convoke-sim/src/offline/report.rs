//! Writes the answer: Markdown of modest length. Every number in it was printed by a command and every quote was read
//! twice; what could not be looked at is said.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::intent::{Ask, Term, Wanted};
use super::probes::{Probe, source_languages};
use super::read::{Exchange, Facts, Item, Seen};

/// The answer to the task, from what has been seen so far.
pub(super) fn write(exchange: &Exchange, wanted: &Wanted) -> String {
    let quotes = Quotes::of(exchange);
    let mut out = Report { text: String::new(), quotes };
    out.head(exchange, wanted);
    let inventory = exchange.seen(&Probe::Inventory);
    out.inventory(&inventory, wanted);
    let sources = match inventory {
        Seen::Facts(facts) => facts.sources(),
        Seen::Nothing | Seen::Failed => 1,
    };
    for ask in &wanted.asks {
        let (probe, title) = match ask {
            Ask::Count => continue,
            Ask::LargestFiles => (Probe::LargestFiles, "Largest files"),
            Ask::LongFunctions => (Probe::LongFunctions, "Functions of more than 80 lines"),
            Ask::Todos => (Probe::Todos, "TODO, FIXME, XXX, HACK"),
            Ask::Errors => (Probe::Errors, "Unhandled errors"),
            Ask::Tests => (Probe::Tests, "Source files that no test mentions"),
            Ask::Find(term) => (Probe::Find(term.clone()), "Search"),
            Ask::List => (Probe::List, "Files"),
        };
        match exchange.seen(&probe) {
            Seen::Facts(facts) => {
                let _ = write!(out.text, "\n## {title}\n\n");
                out.section(ask, facts);
            }
            Seen::Nothing if sources == 0 => {}
            Seen::Nothing => drop(write!(out.text, "\n## {title}\n\nNot looked at: the turns ended before that.\n")),
            Seen::Failed => drop(write!(out.text, "\n## {title}\n\nNot known: the command brought no result.\n")),
        }
    }
    out.foot(exchange);
    out.text
}

/// Which quotes were read again and still stood there.
struct Quotes {
    state: Reread,
    confirmed: BTreeSet<(String, u64)>,
    changed: usize,
}

#[derive(PartialEq)]
enum Reread {
    Done,
    NotDone,
}

impl Quotes {
    fn of(exchange: &Exchange) -> Self {
        let Seen::Facts(again) = exchange.seen(&Probe::Reread(Vec::new())) else {
            return Self { state: Reread::NotDone, confirmed: BTreeSet::new(), changed: 0 };
        };
        let mut quotes = Self { state: Reread::Done, confirmed: BTreeSet::new(), changed: 0 };
        for (index, item) in exchange.quoted().enumerate() {
            if again.reread(index) == Some(item.text.as_str()) {
                quotes.confirmed.insert((item.path.clone(), item.first));
            } else {
                quotes.changed += 1;
            }
        }
        quotes
    }

    fn keeps(&self, item: &Item) -> bool {
        item.text.is_empty()
            || self.state == Reread::NotDone
            || self.confirmed.contains(&(item.path.clone(), item.first))
    }
}

struct Report {
    text: String,
    quotes: Quotes,
}

impl Report {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn head(&mut self, exchange: &Exchange, wanted: &Wanted) {
        let done = |ask: &&Ask| match ask {
            Ask::Count => true,
            Ask::LargestFiles => matches!(exchange.seen(&Probe::LargestFiles), Seen::Facts(_)),
            Ask::LongFunctions => matches!(exchange.seen(&Probe::LongFunctions), Seen::Facts(_)),
            Ask::Todos => matches!(exchange.seen(&Probe::Todos), Seen::Facts(_)),
            Ask::Errors => matches!(exchange.seen(&Probe::Errors), Seen::Facts(_)),
            Ask::Tests => matches!(exchange.seen(&Probe::Tests), Seen::Facts(_)),
            Ask::Find(term) => matches!(exchange.seen(&Probe::Find(term.clone())), Seen::Facts(_)),
            Ask::List => matches!(exchange.seen(&Probe::List), Seen::Facts(_)),
        };
        let mut checked: Vec<&str> = wanted.asks.iter().filter(done).map(Ask::name).collect();
        if !matches!(exchange.seen(&Probe::Inventory), Seen::Facts(_)) {
            checked.retain(|name| *name != Ask::Count.name());
        }
        let checked = if checked.is_empty() { "nothing".to_owned() } else { checked.join(", ") };
        let _ = writeln!(
            self.text,
            "Offline model: fixed rules, no intelligence. Checked by read-only commands: {checked}. Not checked: what the \
             code means, whether it is right, safe or builds, whether its tests pass."
        );
        if !wanted.recognised {
            self.line("\nThe rules did not recognise the request, so this is the general review, not an answer to it.");
        }
        for path in &wanted.out_of_reach {
            let _ =
                write!(self.text, "\nNot looked at: {}, because only what is below this directory is.\n", code(path));
        }
    }

    fn inventory(&mut self, inventory: &Seen<'_>, wanted: &Wanted) {
        self.line("\n## What is here\n");
        let facts = match inventory {
            Seen::Facts(facts) => facts,
            Seen::Nothing => return self.line("Not looked at."),
            Seen::Failed => return self.line("Not known: the command that counts brought no result."),
        };
        match &wanted.scope {
            Some(scope) if facts.count("scope_missing") > 0 => {
                let _ =
                    write!(self.text, "There is no {} here, so the whole directory was looked at.\n\n", code(scope));
            }
            Some(scope) => drop(write!(self.text, "Only {} was looked at.\n\n", code(scope))),
            None => {}
        }
        let rows = facts.languages();
        if let Some(language) = wanted.language {
            let (files, lines) = rows.iter().find(|row| row.0 == language).map_or((0, 0), |row| (row.1, row.2));
            let _ = write!(self.text, "{language}: {}, {}.\n\n", many(files, "file"), many(lines, "line"));
        }
        let files = facts.files();
        if files == 0 {
            self.line("There are no files here, apart from what is left out.");
        } else {
            let lines = rows.iter().map(|row| row.2).sum();
            let listing = if facts.count("git") > 0 { "tracked or not ignored by git" } else { "found by walking" };
            let _ =
                write!(self.text, "{}, {listing}; {} in known languages:", many(files, "file"), many(lines, "line"));
            self.text.push_str("\n\n");
            for (name, files, lines) in rows.iter().filter(|row| row.0 != "other") {
                let _ = writeln!(self.text, "- {name}: {}, {}", many(*files, "file"), many(*lines, "line"));
            }
            if let Some(other) = rows.iter().find(|row| row.0 == "other") {
                let _ = writeln!(self.text, "- other: {}, lines not counted", many(other.1, "file"));
            }
            if facts.count("big") > 0 {
                let _ = writeln!(self.text, "- of 2 MiB or more, not opened: {}", many(facts.count("big"), "file"));
            }
        }
        let _ = writeln!(
            self.text,
            "\nLeft out by path: {} vendored (vendor, third_party, node_modules, …), {} generated or built (target, dist, \
             *.min.js, …), {}.",
            facts.count("vendored"),
            facts.count("generated"),
            many(facts.count("lock"), "lock file")
        );
        if files > 0 && facts.sources() == 0 && wanted.asks.iter().any(Ask::needs_source) {
            let _ =
                write!(self.text, "\nNone is in a language that is looked into ({}).\n", source_languages().join(", "));
        }
    }

    fn section(&mut self, ask: &Ask, facts: &Facts) {
        match ask {
            Ask::Count => {}
            Ask::LargestFiles | Ask::List => self.files(facts),
            Ask::LongFunctions => {
                self.scanned(facts, "");
                self.items(facts, &["long_function"], "");
                if facts.count("unsure") > 0 {
                    let unsure = many(facts.count("unsure"), "block");
                    let _ = writeln!(self.text, "- left out: {unsure} whose braces and indentation disagree");
                }
            }
            Ask::Todos => {
                self.scanned(facts, " (words in comments, not in strings)");
                self.items(facts, &["comment"], "");
            }
            Ask::Errors => {
                self.scanned(facts, ", without files and blocks that look like tests");
                for (kind, name) in ERRORS {
                    self.items(facts, &[kind], name);
                }
                if facts.total() == 0 {
                    let names: Vec<&str> = ERRORS.iter().map(|(_, name)| *name).collect();
                    let _ = writeln!(self.text, "None of these was found: {}.", names.join("; "));
                }
            }
            Ask::Tests => {
                self.scanned(facts, "");
                if facts.is_partial() {
                    return self.line("Not judged: a file that was not looked into may be a test that mentions them.");
                }
                let _ = write!(
                    self.text,
                    "Listed is a source file that has no test block of its own and whose name without extension stands \
                     as a word neither in the text nor in the path of a test file (in these languages, by its path). \
                     Judged: {}, against {}; not judged: {}, called mod, lib, main, index and the like, or not asked for.\n\n",
                    many(facts.count("judged"), "source file"),
                    many(facts.count("test_files"), "test file"),
                    facts.count("not_judged"),
                );
                self.items(facts, &["untested"], "");
            }
            Ask::Find(term) => {
                let what = match term {
                    Term::Exact(text) => format!("the text {}", code(text)),
                    Term::Words(words) => format!("all of the words {} (case ignored)", code(&words.join(" "))),
                };
                let (hits, files) = facts.kind("hit");
                let _ = write!(
                    self.text,
                    "{} in {} hold {what}. Lines that look like a definition come first.\n\n",
                    many(hits, "line"),
                    many(files, "file")
                );
                self.items(facts, &["hit"], "");
            }
        }
    }

    fn files(&mut self, facts: &Facts) {
        for item in &facts.items {
            let path = &item.path;
            match item.last {
                0 => drop(writeln!(self.text, "- {}", code(path))),
                last => drop(writeln!(
                    self.text,
                    "- {}: {}",
                    code(&format!("{}:1-{last}", shown(path))),
                    many(last, "line")
                )),
            }
        }
        self.rest(facts.kind("file").0, facts.items.len());
    }

    fn scanned(&mut self, facts: &Facts, how: &str) {
        let _ = write!(self.text, "Looked into {}{how}", many(facts.count("scanned"), "source file"));
        if facts.count("marked_generated") > 0 {
            let _ =
                write!(self.text, "; left out: {} marked as generated", many(facts.count("marked_generated"), "file"));
        }
        if facts.count("long_lines") > 0 {
            let _ =
                write!(self.text, "; left out: {} of more than 4,000 bytes", many(facts.count("long_lines"), "line"));
        }
        if facts.count("stopped") > 0 {
            self.text.push_str("; stopped early because there is so much");
        } else if facts.is_partial() {
            self.text.push_str("; at most 5,000 are");
        }
        self.text.push_str(".\n\n");
    }

    fn items(&mut self, facts: &Facts, kinds: &[&str], name: &str) {
        let (number, files) = kinds.iter().map(|kind| facts.kind(kind)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        if number == 0 {
            if name.is_empty() {
                self.line("None found.");
            }
            return;
        }
        let name = if name.is_empty() { String::new() } else { format!("{name}: ") };
        let _ = write!(self.text, "{}{name}{number} in {}:\n\n", self.gap(), many(files, "file"));
        let mut listed = 0;
        for item in facts.items.iter().filter(|item| kinds.contains(&item.kind.as_str())) {
            if self.quotes.keeps(item) {
                listed += 1;
                let entry = evidence(item);
                self.line(&entry);
            }
        }
        self.rest(number, listed);
    }

    /// A blank line, where there is none yet.
    fn gap(&self) -> &'static str {
        if self.text.ends_with("\n\n") { "" } else { "\n" }
    }

    fn rest(&mut self, number: u64, listed: usize) {
        let rest = number.saturating_sub(listed as u64);
        if rest > 0 {
            let _ = writeln!(self.text, "- and {rest} more, not listed");
        }
    }

    fn foot(&mut self, exchange: &Exchange) {
        for (title, why) in exchange.failures() {
            let title = title.trim_start_matches(['#', ' ']);
            let _ = write!(self.text, "\nNo result for “{title}”: {}.\n", code(why));
        }
        if exchange.quoted().next().is_none() {
            return;
        }
        match (&self.quotes.state, self.quotes.changed) {
            (Reread::NotDone, _) => self.line("\nThe quoted lines were not read a second time."),
            (Reread::Done, 0) => self.line("\nEvery quoted line was read a second time and still stood there."),
            (Reread::Done, n) => {
                let _ = write!(
                    self.text,
                    "\n{} did not stand there any more at the second reading: left out.\n",
                    many(n as u64, "quote")
                );
            }
        }
    }
}

const ERRORS: [(&str, &str); 9] = [
    ("rust_unwrap", "Rust `.unwrap()`"),
    ("rust_expect", "Rust `.expect(\"…\")`"),
    ("rust_panic", "Rust `panic!`"),
    ("py_bare_except", "Python `except:` of everything"),
    ("py_except_pass", "Python `except Exception` that only passes"),
    ("empty_catch", "JavaScript, TypeScript or Java `catch` with nothing in it"),
    ("go_dropped", "Go call whose results go to `_`"),
    ("go_empty_if", "Go `if err != nil` with nothing in it"),
    ("sh_no_errexit", "Shell script without `set -e`"),
];

/// One finding: its place, how long it is and the line that stands there.
fn evidence(item: &Item) -> String {
    let text = item.text.trim_end_matches('\u{fffd}');
    let more = if item.text.len() >= 118 { "…" } else { "" };
    let path = shown(&item.path);
    if item.last > item.first {
        let place = code(&format!("{path}:{}-{}", item.first, item.last));
        format!("- {place} ({} lines): {}{more}", item.last - item.first + 1, code(text))
    } else {
        format!("- {}: {}{more}", code(&format!("{path}:{}", item.first)), code(text))
    }
}

/// A path as it is shown: line breaks and other control characters as escapes.
fn shown(path: &str) -> String {
    path.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() }).collect()
}

/// A text as Markdown code, whatever back-quotes it holds.
fn code(text: &str) -> String {
    let text = shown(text);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    if longest == 0 { format!("`{text}`") } else { format!("{fence} {text} {fence}") }
}

fn many(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
