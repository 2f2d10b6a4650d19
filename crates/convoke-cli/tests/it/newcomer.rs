//! What a person meets on the first day: a first line that leaves nothing out that is open, rules that could
//! never match, refusals where there is no person to ask, and places that cannot be written.

use convoke_sim::{Reply, Script, calls, says};
use serde_json::json;

use crate::pty::Terminal;
use crate::stage::{Stage, to_its_end};
use crate::support::TestHome;
use crate::team::{Team, finding, workflow};

const ASK_TOUCH: &str = "[[rules]]\ncommand = \"touch\"\ndecision = \"ask\"\n";

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

fn touching() -> Script {
    Script::new().conversation("*", [bash("touch one"), bash("touch two"), says("Done.")])
}

/// Adds to the user's configuration.
fn configure(stage: &Stage, text: &str) {
    let path = stage.home().join(".config/convoke/config.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{before}\n{text}")).unwrap();
}

#[tokio::test]
async fn the_first_line_on_a_terminal_says_that_the_network_is_open_and_a_refused_command_is_shown() {
    let check = async |columns: u32, flag: &str, told: &str| {
        let stage = Stage::with(touching()).await;
        configure(&stage, "[[rules]]\ncommand = \"touch\"\ndecision = \"deny\"\n");
        let shown =
            Terminal::sized(&stage, columns, &format!("{flag} 'make two files'")).end().await.exits(0).text;
        let first = shown.lines().next().unwrap();
        assert!(first.contains("workspace") && first.contains(told), "{columns}: {first}");
        assert!(first.trim_end().chars().count() <= columns as usize, "{columns}: {first}");
        assert!(shown.contains("$ touch one") && shown.contains("refused · "), "{shown}");
        assert!(!shown.contains("(a call)"), "{shown}");
    };
    check(40, "--network", "network open").await;
    check(80, "--network", "network open").await;
    check(120, "--network", "network open").await;
    check(80, "", "landlock+seccomp").await;
}

#[tokio::test]
async fn calls_that_were_refused_for_want_of_a_person_are_counted_at_the_end_with_what_would_help() {
    let check = async |flags: &[&str], code: i32, refused: Option<&str>| {
        let stage = Stage::with(touching()).await;
        configure(&stage, ASK_TOUCH);
        let seen = stage.run(&[flags, &["--output", "json", "make two files"]].concat()).await.exits(code);
        let said = "refused because no person could be asked: with --wait-for-answers";
        let told: Vec<String> =
            seen.json()["warnings"].as_array().unwrap().iter().map(ToString::to_string).collect();
        match refused {
            Some(number) => {
                let expected = format!("{number} {said}");
                assert_eq!(seen.stderr.matches(&expected).count(), 1, "{}", seen.stderr);
                assert!(seen.stderr.contains("--ask"), "{}", seen.stderr);
                assert!(told.iter().any(|warning| warning.contains(&expected)), "{told:?}");
            }
            None => assert!(!seen.stderr.contains(said), "{}", seen.stderr),
        }
    };
    check(&[], 0, Some("2 calls were")).await;
    check(&["--ask", "when-needed"], 0, Some("2 calls were")).await;
    check(&["--park"], 5, None).await;
}

#[tokio::test]
async fn refusals_of_agents_below_the_lead_are_counted_too() {
    let team = Team::new([workflow(&["high it is so"]), says("The synthesis.")]).workers(|claim| {
        vec![
            bash("ls"),
            bash("touch one"),
            calls("report_findings", json!({"summary": "looked", "findings": [finding(claim)]})),
        ]
    });
    let stage = team.stage().await;
    configure(&stage, ASK_TOUCH);
    let seen = stage.run(&["--verify", "off", "look at it"]).await;
    assert!(seen.stderr.contains("1 call was refused because no person could be asked"), "{}", seen.stderr);
}

#[tokio::test]
async fn a_run_that_has_nowhere_to_write_is_not_begun() {
    let stage = Stage::with(touching()).await;
    let file = stage.home().join("a-file");
    std::fs::write(&file, "").unwrap();
    let check = async |name: &str, value: &str, place: &str| {
        let mut command = stage.command(&["run", "make two files"]);
        command.env(name, value);
        let seen = to_its_end(command).await.exits(2);
        assert!(seen.stderr.contains(&format!("there is no place for {place}")), "{}", seen.stderr);
        assert!(
            seen.stderr.contains("nothing was started or spent") && !seen.stderr.contains("resume"),
            "{}",
            seen.stderr
        );
    };
    check("XDG_STATE_HOME", &file.to_string_lossy(), "the state directory").await;
    check("ORCH_JOURNAL", &file.join("j.db").to_string_lossy(), "the journal").await;
    check("ORCH_JOURNAL", "/proc/j.db", "the journal").await;
    assert_eq!(stage.sim().requests().len(), 0);
}

#[test]
fn a_rule_that_could_never_match_is_told_with_file_and_line_and_what_to_write() {
    let check = |members: &str, expected: &str| {
        let place = TestHome::new();
        place.write(&place.user_config(), &format!("[[rules]]\ndecision = \"deny\"\n{members}\n"));
        let got = place.convoke(&["config", "show"]);
        assert_eq!(got.code, 2, "{members}: {}", got.err);
        let said = place.normal(&got.err);
        let begin = "convoke: ROOT/home/.config/convoke/config.toml:3: this rule never matches: ";
        assert!(said.starts_with(begin) && said.contains(expected), "{members}: {said}");
    };
    check("command = \"git *\"", "write command = \"git\"");
    check("command = \"a && b\"", "one rule for each program");
    check("command = \"/bin/rm\"", "bare name");
    check("path = \"../x\"", "outside the directory");
    check("path = \"/etc/**\"", "relative to the directory");
    check("path = \"src/[ab].rs\"", "no sets");
}

#[test]
fn a_flag_is_no_host() {
    let place = TestHome::new();
    let got = place.convoke(&["--offline", "--network-allow=-x", "run", "look around"]);
    assert!(got.code == 2 && got.err.contains("-x is no host"), "{}: {}", got.code, got.err);
}

#[test]
fn the_doctor_does_not_call_a_journal_in_the_workspace_good() {
    let place = TestHome::new();
    let check = |journal: &str, expected: &str| {
        let got = place.convoke(&[
            "--journal",
            &place.path(journal).to_string_lossy(),
            "doctor",
            "--output",
            "json",
        ]);
        let object: serde_json::Value = serde_json::from_str(&got.out).unwrap();
        let found =
            object["checks"].as_array().unwrap().iter().find(|check| check["check"] == "journal").unwrap();
        assert_eq!(found["level"], expected, "{found}");
    };
    check("work/journal.db", "fail");
    check("elsewhere/journal.db", "ok");
}
