//! The report as JSON: the value itself, its findings in the order in which they are read.

use serde_json::Value;

use super::model::RunReport;
use super::order::in_order;

/// The report as one JSON object.
pub(crate) fn json(report: &RunReport) -> Value {
    let findings = in_order(&report.findings).into_iter().cloned().collect();
    // Plain data without maps or non-text keys always has a JSON form.
    serde_json::to_value(RunReport { findings, ..report.clone() }).unwrap_or_default()
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
            let errors: Vec<String> =
                schema().iter_errors(&object).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(errors.is_empty(), "{errors:?}\n{object:#}");
        }
    }

    #[test]
    fn the_findings_of_the_object_are_in_order_and_text_of_models_comes_through_whole() {
        let object = json(&fan_out());
        let findings = object["findings"].as_array().unwrap();
        let words: Vec<String> =
            findings.iter().map(|f| format!("{} {}", f["severity"], f["verdict"]).replace('"', "")).collect();
        let expected = ["high confirmed", "high refuted", "medium uncertain", "low unverified", "info confirmed"];
        assert_eq!(words, expected);
        let read: Value = serde_json::from_str(&object.to_string()).unwrap();
        assert_eq!(read["findings"][0]["claim"], fan_out().findings[1].claim);
    }
}
