//! What a callee saw, read again from its history, and the plain sentences about it. Nothing is made up: what
//! brought no result is said to have brought none.

use std::fmt::Write as _;

use super::step::Step;
use super::swap::{self, Swap, Trial};
use crate::read::{Call, Exchange, Facts, short};
use crate::team::facts::{Area, Cited, Sight, Spot};
use crate::team::kind::{Kind, hit_claim};
use crate::team::look::{Lines, Look};
use crate::team::many;

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) prompt: String,
    steps: Vec<Step>,
    sight: Option<Sight>,
    /// Listed files with their lines.
    files: Vec<(String, u64)>,
    patch: Option<String>,
    /// What came in place of a result.
    failure: Option<String>,
}

/// What one row of an array is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Row<'a> {
    /// The whole.
    None,
    Spot(&'a Spot),
    Area(&'a Area),
    File(&'a str, u64),
}

impl Seen {
    pub(super) fn of(exchange: &Exchange, steps: &[Step]) -> Self {
        let mut seen = Self { prompt: exchange.task.clone(), steps: steps.to_vec(), ..Self::default() };
        for step in steps {
            for call in exchange.calls.iter().filter(|call| step.is(call)) {
                seen.take(step, call);
            }
        }
        seen
    }

    fn take(&mut self, step: &Step, call: &Call) {
        let Some(text) = call.result.as_deref() else { return };
        let came = match step {
            Step::Look(_) | Step::Swap(_) | Step::Try(_) => {
                let sight = Sight::parse(text);
                let came = sight.is_some();
                self.sight = sight.or_else(|| self.sight.take());
                self.patch = self.patch.take().or_else(|| swap::patch(text).map(str::to_owned));
                came
            }
            Step::List { .. } => Facts::parse(text).map(|facts| self.list(&facts)).is_some(),
            Step::Glob => {
                let paths = text
                    .lines()
                    .map(str::trim)
                    .filter(|line| !line.is_empty() && !line.starts_with(['(', '[']));
                if !call.is_error {
                    self.files = paths.map(|path| (path.to_owned(), 0)).collect();
                }
                !call.is_error
            }
        };
        if !came {
            self.failure = Some(short(text));
        }
    }

    fn list(&mut self, facts: &Facts) {
        self.files = facts.items.iter().map(|item| (item.path.clone(), item.last)).collect();
    }

    pub(super) fn spots(&self) -> &[Spot] {
        self.sight.as_ref().map(|sight| sight.items.as_slice()).unwrap_or_default()
    }

    pub(super) fn areas(&self) -> Vec<&Area> {
        let areas = self.sight.iter().flat_map(|sight| &sight.areas);
        areas.filter(|area| area.language != "other").collect()
    }

    /// Everything that a row can be about: what was found, else the parts of the tree, else the files.
    pub(super) fn rows(&self) -> Vec<Row<'_>> {
        let areas = self.areas();
        if !self.spots().is_empty() {
            self.spots().iter().map(Row::Spot).collect()
        } else if !areas.is_empty() {
            areas.into_iter().map(Row::Area).collect()
        } else {
            self.files.iter().map(|(path, lines)| Row::File(path, *lines)).collect()
        }
    }

    /// The paths that were seen, each once.
    pub(super) fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = Vec::new();
        let swapped = self.steps.iter().filter_map(|step| match step {
            Step::Swap(swap) if self.replaced() > 0 => Some(swap.files.iter().map(String::as_str)),
            _ => None,
        });
        for path in self.rows().iter().filter_map(Row::path).chain(swapped.flatten()) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// How many findings there are, listed or not; else how many files.
    pub(super) fn total(&self) -> u64 {
        match &self.sight {
            Some(sight) if sight.areas.is_empty() => sight.total().max(sight.count("replaced")),
            Some(sight) => sight.areas.iter().map(|area| area.files).sum(),
            None => self.files.len() as u64,
        }
    }

    pub(super) fn files_seen(&self) -> u64 {
        match &self.sight {
            Some(sight) if sight.areas.is_empty() => sight.looked(),
            Some(sight) => sight.areas.iter().map(|area| area.files).sum(),
            None => self.files.len() as u64,
        }
    }

    /// How many files were changed.
    pub(super) fn replaced(&self) -> u64 {
        self.sight.as_ref().map(|sight| sight.count("replaced")).unwrap_or_default()
    }

    pub(super) fn patch(&self) -> &str {
        self.patch.as_deref().unwrap_or_default()
    }

    /// Whether it looked and there was nothing.
    pub(super) fn has_looked_in_vain(&self) -> bool {
        self.sight.as_ref().is_none_or(|sight| sight.items.is_empty() && sight.areas.is_empty())
    }

    /// Whether what the prompt says is so: none if no rule can tell, or nothing was looked at. A patch can be
    /// put on and does what was to be replaced, or not. A place that is named can be read, and what is said
    /// of it has a word in common with what stands there.
    pub(super) fn holds(&self) -> Option<bool> {
        if let Some(holds) = swap::patch_holds(&self.prompt) {
            if !self.steps.iter().any(|step| matches!(step, Step::Try(_))) {
                return Some(holds);
            }
            let sight = self.sight.as_ref()?;
            return Some(holds && sight.count("applied") == 1 && sight.count("left") == 0);
        }
        let sight = self.sight.as_ref()?;
        let cited = self.cited();
        if cited.is_empty() {
            return None;
        }
        let mut all = Some(true);
        for index in 0..cited.len() {
            match sight.cited(index) {
                Cited::NoFile | Cited::TooShort => return Some(false),
                Cited::Nothing => all = None,
                Cited::Lines(lines) if shares_a_word(&self.prompt, lines) => {}
                Cited::Lines(_) => all = None,
            }
        }
        all
    }

    fn cited(&self) -> &[Lines] {
        let cited = self.steps.iter().find_map(|step| match step {
            Step::Look(Look::Cite(lines)) => Some(lines.as_slice()),
            _ => None,
        });
        cited.unwrap_or_default()
    }

    /// One sentence about what was done and what came of it.
    pub(super) fn summary(&self) -> String {
        let said = self.steps.iter().filter_map(|step| self.about(step)).collect::<Vec<_>>().join(" ");
        if !said.is_empty() {
            return format!("{said} (Offline model: fixed rules, no intelligence.)");
        }
        match &self.failure {
            Some(why) => format!("Nothing could be looked at: {why}. Nothing is known. (Offline model.)"),
            None => {
                "Nothing was looked at, so nothing is known. (Offline model: fixed rules, no intelligence.)"
                    .to_owned()
            }
        }
    }

    fn about(&self, step: &Step) -> Option<String> {
        let sight = self.sight.as_ref();
        let within = step.place().map(|place| place.within.join(", ")).filter(|within| !within.is_empty());
        let within = within.map(|within| format!(" in {within}")).unwrap_or_default();
        let missing = match sight.map(|sight| sight.count("scope_missing")).unwrap_or_default() {
            0 => String::new(),
            number => format!(" Not to be found: {}.", many(number, "path")),
        };
        let looked = many(self.files_seen(), "file");
        let found = many(self.total(), "finding");
        match step {
            Step::Look(Look::Scout(_)) => {
                let (files, lines) =
                    sight?.areas.iter().fold((0, 0), |sum, area| (sum.0 + area.files, sum.1 + area.lines));
                Some(format!("There are {} with {}{within}.", many(files, "file"), many(lines, "line")))
            }
            Step::Look(Look::Cite(lines)) => Some(self.about_cited(sight?, lines)),
            Step::Look(Look::Check { concern, .. } | Look::Again { concern, .. }) => {
                sight?;
                Some(format!("{}: looked into {looked}{within}; {found}.{missing}", concern.about().title))
            }
            Step::Look(Look::Words { terms, .. }) => {
                sight?;
                let lines = many(self.total(), "line");
                Some(format!("Searched {looked}{within} for {}: {lines}.{missing}", terms.join(", ")))
            }
            Step::Swap(swap) => {
                sight?;
                Some(format!(
                    "Replaced `{}` by `{}` in {}.",
                    swap.old,
                    swap.new,
                    many(self.replaced(), "file")
                ))
            }
            Step::Try(trial) => Some(about_trial(trial, sight?)),
            Step::List { .. } | Step::Glob if self.files.is_empty() => None,
            Step::List { .. } | Step::Glob => {
                Some(format!("Listed {}.", many(self.files.len() as u64, "file")))
            }
        }
    }

    fn about_cited(&self, sight: &Sight, cited: &[Lines]) -> String {
        let mut said = Vec::new();
        for (index, Lines { path, first, last }) in cited.iter().enumerate() {
            said.push(match sight.cited(index) {
                Cited::Nothing => format!("{path}:{first} was not read."),
                Cited::NoFile => format!("There is no file {path} that can be read."),
                Cited::TooShort => format!("{path} ends before line {last}."),
                Cited::Lines(lines) => {
                    let line = lines.first().map(|line| line.trim()).unwrap_or_default();
                    format!("{path}:{first} reads: {}", line.chars().take(120).collect::<String>())
                }
            });
        }
        said.join(" ")
    }

    /// A short text about what was seen, for a prompt without a schema.
    pub(super) fn in_prose(&self) -> String {
        let mut out = self.summary();
        let rows = self.rows();
        for row in rows.iter().take(8) {
            let _ = match row {
                Row::Spot(_) => write!(out, "\n- {}: {}", row.place(), row.claim()),
                Row::Area(area) => {
                    write!(
                        out,
                        "\n- {}: {} of {}, {}",
                        area.path,
                        many(area.files, "file"),
                        area.language,
                        many(area.lines, "line")
                    )
                }
                Row::File(path, 0) | Row::File(path, 1) => write!(out, "\n- {path}"),
                Row::File(path, lines) => write!(out, "\n- {path}: {}", many(*lines, "line")),
                Row::None => Ok(()),
            };
        }
        if rows.len() > 8 {
            let _ = write!(out, "\nAnd {} more.", rows.len() - 8);
        }
        out
    }
}

/// What came of putting a patch on.
fn about_trial(trial: &Trial, sight: &Sight) -> String {
    let Swap { old, new, .. } = &trial.swap;
    if sight.count("applied") == 0 {
        return "The patch cannot be put on here, so what it does is not known. No test was run.".to_owned();
    }
    let left = match sight.count("left") {
        // What is put in may hold what was taken out, and then nothing can be said of it.
        0 if new.contains(old.as_str()) => String::new(),
        0 => format!(", and `{old}` is gone from its files"),
        left => format!(", but `{old}` still stands in {} of its files", many(left, "line")),
    };
    format!("Put the patch on in a place of its own: it fits{left}. No test was run.")
}

/// Whether lines hold a word of the prompt: one of at least four letters that is no part of a place. All that
/// can be told without understanding either.
fn shares_a_word(prompt: &str, lines: &[String]) -> bool {
    let low = prompt.to_lowercase();
    let tokens = low.split_whitespace().filter(|token| !token.trim_end_matches(':').contains(['/', ':']));
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 3);
        words.map(str::to_lowercase).collect()
    };
    let said: Vec<String> = tokens.flat_map(words).collect();
    lines.iter().flat_map(|line| words(line)).any(|word| said.contains(&word))
}

