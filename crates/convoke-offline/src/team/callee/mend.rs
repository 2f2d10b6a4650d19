//! Mends a value that did not fit: the parts that the complaint names are filled again with the least the
//! schema allows, and if it names none, or complained before, the whole is.

use serde_json::Value;

use super::fill::{FillStyle, Filler};
use super::seen::Seen;
use crate::read::Call;

/// The next value, after so many that were sent back.
pub(super) fn mend(schema: &Value, seen: &Seen, last: &Call, offers: usize) -> Value {
    let bare = Filler::new(schema, seen, FillStyle::Bare);
    if offers > 2 {
        return bare.value();
    }
    let mut value = last.input.clone();
    let mut mended = false;
    for pointer in pointers(last.result.as_deref().unwrap_or_default(), &value) {
        if let (Some(part), Some(place)) = (bare.part(&pointer), value.pointer_mut(&pointer)) {
            *place = part;
            mended = true;
        }
    }
    if mended && value != last.input { value } else { bare.value() }
}

/// The places of the value that a complaint names, as JSON pointers (`/a/0/b`) or paths (`a[0].b`), in its
/// order.
fn pointers(complaint: &str, value: &Value) -> Vec<String> {
    let mut pointers: Vec<String> = Vec::new();
    for token in complaint.split(|c: char| c.is_whitespace() || "\"'`(),;".contains(c)) {
        let token = token.trim_end_matches([':', '.']);
        let pointer = match token.strip_prefix('/') {
            Some(_) => token.to_owned(),
            None => format!("/{}", token.replace(['[', '.'], "/").replace(']', "")),
        };
        if pointer.len() > 1 && value.pointer(&pointer).is_some() && !pointers.contains(&pointer) {
            pointers.push(pointer);
        }
    }
    pointers
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_complaint_names_places_as_pointers_or_paths() {
        let value = json!({"a": [{"b": 1}], "c": ""});
        assert_eq!(pointers("at /a/0/b: 1 is not of type \"string\"; a[0].b; /zz", &value), ["/a/0/b"]);
        assert_eq!(pointers("c: too short", &value), ["/c"]);
        assert_eq!(pointers("no", &value), Vec::<String>::new());
    }
}
