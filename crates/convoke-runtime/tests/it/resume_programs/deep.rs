//! The deep program and what it comes to; the tests that kill the real binary run it too. Every answer
//! follows from its prompt.

use serde_json::{Value, json};

/// Its source.
pub(crate) const DEEP: &str = include_str!("deep.js");

/// Its value over so many areas, when every agent says what it did.
pub(crate) fn deep_value(areas: usize) -> Value {
    let found = |area: usize| {
        let looked =
            |lens: usize| (0..3).map(|place| format!("did look {area} {lens} {place}")).collect::<Vec<_>>();
        let vote = format!("did vote {}", area % 2);
        json!({"scouted": format!("did scout {area}"), "looked": [looked(0), looked(1)], "votes": [vote, vote, vote]})
    };
    let mut all: Vec<String> =
        (0..areas).flat_map(|area| [format!("{area}.0"), format!("{area}.1")]).collect();
    all.sort();
    let reduced = format!("did reduce {} of {areas}", 2 * areas);
    json!({"early": null, "found": (0..areas).map(found).collect::<Vec<_>>(), "all": all, "reduced": reduced})
}

/// A number from a text, the same for ever.
pub(crate) fn drawn(text: &str, seed: u64) -> u64 {
    text.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    }) >> 20
}
