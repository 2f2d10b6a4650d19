//! Walks a schema and fills it: with what was seen where the names say what is wanted, and otherwise with the
//! least that the schema allows. A pure function of both.

use serde_json::{Map, Value, json};

use super::leaf;
use super::names::{AREAS, FILES, FINDINGS, RAN, ends_in, is_one_of};
use super::pattern;
use super::seen::{Row, Seen};

/// Deeper than any schema that can be filled with sense; a schema that refers to itself ends here.
const DEEPEST: usize = 12;

/// How a schema is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FillStyle {
    /// With what was seen, also where a property may be left out.
    Telling,
    /// With the least that is allowed.
    Bare,
}

/// Fills one schema.
pub(super) struct Filler<'a> {
    root: &'a Value,
    seen: &'a Seen,
    manner: FillStyle,
}

impl<'a> Filler<'a> {
    pub(super) fn new(root: &'a Value, seen: &'a Seen, manner: FillStyle) -> Self {
        Self { root, seen, manner }
    }

    /// The whole value.
    pub(super) fn value(&self) -> Value {
        self.fill(self.root, "", Row::None, 0)
    }

    /// The part at this place of the value.
    pub(super) fn part(&self, pointer: &str) -> Option<Value> {
        let mut schema = self.resolved(self.root);
        let mut name = "";
        for step in pointer.split('/').skip(1) {
            let property = schema["properties"].get(step);
            name = if property.is_some() { step } else { name };
            let index = || step.parse::<usize>().ok().and(schema.get("items"));
            schema = self.resolved(property.or_else(index)?);
        }
        Some(self.fill(schema, name, Row::None, 0))
    }

