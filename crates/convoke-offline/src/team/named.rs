//! A saved workflow that a person names ("run the review workflow on src/") is started by its name. It runs
//! in the background, so the turn ends there; when the harness tells of its end, that is put into a few
//! lines.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::small_talk::forbids_team;
use crate::policy::{Answer, call_tools, text};
use crate::read::{Exchange, short};

/// The reply to a task that names a workflow, or to a notice about a run; none if it is neither.
pub(super) fn answer(exchange: &Exchange) -> Option<Answer> {
    if let Some(notice) = notice(&exchange.task) {
        return Some(text(&notice));
    }
    let (name, args) = wanted(&exchange.task)?;
    let Some(call) = exchange.calls.iter().rfind(|call| call.name == "Workflow") else {
        if exchange.handing_back {
            return Some(text(&format!("The workflow {name} was not started: the work ended before that.")));
        }
        let mut input = json!({"name": name});
        if let Some(args) = args {
            input["args"] = args;
        }
        let say = format!("Starting the workflow {name}.");
        return Some(call_tools(&say, vec![("Workflow", input)], exchange.calls_so_far));
    };
    let result = call.result.as_deref().unwrap_or_default();
    Some(text(&match call.is_error {
        true => format!("The workflow {name} was not started: {}", short(result)),
        false => format!(
            "The workflow {name} runs in the background; I go on when it has ended. {}",
            short(result)
        ),
    }))
}

/// The name and the arguments of "run the NAME workflow [on|with|for ARGS]".
fn wanted(task: &str) -> Option<(String, Option<Value>)> {
    let task = task.trim();
    let low = task.to_ascii_lowercase();
    let verb =
        ["run the ", "start the ", "launch the ", "use the "].iter().find(|verb| low.starts_with(**verb))?;
    let (name, rest) = task[verb.len()..].split_once(' ')?;
    let name = name.trim_matches(['`', '"', '\'']);
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_:".contains(c);
    let rest = rest.strip_prefix("workflow")?;
    let ends = rest.chars().next().is_none_or(|c| !c.is_alphanumeric());
    if !ends || name.is_empty() || !name.chars().all(fits) || forbids_team(task) {
        return None;
    }
    let rest = rest.trim_start_matches([',', ':', ' ']);
    let args =
        ["on ", "with args ", "with ", "for "].iter().find_map(|word| rest.strip_prefix(word)).map(str::trim);
    let args = args.filter(|args| !args.is_empty());
    let read = |args: &str| serde_json::from_str(args).unwrap_or_else(|_| json!(args.trim_end_matches('.')));
    Some((name.to_owned(), args.map(read)))
}

/// What a notice about the end of a run says, in short: its first line, the result's own summary and the
/// length of its lists.
fn notice(task: &str) -> Option<String> {
    let (run, told) = task.trim().strip_prefix("[run ")?.split_once(" has ended]")?;
    // Behind the bars stands what the run came to.
    let told: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix('|')).map(str::trim).collect();
    let first = told.iter().find(|line| !line.is_empty()).copied().unwrap_or("nothing is said about it");
    let mut said = format!("The run {run} has ended: {}", first.trim_start_matches(['#', ' ']));
    let joined = told.join("\n");
    let result = joined.match_indices('{').find_map(|(at, _)| {
        serde_json::Deserializer::from_str(&joined[at..])
            .into_iter::<Value>()
            .next()?
            .ok()
            .filter(Value::is_object)
    });
    if let Some(summary) = result.as_ref().and_then(|value| value["summary"].as_str()) {
        let _ = write!(said, "\n\n{}", summary.trim());
    }
    let lists = result.as_ref().and_then(Value::as_object).into_iter().flatten();
    let lists: Vec<String> =
        lists.filter_map(|(name, value)| Some(format!("- {name}: {}", value.as_array()?.len()))).collect();
    if !lists.is_empty() {
        let _ = write!(said, "\n\n{}", lists.join("\n"));
    }
    Some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(task: &str, expected: Option<(&str, Option<Value>)>) {
        assert_eq!(wanted(task), expected.map(|(name, args)| (name.to_owned(), args)), "{task}");
    }

    #[test]
    fn a_workflow_that_is_named_is_wanted_with_what_stands_behind_it() {
        check("Run the review workflow", Some(("review", None)));
        check("run the `review` workflow on src/.", Some(("review", Some(json!("src/")))));
        check("start the a:b workflow with {\"n\": 1}", Some(("a:b", Some(json!({"n": 1})))));
        check("Use the workflow to review this", None);
        check("run the new review workflow", None);
        check("Use a workflow to review this", None);
        check("run the review workflows", None);
    }

    #[test]
    fn a_notice_is_put_into_a_few_lines() {
        let told = "[run wf_abcdefgh has ended]\nThis is told by Convoke.\n| complete: review\n| \
            {\"summary\": \"Two.\",\n|  \"confirmed\": [1, 2]}\nGo on.";
        let said = notice(told).unwrap();
        for part in ["The run wf_abcdefgh has ended: complete: review", "Two.", "- confirmed: 2"] {
            assert!(said.contains(part), "{said}");
        }
        assert_eq!(notice("What does wf_abcdefgh do?"), None);
    }
}
