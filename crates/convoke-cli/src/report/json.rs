//! The report as JSON: the value itself, its findings in the order in which they are read, everything that
//! waits for a person in one list, and what a program returned in one place.

use serde_json::Value;

use super::model::{SessionReport, Waits};
use super::order::in_order;
use super::program::Checkpoint;

/// The report as one JSON object.
pub(crate) fn json(report: &SessionReport) -> Value {
    let findings = in_order(&report.findings).into_iter().cloned().collect();
    let asked =
        report.programs.iter().flat_map(|program| &program.questions).map(|asked| waits(report, asked));
    let questions = report.questions.iter().cloned().chain(asked).collect();
    // The report has the value itself; a large one is not repeated as an answer.
    let answers = if report.value.is_some() { Vec::new() } else { report.answers.clone() };
    let answer = match (&report.value, answers.last()) {
        (Some(_), _) => String::new(),
        (None, Some(newest)) => newest.answer.clone(),
        (None, None) => report.answer.clone(),
    };
    // Plain data without maps or non-text keys always has a JSON form.
    serde_json::to_value(SessionReport { findings, questions, answer, answers, ..report.clone() })
        .unwrap_or_default()
}

/// A program's question among everything else that waits. It is asked in the name of the lead.
fn waits(report: &SessionReport, asked: &Checkpoint) -> Waits {
    Waits {
        id: asked.id.clone(),
        agent: report.agent.clone(),
        label: asked.workflow.clone(),
        wanted: format!("answer: {}", asked.question),
        why: "the workflow asks".to_owned(),
        since: None,
        allow: None,
        deny: None,
        answer: asked.answer.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fan_out, program, solo};
    use super::*;

    fn schema() -> jsonschema::Validator {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/run.schema.json");
        let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        jsonschema::validator_for(&schema).unwrap()
    }

    #[test]
    fn the_object_fits_its_schema_whatever_the_run_came_to() {
        for report in [solo(), fan_out(), program()] {
            let object = json(&report);
            let errors: Vec<String> = schema()
                .iter_errors(&object)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert!(errors.is_empty(), "{errors:?}\n{object:#}");
        }
    }

    #[test]
    fn a_programs_question_waits_with_all_others_and_its_value_stands_in_one_place() {
        let report = program();
        let object = json(&program());
        let asked = &object["questions"][0];
        assert_eq!(
            (&asked["id"], &asked["wanted"]),
            (&"wf_aaaaaaaaaaaaaaaa:4".into(), &"answer: Go on?".into())
        );
        assert_eq!(asked["answer"], object["programs"][0]["questions"][0]["answer"]);
        assert_eq!((&object["answer"], &object["value"]), (&"".into(), report.value.as_ref().unwrap()));
        let plain = json(&fan_out());
        assert_eq!(plain["questions"].as_array().unwrap().len(), 1);
        // The newest answer, and all of them.
        let said: Vec<&Value> =
            plain["answers"].as_array().unwrap().iter().map(|one| &one["answer"]).collect();
        assert_eq!(
            (&plain["answer"], said),
            (&"Two faults.".into(), vec![&"# Summary".into(), &"Two faults.".into()])
        );
        assert_eq!(object["answers"], Value::Array(Vec::new()), "a value is no answer");
    }

    #[test]
    fn the_findings_of_the_object_are_in_order_and_text_of_models_comes_through_whole() {
        let object = json(&fan_out());
        let findings = object["findings"].as_array().unwrap();
        let words: Vec<String> =
            findings.iter().map(|f| format!("{} {}", f["severity"], f["verdict"]).replace('"', "")).collect();
        let expected =
            ["high confirmed", "high refuted", "medium uncertain", "low unverified", "info confirmed"];
        assert_eq!(words, expected);
        let read: Value = serde_json::from_str(&object.to_string()).unwrap();
        assert_eq!(read["findings"][0]["claim"], fan_out().findings[1].claim);
    }
}