    /// The schema that a reference leads to, or the first of some alternatives.
    fn resolved(&self, schema: &'a Value) -> &'a Value {
        let mut schema = schema;
        for _ in 0..DEEPEST {
            let referred = schema["$ref"].as_str().and_then(|to| self.root.pointer(to.strip_prefix('#')?));
            let first = ["anyOf", "oneOf", "allOf"].iter().find_map(|word| schema[*word].get(0));
            // Members beside the alternatives say more than the alternatives do.
            let bare = schema.get("type").is_none() && schema.get("properties").is_none();
            match referred.or(first.filter(|_| bare)) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }

    fn fill(&self, schema: &'a Value, name: &str, row: Row<'_>, depth: usize) -> Value {
        let schema = self.resolved(schema);
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        if let Some(choices) = schema["enum"].as_array().filter(|choices| !choices.is_empty()) {
            return match self.manner {
                FillStyle::Telling => leaf::choice(choices, name, row, self.seen),
                FillStyle::Bare => leaf::least(choices),
            };
        }
        match kind(schema) {
            "object" => self.object(schema, row, depth),
            "array" => self.array(schema, name, row, depth),
            "integer" => json!(self.number(schema, name, row).ceil() as i64),
            "number" => whole_if_it_is(self.number(schema, name, row)),
            "boolean" => json!(self.manner == FillStyle::Telling && leaf::switch(name, row, self.seen)),
            "null" => Value::Null,
            _ => json!(self.text(schema, name, row)),
        }
    }

    fn object(&self, schema: &'a Value, row: Row<'_>, depth: usize) -> Value {
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let told = self.manner == FillStyle::Telling && (leaf::is_known(name, row) || is_rows(property));
            if depth < DEEPEST && (required.contains(&name.as_str()) || told) {
                object.insert(name.clone(), self.fill(property, name, row, depth + 1));
            }
        }
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), json!(leaf::text(name, row, self.seen)));
            }
        }
        Value::Object(object)
    }

    fn array(&self, schema: &'a Value, name: &str, row: Row<'_>, depth: usize) -> Value {
        let count = |member: &str| schema[member].as_u64().map(|number| number.min(200) as usize);
        let least = count("minItems").unwrap_or(0);
        let most = count("maxItems").unwrap_or(200);
        let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
            return json!(vec![Value::Null; least]);
        };
        let texts = kind(self.resolved(items)) == "string" && self.resolved(items).get("enum").is_none();
        let mut values: Vec<Value> = Vec::new();
        if self.manner == FillStyle::Telling && depth < DEEPEST {
            let (rows, room) = self.rows(name, row, texts);
            for row in rows.into_iter().take(room.max(least).min(most)) {
                let value = self.fill(items, if texts { singular(name) } else { "" }, row, depth + 1);
                // A list of names holds each once.
                if !texts || !values.contains(&value) {
                    values.push(value);
                }
            }
        }
        while values.len() < least {
            let mut value = self.fill(items, name, Row::None, depth + 1);
            if let (Value::String(text), true) = (&value, !values.is_empty()) {
                value = json!(self.cut(self.resolved(items), format!("{} {text}", values.len() + 1)));
            }
            values.push(value);
        }
        Value::Array(values)
    }

    /// What the items of an array are about, and how many of them there are at most.
    fn rows(&self, name: &str, row: Row<'a>, texts: bool) -> (Vec<Row<'a>>, usize) {
        if !matches!(row, Row::None) {
            return (vec![row], 1);
        }
        if ends_in(name, RAN) {
            return (Vec::new(), 0);
        }
        let rows = self.seen.rows();
        if texts && is_one_of(name, &format!("{FILES} {AREAS}")) {
            return (self.seen.paths().into_iter().map(|path| Row::File(path, 0)).collect(), 12);
        }
        if is_one_of(name, FINDINGS) {
            return (rows.into_iter().filter(|row| matches!(row, Row::Spot(_))).collect(), 8);
        }
        let room = if is_one_of(name, AREAS) || is_one_of(name, FILES) { 8 } else { 3 };
        // Of files, each is one item, however many of its lines were found.
        if is_one_of(name, FILES) {
            return (self.seen.paths().into_iter().map(|path| Row::File(path, 0)).collect(), room);
        }
        (rows, room)
    }

    fn number(&self, schema: &Value, name: &str, row: Row<'_>) -> f64 {
        let limit = |member: &str| schema[member].as_f64();
        let told = match self.manner {
            FillStyle::Telling => leaf::number(name, row, self.seen, schema),
            FillStyle::Bare => limit("minimum").unwrap_or(0.0),
        };
        let least = limit("minimum").or(limit("exclusiveMinimum").map(|bound| bound + 1.0));
        let most = limit("maximum").or(limit("exclusiveMaximum").map(|bound| bound - 1.0));
        let told = most.map_or(told, |most| told.min(most));
        let told = least.map_or(told, |least| told.max(least));
        match limit("multipleOf").filter(|step| *step > 0.0) {
            Some(step) => (told / step).ceil() * step,
            None => told,
        }
    }

    fn text(&self, schema: &Value, name: &str, row: Row<'_>) -> String {
        let least = schema["minLength"].as_u64().unwrap_or(0).min(100_000) as usize;
        if let Some(made) = schema["pattern"].as_str().and_then(|pattern| pattern::sample(pattern, least)) {
            return made;
        }
        let formed = match schema["format"].as_str() {
            Some("date") => Some("1970-01-01"),
            Some("date-time") => Some("1970-01-01T00:00:00Z"),
            Some("uri" | "url") => Some("https://example.org/"),
            Some("email") => Some("nobody@example.org"),
            _ => None,
        };
        let told = match (formed, self.manner) {
            (Some(formed), _) => formed.to_owned(),
            (None, FillStyle::Telling) => leaf::text(name, row, self.seen),
            (None, FillStyle::Bare) => "none".to_owned(),
        };
        self.cut(schema, told)
    }

    /// A text of a length that is allowed.
    fn cut(&self, schema: &Value, text: String) -> String {
        let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX).min(6_000) as usize;
        let least = schema["minLength"].as_u64().unwrap_or(0).min(100_000) as usize;
        let mut text: String = text.chars().take(most.max(least)).collect();
        while text.chars().count() < least {
            text.push('.');
        }
        text
    }
}

/// An array of objects is worth filling even where it may be left out.
fn is_rows(schema: &Value) -> bool {
    kind(schema) == "array" && kind(&schema["items"]) == "object"
}

/// The type of a schema: said, or to be guessed from its members. Of several, the first that is not null.
fn kind(schema: &Value) -> &str {
    let said = match &schema["type"] {
        Value::String(kind) => Some(kind.as_str()),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    };
    let has = |member: &str| schema.get(member).is_some();
    said.unwrap_or(if has("properties") || has("required") {
        "object"
    } else if has("items") || has("minItems") {
        "array"
    } else if has("minimum") || has("maximum") {
        "number"
    } else {
        "string"
    })
}

/// The name of one item: `files` are one file each.
fn singular(name: &str) -> &str {
    name.strip_suffix('s').unwrap_or(name)
}

fn whole_if_it_is(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}
