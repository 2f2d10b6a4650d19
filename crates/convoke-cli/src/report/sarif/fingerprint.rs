//! By what code scanning knows a result again when the lines above it have moved: the text that was quoted,
//! not where it stood.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// What a result is known by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) rule: usize,
    /// The file of its first location.
    pub(super) uri: &'a str,
    pub(super) line: u32,
    /// The text that is quoted from there.
    pub(super) quote: Option<&'a str>,
    pub(super) claim: &'a str,
}

/// The fingerprints of results, in their order: `HASH:N`, where N counts equal ones in one file from the top.
/// A line that is indented anew is the same line.
pub(super) fn fingerprints(results: &[Known<'_>]) -> Vec<String> {
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by_key(|at| (results[*at].uri, results[*at].line, results[*at].claim));
    let mut seen: BTreeMap<(usize, &str, String), usize> = BTreeMap::new();
    let mut made = vec![String::new(); results.len()];
    for at in order {
        let result = &results[at];
        let hash = hash(result);
        let number = seen.entry((result.rule, result.uri, hash.clone())).or_default();
        *number += 1;
        made[at] = format!("{hash}:{number}");
    }
    made
}

/// The quoted text without its blanks. Without one the claim, without its digits: those of a line or a count
/// move with the code.
fn hash(result: &Known<'_>) -> String {
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let quote = result.quote.map(squeezed).filter(|quote| !quote.is_empty());
    let text = quote.unwrap_or_else(|| {
        squeezed(&result.claim.to_lowercase()).chars().filter(|c| !c.is_ascii_digit()).collect()
    });
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(line: u32, quote: &'static str, claim: &'static str) -> Known<'static> {
        Known { rule: 0, uri: "src/a.rs", line, quote: Some(quote).filter(|quote| !quote.is_empty()), claim }
    }

    #[test]
    fn a_result_that_moved_or_was_indented_is_the_same_and_another_line_is_not() {
        let before =
            fingerprints(&[known(3, "let x = y.unwrap();", "it panics"), known(9, "todo!()", "unfinished")]);
        let after = fingerprints(&[
            known(90, "todo!()", "not done"),
            known(40, "    let x = y.unwrap();\n", "a panic"),
        ]);
        assert_eq!(before, [after[1].clone(), after[0].clone()]);
        assert_ne!(before[0], before[1]);
    }

    #[test]
    fn equal_lines_of_one_file_are_told_apart_from_the_top_whatever_their_order() {
        let twice = fingerprints(&[known(9, "x.unwrap()", "b"), known(3, "x.unwrap()", "a")]);
        assert_eq!(twice[0].split_once(':').unwrap().0, twice[1].split_once(':').unwrap().0);
        assert!(twice[0].ends_with(":2") && twice[1].ends_with(":1"), "{twice:?}");
        let elsewhere = Known { uri: "src/b.rs", ..known(9, "x.unwrap()", "b") };
        assert!(
            fingerprints(&[known(3, "x.unwrap()", "a"), elsewhere]).iter().all(|one| one.ends_with(":1"))
        );
    }

    #[test]
    fn without_a_quote_the_claim_counts_and_not_its_numbers() {
        let at = |claim| fingerprints(&[known(1, "", claim)]);
        assert_eq!(at("A function of 120 lines"), at("a function  of 130 lines"));
        assert_ne!(at("A function of 120 lines"), at("A file of 120 lines"));
    }
}
