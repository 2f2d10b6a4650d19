//! What needs no team and no tools: greetings, sums, and a short word about what was just said. And the word
//! workflow, which says how a task is to be done and not what.

use crate::intent::greets;

/// The answer to something trivial.
pub(super) fn answer(task: &str, earlier: &str) -> Option<String> {
    if greets(task) {
        return Some(
            "Hello. Ask for a review of this directory, or for what can be counted or found in it."
                .to_owned(),
        );
    }
    if let Some(sum) = sum(task) {
        return Some(sum);
    }
    (asks_for_summary(task) && !earlier.trim().is_empty()).then(|| summary(earlier))
}

/// The task without the words that ask for a workflow.
pub(crate) fn without_workflow(task: &str) -> String {
    let mut plain = task.to_owned();
    for phrase in PHRASES {
        let low = plain.to_ascii_lowercase();
        if let Some(at) = low.find(phrase) {
            plain.replace_range(at..at + phrase.len(), "");
        }
    }
    let plain = plain.trim().trim_start_matches([',', ':', '.']).trim();
    if plain.is_empty() { task.to_owned() } else { plain.to_owned() }
}

const PHRASES: [&str; 13] = [
    "use a workflow to ",
    "use workflows to ",
    "run a workflow to ",
    "run a workflow that ",
    "start a workflow to ",
    "using a workflow",
    "using workflows",
    "with a workflow",
    "with workflows",
    "as a workflow",
    "in a workflow",
    "without fanning out",
    "without a workflow",
];

/// Whether the task itself asks for a workflow.
pub(super) fn asks_for_workflow(task: &str) -> bool {
    let low = task.to_lowercase();
    let mut words = low.split(|c: char| !c.is_alphanumeric() && c != '-');
    words.any(|word| word == "workflow" || word == "workflows") && !forbids_team(task)
}

/// Whether the task asks to be done alone.
pub(super) fn forbids_team(task: &str) -> bool {
    let low = task.to_lowercase();
    let signs =
        ["without fanning out", "don't fan out", "do not fan out", "without a workflow", "without workflow"];
    let more =
        ["no workflow", "don't use a workflow", "do not use a workflow", "by yourself", "without sub-agents"];
    signs.iter().chain(&more).any(|sign| low.contains(sign))
}

fn asks_for_summary(task: &str) -> bool {
    let low = task.to_lowercase();
    let asks = ["summarise", "summarize", "sum up", "recap", "in short", "tl;dr"]
        .iter()
        .any(|word| low.contains(word));
    let here = ["repositor", "directory", "project", "codebase", "files", "the code", "this repo"];
    asks && !here.iter().any(|word| low.contains(word)) && task.split_whitespace().count() <= 14
}

/// The head of an earlier answer: its first paragraph, and its first points.
fn summary(earlier: &str) -> String {
    let first = earlier.split("\n\n").find(|part| !part.trim().is_empty()).unwrap_or_default().trim();
    let points: Vec<&str> = earlier.lines().filter(|line| line.trim_start().starts_with("- ")).collect();
    let mut said = format!("In short: {first}");
    if !points.is_empty() {
        said += "\n\n";
        said += &points.iter().take(5).map(|point| point.trim()).collect::<Vec<_>>().join("\n");
    }
    if points.len() > 5 {
        said += &format!("\n\nAbove are {} in all.", super::many(points.len() as u64, "point"));
    }
    said
}

/// The result of one operation on whole numbers.
fn sum(task: &str) -> Option<String> {
    let low = task.trim().trim_end_matches(['?', '.', '!', '=', ' ']).to_lowercase();
    let low = ["what is", "what's", "calculate", "compute", "how much is"]
        .iter()
        .find_map(|word| low.strip_prefix(word))
        .unwrap_or(&low);
    let text: String = low.chars().filter(|c| !c.is_whitespace()).collect();
    let at = text.char_indices().skip(1).find(|(_, c)| "+-*/x×".contains(*c))?;
    let left = text[..at.0].parse::<i64>().ok()?;
    let right = text[at.0 + at.1.len_utf8()..].parse::<i64>().ok()?;
    let result = match at.1 {
        '+' => left.checked_add(right)?,
        '-' => left.checked_sub(right)?,
        '/' if right != 0 && left % right == 0 => left / right,
        '/' => return None,
        _ => left.checked_mul(right)?,
    };
    Some(result.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(task: &str, expected: Option<&str>) {
        assert_eq!(answer(task, "").as_deref(), expected, "{task}");
    }

    #[test]
    fn sums_are_answered_and_tasks_are_not() {
        check("What is 2+2?", Some("4"));
        check("What is 12 * 12", Some("144"));
        check("7 / 2", None);
        check("Review src/a-b", None);
        check("Summarise briefly", None);
        assert!(answer("Hello!", "").is_some());
    }

    #[test]
    fn what_was_said_is_summed_up_and_a_repository_is_not() {
        let earlier = "Two findings.\n\n## High\n- one\n- two";
        let said = answer("Summarise the above briefly, without fanning out", earlier);
        assert_eq!(said.as_deref(), Some("In short: Two findings.\n\n- one\n- two"));
        assert_eq!(answer("Summarise this repository", earlier), None);
    }

    #[test]
    fn the_word_workflow_is_heard_and_left_out_of_the_task() {
        assert!(
            asks_for_workflow("Use a workflow to review this") && !asks_for_workflow("no workflow please")
        );
        assert!(!asks_for_workflow("use workflowy"));
        assert_eq!(without_workflow("Use a workflow to review this"), "review this");
        assert_eq!(without_workflow("Review this"), "Review this");
    }
}
