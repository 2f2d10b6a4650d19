//! What the names of properties mean, as data: a name is cut into its words, and a table says what each is
//! about.

use serde_json::Value;

/// Rows about something that was found.
pub(super) const FINDINGS: &str = "bug bugs candidates claims concerns defects errors findings flaws hits \
    issues leads matches mistakes observations occurrences problems risks smells todos vulnerabilities \
    warnings";
/// Rows about parts of the tree.
pub(super) const AREAS: &str =
    "areas components directories dirs folders modules packages parts places sections subsystems";
/// Rows about files.
pub(super) const FILES: &str = "files filenames items paths sources targets sites";
/// Whether something that the prompt says is so.
pub(super) const VERDICTS: &str = "accept accepted approve approved confirmed correct holds ok pass passed \
    passes real refuted status true valid verdict verified wrong invalid rejected";
/// That it is not so.
pub(super) const AGAINST: &str = "broken false invalid refuted reject rejected wrong failed";
/// Whether something was done.
pub(super) const DONE: &str = "applied changed changes complete completed converted done edited fixed \
    migrated modified replaced success succeeded updated written";
/// Whether something was run to test it, and what: nothing ever is.
pub(super) const RAN: &str = "command commands executed ran run runs test tested testing tests";
/// Whether there is something.
pub(super) const THERE: &str = "any exists found has present";

pub(super) const PATH: &str = "file filename filepath path source target module area directory dir item";
pub(super) const PLACE: &str = "location place position where ref reference site";
pub(super) const FIRST: &str = "line first start from begin lineno row";
pub(super) const LAST: &str = "last end to until";
pub(super) const CLAIM: &str =
    "bug claim description finding headline issue message name observation problem risk statement title what";
pub(super) const QUOTE: &str = "code excerpt line_text quote snippet text";
pub(super) const EVIDENCE: &str = "evidence proof support trace basis";
pub(super) const SEVERITY: &str = "criticality impact level priority severity risk";
pub(super) const REASON: &str =
    "because explanation justification rationale reason reasoning why verdict_reason detail details";
pub(super) const KIND: &str = "category class concern dimension group kind lens rule tag theme topic type";
pub(super) const KEY: &str = "hash id identifier key slug";
pub(super) const REMEDY: &str = "advice fix mitigation proposal recommendation remedy suggestion";
pub(super) const SUMMARY: &str = "abstract analysis answer body comment conclusion content note notes \
    outcome output overview report response result summary synthesis";
pub(super) const COUNT: &str = "amount count files_count hits lines n num number occurrences size total";
pub(super) const LANGUAGE: &str = "lang language";
pub(super) const PATCH: &str = "diff patch";
pub(super) const CONFIDENCE: &str = "certainty confidence likelihood probability";

/// Whether one of the words of a name stands in a table.
pub(super) fn is_one_of(name: &str, table: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| table.split_whitespace().any(|known| known == word))
}

/// Whether the name itself, or its last word, stands in a table: what a name is about stands at its end.
pub(super) fn ends_in(name: &str, table: &str) -> bool {
    let words = words(name);
    let whole = words.join("_");
    let last = words.last().map(String::as_str).unwrap_or_default();
    table.split_whitespace().any(|known| known == last || known == whole)
}

/// The words of a name: `lineNumber`, `line_number` and `line-number` have two.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        let cuts = !c.is_alphanumeric();
        if (cuts || small && c.is_uppercase()) && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| !cuts) {
            word.extend(c.to_lowercase());
        }
        small = c.is_lowercase() || c.is_numeric();
    }
    words.retain(|word| !word.is_empty() && !["is", "the", "of"].contains(&word.as_str()));
    // "lineNumber" is a line and "fileCount" a count.
    if words.len() > 1 && words.last().is_some_and(|word| ["number", "no", "nr"].contains(&word.as_str())) {
        words.pop();
    }
    words
}

/// The names of all properties of a schema, at any depth that is looked at.
pub(super) fn property_names(schema: &Value) -> Vec<String> {
    let mut names = Vec::new();
    gather(schema, &mut names, 0);
    names
}

fn gather(schema: &Value, names: &mut Vec<String>, depth: usize) {
    if depth > 8 {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        names.push(name.clone());
        gather(property, names, depth + 1);
    }
    if schema["items"].is_object() {
        gather(&schema["items"], names, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_into_words_and_known_by_the_last() {
        assert_eq!(words("lineNumber"), ["line"]);
        assert_eq!(words("is_real-bug"), ["real", "bug"]);
        assert!(ends_in("file_path", PATH) && ends_in("startLine", FIRST) && !ends_in("lineage", FIRST));
        assert!(is_one_of("isRefuted", VERDICTS) && !is_one_of("profile", PATH));
    }
}
