//! Results of a shape that a caller asked for: which schemas can be asked for, and whether a value fits one.
//! It never mends a value and never looks beyond the schema it was given.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::run::untrusted::one_line;
use crate::segment::Segment;

/// Calls that do not fit before the exchange fails.
pub(crate) const TRIES: u32 = 5;

/// Times an agent that ended in prose is asked for its call.
pub(crate) const NUDGES: u32 = 2;

/// Problems that the model is shown at once.
const SHOWN: usize = 10;

/// Longer problems are reported without the value they are about.
const LONGEST: usize = 200;

/// The shape that an agent's result has to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its JSON schema.
    pub schema: Segment,
}

/// Whether an agent can be asked for results of this schema; the error says what to write instead. Asked
/// before an agent is started, because the API would refuse its first request.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    let Value::Object(root) = schema else {
        return Err(
            "the schema has to be an object, such as {\"type\": \"object\", \"properties\": {…}}".to_owned()
        );
    };
    match root.get("type") {
        Some(kind) if kind == "object" => {}
        None if root.contains_key("properties") || root.contains_key("required") => {}
        Some(kind) => {
            let text = one_line(&kind.to_string());
            return Err(format!(
                "the root of the schema has the type {text}; it has to be \"object\": put the value into a \
                    property"
            ));
        }
        None => return Err("the root of the schema has no type; write \"type\": \"object\"".to_owned()),
    }
    if let Some(union) = ["anyOf", "oneOf", "allOf"].into_iter().find(|union| root.contains_key(*union)) {
        return Err(format!("{union} cannot stand at the root of the schema; put it into a property"));
    }
    validator(schema).map(drop).map_err(|why| format!("the schema cannot be used: {why}"))
}

impl Output {
    /// The schema as a tool's `input_schema`: the API wants its root to say that it is an object.
    pub(crate) fn input_schema(&self) -> Value {
        let Ok(Value::Object(root)) = serde_json::from_str(self.schema.as_str()) else {
            return serde_json::json!({"type": "object"});
        };
        let mut typed = Map::new();
        typed.insert("type".to_owned(), "object".into());
        typed.extend(root);
        Value::Object(typed)
    }

    /// Whether a value fits; the error is what the model reads.
    pub(crate) fn fits(&self, value: &Value) -> Result<(), String> {
        let schema: Value = serde_json::from_str(self.schema.as_str())
            .map_err(|error| format!("Not recorded: the schema itself cannot be read: {error}"))?;
        validator(&schema).map_err(|why| format!("Not recorded: the schema cannot be used: {why}"))?;
        self.problems(value).map_err(|problems| {
            format!(
                "Not recorded: the value does not fit the schema.\n{problems}\nCall StructuredOutput again \
                 with the whole value, not only with what was wrong."
            )
        })
    }

    /// Whether a value fits; the error lists what does not, one line each.
    pub(crate) fn problems(&self, value: &Value) -> Result<(), String> {
        let schema: Value = serde_json::from_str(self.schema.as_str()).map_err(|error| error.to_string())?;
        let validator = validator(&schema)?;
        let mut problems = Vec::new();
        let mut more = 0_usize;
        for error in validator.iter_errors(value) {
            if problems.len() == SHOWN {
                more += 1;
                continue;
            }
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "the value itself".to_owned() } else { one_line(&place) };
            let full = error.to_string();
            let what = if full.chars().count() > LONGEST { error.masked().to_string() } else { full };
            let what: String = one_line(&what).chars().take(LONGEST).collect();
            problems.push(format!("- {place}: {what}"));
        }
        if problems.is_empty() {
            return Ok(());
        }
        if more > 0 {
            problems.push(format!("- and {more} more"));
        }
        Err(problems.join("\n"))
    }
}

/// The message of an exchange that ended because no call fitted; `last` is
/// what the model was told about the last one.
pub(crate) fn never_fitted(last: &str) -> String {
    format!("the result did not fit its schema after {TRIES} tries: {}", problems(last))
}

/// The message of an exchange that ended in prose after a value that did not fit.
pub(crate) fn gave_up(last: &str) -> String {
    format!(
        "the result did not fit its schema ({}), and the agent went on in prose, though it was asked twice \
            for a value that fits",
        problems(last)
    )
}

