//! The fields of a call, read and refused with a text that says what to send. A reader of fields knows
//! neither the members nor the board.

use serde_json::{Map, Value};

use crate::team::MAX_LETTER;

/// The fields of a call, none of them unknown.
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// A field that was never declared is refused: the model that sent it believes that it does something.
    pub(crate) fn of(name: &str, input: &'a Value, declared: &Value) -> Result<Self, String> {
        let (Some(input), Some(declared)) = (input.as_object(), declared.as_object()) else {
            return Err("send the fields of the call as one JSON object.".to_owned());
        };
        match input.keys().find(|field| !declared.contains_key(*field)) {
            None => Ok(Self(input)),
            Some(field) if declared.is_empty() => {
                Err(format!("'{field}' is no field of it; {name} has none."))
            }
            Some(field) => {
                let known: Vec<&str> = declared.keys().map(String::as_str).collect();
                Err(format!("'{field}' is no field of it; it has {}.", known.join(", ")))
            }
        }
    }

    pub(crate) fn get(&self, field: &str) -> Option<&'a Value> {
        self.0.get(field).filter(|value| !value.is_null())
    }

    /// A text that may be absent; a blank one is.
    pub(crate) fn optional(&self, field: &str) -> Result<Option<String>, String> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) if text.len() > MAX_LETTER => Err(format!(
                "{field} has {} bytes, and {MAX_LETTER} are the most; write the rest to a file and name its \
                    path.",
                text.len()
            )),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("{field} has to be a text.")),
        }
    }

    pub(crate) fn text(&self, field: &str) -> Result<String, String> {
        self.optional(field)?.ok_or_else(|| format!("{field} is missing or blank; send it as a text."))
    }

    pub(crate) fn words(&self, field: &str) -> Result<String, String> {
        self.optional(field).map(Option::unwrap_or_default)
    }

    /// A name as people write it, with or without an `@` before it.
    pub(crate) fn member(&self, field: &str) -> Result<String, String> {
        let said = self.text(field)?;
        let name = said.trim().trim_start_matches('@').trim();
        match name.is_empty() {
            true => Err(format!("{field} is missing or blank; send the name of a member.")),
            false => Ok(name.to_owned()),
        }
    }

    pub(crate) fn task(&self, field: &str) -> Result<String, String> {
        match self.get(field) {
            Some(Value::Number(number)) if number.is_u64() => Ok(format!("#{number}")),
            _ => task_name(&self.text(field).map_err(|why| format!("{why} A task's id begins with t_."))?),
        }
    }

    pub(crate) fn flag(&self, field: &str) -> Result<bool, String> {
        match self.get(field) {
            None => Ok(false),
            Some(_) => self.answer(field),
        }
    }

    pub(crate) fn answer(&self, field: &str) -> Result<bool, String> {
        self.get(field).and_then(Value::as_bool).ok_or_else(|| format!("{field} has to be true or false."))
    }

    pub(crate) fn number<N: TryFrom<i64>>(&self, field: &str) -> Result<Option<N>, String> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let number = value.as_i64().and_then(|number| N::try_from(number).ok());
        number.map(Some).ok_or_else(|| format!("{field} has to be a whole number."))
    }

    /// A list, which one text is too.
    pub(crate) fn list(
        &self,
        field: &str,
        of: impl Fn(&str) -> Result<String, String>,
    ) -> Result<Vec<String>, String> {
        let wrong = || format!("{field} has to be a list of texts.");
        let one = |value: &Value| match value {
            Value::String(text) if !text.trim().is_empty() => of(text),
            Value::Number(number) if number.is_u64() => of(&number.to_string()),
            _ => Err(wrong()),
        };
        match self.get(field) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(Vec::new()),
            Some(Value::Array(items)) => items.iter().map(one).collect(),
            Some(Value::String(text)) => Ok(vec![of(text)?]),
            Some(_) => Err(wrong()),
        }
    }
}

/// A task as it was said; a bare number is the task's number.
pub(crate) fn task_name(said: &str) -> Result<String, String> {
    let said = said.trim();
    let is_number = said.bytes().all(|b| b.is_ascii_digit());
    Ok(if is_number { format!("#{said}") } else { said.to_owned() })
}
