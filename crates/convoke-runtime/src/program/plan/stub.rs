//! An answer drawn from a schema: as little or as much as it allows. Pure: the same schema and number give the same answer.

use serde_json::{Map, Value};

/// Items of a list where there is plenty.
const PLENTY: u64 = 3;
/// However many a schema insists on, this is enough to plan with.
const MOST: u64 = 50;
/// Deeper schemas end in null.
const DEEPEST: u32 = 24;

/// A value of this schema. `number` makes the texts of one answer differ from those of another, as findings would.
pub(super) fn stub(schema: &Value, high: bool, number: u32) -> Value {
    Drawing { high, number, texts: 0 }.value(schema, 0)
}

struct Drawing {
    high: bool,
    number: u32,
    texts: u32,
}

impl Drawing {
    fn value(&mut self, schema: &Value, depth: u32) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        if let Some(fixed) = schema.get("const") {
            return fixed.clone();
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
            let choice = if self.high { choices.last() } else { choices.first() };
            return choice.cloned().unwrap_or_default();
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            if let Some(forms) = schema.get(word).and_then(Value::as_array) {
                let form = if self.high { forms.last() } else { forms.first() };
                return form.map(|form| self.value(form, depth + 1)).unwrap_or_default();
            }
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => self.text(schema),
            "integer" => Value::from(self.amount(schema).round() as i64),
            "number" => Value::from(self.amount(schema)),
            "boolean" => Value::Bool(self.high),
            _ => Value::Null,
        }
    }

    fn object(&mut self, schema: &Value, depth: u32) -> Value {
        let mut object = Map::new();
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            object.insert(name.clone(), self.value(member, depth + 1));
        }
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !object.contains_key(name) {
                let text = self.text(&Value::Null);
                object.insert(name.to_owned(), text);
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Value, depth: u32) -> Value {
        let size = |word: &str| schema.get(word).and_then(Value::as_u64);
        let least = size("minItems").unwrap_or(0);
        let wanted = if self.high { PLENTY.min(size("maxItems").unwrap_or(PLENTY)).max(least) } else { least };
        let text = serde_json::json!({"type": "string"});
        let item = schema.get("items").unwrap_or(&text);
        (0..wanted.min(MOST)).map(|_| self.value(item, depth + 1)).collect()
    }

    fn text(&mut self, schema: &Value) -> Value {
        let size = |word: &str| schema.get(word).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
        self.texts += 1;
        let mut text = format!("stub-{}-{}", self.number, self.texts);
        let (least, most) = (size("minLength").unwrap_or(0).min(10_000), size("maxLength").unwrap_or(usize::MAX));
        text.extend(std::iter::repeat_n('x', least.saturating_sub(text.len())));
        text.truncate(most);
        Value::String(text)
    }

    fn amount(&self, schema: &Value) -> f64 {
        let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
        let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1.0));
        let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - 1.0));
        match (self.high, least, most) {
            (false, Some(least), _) => least,
            (false, None, most) => most.map_or(1.0, |most| most.min(1.0)),
            (true, _, Some(most)) => most,
            (true, least, None) => least.map_or(PLENTY as f64, |least| least.max(PLENTY as f64)),
        }
    }
}

/// The kind of value: of several, the first that is something.
fn kind(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    };
    match named {
        Some(kind) => kind,
        None if schema.get("properties").is_some() => "object",
        None if schema.get("items").is_some() => "array",
        None => "string",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Value, low: Value, high: Value) {
        assert_eq!((stub(&schema, false, 7), stub(&schema, true, 7)), (low, high), "{schema}");
    }

    #[test]
    fn as_little_and_as_much_as_a_schema_allows() {
        check(json!({"type": "boolean"}), json!(false), json!(true));
        check(json!({"enum": ["a", "b", "c"]}), json!("a"), json!("c"));
        check(json!({"type": "integer"}), json!(1), json!(3));
        check(json!({"type": "integer", "minimum": 2, "maximum": 9}), json!(2), json!(9));
        check(json!({"type": "number", "minimum": 0}), json!(0.0), json!(3.0));
        check(json!({"type": ["null", "string"]}), json!("stub-7-1"), json!("stub-7-1"));
        check(json!({"type": "string", "maxLength": 4}), json!("stub"), json!("stub"));
        check(json!({"const": 4}), json!(4), json!(4));
        check(json!({"anyOf": [{"type": "boolean"}, {"enum": ["z"]}]}), json!(false), json!("z"));
    }

    #[test]
    fn lists_are_empty_or_three_unless_the_schema_says_otherwise() {
        let list = |more: Value| {
            let mut schema = json!({"type": "array", "items": {"type": "boolean"}});
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        check(list(json!({})), json!([]), json!([true, true, true]));
        check(list(json!({"maxItems": 2})), json!([]), json!([true, true]));
        check(list(json!({"minItems": 1})), json!([false]), json!([true, true, true]));
        check(
            list(json!({"minItems": 5})),
            json!([false, false, false, false, false]),
            json!([true, true, true, true, true]),
        );
    }

    #[test]
    fn every_member_of_an_object_is_there_and_texts_differ() {
        let schema = json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "c"]});
        let expected = json!({"a": "stub-7-1", "b": "stub-7-2", "c": "stub-7-3"});
        check(schema.clone(), expected.clone(), expected);
        assert_ne!(stub(&schema, true, 7), stub(&schema, true, 8));
    }

    #[test]
    fn a_schema_without_end_is_cut_off() {
        let mut deep = json!({"type": "boolean"});
        for _ in 0..200 {
            deep = json!({"type": "array", "minItems": 1, "items": deep});
        }
        assert!(stub(&deep, false, 1).is_array());
    }
}
