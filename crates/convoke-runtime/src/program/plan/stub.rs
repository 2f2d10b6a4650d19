//! An answer drawn from a schema. Pure: the same schema, way and number give the same answer.

use serde_json::{Map, Value};

use super::draw::{Draw, Seen};

/// A list that may have at most so many items has them all on a long way: its limit is a bound then.
const FULL: u64 = 12;
/// However many a schema insists on, this is enough to plan with.
const MOST: u64 = 50;
/// Deeper schemas end in null.
const DEEPEST: u32 = 24;

/// A value of this schema on a way. `number` makes the texts of one answer differ from those of another, as
/// findings would; what there was to choose is added to `seen`.
pub(super) fn stub(schema: &Value, draw: Draw, number: u32, seen: &mut Seen) -> Value {
    let mut drawing = Drawing { draw, number, texts: 0, drawn: 0, seen: Seen::default() };
    let value = drawing.value(schema, 0);
    seen.add(drawing.seen);
    value
}

struct Drawing {
    draw: Draw,
    number: u32,
    texts: u32,
    drawn: u64,
    seen: Seen,
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
            return self.choose(choices).cloned().unwrap_or_default();
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            if let Some(forms) = schema.get(word).and_then(Value::as_array) {
                let form = self.choose(forms).cloned();
                return form.map(|form| self.value(&form, depth + 1)).unwrap_or_default();
            }
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, depth),
            "string" => self.text(schema),
            "integer" => Value::from(self.amount(schema).round() as i64),
            "number" => Value::from(self.amount(schema)),
            "boolean" => {
                self.seen.flags = true;
                let nth = self.nth();
                Value::Bool(self.draw.flag(nth))
            }
            _ => Value::Null,
        }
    }

    fn choose<'v>(&mut self, options: &'v [Value]) -> Option<&'v Value> {
        self.seen.choices = self.seen.choices.max(options.len());
        let nth = self.nth();
        options.get(self.draw.pick(options.len(), nth))
    }

    /// The number of this choice among all of the way.
    fn nth(&mut self) -> u64 {
        self.drawn += 1;
        u64::from(self.number) * 1_009 + self.drawn
    }

    fn object(&mut self, schema: &Value, depth: u32) -> Value {
        let mut object = Map::new();
        for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            object.insert(name.clone(), self.value(member, depth + 1));
        }
        for name in
            schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
        {
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
        let wanted = match size("maxItems").unwrap_or(u64::MAX) {
            _ if !self.draw.long => least,
            most if most <= FULL => most.max(least),
            _ => self.draw.plenty.max(least),
        };
        let text = serde_json::json!({"type": "string"});
        let item = schema.get("items").unwrap_or(&text);
        (0..wanted.min(MOST)).map(|_| self.value(item, depth + 1)).collect()
    }

    fn text(&mut self, schema: &Value) -> Value {
        let size =
            |word: &str| schema.get(word).and_then(Value::as_u64).and_then(|size| usize::try_from(size).ok());
        self.texts += 1;
        let mut text = format!("stub-{}-{}", self.number, self.texts);
        let least = size("minLength").unwrap_or(0).min(10_000);
        let most = size("maxLength").unwrap_or(usize::MAX);
        text.extend(std::iter::repeat_n('x', least.saturating_sub(text.len())));
        text.truncate(most);
        Value::String(text)
    }

    fn amount(&self, schema: &Value) -> f64 {
        let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
        let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1.0));
        let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - 1.0));
        let plenty = self.draw.plenty as f64;
        match (self.draw.long, least, most) {
            (false, Some(least), _) => least,
            (false, None, most) => most.map_or(1.0, |most| most.min(1.0)),
            (true, _, Some(most)) => most,
            (true, least, None) => least.map_or(plenty, |least| least.max(plenty)),
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

    use super::super::draw::Choice;
    use super::*;

    #[track_caller]
    fn check(schema: Value, low: Value, high: Value) {
        let drawn = |draw| stub(&schema, draw, 7, &mut Seen::default());
        assert_eq!((drawn(Draw::SHORT), drawn(Draw::LONG)), (low, high), "{schema}");
    }

    #[test]
    fn every_option_is_the_answer_of_some_way_and_what_there_was_to_choose_is_seen() {
        let schema = json!({"properties": {"a": {"enum": ["x", "y", "z"]}, "b": {"anyOf": [{"const": 1}, {"const": 2}]}}});
        let at = |place| {
            let mut seen = Seen::default();
            let value = stub(&schema, Draw { choice: Choice::At(place), ..Draw::LONG }, 7, &mut seen);
            assert_eq!((seen.choices, seen.flags), (3, false));
            value
        };
        assert_eq!(
            [at(0), at(1), at(2)],
            [json!({"a": "x", "b": 1}), json!({"a": "y", "b": 2}), json!({"a": "z", "b": 1})]
        );
        let mut seen = Seen::default();
        stub(&json!({"type": "boolean"}), Draw::SHORT, 1, &mut seen);
        assert!(seen.flags);
    }

    #[test]
    fn as_little_and_as_much_as_a_schema_allows() {
        check(json!({"type": "boolean"}), json!(false), json!(true));
        check(json!({"enum": ["a", "b", "c"]}), json!("a"), json!("a"));
        check(json!({"type": "integer"}), json!(1), json!(3));
        check(json!({"type": "integer", "minimum": 2, "maximum": 9}), json!(2), json!(9));
        check(json!({"type": "number", "minimum": 0}), json!(0.0), json!(3.0));
        check(json!({"type": ["null", "string"]}), json!("stub-7-1"), json!("stub-7-1"));
        check(json!({"type": "string", "maxLength": 4}), json!("stub"), json!("stub"));
        check(json!({"const": 4}), json!(4), json!(4));
        check(json!({"anyOf": [{"type": "boolean"}, {"enum": ["z"]}]}), json!(false), json!(true));
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
        check(list(json!({"maxItems": 5})), json!([]), json!([true, true, true, true, true]));
        check(list(json!({"maxItems": 50})), json!([]), json!([true, true, true]));
        check(list(json!({"minItems": 1})), json!([false]), json!([true, true, true]));
        check(
            list(json!({"minItems": 5})),
            json!([false, false, false, false, false]),
            json!([true, true, true, true, true]),
        );
    }

    #[test]
    fn every_member_of_an_object_is_there_and_texts_differ() {
        let schema =
            json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "c"]});
        let expected = json!({"a": "stub-7-1", "b": "stub-7-2", "c": "stub-7-3"});
        check(schema.clone(), expected.clone(), expected);
        let of = |number| stub(&schema, Draw::LONG, number, &mut Seen::default());
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn a_schema_without_end_is_cut_off() {
        let mut deep = json!({"type": "boolean"});
        for _ in 0..200 {
            deep = json!({"type": "array", "minItems": 1, "items": deep});
        }
        assert!(stub(&deep, Draw::SHORT, 1, &mut Seen::default()).is_array());
    }
}
