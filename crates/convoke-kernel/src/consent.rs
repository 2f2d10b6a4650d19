//! Whether a person agreed to a fan-out. One pure function, asked by the dispatcher before a `Workflow` call
//! runs. It is given what the person typed in this exchange and nothing else: mail, files and tool output are
//! never consent.

/// What a person's consent rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentBasis {
    /// Orchestration mode is on.
    Mode,
    /// The person's input of this exchange asks for a workflow.
    Word,
    /// `--workflow` was given.
    Flag,
    /// The person made the call.
    Command,
}

/// Whether a fan-out may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// It may.
    Given(ConsentBasis),
    /// It may not, until a person is asked.
    Missing,
}

/// Decides consent from the mode, from what the person said in this exchange, and from `--workflow`.
///
/// The word is `workflow` or `workflows` in any case, standing alone: not a part of another word
/// (`workflowy`), of a path or file name (`.github/workflows/ci.yml`, `workflow.rs`) or of a compound
/// (`workflow-based`), and not two words (`work flow`). A plain negation in the same clause (`no workflow`,
/// `without a workflow`, `don't run it as a workflow`, `a workflow is not needed`) makes the whole input no
/// consent, whatever else it says: asking once more costs a question, a wrong yes costs money.
pub fn consents(mode_on: bool, said: &str, flag: bool) -> Consent {
    if mode_on {
        Consent::Given(ConsentBasis::Mode)
    } else if asks(said) {
        Consent::Given(ConsentBasis::Word)
    } else if flag {
        Consent::Given(ConsentBasis::Flag)
    } else {
        Consent::Missing
    }
}

fn asks(said: &str) -> bool {
    let mut asked = false;
    for clause in clauses(said) {
        for (at, word) in clause.iter().enumerate() {
            if word == "no-workflow" || word == "no-workflows" {
                return false;
            }
            if word == "workflow" || word == "workflows" {
                if denied_before(&clause[..at]) || denied_after(&clause[at + 1..]) {
                    return false;
                }
                asked = true;
            }
        }
    }
    asked
}

/// The input as clauses of lower-case words. Punctuation ends a clause where it ends a word, so that paths
/// and names with dots stay one word; so do `but` and the end of a line.
fn clauses(said: &str) -> Vec<Vec<String>> {
    let mut clauses = vec![Vec::new()];
    for line in said.lines() {
        // Scripts that write no spaces between words must not hide the word, so letters beyond Latin
        // separate.
        let line: String = line.replace(DASHES, ", ").chars().map(plain).collect();
        for raw in line.split_whitespace() {
            let opened = raw.trim_start_matches(['(', '[', '{', '"', '\'', '`', '*', '<']);
            let word = opened
                .trim_end_matches([')', ']', '}', '"', '\'', '`', '*', '>', '.', ',', ';', ':', '!', '?']);
            if raw.starts_with('(') {
                clauses.push(Vec::new());
            }
            // A command that is spelled out is the word, too: /workflow, --workflow.
            let word =
                word.strip_prefix("--").or_else(|| word.strip_prefix('/')).unwrap_or(word).to_lowercase();
            let breaks =
                word == "but" || opened.ends_with([')', '.', ',', ';', ':', '!', '?']) || word.is_empty();
            if let Some(clause) = clauses.last_mut().filter(|_| !word.is_empty()) {
                clause.push(word);
            }
            if breaks {
                clauses.push(Vec::new());
            }
        }
        clauses.push(Vec::new());
    }
    clauses
}

/// Signs that end a clause without a space around them.
const DASHES: [char; 6] = ['—', '–', '…', '。', '、', '，'];

fn plain(c: char) -> char {
    match c {
        '’' | '‘' => '\'',
        '“' | '”' | '„' | '«' | '»' => '"',
        c if c as u32 >= 0x250 => ' ',
        c => c,
    }
}

/// Words that deny what follows them at once: `no need for a workflow`.
const NEAR: &[&str] =
    &["no", "without", "avoid", "skip", "neither", "nor", "kein", "keine", "keinen", "ohne", "sans", "sin"];
