//! What a `Workflow` call's `subtasks` mean. Models send arrays, arrays as text, lists as text
//! and objects; each is read in one way, and a note says what is changed or left out. Never
//! guesses a task that is not written there.

use std::collections::HashMap;

use serde_json::Value;

/// Subtasks one `Workflow` call runs.
pub const MAX_TOTAL_SUBTASKS: usize = 200;

/// The subtasks that are run, and everything that was changed on the way. White space
/// around a subtask is removed without a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Normalised {
    /// The subtasks to run, each one once, in order. Empty: the call is an error.
    pub subtasks: Vec<String>,
    /// What was changed or left out, each `(note: …)`, to stand before the results.
    pub notes: Vec<String>,
    /// The subtasks beyond the limit, whole; a note lists them too.
    pub dropped: Vec<String>,
}

/// Reads the `subtasks` member of a call, absent or present, and keeps at most `max` of them.
pub fn normalise(input: Option<&Value>, max: usize) -> Normalised {
    let mut notes = Notes::default();
    let found = match input {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(entries)) => from_entries(entries, &mut notes),
        Some(Value::String(text)) => from_text(text.trim(), &mut notes),
        Some(other) => {
            notes.say("subtasks was no array: read as an array of one");
            from_entries(std::slice::from_ref(other), &mut notes)
        }
    };
    let mut merged = merge(found, &mut notes);
    let rest = merged.split_off(merged.len().min(max));
    let mut notes = notes.0;
    if !rest.is_empty() {
        let list: String =
            rest.iter().map(|(at, text)| format!("\n- {at}: {}", Value::from(text.as_str()))).collect();
        let count = rest.len();
        notes.insert(
            0,
            format!(
                "(note: {count} subtasks beyond MAX_TOTAL_SUBTASKS={max} were not run; rerun them in a \
                    follow-up Workflow call){list}"
            ),
        );
    }
    let texts = |found: Vec<(usize, String)>| found.into_iter().map(|(_, text)| text).collect();
    Normalised { subtasks: texts(merged), notes, dropped: texts(rest) }
}

#[derive(Default)]
struct Notes(Vec<String>);

impl Notes {
    fn say(&mut self, text: impl std::fmt::Display) {
        self.0.push(format!("(note: {text})"));
    }

    /// Says something about these places, if there are any.
    fn say_of(&mut self, what: &str, places: &[usize], is: &str, are: &str) {
        match places {
            [] => {}
            [one] => self.say(format!("{what} {one} {is}")),
            many => self.say(format!("{what}s {} {are}", listed(many))),
        }
    }
}

fn from_entries(entries: &[Value], notes: &mut Notes) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut empty = Vec::new();
    for (at, entry) in (1..).zip(entries) {
        match (entry, named(entry)) {
            (Value::String(text), _) if text.trim().is_empty() => empty.push(at),
            (Value::String(text), _) => found.push((at, text.trim().to_owned())),
            (_, Some((key, text))) => {
                notes.say(format!(
                    "subtask {at} is an object: its \"{key}\" was taken and the rest of it left out"
                ));
                found.push((at, text.to_owned()));
            }
            (other, None) => notes.say(format!("subtask {at} is no text and was not run: {}", shown(other))),
        }
    }
    notes.say_of("subtask", &empty, "is empty and was not run", "are empty and were not run");
    found
}

/// The text that an object in place of a subtask means.
fn named(entry: &Value) -> Option<(&'static str, &str)> {
    let text = |key| entry.as_object()?.get(key)?.as_str().map(str::trim).filter(|text| !text.is_empty());
    ["prompt", "task", "description"].into_iter().find_map(|key| Some((key, text(key)?)))
}

fn from_text(text: &str, notes: &mut Notes) -> Vec<(usize, String)> {
    match serde_json::from_str(text) {
        _ if text.is_empty() => Vec::new(),
        Ok(Value::Array(entries)) => {
            notes.say("subtasks was the text of an array: read as that array");
            from_entries(&entries, notes)
        }
        // Text that happens to be some other JSON, of many lines perhaps, is one task that is written so.
        Ok(_) => one(text, notes),
        Err(error) => {
            if text.starts_with('[') {
                notes.say(format!("subtasks begins like an array and is none ({error}): read as plain text"));
            }
            if text.contains('\n') { from_lines(text, notes) } else { one(text, notes) }
        }
    }
}

fn one(text: &str, notes: &mut Notes) -> Vec<(usize, String)> {
    notes.say("subtasks was one text and no array: run as one subtask");
    vec![(1, text.to_owned())]
}

