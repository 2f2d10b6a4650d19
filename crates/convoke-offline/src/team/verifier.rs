//! A verifier: reads the cited lines again and runs the rule again at those places. It confirms only what
//! both show.

use serde_json::{Value, json};

use super::concern::Concern;
use super::facts::{Cited, Sight};
use super::kind::{Kind, hit_words};
use super::look::{Lines, Look};
use super::{between, many};
use crate::policy::{Answer, call_tools, text};
use crate::read::{Call, Exchange, short};

/// How often a command is tried.
const TRIES: usize = 2;

/// A claim of more words that is not one of ours may say more than any rule can show.
const MOST_WORDS: usize = 14;

/// So many lines are looked up again at most.
const MOST_SPOTS: usize = 60;

/// A finding to be tested.
struct Tested {
    number: u64,
    claim: String,
    cited: Vec<Lines>,
    quotes: Vec<String>,
    /// Citations that name no lines of a file below the directory.
    astray: Vec<String>,
    concern: Option<Concern>,
}

pub(super) fn answer(request: &Value) -> Answer {
    let exchange = Exchange::of_agent(request);
    let Some(tested) = read(between(&exchange.task, "<findings>", "</findings>")) else {
        return text("The findings could not be read, so nothing was looked up.");
    };
    let looks = looks(&tested);
    let of = |look: &Look| {
        let title = look.title();
        exchange.calls.iter().filter(move |call| call.name == "bash" && call.title() == title)
    };
    let sights: Vec<Option<Sight>> = looks
        .iter()
        .map(|look| of(look).rev().find_map(|call| Sight::parse(call.result.as_deref()?)))
        .collect();
    let ballots: Vec<&Call> = exchange.calls.iter().filter(|call| call.name == "report_verdicts").collect();
    if !exchange.handing_back && ballots.is_empty() {
        let open = |(look, sight): &(&Look, &Option<Sight>)| sight.is_none() && of(look).count() < TRIES;
        // One at a time: together they may be longer than a reply.
        if let Some((look, _)) = looks.iter().zip(&sights).find(open) {
            let calls = vec![("bash", json!({"command": look.command()}))];
            return call_tools("Looking the evidence up again.", calls, exchange.calls_so_far);
        }
    }
    let failure = exchange.calls.iter().rev().find_map(|call| call.result.as_deref()).map(short);
    let bench = Bench { looks: &looks, sights: &sights, failure: failure.unwrap_or_default() };
    let verdicts: Vec<Value> = tested
        .iter()
        .enumerate()
        .map(|(index, finding)| {
            let (verdict, evidence) = bench.judge(&tested, index);
            json!({"finding": finding.number, "verdict": verdict, "evidence": evidence})
        })
        .collect();
    let confirmed = verdicts.iter().filter(|verdict| verdict["verdict"] == "confirmed").count() as u64;
    let summary = format!(
        "Looked up {} again by reading the cited lines and running the rule a second time: {confirmed} \
            confirmed.",
        many(verdicts.len() as u64, "finding")
    );
    if ballots.len() > 1 {
        return text(&format!("{summary}\n{}", Value::from(verdicts)));
    }
    let ballot = json!({"summary": summary, "verdicts": verdicts});
    call_tools("My verdicts.", vec![("report_verdicts", ballot)], exchange.calls_so_far)
}

fn read(findings: &str) -> Option<Vec<Tested>> {
    let findings: Value = serde_json::from_str(findings).ok()?;
    let mut tested = Vec::new();
    for (index, finding) in findings.as_array()?.iter().enumerate() {
        let claim = finding["claim"].as_str().unwrap_or_default().trim().to_owned();
        let concern = Kind::of_claim(&claim).map(|kind| kind.concern).or_else(|| Concern::of_text(&claim));
        let number = finding["finding"].as_u64().unwrap_or(index as u64 + 1);
        let mut one = Tested { number, claim, cited: vec![], quotes: vec![], astray: vec![], concern };
        for citation in finding["citations"].as_array().into_iter().flatten() {
            let path = citation["path"].as_str().unwrap_or_default();
            let first = citation["first"].as_u64();
            let last = citation["last"].as_u64();
            let outside =
                path.is_empty() || path.starts_with(['/', '~']) || path.split('/').any(|part| part == "..");
            match (first, last.or(first)) {
                (Some(first), Some(last)) if !outside && first > 0 && first <= last => {
                    one.cited.push(Lines { path: path.to_owned(), first, last });
                    one.quotes.push(citation["quote"].as_str().unwrap_or_default().to_owned());
                }
                _ => one.astray.push(if path.is_empty() { "a command".to_owned() } else { path.to_owned() }),
            }
        }
        tested.push(one);
    }
    Some(tested)
}