/// What was wrong with a value, in one line.
fn problems(told: &str) -> String {
    let problems: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    if problems.is_empty() { told.lines().next().unwrap_or_default().to_owned() } else { problems.join("; ") }
}

/// The message of an exchange that ended in prose.
pub(crate) const NEVER_CALLED: &str = "the agent ended without calling StructuredOutput, though it was asked \
    for it twice; simplify the schema or the task";

/// Nothing beyond the schema is fetched: a reference leads to somewhere within it or nowhere.
fn validator(schema: &Value) -> Result<jsonschema::Validator, String> {
    jsonschema::options().offline().build(schema).map_err(|error| one_line(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: Value, expected: Result<(), &str>) {
        match (check_schema(&schema), expected) {
            (Ok(()), Ok(())) => {}
            (Err(got), Err(want)) => assert!(got.contains(want), "{got:?} does not contain {want:?}"),
            (got, want) => panic!("{schema}: got {got:?}, wanted {want:?}"),
        }
    }

    fn output(schema: Value) -> Output {
        Output { schema: Segment::encode(&schema) }
    }

    #[test]
    fn a_schema_has_an_object_at_its_root_and_compiles() {
        check(json!({"type": "object"}), Ok(()));
        check(json!({"properties": {"a": {"type": ["string", "null"]}}}), Ok(()));
        check(json!({"required": ["a"]}), Ok(()));
        check(
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"type": "string"}}}),
            Ok(()),
        );
        check(json!({"type": "array"}), Err("put the value into a property"));
        check(json!({"type": ["object", "null"]}), Err("has to be \"object\""));
        check(json!({}), Err("has no type"));
        check(json!(true), Err("has to be an object"));
        check(json!({"type": "object", "anyOf": [{}]}), Err("anyOf cannot stand at the root"));
        check(json!({"type": "object", "properties": {"a": {"type": "strin"}}}), Err("cannot be used"));
        check(json!({"type": "object", "properties": {"a": {"pattern": "("}}}), Err("cannot be used"));
        check(
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.invalid/s"}}}),
            Err("cannot be used"),
        );
    }

    #[test]
    fn a_value_that_does_not_fit_comes_back_with_its_places_and_is_wanted_whole() {
        let schema = json!({"type": "object", "required": ["a", "b"], "additionalProperties": false,
            "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"enum": ["x", "y"]}}}});
        let output = output(schema);
        assert_eq!(output.fits(&json!({"a": "", "b": ["x"]})), Ok(()));
        let error = output.fits(&json!({"a": 1, "b": ["x", "z"], "c": null})).unwrap_err();
        for part in ["- /a: ", "- /b/1: ", "- the value itself: ", "'c'", "again with the whole value"] {
            assert!(error.contains(part), "{part} is not in {error}");
        }
        assert!(
            never_fitted(&error).starts_with("the result did not fit its schema after 5 tries: "),
            "{error}"
        );
        assert!(!never_fitted(&error).contains('\n') && never_fitted(&error).contains("/b/1: "));
    }

    #[test]
    fn at_most_ten_problems_are_shown_and_none_carries_a_long_value() {
        let output =
            output(json!({"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}}));
        let many: Map<String, Value> = (0..14).map(|n| (format!("k{n}"), json!(n))).collect();
        let error = output.fits(&many.into()).unwrap_err();
        assert_eq!(error.lines().filter(|line| line.starts_with("- /k")).count(), 10);
        assert!(error.contains("- and 4 more"), "{error}");
        let error = output.fits(&json!({"k": "é".repeat(5_000)})).unwrap_err();
        assert!(error.chars().count() < 400 && error.contains("longer than 3"), "{error}");
    }

    #[test]
    fn the_declared_schema_says_that_it_is_an_object() {
        assert_eq!(
            output(json!({"required": ["a"]})).input_schema(),
            json!({"type": "object", "required": ["a"]})
        );
        assert_eq!(output(json!({"type": "object"})).input_schema(), json!({"type": "object"}));
    }
}
