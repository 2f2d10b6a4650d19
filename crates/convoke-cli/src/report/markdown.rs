//! The report as Markdown, whole. What agents wrote is shown as text: escaped in sentences, fenced where it
//! has lines. The answer alone keeps its own Markdown, because that is what it is; it is quoted, so that it
//! cannot pass for a part of the report, and its tags and pictures are switched off.

use std::fmt::Write;

use super::changes::{LATER_HEAD, file_line, tree_line};
use super::model::{Confined, Finding, SessionReport};
use super::order::{counts, in_order};
use super::text::{cache, lost_words, name, outcomes, spend};
use crate::questions::who;
use crate::render::{clean, dollars, file_name, revealed, tokens};
use crate::utc;

/// The report as a Markdown document.
pub(crate) fn markdown(report: &SessionReport) -> String {
    let mut page = String::from("# Convoke report\n\n");
    facts(&mut page, report);
    section(&mut page, "Answer");
    match report.answer.trim().is_empty() {
        true => page.push_str("There is none.\n"),
        // A value is data, and data of a program is no Markdown.
        false if report.value.is_some() => page.push_str(&fenced(&report.answer)),
        false => page.push_str(&quoted(&report.answer)),
    }
    for follow_up in &report.follow_ups {
        section(&mut page, &format!("Follow-up: {}", escaped(&follow_up.text)));
        page.push_str(&quoted(&follow_up.answer));
    }
    if !report.questions.is_empty() {
        section(&mut page, "Waiting for an answer");
        for waits in &report.questions {
            put(
                &mut page,
                &format!(
                    "- {}: {}, because {}\n",
                    waits.id,
                    escaped(&who(&waits.label)),
                    escaped(&waits.why)
                ),
            );
            // Nothing of what a person is asked to agree to may be hidden.
            page.push_str(&fenced(&revealed(&waits.wanted)));
        }
        if let Some(command) = report.questions.iter().find_map(|waits| waits.allow.as_ref()) {
            put(&mut page, &format!("\n`{command}` allows the first of them, `--deny` refuses it."));
        }
    }
    programs(&mut page, report);
    if !report.findings.is_empty() {
        section(&mut page, "Findings");
        put(&mut page, &counts(&report.findings));
        for found in in_order(&report.findings) {
            finding(&mut page, found);
        }
    }
    agents(&mut page, report);
    if !report.lost.is_empty() {
        section(&mut page, "Lost");
        put(&mut page, &format!("{}.", lost_words(&report.lost.iter().collect::<Vec<_>>())));
        for lost in &report.lost {
            put(&mut page, &format!("- {}", escaped(&lost.line())));
        }
    }
    left(&mut page, report);
    if !report.skipped.is_empty() {
        section(&mut page, "Not run");
        for skipped in &report.skipped {
            let item = skipped.item.map(|item| format!("item {item}: ")).unwrap_or_default();
            put(&mut page, &format!("- {item}{} ({})", escaped(&skipped.label), escaped(&skipped.reason)));
        }
    }
    if !report.notes.is_empty() || !report.warnings.is_empty() {
        section(&mut page, "Notes");
        for note in report.notes.iter().chain(&report.warnings) {
            put(&mut page, &format!("- {}", escaped(note)));
        }
    }
    page
}

fn put(page: &mut String, line: &str) {
    page.push_str(line);
    page.push('\n');
}

fn section(page: &mut String, title: &str) {
    // Writing to a string cannot fail.
    let _ = write!(page, "\n## {title}\n\n");
}

fn facts(page: &mut String, report: &SessionReport) {
    let model = match &report.effort {
        Some(effort) => format!("{}, effort {effort}", report.model),
        None => report.model.clone(),
    };
    let came = match &report.failure {
        Some(failure) => format!("{} ({}): {}", report.status, failure.kind, failure.message),
        None => report.status.to_owned(),
    };
    let rows = [
        ("task", Some(report.task.clone())),
        ("came to", Some(format!("{came}, exit code {}", report.exit_code))),
        ("model", Some(model)),
        ("mode", report.mode.map(str::to_owned)),
        ("directory", Some(report.dir.clone())),
        ("commands", report.confinement.as_ref().map(confined)),
        ("run", report.run.clone()),
        ("began", Some(format!("{} UTC", utc::minute(report.started_at)))),
        ("spent", Some(spend(report).trim_start_matches("spent: ").to_owned())),
        ("cache", Some(cache(report).trim_start_matches("cache: ").to_owned())),
        ("to go on", report.resume.clone()),
    ];
    put(page, "| | |\n|---|---|");
    for (key, value) in rows {
        if let Some(value) = value {
            put(page, &format!("| {key} | {} |", escaped(&value)));
        }
    }
}