fn from_lines(text: &str, notes: &mut Notes) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut marked = Vec::new();
    let mut wordless = Vec::new();
    notes.say(format!(
        "subtasks was one text of {} lines: every line was taken as a subtask",
        text.lines().count()
    ));
    for (at, line) in (1..).zip(text.lines()) {
        let (rest, had_marker) = without_marker(line.trim());
        if !rest.chars().any(char::is_alphanumeric) {
            wordless.push(at);
            continue;
        }
        if had_marker {
            marked.push(at);
        }
        found.push((at, rest.to_owned()));
    }
    notes.say_of("line", &marked, "lost its list marker", "lost their list markers");
    notes.say_of(
        "line",
        &wordless,
        "has no word in it and was not run",
        "have no word in them and were not run",
    );
    found
}

/// A line without its bullet, number and check box, and whether it had any.
fn without_marker(line: &str) -> (&str, bool) {
    let mut rest = line;
    // `- 1. [ ] text` is as deep as lists are written.
    for _ in 0..3 {
        rest = match marker(rest) {
            Some(after) => after,
            None => break,
        };
    }
    (rest, rest.len() < line.len())
}

fn marker(line: &str) -> Option<&str> {
    let bullet = || line.strip_prefix(['-', '*', '+', '•', '·', '–']);
    let check = || ["[ ]", "[x]", "[X]"].into_iter().find_map(|check| line.strip_prefix(check));
    let number = || {
        let inner = line.strip_prefix('(').unwrap_or(line);
        let after = inner.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = inner.len() - after.len();
        // Four digits are a year or a port before they are a place in a list.
        if !(1..=3).contains(&digits) {
            return None;
        }
        if inner.len() < line.len() { after.strip_prefix(')') } else { after.strip_prefix(['.', ')']) }
    };
    let after = bullet().or_else(check).or_else(number)?;
    (after.is_empty() || after.starts_with(char::is_whitespace)).then(|| after.trim_start())
}

fn merge(found: Vec<(usize, String)>, notes: &mut Notes) -> Vec<(usize, String)> {
    let mut first: HashMap<String, usize> = HashMap::new();
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, text) in found {
        match first.get(&text) {
            Some(&group) => groups[group].1.push(at),
            None => {
                first.insert(text.clone(), groups.len());
                groups.push((text, vec![at]));
            }
        }
    }
    for (_, places) in groups.iter().filter(|(_, places)| places.len() > 1) {
        notes.say(format!("subtasks {} are equal: run once", listed(places)));
    }
    groups.into_iter().map(|(text, places)| (places[0], text)).collect()
}

