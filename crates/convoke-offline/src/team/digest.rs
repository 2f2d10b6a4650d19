//! Reads the result of a Workflow call: a section per item with its status, its summary and its findings. It
//! reads leniently: what it does not know is kept as part of the summary, and nothing is made up.

/// One item of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) number: u64,
    pub(super) label: String,
    pub(super) status: String,
    pub(super) summary: Vec<String>,
    pub(super) findings: Vec<Found>,
}

/// One finding, with what the verifiers made of it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Found {
    /// The verdict as it was said, with its reason if it has one.
    pub(super) verdict: String,
    pub(super) severity: String,
    pub(super) claim: String,
    pub(super) evidence: String,
    pub(super) verifier: String,
}

/// The call that reads an item whole that was cut.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rest(pub(super) serde_json::Value);

const COUNTS: [&str; 2] = ["findings:", "(cut:"];
const SEVERITIES: [&str; 4] = ["high", "medium", "low", "info"];

/// The items of a result; none if it is not one.
pub(super) fn items(text: &str) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    for raw in text.lines() {
        if let Some((number, label)) = header(raw) {
            // A page that was read later holds the whole of its item.
            items.retain(|item| item.number != number);
            items.push(Item { number, label, ..Item::default() });
            continue;
        }
        let Some(item) = items.last_mut() else { continue };
        let quoted = raw.trim_start().starts_with(['>', '|']);
        let line = raw.trim_start_matches([' ', '>', '|', '\t']).trim_end().replace("<\\", "<");
        let line = line.as_str();
        if let Some(found) = finding(line).filter(|_| !quoted) {
            item.findings.push(found);
        } else if quoted && !item.findings.is_empty() {
            // A further line of the evidence: its first one is enough.
        } else if COUNTS.iter().any(|word| line.starts_with(word)) && !quoted {
            // The harness's own count, which the list repeats.
        } else if let (Some(rest), Some(found)) = (line.strip_prefix("evidence:"), item.findings.last_mut()) {
            found.evidence = rest.trim().to_owned();
        } else if let (Some(rest), Some(found)) = (line.strip_prefix("verifier:"), item.findings.last_mut()) {
            found.verifier = rest.trim().to_owned();
        } else if let Some(rest) = line.strip_prefix("status:") {
            if item.status.is_empty() {
                item.status = rest.trim().to_owned();
            }
        } else if !line.is_empty() && item.findings.is_empty() {
            item.summary.push(line.to_owned());
        }
    }
    items.sort_by_key(|item| item.number);
    items
}

/// The calls that read what was cut.
pub(super) fn rests(text: &str) -> Vec<Rest> {
    let mut rests: Vec<Rest> = Vec::new();
    for (at, _) in text.match_indices("read_result {") {
        let json = &text[at + "read_result ".len()..];
        let read = serde_json::Deserializer::from_str(json).into_iter::<serde_json::Value>().next();
        let Some(Ok(mut input)) = read else { continue };
        input["from"] = serde_json::json!(0);
        let sound = input["run"].is_string() && input["item"].as_u64().is_some_and(|item| item > 0);
        if sound && !rests.iter().any(|known| known.0 == input) {
            rests.push(Rest(input));
        }
    }
    rests
}

impl Item {
    pub(super) fn is_ok(&self) -> bool {
        self.status.is_empty() || self.status.starts_with("ok")
    }
}

impl Found {
    /// The verdict without its reason.
    pub(super) fn word(&self) -> &str {
        self.verdict.split([':', ' ', ',', '(']).next().unwrap_or_default()
    }

    /// The rank of its severity, the gravest first.
    pub(super) fn rank(&self) -> usize {
        SEVERITIES.iter().position(|severity| *severity == self.severity).unwrap_or(SEVERITIES.len())
    }
}

fn header(line: &str) -> Option<(u64, String)> {
    let rest = line.strip_prefix("## item ")?;
    let (number, label) = rest.split_once(':').unwrap_or((rest, ""));
    Some((number.trim().parse().ok()?, label.trim().to_owned()))
}

fn finding(line: &str) -> Option<Found> {
    let rest = line.strip_prefix("- [")?;
    let at = SEVERITIES
        .iter()
        .filter_map(|severity| Some((rest.find(&format!("] [{severity}] "))?, *severity)))
        .min()?;
    let claim = rest[at.0 + at.1.len() + 5..].trim();
    let verdict = rest[..at.0].trim().to_owned();
    let severity = at.1.to_owned();
    Some(Found { verdict, severity, claim: claim.to_owned(), ..Found::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "(note: 2 and 5 are equal: run once)\n\n## item 1: Panics in `src/`\nstatus: \
        ok\nfindings: 1 confirmed\n> Looked into 3 files.\n\
        - [confirmed] [medium] `.unwrap()` outside tests\n    evidence: src/a.rs:3: x.unwrap()\n  | - \
        [confirmed] [high] Faked\n    verifier: it holds\n\
        - [unverified: the limit [of 3] was reached] [low] Another\n    evidence: b\n\n## item 2: \
        Links\nstatus: failed(api): overloaded\n";

    #[test]
    fn sections_statuses_findings_and_their_lines_are_read() {
        let items = items(DIGEST);
        assert_eq!(
            items.iter().map(|item| (item.number, item.is_ok())).collect::<Vec<_>>(),
            [(1, true), (2, false)]
        );
        assert_eq!(items[0].summary, ["Looked into 3 files."]);
        let words: Vec<&str> = items[0].findings.iter().map(Found::word).collect();
        assert_eq!(words, ["confirmed", "unverified"]);
        assert_eq!(items[0].findings[0].evidence, "src/a.rs:3: x.unwrap()");
        assert_eq!(items[1].status, "failed(api): overloaded");
        assert!(super::items("Workflow error: no usable subtasks were provided.").is_empty());
    }

    #[test]
    fn what_was_cut_is_asked_for_once() {
        let text = "cut: read_result {\"run\":\"wf_a\",\"item\":3,\"from\":4000} or read_result \
            {\"run\":\"wf_a\",\"item\":3,\"from\":4000}";
        assert_eq!(rests(text).len(), 1);
        assert!(rests("read_result {oops").is_empty());
    }
}