/// What held the commands, in one line.
fn confined(held: &Confined) -> String {
    let Confined { sandbox, network, hosts, held_by, .. } = held;
    let network = if hosts.is_empty() { (*network).to_owned() } else { hosts.join(", ") };
    match *sandbox {
        "off" => "UNCONFINED (--sandbox off)".to_owned(),
        sandbox => format!("sandbox {sandbox}, network {network}, held by {}", held_by.join(", ")),
    }
}

fn finding(page: &mut String, finding: &Finding) {
    let severity = finding.severity.word();
    let verdict = finding.verdict.word();
    let _ = write!(page, "\n### {severity}, {verdict}: {}\n", escaped(&finding.claim));
    if !finding.citations.is_empty() || finding.source().is_some() {
        page.push('\n');
    }
    for citation in &finding.citations {
        let Some(place) = citation.place() else { continue };
        let quote = citation.quote.as_ref().filter(|quote| !quote.trim().is_empty());
        let quote = quote.map(|quote| format!(": {}", code(quote))).unwrap_or_default();
        put(page, &format!("- {}{quote}", code(&place)));
    }
    if let Some(source) = finding.source() {
        put(page, &format!("- by {}", escaped(&source)));
    }
    for (title, text) in [("Evidence", &finding.evidence), ("Verdict", &finding.reason)] {
        if !text.trim().is_empty() {
            let _ = write!(page, "\n{title}:\n\n{}", fenced(text));
        }
    }
}

fn programs(page: &mut String, report: &SessionReport) {
    for program in &report.programs {
        section(page, &escaped(&program.head()));
        for checkpoint in &program.questions {
            put(page, &format!("- waits for an answer: {}", escaped(&checkpoint.question)));
            if let Some(answer) = &checkpoint.answer {
                put(page, &format!("  {}", code(answer)));
            }
        }
        for line in program.lines(true) {
            put(page, &format!("- {}", escaped(&line)));
        }
        if let (Some(_), false) = (&program.value, program.by_person) {
            put(page, "\nWhat it returned:\n");
            page.push_str(&fenced(&program.value_text()));
        }
        if !program.log.is_empty() {
            put(page, "\nWhat it said:\n");
            page.push_str(&fenced(&program.log.join("\n")));
        }
    }
}

fn agents(page: &mut String, report: &SessionReport) {
    if report.agents.is_empty() {
        return;
    }
    section(page, "Agents");
    let said = outcomes(&report.agents);
    if !said.is_empty() {
        put(page, &format!("Below the lead: {said}.\n"));
    }
    put(page, "| agent | outcome | turns | commands | tokens | cost | files changed |");
    put(page, "|---|---|---:|---:|---:|---:|---|");
    for agent in &report.agents {
        let why = agent.failure.as_ref().map(|failure| match failure.kind == agent.status.word() {
            true => format!(": {}", failure.message),
            false => format!(" ({}): {}", failure.kind, failure.message),
        });
        let reused = agent.reused.as_ref().map(|reused| format!(", from {}", reused.run)).unwrap_or_default();
        let outcome = format!("{}{reused}{}", agent.status.word(), why.unwrap_or_default());
        let cells = [
            escaped(&name(agent)),
            escaped(&outcome),
            agent.turns.to_string(),
            agent.commands.to_string(),
            tokens(agent.tokens),
            escaped(&dollars(agent.cost_nano)),
            escaped(&agent.changed.iter().map(|file| file_name(file)).collect::<Vec<_>>().join(", ")),
        ];
        put(page, &format!("| {} |", cells.join(" | ")));
    }
}

