//! docs/teams.md and docs/prompts.md show each prompt with what it really printed. Which member claims what,
//! in which batches letters are read, ids and counters differ from run to run and are masked; everything else
//! has to be what the binary prints now.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// The mission's prompts.
const PROMPTS: [&str; 11] = [
    "Create 3 tasks on the board, then spawn alice and bob. Watch them auto-claim.",
    "Create tasks: list the files, count the lines, find the largest file. Spawn alice and bob.",
    "Create tasks with dependencies. Watch teammates respect the blocked order.",
    "Spawn a coder teammate and let it find work from the task board itself",
    "Spawn alice (coder) and bob (tester). Have alice send bob a message.",
    "Broadcast \"status update: phase 1 complete\" to all teammates",
    "Check the lead inbox for any messages",
    "Spawn alice as a coder. Then request her shutdown.",
    "List teammates to see alice's status after shutdown approval",
    "Spawn bob with a risky refactoring task. Review and reject his plan.",
    "Spawn charlie, have him submit a plan, then approve it.",
];

/// The nine examples of the mission.
const NINE: [&str; 9] = [
    "Use a subtask to find what testing framework this project uses",
    "Delegate: read all .py files and summarize what each one does",
    "Use a task to create a new module, then verify it from here",
    "Spawn alice (coder) and bob (tester). Have alice send bob a message.",
    "Broadcast \\\"status update: phase 1 complete\\\" to all teammates",
    "Check the lead inbox for any messages",
    "Create 3 tasks on the board, then spawn alice and bob. Watch them auto-claim.",
    "Spawn a coder teammate and let it find work from the task board itself",
    "Create tasks with dependencies. Watch teammates respect the blocked order.",
];

/// A page with captures, and the script that writes them.
struct Page {
    docs: &'static str,
    script: &'static str,
}

const TEAMS: Page = Page { docs: "docs/teams.md", script: "scripts/capture-teams" };
const EXAMPLES: Page = Page { docs: "docs/prompts.md", script: "scripts/capture-prompts" };

const END: &str = "<!-- end of captures -->";

/// Teammates race, so one try may look different by chance; all of them only if something has changed.
const TRIES: usize = 4;

/// What a chapter prints, without what differs from run to run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shape {
    /// What every run prints.
    firm: BTreeSet<String>,
    /// What is told in between, if there is an in between.
    passing: BTreeSet<String>,
}

#[test]
fn the_documentation_shows_every_prompt_of_the_mission_with_what_it_printed() {
    let shown = TEAMS.captures();
    for prompt in PROMPTS {
        let asked =
            shown.lines().filter(|line| line.starts_with("$ convoke ") && line.contains(prompt)).count();
        assert_eq!(asked, 1, "{prompt}: run scripts/capture-teams");
    }
    for (title, shape) in chapters(&shown) {
        assert!(
            shape.firm.iter().any(|line| line.contains("Offline model")),
            "{title}: run scripts/capture-teams"
        );
    }
}

#[test]
fn the_nine_examples_are_shown_in_a_fresh_directory_and_beside_a_team() {
    let shown = EXAMPLES.captures();
    for prompt in NINE {
        let asked =
            shown.lines().filter(|line| line.starts_with("$ convoke --offline ") && line.contains(prompt));
        assert_eq!(asked.count(), 2, "{prompt}: run scripts/capture-prompts");
    }
    for (title, shape) in chapters(&shown) {
        assert!(
            shape.firm.iter().any(|line| line.contains("Offline model")),
            "{title}: run scripts/capture-prompts"
        );
    }
}

#[tokio::test]
async fn what_the_documentation_shows_is_what_is_printed_now() {
    TEAMS.is_what_is_printed_now().await;
}

#[tokio::test]
async fn what_is_shown_of_the_nine_examples_is_what_is_printed_now() {
    EXAMPLES.is_what_is_printed_now().await;
}

impl Page {
    async fn is_what_is_printed_now(&self) {
        let Self { docs, script } = self;
        let shown = chapters(&self.captures());
        let known = known(&shown);
        let mut wrong = BTreeMap::new();
        for _ in 0..TRIES {
            let printed = chapters(&self.printed_now().await);
            let titles: Vec<&String> = shown.keys().collect();
            let now: Vec<&String> = printed.keys().collect();
            assert_eq!(titles, now, "run {script}");
            let differs = |title: &String| {
                shown[title].difference(&printed[title], &known).map(|how| (title.clone(), how))
            };
            wrong = match wrong.is_empty() {
                true => titles.into_iter().filter_map(differs).collect(),
                // What was as shown once is as shown.
                false => wrong.keys().filter_map(differs).collect(),
            };
            if wrong.is_empty() {
                return;
            }
        }
        panic!("{docs} is not what is printed now: run {script}\n{wrong:#?}");
    }

    fn captures(&self) -> String {
        let docs = std::fs::read_to_string(root().join(self.docs)).unwrap();
        let (_, rest) = docs.split_once(&format!("<!-- captures: written by {} -->\n", self.script)).unwrap();
        rest.split_once(END).unwrap().0.to_owned()
    }