/// How far those reach.
const REACH: usize = 4;
/// Words that deny the rest of their clause: `do not run all of this as a workflow`.
const FAR: &[&str] = &["not", "never", "dont", "cannot", "nicht"];

fn denied_before(words: &[String]) -> bool {
    let near = words.iter().rev().take(REACH).any(|word| NEAR.contains(&word.as_str()));
    let far = words.iter().enumerate().any(|(at, word)| {
        // "Why not" and "why don't we" propose.
        let proposes = at > 0 && words[at - 1] == "why";
        (FAR.contains(&word.as_str()) || word.ends_with("n't")) && !proposes
    });
    near || far
}

fn denied_after(words: &[String]) -> bool {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let needless = |at: usize| matches!(word(at), "needed" | "necessary" | "required" | "wanted" | "allowed");
    match word(0) {
        "is" | "are" => matches!(word(1), "not" | "unnecessary" | "forbidden"),
        "not" => needless(1),
        first => first.ends_with("n't"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(said: &str, expected: bool) {
        let wanted = if expected { Consent::Given(ConsentBasis::Word) } else { Consent::Missing };
        assert_eq!(consents(false, said, false), wanted, "{said:?}");
    }

    #[test]
    fn the_word_in_the_persons_own_input_is_consent() {
        for said in [
            "workflow",
            "Use a workflow.",
            "WORKFLOWS!",
            "Run a Workflow: review src/",
            "please (workflow) do it",
            "a \"workflow\" and `Workflow`",
            "review this\nworkflow",
            "use a workflow, not a single agent",
            "Don't ask, use a workflow",
            "not only a look but a workflow",
            "why not use a workflow?",
            "Why don’t we run a workflow",
            "do it without asking me, with a workflow",
            "workflow—and quickly",
            "do not ask—use a workflow",
            "/workflow review",
            "as with --workflow",
            "请用workflow检查",
        ] {
            check(said, true);
        }
    }

    #[test]
    fn other_words_paths_and_names_are_no_consent() {
        for said in [
            "",
            "review this repository",
            "workflowy",
            "preworkflow",
            "work flow",
            "work-flow",
            "multi_workflow",
            "a workflow-based tool",
            "fix .github/workflows/ci.yml",
            "look into workflows/",
            "./workflow",
            "open workflow.rs",
            "the workflow's end",
            "Arbeitsworkflow",
        ] {
            check(said, false);
        }
    }

    #[test]
    fn a_plain_negation_is_no_consent_whatever_else_is_said() {
        for said in [
            "no workflow",
            "No workflows please",
            "without a workflow",
            "without using any workflows",
            "there is no need for a workflow",
            "don't use a workflow",
            "Don’t run all of this big thing as a workflow",
            "do not start a workflow",
            "never workflow",
            "avoid workflows",
            "no-workflow run",
            "--no-workflow",
            "A workflow is what I mean. No, no-workflow",
            "A workflow is what I mean. No, no-workflows",
            "a workflow is not needed",
            "a workflow isn't wanted",
            "workflow not required",
            "ohne Workflow bitte",
            "Don't use a workflow. Workflows are expensive.",
            "A workflow for the code; no workflow for the docs",
        ] {
            check(said, false);
        }
    }

    #[test]
    fn mode_word_and_flag_each_suffice_and_the_first_is_named() {
        for (mode, said, flag, expected) in [
            (true, "", false, Consent::Given(ConsentBasis::Mode)),
            (true, "workflow", true, Consent::Given(ConsentBasis::Mode)),
            (false, "workflow", true, Consent::Given(ConsentBasis::Word)),
            (false, "review", true, Consent::Given(ConsentBasis::Flag)),
            (false, "no workflow", true, Consent::Given(ConsentBasis::Flag)),
            (false, "review", false, Consent::Missing),
        ] {
            assert_eq!(consents(mode, said, flag), expected, "{mode} {said} {flag}");
        }
    }
}