fn left(page: &mut String, report: &SessionReport) {
    if !report.changed.is_empty() {
        section(page, "Changed files");
        for file in &report.changed {
            put(page, &format!("- {}", escaped(&file_line(report, file))));
        }
    }
    if !report.runs_later.is_empty() {
        section(page, &format!("R{}", &LATER_HEAD[1..]));
        for later in &report.runs_later {
            put(page, &format!("- {}", escaped(&later.words())));
        }
    }
    if let Some(undo) = &report.undo {
        let see = undo.replacen("sessions undo", "sessions diff", 1);
        let _ = write!(page, "\n{} shows them, {} takes them back.\n", code(&see), code(undo));
    }
    if !report.worktrees.is_empty() {
        section(page, "Worktrees");
        for tree in &report.worktrees {
            put(page, &format!("- {}", escaped(&tree_line(report, tree))));
        }
        if let Some(apply) = &report.apply {
            let _ = write!(page, "\n{} takes it over.\n", code(apply));
        }
    }
}

/// Text on one line that means nothing to Markdown.
fn escaped(text: &str) -> String {
    let cleaned = clean(text);
    let mut escaped = String::with_capacity(cleaned.len());
    for (place, word) in cleaned.split_whitespace().enumerate() {
        if place > 0 {
            escaped.push(' ');
        } else if let Some((number, mark)) = list_mark(word) {
            let _ = write!(escaped, "{number}\\{mark}");
            continue;
        }
        for c in word.chars() {
            if "\\`*_[]<>|~&#!$".contains(c) {
                escaped.push('\\');
            }
            escaped.push(c);
        }
    }
    escaped
}