    async fn printed_now(&self) -> String {
        let mut script = Command::new(root().join(self.script));
        script
            .arg("--print")
            .env("CONVOKE", env!("CARGO_BIN_EXE_convoke"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = timeout(Duration::from_secs(400), script.output()).await.unwrap().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn who_did_it_and_how_letters_were_batched_makes_no_difference_and_another_word_does() {
    let shape = |text: &str| chapters(&format!("### A\n\n```console\n{text}\n```\n")).remove("A").unwrap();
    let check = |a: &str, b: &str, same: bool| {
        let known =
            ["Mail came in:", "- NAME has done “”.", "- NAME has read it: “”"].map(str::to_owned).into();
        assert_eq!(shape(a).difference(&shape(b), &known).is_none(), same, "{a}\n{b}");
    };
    check("[team] alice claims \"List\"", "[team] bob claims \"Count\"", true);
    check("- alice, “List” (t_aaaa): There are 3.", "- bob, “List” (t_bbbb): There are 3.", true);
    check("- alice, “List” (t_aaaa): There are 3.", "- alice, “List” (t_aaaa): There are 4.", false);
    check("Mail came in:\n- alice has done “A”.\n\nEnded: 1 of 3 tasks.\n\nDone.", "Done.", true);
    check("Done.", "Mail came in:\n- alice has done “A”.\n\nDone.", true);
    check("Done.", "Mail came in:\n- alice did “A”.\n\nDone.", false);
    check("Done.", "Mail came in:\n- alice has read it.\n\nDone.", true);
    check("Done.", "Mail came in:\n- alice has read.\n\nDone.", false);
    check("lead  lead  idle  0   6  93.3k  $0.00", "lead   lead  idle  0   7  9.1k  $0.00", true);
    check("lead  lead  idle  0   6  93.3k  $0.00", "lead   lead  stopped  0   7  9.1k  $0.00", false);
}

impl Shape {
    /// How what is printed now differs from this. What is told in between is whatever letters came in one by
    /// one; it has to be known.
    fn difference(&self, now: &Self, known: &BTreeSet<String>) -> Option<String> {
        let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect::<Vec<_>>();
        let gone = only(&self.firm, &now.firm);
        let new = only(&now.firm, &self.firm);
        let mut between = only(&now.passing, known);
        // What is told whole at the end (`: “…”`) is told in short in between.
        between.retain(|line| {
            let whole = format!("{}: ", line.trim_end_matches('.'));
            !known.iter().any(|known| known.starts_with(&whole))
        });
        let same = gone.is_empty() && new.is_empty() && between.is_empty();
        let told = format!(
            "not printed any more: {gone:#?}; printed and not shown: {new:#?}; in between: {between:#?}"
        );
        (!same).then_some(told)
    }
}

/// Every line that is shown somewhere.
fn known(shown: &BTreeMap<String, Shape>) -> BTreeSet<String> {
    shown.values().flat_map(|shape| shape.firm.iter().chain(&shape.passing)).cloned().collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The shapes of the chapters, by their titles.
fn chapters(markdown: &str) -> BTreeMap<String, Shape> {
    let mut chapters: BTreeMap<String, Shape> = BTreeMap::new();
    let mut title = String::new();
    let mut mail = false;
    for line in markdown.lines() {
        if let Some(name) = line.strip_prefix("### ") {
            name.clone_into(&mut title);
        }
        let text = line.trim();
        mail = (mail || text == "Mail came in:") && !text.is_empty();
        if text.is_empty() || text == "…" || text.starts_with("###") || text.starts_with("```") {
            continue;
        }
        let goes_on =
            ["Ended: ", "I go on when", "What comes of it"].iter().any(|sign| text.starts_with(sign));
        let shape = chapters.entry(title.clone()).or_default();
        if mail || goes_on { &mut shape.passing } else { &mut shape.firm }.insert(masked(text));
    }
    chapters
}

/// A line without ids, counters and names, and without what is quoted in it.
fn masked(line: &str) -> String {
    let asked = line.starts_with("$ ");
    // A teammate agrees to stop in words of its own or by stopping, whatever it is doing when it is asked.
    if ["agreed to stop", "agrees to stop", "has stopped: ", "reports to the lead"]
        .iter()
        .any(|sign| line.contains(sign))
    {
        return format!("{}somebody reports or stops", if line.starts_with('[') { "[team] " } else { "- " });
    }
    let counted = line.contains("$0.00") || line.starts_with("Ended: ");
    let mut out = String::new();
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '“' | '”' | '"' if !asked => {
                quoted = c == '“' || c == '"' && !quoted;
                out.push(c);
            }
            _ if quoted => {}
            _ => out.push(c),
        }
    }
    let word = |word: &str| {
        let core = word.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let id = ["s_", "t_", "a_", "m_"].iter().find(|prefix| core.starts_with(**prefix));
        let name = ["alice", "bob", "charlie", "carol", "dave", "lead"].contains(&core) && !asked;
        match id {
            Some(prefix) => word.replace(core, &format!("{prefix}…")),
            None if name => word.replace(core, "NAME"),
            None if counted && core.starts_with(|c: char| c.is_ascii_digit()) && !word.starts_with('$') => {
                "N".to_owned()
            }
            None => word.to_owned(),
        }
    };
    out.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}