impl<'a> Row<'a> {
    pub(super) fn path(&self) -> Option<&'a str> {
        match self {
            Row::None => None,
            Row::Spot(spot) => Some(&spot.path),
            Row::Area(area) => Some(&area.path),
            Row::File(path, _) => Some(path),
        }
    }

    pub(super) fn lines(&self) -> Option<(u64, u64)> {
        match self {
            Row::Spot(spot) => Some((spot.first, spot.last)),
            _ => None,
        }
    }

    /// `path:line`, or the path alone.
    pub(super) fn place(&self) -> String {
        match self {
            Row::Spot(Spot { path, first, .. }) if *first > 0 => format!("{path}:{first}"),
            _ => self.path().unwrap_or_default().to_owned(),
        }
    }

    /// What is said of it.
    pub(super) fn claim(&self) -> String {
        match self {
            Row::None => String::new(),
            Row::Spot(spot) => Kind::named(&spot.kind)
                .map_or_else(|| hit_claim(&spot.detail), |kind| kind.claim(&spot.detail)),
            Row::Area(area) => format!("{}: {} of {}", area.path, many(area.files, "file"), area.language),
            Row::File(path, _) => (*path).to_owned(),
        }
    }

    pub(super) fn quote(&self) -> String {
        match self {
            Row::Spot(spot) if !spot.quote.is_empty() => spot.quote.clone(),
            _ => self.claim(),
        }
    }

    pub(super) fn severity(&self) -> &'static str {
        match self {
            Row::Spot(spot) => Kind::named(&spot.kind).map_or("info", |kind| kind.severity),
            _ => "info",
        }
    }

    /// How the rule came to it.
    pub(super) fn rule(&self) -> String {
        match self {
            Row::Spot(spot) => {
                Kind::named(&spot.kind).map_or("the line holds these words", |kind| kind.rule).to_owned()
            }
            Row::Area(area) => format!("{} and {}", many(area.files, "file"), many(area.lines, "line")),
            Row::File(..) => "the files were listed".to_owned(),
            Row::None => String::new(),
        }
    }

    pub(super) fn kind(&self) -> String {
        match self {
            Row::Spot(spot) => spot.kind.clone(),
            Row::Area(area) => area.language.clone(),
            Row::File(..) => "file".to_owned(),
            Row::None => "none".to_owned(),
        }
    }
}
