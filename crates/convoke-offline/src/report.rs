//! Writes the answer: Markdown of modest length. Every number in it was printed by a command and every quote
//! was read twice; what could not be looked at is said.

mod chapters;
mod phrases;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::intent::{Term, Topic, Wanted};
use super::probes::{Probe, source_languages};
use super::read::{Exchange, Facts, Item, Language, Seen};
use super::team;
pub(super) use chapters::frameworks_named;
pub(super) use phrases::unread;
use phrases::{code, counted, evidence, many, none_found, shown, unjudged};

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
        let title = match ask {
            Topic::Count => continue,
            Topic::LargestFiles => "Largest files",
            Topic::LongFunctions => "Functions of more than 80 lines",
            Topic::Todos => "TODO, FIXME, XXX, HACK",
            Topic::Errors => "Unhandled errors",
            Topic::Tests => "Source files that no test mentions",
            Topic::Framework => "Testing framework",
            Topic::Outline => "What each file defines",
            Topic::Find(_) => "Search",
            Topic::List => "Files",
        };
        match exchange.seen(&Probe::of(ask)) {
            Seen::Facts(facts) => {
                let _ = write!(out.text, "\n## {title}\n\n");
                out.section(ask, facts);
            }
            Seen::Nothing if sources == 0 => {}
            Seen::Nothing => {
                let _ = write!(out.text, "\n## {title}\n\nNot looked at: the turns ended before that.\n");
            }
            Seen::Failed => {
                let _ = write!(out.text, "\n## {title}\n\nNot known: the command brought no result.\n");
            }
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
        let done = |ask: &&Topic| matches!(exchange.seen(&Probe::of(ask)), Seen::Facts(_));
        let checked: Vec<&str> = wanted.asks.iter().filter(done).map(Topic::name).collect();
        let checked = if checked.is_empty() { "nothing".to_owned() } else { checked.join(", ") };
        let _ = writeln!(
            self.text,
            "Offline model: fixed rules, no intelligence. Checked by read-only commands: {checked}. Not \
             checked: what the code means, whether it is right, safe or builds, whether its tests pass."
        );
        if let Some(reason) = team::refused_fan_out(exchange) {
            let _ = write!(
                self.text,
                "\nThe fan-out was refused, so I looked alone. The reason: {}\n",
                shown(&reason)
            );
        }
        if !wanted.recognised {
            self.line(
                "\nThe rules did not recognise the request, so this is the general review, not an \
                answer to it.",
            );
        }
        for path in &wanted.out_of_reach {
            let _ = write!(
                self.text,
                "\nNot looked at: {}, because only what is below this directory is.\n",
                code(path)
            );
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
                let _ = write!(
                    self.text,
                    "There is no {} here, so the whole directory was looked at.\n\n",
                    code(scope)
                );
            }
            Some(scope) => drop(write!(self.text, "Only {} was looked at.\n\n", code(scope))),
            None => {}
        }
        let rows = facts.languages();
        if let Some(language) = wanted.language {
            let none = Language { name: language, files: 0, lines: 0, locked: 0 };
            let row = rows.iter().find(|row| row.name == language).unwrap_or(&none);
            let _ = write!(self.text, "{language}: {}.\n\n", counted(row));
        }
        let files = facts.files();
        let (locked, closed) = facts.unread();
        if files == 0 && closed == 0 {
            self.line("There are no files here, apart from what is left out.");
        } else if files == 0 {
            self.line("No file was found here, apart from what is left out and what could not be read.");
        } else {
            let lines = rows.iter().map(|row| row.lines).sum();
            let listing =
                if facts.count("git") > 0 { "tracked or not ignored by git" } else { "found by walking" };
            let _ = write!(
                self.text,
                "{}, {listing}; {} in known languages:",
                many(files, "file"),
                many(lines, "line")
            );
            self.text.push_str("\n\n");
            for row in rows.iter().filter(|row| row.name != "other") {
                let _ = writeln!(self.text, "- {}: {}", row.name, counted(row));
            }
            if let Some(other) = rows.iter().find(|row| row.name == "other") {
                let _ = writeln!(
                    self.text,
                    "- other: {}, lines not counted",
                    many(other.files + other.locked, "file")
                );
            }
            if facts.count("big") > 0 {
                let _ = writeln!(
                    self.text,
                    "- of 2 MiB or more, not opened: {}",
                    many(facts.count("big"), "file")
                );
            }
        }
        if let Some(unread) = unread(facts) {
            let _ = write!(self.text, "\nNothing is known of what these hold, {unread}:\n\n");
            for item in &facts.items {
                let slash = if item.kind == "closed" { "/" } else { "" };
                let _ = writeln!(self.text, "- {}", code(&format!("{}{slash}", item.path)));
            }
            self.rest(locked + closed, facts.items.len());
        }
        let _ = writeln!(
            self.text,
            "\nLeft out by path: {} vendored (vendor, third_party, node_modules, …), {} generated or built \
             (target, dist, *.min.js, …), {}.",
            facts.count("vendored"),
            facts.count("generated"),
            many(facts.count("lock"), "lock file")
        );
        if facts.count("misnamed") > 0 {
            let misnamed = many(facts.count("misnamed"), "file");
            let _ = write!(self.text, "\nLeft out: {misnamed} with a name that is not UTF-8.\n");
        }
        if files > 0 && facts.sources() == 0 && wanted.asks.iter().any(Topic::needs_source) {
            let seen = if closed > 0 { "None that was found" } else { "None" };
            let languages = source_languages().join(", ");
            let _ = write!(self.text, "\n{seen} is in a language that is looked into ({languages}).\n");
        }
    }

    fn section(&mut self, ask: &Topic, facts: &Facts) {
        match ask {
            Topic::Count => {}
            Topic::LargestFiles | Topic::List => {
                self.files(facts);
                if let Some(unread) = unread(facts) {
                    let _ = writeln!(self.text, "{}Not known for {unread}.", self.gap());
                }
            }
            Topic::LongFunctions => {
                self.scanned(facts, "");
                self.items(facts, &["long_function"], "");
                if facts.count("unsure") > 0 {
                    let unsure = many(facts.count("unsure"), "block");
                    let _ = writeln!(self.text, "- left out: {unsure} whose braces and indentation disagree");
                }
            }
            Topic::Todos => {
                self.scanned(facts, " (words in comments, not in strings)");
                self.items(facts, &["comment"], "");
            }
            Topic::Errors => {
                self.scanned(facts, ", without files and blocks that look like tests");
                for (kind, name) in ERRORS {
                    self.items(facts, &[kind], name);
                }
                if facts.kind("rust_unwrap").0 + facts.kind("rust_expect").0 > 0 {
                    self.line(
                        "\nThey may panic: whether such a call can fail where it stands, the rules do \
                        not see.",
                    );
                }
                if facts.total() == 0 {
                    let names: Vec<&str> = ERRORS.iter().map(|(_, name)| *name).collect();
                    let none = none_found(facts, "None of these was found");
                    let _ = writeln!(self.text, "{none}: {}.", names.join("; "));
                }
            }
            Topic::Tests => {
                self.scanned(facts, "");
                if facts.is_partial() {
                    return self.line(
                        "Not judged: a file that was not looked into may be a test that mentions them.",
                    );
                }
                let readable = if unread(facts).is_some() { " that could be read" } else { "" };
                let _ = write!(
                    self.text,
                    "Listed is a source file that has no test of its own, and that no test file{readable} \
                     (in these languages, by its path) mentions by a word: neither its name without \
                     extension nor a longer name that it defines. It may be tested all the same. Judged: \
                     {}, against {}{}.\n\n",
                    many(facts.count("judged"), "source file"),
                    many(facts.count("test_files"), "test file"),
                    unjudged(facts),
                );
                self.items(facts, &["untested"], "");
            }
            Topic::Framework => self.frameworks(facts),
            Topic::Outline => self.outline(facts),
            Topic::Find(term) => {
                let what = match term {
                    Term::Exact(text) => format!("the text {}", code(text)),
                    Term::Words(words) => {
                        format!("all of the words {} (case ignored)", code(&words.join(" ")))
                    }
                };
                let (hits, files) = facts.kind("hit");
                let not_known =
                    unread(facts).map(|unread| format!("; not known for {unread}")).unwrap_or_default();
                let _ = write!(
                    self.text,
                    "{} in {} hold {what}{not_known}. Lines that look like a definition come first.\n\n",
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
            let _ = write!(
                self.text,
                "; left out: {} marked as generated",
                many(facts.count("marked_generated"), "file")
            );
        }
        if facts.count("long_lines") > 0 {
            let _ = write!(
                self.text,
                "; left out: {} of more than 4,000 bytes",
                many(facts.count("long_lines"), "line")
            );
        }
        if facts.count("stopped") > 0 {
            self.text.push_str("; stopped early because there is so much");
        } else if facts.is_partial() {
            self.text.push_str("; at most 5,000 are");
        }
        if let Some(unread) = unread(facts) {
            let _ = write!(self.text, "; not known for {unread}");
        }
        self.text.push_str(".\n\n");
    }

    fn items(&mut self, facts: &Facts, kinds: &[&str], name: &str) {
        let (number, files) =
            kinds.iter().map(|kind| facts.kind(kind)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        if number == 0 {
            if name.is_empty() {
                let none = none_found(facts, "None found");
                self.line(&format!("{none}."));
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
            (Reread::Done, 0) => {
                self.line("\nEvery quoted line was read a second time and still stood there.")
            }
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