/// What has to be looked at: the cited lines, and each concern's rule at its places.
fn looks(tested: &[Tested]) -> Vec<Look> {
    let cited: Vec<Lines> = tested.iter().flat_map(|finding| finding.cited.iter().cloned()).collect();
    let mut looks = if cited.is_empty() { Vec::new() } else { vec![Look::Cite(cited)] };
    let mut concerns: Vec<Concern> = tested.iter().filter_map(|finding| finding.concern).collect();
    concerns.sort_unstable();
    concerns.dedup();
    for concern in concerns {
        let mut spots: Vec<(String, u64)> = Vec::new();
        for finding in tested.iter().filter(|finding| finding.concern == Some(concern)) {
            // Our own findings begin at the first cited line; others may begin at any of them.
            let ours = Kind::of_claim(&finding.claim).is_some();
            for Lines { path, first, last } in &finding.cited {
                let last = if ours { *first } else { (*last).min(first + 30) };
                spots.extend((*first..=last).map(|line| (path.clone(), line)));
            }
        }
        spots.sort();
        spots.dedup();
        // The command must fit into a reply; what is left out is not confirmed.
        spots.truncate(MOST_SPOTS);
        looks.push(Look::Again { concern, spots });
    }
    looks
}

/// What was looked at and seen.
struct Bench<'a> {
    looks: &'a [Look],
    sights: &'a [Option<Sight>],
    failure: String,
}

impl Bench<'_> {
    fn sight(&self, wanted: impl Fn(&Look) -> bool) -> Option<&Sight> {
        let at = self.looks.iter().position(wanted)?;
        self.sights[at].as_ref()
    }

    /// The verdict on a finding, and what it rests on.
    fn judge(&self, tested: &[Tested], index: usize) -> (&'static str, String) {
        let finding = &tested[index];
        if let Some(astray) = finding.astray.iter().find(|place| *place != "a command") {
            return (
                "refuted",
                format!("The citation of {astray} names no lines of a file in this directory."),
            );
        }
        let mut seen = Vec::new();
        let before: usize = tested[..index].iter().map(|finding| finding.cited.len()).sum();
        for (offset, (lines, quote)) in finding.cited.iter().zip(&finding.quotes).enumerate() {
            let place = format!("{}:{}", lines.path, lines.first);
            let cited = self.sight(|look| matches!(look, Look::Cite(_)));
            match cited.map_or(Cited::Nothing, |sight| sight.cited(before + offset)) {
                Cited::Nothing => {
                    return ("undecided", format!("{place} could not be read again. {}", self.failure));
                }
                Cited::NoFile => {
                    return ("refuted", format!("There is no file {} that can be read.", lines.path));
                }
                Cited::TooShort => {
                    return ("refuted", format!("{} ends before line {}.", lines.path, lines.last));
                }
                Cited::Lines(read) if !holds(read, quote) => {
                    let there = read.first().map(String::as_str).unwrap_or_default();
                    return (
                        "refuted",
                        format!("{place} does not hold the quote; there stands: {}", cut(there)),
                    );
                }
                Cited::Lines(read) => seen.push((place, read.join("\n"))),
            }
        }
        if let Some(words) = hit_words(&finding.claim) {
            let low = seen.iter().map(|(_, text)| text.to_lowercase()).collect::<Vec<_>>().join("\n");
            return match words.iter().all(|word| low.contains(*word)) && !seen.is_empty() {
                true => ("confirmed", format!("{} holds these words.", seen[0].0)),
                false => ("refuted", "The cited line does not hold these words.".to_owned()),
            };
        }
        self.again(finding, &seen)
    }

    /// Whether the rule finds it again.
    fn again(&self, finding: &Tested, seen: &[(String, String)]) -> (&'static str, String) {
        let Some(concern) = finding.concern else {
            let quote = if seen.is_empty() { "Nothing is cited" } else { "The quote holds" };
            return ("undecided", format!("{quote}, but no rule can tell whether the claim is true."));
        };
        let known = Kind::of_claim(&finding.claim);
        if known.is_none() && finding.claim.split_whitespace().count() > MOST_WORDS {
            return (
                "undecided",
                "The quote holds, but the claim says more than a rule can show.".to_owned(),
            );
        }
        let Some(sight) =
            self.sight(|look| matches!(look, Look::Again { concern: other, .. } if *other == concern))
        else {
            return ("undecided", format!("The rule could not be run again. {}", self.failure));
        };
        let fits = |item: &&super::facts::Spot| {
            let claimed =
                known.is_none_or(|kind| kind.name == item.kind && kind.claim(&item.detail) == finding.claim);
            let cited = |lines: &Lines| {
                item.path == lines.path
                    && (lines.first..=lines.last).contains(&item.first)
                    && known.is_none_or(|_| item.last == lines.last)
            };
            claimed && (finding.cited.iter().any(cited) || item.first == 0)
        };
        let place = seen.first().map_or("here", |(place, _)| place.as_str());
        // Findings without a line are those about files that are or are not there; they are not cited.
        let listed = sight.items.iter().find(fits);
        let counted = known.filter(|kind| finding.cited.is_empty() && sight.kinds.contains_key(kind.name));
        match (listed.and_then(|item| Kind::named(&item.kind)).or(counted), known) {
            (Some(kind), _) => {
                ("confirmed", format!("{place}: the quote holds and the rule finds it again: {}.", kind.rule))
            }
            (None, Some(kind)) => {
                ("refuted", format!("{place}: the rule does not find it there; it would if {}.", kind.rule))
            }
            (None, None) => ("refuted", format!("{place}: the rule for this finds nothing there.")),
        }
    }
}

