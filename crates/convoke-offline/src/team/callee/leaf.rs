//! The values without parts: texts, numbers and switches, by the name of their property and by what the row
//! is about. A name that no table knows gets a text from what was seen, the least number that is allowed, or
//! a no.

use serde_json::Value;

use super::names::{
    AGAINST, CLAIM, CONFIDENCE, COUNT, DONE, EVIDENCE, FINDINGS, FIRST, KEY, KIND, LANGUAGE, LAST, PATCH,
    PATH, PLACE, QUOTE, RAN, REASON, REMEDY, SEVERITY, SUMMARY, THERE, VERDICTS, ends_in, is_one_of,
};
use super::seen::{Row, Seen};

/// Whether there is something to be said under this name, so that it is filled although it may be left out.
pub(super) fn is_known(name: &str, row: Row<'_>) -> bool {
    let always = [CLAIM, EVIDENCE, PATH, REASON, SEVERITY, SUMMARY, VERDICTS, KIND];
    let of_spots = [FIRST, LAST, QUOTE, PLACE];
    let spot = matches!(row, Row::Spot(_));
    always.iter().any(|table| ends_in(name, table)) && !matches!(row, Row::None)
        || spot && of_spots.iter().any(|table| ends_in(name, table))
        || matches!(row, Row::None) && [SUMMARY, COUNT, DONE, PATCH].iter().any(|table| ends_in(name, table))
}

/// A text.
pub(super) fn text(name: &str, row: Row<'_>, seen: &Seen) -> String {
    let is = |table: &str| ends_in(name, table);
    if matches!(row, Row::None) {
        return whole(name, seen);
    }
    if is(PATH) {
        row.path().unwrap_or_default().to_owned()
    } else if is(PLACE) || is(KEY) {
        row.place()
    } else if is(QUOTE) {
        row.quote()
    } else if is(EVIDENCE) {
        match row {
            Row::Spot(_) => format!("{}: {}", row.place(), row.quote().chars().take(120).collect::<String>()),
            _ => row.rule(),
        }
    } else if is(SEVERITY) {
        row.severity().to_owned()
    } else if is(REASON) {
        row.rule()
    } else if is(KIND) || is(LANGUAGE) {
        row.kind()
    } else if is(REMEDY) {
        format!("Look at {}.", row.place())
    } else if is(FIRST) || is(LAST) {
        row.lines().map(|(first, _)| first.to_string()).unwrap_or_default()
    } else {
        row.claim()
    }
}

/// A text about the whole.
fn whole(name: &str, seen: &Seen) -> String {
    let is = |table: &str| ends_in(name, table);
    if is(PATCH) {
        seen.patch().to_owned()
    } else if is(RAN) {
        String::new()
    } else if is(PATH) || is(PLACE) {
        seen.paths().first().map_or_else(|| topic(&seen.prompt), |path| (*path).to_owned())
    } else if is(SUMMARY) || is(REASON) || is(EVIDENCE) || is(QUOTE) || is_one_of(name, SUMMARY) {
        seen.summary()
    } else if is(CLAIM) || is(KEY) || is(KIND) {
        topic(&seen.prompt)
    } else {
        seen.summary()
    }
}

/// The beginning of the prompt.
fn topic(prompt: &str) -> String {
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("nothing");
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    words.join(" ").trim_end_matches([':', '.', ',']).to_owned()
}

/// A number.
pub(super) fn number(name: &str, row: Row<'_>, seen: &Seen, schema: &Value) -> f64 {
    let is = |table: &str| ends_in(name, table);
    let lines = row.lines();
    if let (Some((first, _)), true) = (lines, is(FIRST)) {
        return first as f64;
    }
    if let (Some((_, last)), true) = (lines, is(LAST)) {
        return last as f64;
    }
    match row {
        Row::Area(area) if is_one_of(name, "files") => return area.files as f64,
        Row::Area(area) if is_one_of(name, "lines loc size") => return area.lines as f64,
        Row::File(_, lines) if is_one_of(name, "lines loc size") => return lines as f64,
        Row::None if is_one_of(name, "files") => return seen.files_seen() as f64,
        Row::None if is(COUNT) || is_one_of(name, FINDINGS) => return seen.total() as f64,
        _ => {}
    }
    // How sure, how good: no rule can tell, so it is the middle of what is allowed.
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (least, Some(most)) if !is(COUNT) => ((least.unwrap_or(0.0) + most) / 2.0).floor_unless_below(1.0),
        (Some(least), _) => least,
        _ if is(CONFIDENCE) => 0.5,
        _ => 0.0,
    }
}

trait Middle {
    /// Whole where that is possible.
    fn floor_unless_below(self, least: f64) -> f64;
}

impl Middle for f64 {
    fn floor_unless_below(self, least: f64) -> f64 {
        if self >= least { self.floor() } else { self }
    }
}

/// A switch.
pub(super) fn switch(name: &str, row: Row<'_>, seen: &Seen) -> bool {
    let something = !matches!(row, Row::None) || !seen.spots().is_empty();
    if is_one_of(name, RAN) {
        false
    } else if is_one_of(name, AGAINST) {
        seen.holds() == Some(false)
    } else if is_one_of(name, DONE) {
        seen.replaced() > 0
    } else if is_one_of(name, VERDICTS) {
        seen.holds() == Some(true)
    } else {
        is_one_of(name, THERE) && something
    }
}

const FOR: &str = "accept accepted approve approved confirm confirmed correct holds keep ok pass passed \
    real supported sound true upheld valid verified yes";
const REFUSING: &str =
    "disproved fail failed false invalid no reject rejected refute refuted unsupported wrong";
const OPEN: &str =
    "inconclusive open partial partially uncertain undecided unclear unknown unproven unsure unverified";

/// The choice that claims least: the first that says neither that something is right nor that it was done.
pub(super) fn least(choices: &[Value]) -> Value {
    let claims =
        |choice: &Value| choice.as_str().is_some_and(|word| is_one_of(word, FOR) || is_one_of(word, DONE));
    let modest = choices.iter().find(|choice| !claims(choice) && **choice != Value::Bool(true));
    modest.or(choices.first()).cloned().unwrap_or(Value::Null)
}

/// One of some choices: the one that says what was seen, else the one that claims least.
pub(super) fn choice(choices: &[Value], name: &str, row: Row<'_>, seen: &Seen) -> Value {
    let among = |table: &str| {
        choices.iter().find(|choice| choice.as_str().is_some_and(|word| is_one_of(word, table)))
    };
    let wanted = if ends_in(name, RAN) {
        among("none skipped untested no").or_else(|| among(OPEN))
    } else if ends_in(name, SEVERITY) && !matches!(row, Row::None) {
        let known = match row.severity() {
            "high" => "high critical major p1",
            "medium" => "medium moderate p2",
            "low" => "low minor p3",
            _ => "info note informational low minor p4 p3",
        };
        known.split(' ').find_map(among)
    } else if is_one_of(name, VERDICTS)
        || among(OPEN).is_some() && (among(FOR).is_some() || among(REFUSING).is_some())
    {
        match seen.holds() {
            Some(true) => among(FOR),
            Some(false) => among(REFUSING),
            None if seen.replaced() > 0 => among(DONE),
            None => among(OPEN).or_else(|| among(REFUSING)),
        }
    } else if ends_in(name, CONFIDENCE) {
        among("medium moderate")
    } else {
        let kind = row.kind();
        choices.iter().find(|choice| choice.as_str() == Some(kind.as_str()))
    };
    wanted.cloned().unwrap_or_else(|| least(choices))
}