/// `1 to 3, 5 and 9`.
fn listed(places: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &place in places {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == place => *last = place,
            _ => runs.push((place, place)),
        }
    }
    let mut words = Vec::new();
    for (first, last) in runs {
        match last - first {
            0 => words.push(first.to_string()),
            1 => words.extend([first.to_string(), last.to_string()]),
            _ => words.push(format!("{first} to {last}")),
        }
    }
    match words.pop() {
        Some(last) if !words.is_empty() => format!("{} and {last}", words.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    let cut: String = text.chars().take(200).collect();
    if cut.len() < text.len() { format!("{cut}… ({} characters)", text.chars().count()) } else { cut }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(input: Value, subtasks: &[&str], notes: &[&str]) {
        let got = normalise(Some(&input), 5);
        assert_eq!(got.subtasks, subtasks, "{input}");
        let wanted: Vec<String> = notes.iter().map(|note| format!("(note: {note})")).collect();
        assert_eq!(got.notes, wanted, "{input}");
        assert!(got.dropped.is_empty());
    }

    const ONE: &str = "subtasks was one text and no array: run as one subtask";
    const TEXT: &str = "subtasks was the text of an array: read as that array";

    #[test]
    fn d7_1_every_shape_of_subtasks_is_read() {
        check(json!(["a", " b\n", "c\nd"]), &["a", "b", "c\nd"], &[]);
        check(json!("[\"a\", \"b\"]"), &["a", "b"], &[TEXT]);
        check(json!(" [\"a\", 1]\n"), &["a"], &[TEXT, "subtask 2 is no text and was not run: 1"]);
        check(json!("look at a"), &["look at a"], &[ONE]);
        check(
            json!("a\nb c"),
            &["a", "b c"],
            &["subtasks was one text of 2 lines: every line was taken as a subtask"],
        );
        check(
            json!("Do:\r\n- a\n\n* b\n 3) c\n---\n(4) [x] d"),
            &["Do:", "a", "b", "c", "d"],
            &[
                "subtasks was one text of 7 lines: every line was taken as a subtask",
                "lines 2, 4, 5 and 7 lost their list markers",
                "lines 3 and 6 have no word in them and were not run",
            ],
        );
        check(
            json!(["a", 1, true, null, ["x"], {"x": 1}, "  "]),
            &["a"],
            &[
                "subtask 2 is no text and was not run: 1",
                "subtask 3 is no text and was not run: true",
                "subtask 4 is no text and was not run: null",
                "subtask 5 is no text and was not run: [\"x\"]",
                "subtask 6 is no text and was not run: {\"x\":1}",
                "subtask 7 is empty and was not run",
            ],
        );
        check(
            json!([{"prompt": "a", "x": 1}, {"task": " b "}, {"prompt": 1, "description": "c"}]),
            &["a", "b", "c"],
            &[
                "subtask 1 is an object: its \"prompt\" was taken and the rest of it left out",
                "subtask 2 is an object: its \"task\" was taken and the rest of it left out",
                "subtask 3 is an object: its \"description\" was taken and the rest of it left out",
            ],
        );
        check(
            json!({"task": "a"}),
            &["a"],
            &[
                "subtasks was no array: read as an array of one",
                "subtask 1 is an object: its \"task\" was taken and the rest of it left out",
            ],
        );
        check(
            json!(["a", "b", "c", "a ", "b", "a"]),
            &["a", "b", "c"],
            &["subtasks 1, 4 and 6 are equal: run once", "subtasks 2 and 5 are equal: run once"],
        );
    }

    #[test]
    fn a_task_that_is_itself_json_is_not_lost() {
        for text in ["123", "\"quoted\"", "{}", "{\n  \"a\": 1\n}", "true", "null"] {
            check(json!(text), &[text], &[ONE]);
            check(json!([text]), &[text], &[]);
        }
        let got = normalise(Some(&json!("[\"a\", \"b")), 5);
        assert_eq!(got.subtasks, ["[\"a\", \"b"]);
        assert!(got.notes[0].contains("begins like an array and is none"), "{:?}", got.notes);
    }

    #[test]
    fn words_that_only_look_like_list_markers_stay() {
        for line in [
            "-rf is dangerous",
            "3.5 is a version",
            "2024. A year",
            "*.rs files",
            "[x]y",
            "1.a",
            "(see b)",
            "+1 to it",
        ] {
            assert_eq!(without_marker(line), (line, false));
        }
        for (line, rest) in [
            ("- a", "a"),
            ("12. a", "a"),
            ("•\ta", "a"),
            ("- [ ] a", "a"),
            ("- 1. [x] - a", "- a"),
            ("-", ""),
        ] {
            assert_eq!(without_marker(line), (rest, true));
        }
    }

    #[test]
    fn d7_2_d7_10_nothing_usable_leaves_nothing() {
        assert_eq!(normalise(None, 5), Normalised::default());
        for input in [
            json!(null),
            json!([]),
            json!(""),
            json!(" \n "),
            json!("[]"),
            json!([1, ""]),
            json!(7),
            json!({"a": 1}),
        ] {
            assert!(normalise(Some(&input), 5).subtasks.is_empty(), "{input}");
        }
    }

    #[test]
    fn d7_3_what_is_beyond_the_limit_is_counted_and_listed_whole() {
        let many: Vec<String> = (1..=203).map(|i| format!("task {i}\nwith \"more\"")).collect();
        let got = normalise(Some(&json!(many)), MAX_TOTAL_SUBTASKS);
        assert_eq!((got.subtasks.len(), got.dropped.len()), (200, 3));
        assert_eq!(got.dropped, many[200..]);
        let mut lines = got.notes[0].lines();
        assert_eq!(
            lines.next().unwrap(),
            "(note: 3 subtasks beyond MAX_TOTAL_SUBTASKS=200 were not run; rerun them in a follow-up \
                Workflow call)"
        );
        assert_eq!(lines.next().unwrap(), r#"- 201: "task 201\nwith \"more\"""#);
        assert_eq!(lines.count(), 2);
    }

    #[test]
    fn equal_subtasks_are_merged_before_the_limit_counts() {
        let got = normalise(Some(&json!(["a", "a", "b", "c", "d", "e", "f", "b"])), 5);
        assert_eq!((got.subtasks.len(), got.dropped), (5, vec!["f".to_owned()]));
        assert!(got.notes[0].ends_with("\n- 7: \"f\""), "{:?}", got.notes);
        assert_eq!(got.notes.len(), 3);
    }

    #[test]
    fn places_are_listed_the_way_people_do() {
        for (places, text) in [
            (&[2usize][..], "2"),
            (&[2, 5], "2 and 5"),
            (&[1, 2, 3, 7], "1 to 3 and 7"),
            (&[1, 2, 4, 6], "1, 2, 4 and 6"),
        ] {
            assert_eq!(listed(places), text);
        }
    }
}