/// What a word is made of that begins a list where a text begins: `-`, `+`, `1.`, `1)`.
fn list_mark(word: &str) -> Option<(&str, &str)> {
    let (number, mark) = word.split_at(word.len() - word.chars().next_back().map_or(0, char::len_utf8));
    let begins = match mark {
        "-" | "+" => number.is_empty(),
        "." | ")" => (1..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    begins.then_some((number, mark))
}

/// The longest run of backticks in a text.
fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text on one line as code. A backtick inside makes the marks around it longer.
fn code(text: &str) -> String {
    let flat = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let marks = "`".repeat(longest_run(&flat) + 1);
    // The blanks beside the marks are not part of the code.
    if flat.contains('`') { format!("{marks} {flat} {marks}") } else { format!("{marks}{flat}{marks}") }
}

/// Text with its lines, in a fence that nothing inside can close.
fn fenced(text: &str) -> String {
    let cleaned = clean(text);
    let fence = "`".repeat(longest_run(&cleaned).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", cleaned.trim_end())
}

/// Markdown of a model, quoted. Outside of code, tags and pictures are switched off; nothing else is changed.
fn quoted(text: &str) -> String {
    let mut page = String::new();
    let mut fence: Option<(char, usize)> = None;
    // Whether a mark of code stands open in this paragraph: what it is closed by may stand lines below.
    let mut open = false;
    for line in clean(text.trim_end()).lines() {
        open &= !line.trim().is_empty();
        let shown = match (fence, fence_of(line)) {
            (Some(open), _) => {
                if closes(line, open) {
                    fence = None;
                }
                line.to_owned()
            }
            (None, Some(begun)) => {
                (fence, open) = (Some(begun), false);
                line.to_owned()
            }
            (None, None) => switched_off(line, &mut open),
        };
        page.push_str(format!("> {shown}").trim_end());
        page.push('\n');
    }
    page
}

/// A line without tags and pictures. A sign that is escaped already is left alone: another backslash would
/// free it. So is code, where a backslash would be shown; but only if it ends on its line and no mark of code
/// is open from a line above, so that every reader takes it for code.
fn switched_off(line: &str, open: &mut bool) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut escaped = false;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let marks = rest.len() - rest.trim_start_matches('`').len();
        if marks > 0 && !escaped {
            let end = code_end(&rest[marks..], marks);
            *open |= end.is_none();
            let (taken, behind) = rest.split_at(marks + end.filter(|_| !*open).unwrap_or_default());
            shown.push_str(taken);
            rest = behind;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '<' if !escaped => shown.push_str("\\<"),
            '!' if rest.starts_with('[') => {
                shown.push_str("!\\[");
                rest = &rest[1..];
            }
            c => shown.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    shown
}

/// Where code ends that was begun by so many marks, behind the same number of them.
fn code_end(text: &str, marks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let begin = at + found;
        let run = text[begin..].len() - text[begin..].trim_start_matches('`').len();
        at = begin + run;
        if run == marks {
            return Some(at);
        }
    }
    None
}

/// The fence that a line opens. Only one that begins in the first column counts: a fence inside a list ends
/// with the list, and what is taken for code must be code to every reader.
fn fence_of(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| "`~".contains(*c))?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let info = &line[length..];
    (length >= 3 && !(mark == '`' && info.contains('`'))).then_some((mark, length))
}

/// Whether a line closes a fence: it may stand a little further in, and nothing follows it.
fn closes(line: &str, (mark, length): (char, usize)) -> bool {
    let inner = line.trim_start_matches(' ');
    let marks = inner.chars().take_while(|c| *c == mark).count();
    line.len() - inner.len() <= 3 && marks >= length && inner[marks..].trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_sentence_means_nothing_to_markdown() {
        let check = |text: &str, expected: &str| assert_eq!(escaped(text), expected, "{text:?}");
        check("plain text, src/a.rs:3", "plain text, src/a.rs:3");
        check("# a\n## b", "\\# a \\#\\# b");
        check("[a](b) ![c](d)", "\\[a\\](b) \\!\\[c\\](d)");
        check("<b>&lt;</b>", "\\<b\\>\\&lt;\\</b\\>");
        check("a|b *c* _d_ `e` ~f~ \\", "a\\|b \\*c\\* \\_d\\_ \\`e\\` \\~f\\~ \\\\");
        check("\u{1b}[2Ja\u{202e}b\u{7}", "ab");
        check("1. one - 2. two", "1\\. one - 2. two");
        check("12) a", "12\\) a");
        check("- a", "\\- a");
        check("+", "\\+");
        check("-1 is 1.5", "-1 is 1.5");
    }

    #[test]
    fn code_and_fences_cannot_be_closed_from_inside() {
        assert_eq!(code("a b"), "`a b`");
        assert_eq!(code("a`b``c"), "``` a`b``c ```");
        assert_eq!(code("two\nlines"), "`two lines`");
        assert_eq!(fenced("a\n```\nb"), "````text\na\n```\nb\n````\n");
        assert_eq!(fenced("a"), "```text\na\n```\n");
    }

    #[test]
    fn an_answer_keeps_its_markdown_and_loses_its_tags_and_pictures() {
        let check = |text: &str, expected: &str| assert_eq!(quoted(text), expected, "{text:?}");
        check("# Head\n\n*so*", "> # Head\n>\n> *so*\n");
        check("a <b>c</b> ![d](e)", "> a \\<b>c\\</b> !\\[d](e)\n");
        check("```rust\nVec<u8>\n```\n<i>", "> ```rust\n> Vec<u8>\n> ```\n> \\<i>\n");
        check("````\n```\n<a>\n  `````\n<b>", "> ````\n> ```\n> <a>\n>   `````\n> \\<b>\n");
        check("~~~\n```\n<a>\n~~~ x\n<b>\n~~~\n<c>", "> ~~~\n> ```\n> <a>\n> ~~~ x\n> <b>\n> ~~~\n> \\<c>\n");
        check("- x\n  ```\n<a>", "> - x\n>   ```\n> \\<a>\n");
        check("``` a`b\n<a>", "> ``` a`b\n> \\<a>\n");
        check("\\<a> \\\\<b> \\![c](d)", "> \\<a> \\\\\\<b> \\!\\[c](d)\n");
    }

    #[test]
    fn code_inside_a_line_is_left_as_it_is_and_what_only_looks_like_it_is_not() {
        let check = |text: &str, expected: &str| assert_eq!(quoted(text), expected, "{text:?}");
        check("`Vec<u8>` and <b>", "> `Vec<u8>` and \\<b>\n");
        check("`` a`<b> `` ![c](d) `![e](f)`", "> `` a`<b> `` !\\[c](d) `![e](f)`\n");
        // The mark that is open here may be closed on the next line, and then it is the tag that stands
        // outside.
        check("a ` b\nc ` <i> `", "> a ` b\n> c ` \\<i> `\n");
        check("a ` b\n\n`<i>`", "> a ` b\n>\n> `<i>`\n");
        check("\\` <i> `<b>`", "> \\` \\<i> `<b>`\n");
        check("``<i>`", "> ``\\<i>`\n");
    }
}