/// Whether a line holds the quote, which neither begins nor ends inside a word of it.
fn stands(line: &str, quote: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let head = is_word(quote.chars().next());
    let tail = is_word(quote.chars().next_back());
    line.match_indices(quote).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + quote.len()..].chars().next();
        !(head && is_word(before) || tail && is_word(after))
    })
}

/// Whether the lines hold the quote: each of its lines in order, white space counted once.
fn holds(lines: &[String], quote: &str) -> bool {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = lines.iter().map(|line| plain(line)).collect();
    let mut rest = lines.as_slice();
    let mut any = false;
    for wanted in quote.lines().map(plain).filter(|line| !line.is_empty()) {
        let Some(at) = rest.iter().position(|line| stands(line, &wanted)) else { return false };
        rest = &rest[at + 1..];
        any = true;
    }
    any
}

fn cut(text: &str) -> String {
    if text.chars().count() > 120 {
        text.chars().take(120).collect::<String>() + "…"
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_many_lines_do_not_make_a_command_too_long_for_a_reply() {
        for claim in ["A function of 300 lines, more than 80", "This is a very long function"] {
            let finding = |n: u64| {
                let path = format!("crates/a-rather-long-name/src/of/a/module/file_{n}.rs");
                json!({"claim": claim, "citations": [{"path": path, "first": n, "last": n + 299, "quote": "fn f() {"}]})
            };
            let findings = Value::from((1..=8).map(finding).collect::<Vec<_>>()).to_string();
            for look in looks(&read(&findings).unwrap()) {
                assert!(look.command().len() < 22_000, "{}: {}", look.title(), look.command().len());
            }
        }
    }

    #[test]
    fn a_quote_holds_line_by_line_in_order_with_any_white_space() {
        let lines = ["let  a = 1;", "", "let b = 2; // two"].map(str::to_owned);
        for (quote, expected) in [
            ("let a = 1;", true),
            ("let a = 1;\n\n  let b", true),
            ("let b\nlet a", false),
            ("", false),
            ("et a", false),
        ] {
            assert_eq!(holds(&lines, quote), expected, "{quote:?}");
        }
    }
}
