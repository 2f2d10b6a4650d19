//! The completion scripts in the shells they are for: what a shell would offer is asked of the shell itself.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::{Finished, TestHome, ran};
use crate::team_cli::TeamPlace;

/// A place with the script of a shell in a file of this name.
fn with_script(shell: &str, file: &str) -> TestHome {
    let place = TestHome::new();
    write_script(&place, shell, file);
    place
}

fn write_script(place: &TestHome, shell: &str, file: &str) {
    let script = place.convoke(&["completions", shell]);
    assert_eq!((script.code, script.err.as_str()), (0, ""));
    place.write(&place.path("work").join(file), &script.out);
}

/// Runs a shell in the place, with nothing of the caller's environment but the path to programs.
fn shell(place: &TestHome, program: &str, args: &[&str]) -> Finished {
    let mut command = Command::new(program);
    let plain = place.command(&[]);
    command.args(args).current_dir(place.path("work")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    // The scripts ask the binary itself.
    let own = Path::new(env!("CARGO_BIN_EXE_convoke")).parent().unwrap();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(own.to_owned()).chain(std::env::split_paths(&paths));
    command.env("PATH", std::env::join_paths(all).unwrap());
    ran(&mut command)
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let place = with_script("bash", "convoke.bash");
    let check = |words: &[&str], expected: &str| {
        // What bash does when Tab is pressed behind these words.
        let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let last = words.len() - 1;
        let before = words.len() - 2;
        let line = format!(
            "source ./convoke.bash; complete -p convoke >/dev/null || exit 9; COMP_WORDS=({list}); \
             COMP_CWORD={last}; _convoke convoke \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{before}]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let got = shell(&place, "bash", &["--norc", "-c", &line]);
        assert_eq!((got.code, got.out.trim(), got.err.as_str()), (0, expected, ""), "{words:?}");
    };
    check(&["convoke", "doc"], "doctor");
    check(&["convoke", "ses"], "session sessions");
    check(&["convoke", "sessions", "un"], "undo");
    check(&["convoke", "runs", "un"], "undo");
    check(&["convoke", "session", "--fo"], "--fork");
    check(&["convoke", "run", "--sandbox", ""], "read-only workspace off");
    check(&["convoke", "--mode", "of"], "off");
    check(&["convoke", "--output", "jsonl"], "jsonl");
}

#[test]
fn fish_completes_commands_flags_and_values() {
    let place = with_script("fish", "convoke.fish");
    let check = |line: &str, expected: &[&str]| {
        let asked = format!("source convoke.fish; complete -C '{line}'");
        let got = shell(&place, "fish", &["--no-config", "-c", &asked]);
        assert_eq!((got.code, got.err.as_str()), (0, ""), "{line}");
        let mut names: Vec<&str> = got.out.lines().filter_map(|line| line.split('\t').next()).collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{line}");
    };
    check("convoke doct", &["doctor"]);
    check("convoke sess", &["session", "sessions"]);
    check("convoke sessions un", &["undo"]);
    check("convoke runs un", &["undo"]);
    check("convoke session --for", &["--fork"]);
    check("convoke run --sandbox ", &["off", "read-only", "workspace"]);
    check("convoke run --mode o", &["off", "on"]);
}

/// zsh completes at a prompt alone, so another zsh types there. It waits for what it sees.
const TYPING: &str = r#"
    zmodload zsh/zpty || exit 9
    zpty shell zsh -f -i
    zpty -w shell "PS1='ready> '; fpath=($PWD \$fpath); autoload -Uz compinit; compinit -D -u; bindkey '^I' complete-word; print set''up"
    zpty -r -m shell seen '*setup*ready> *' || exit 8
    while (( $# )); do
        zpty -w -n shell $'\x15'"$1"$'\t'
        zpty -r -m shell seen "*$2*" || exit 7
        print -r -- "$2"
        shift 2
    done
    zpty -d shell
"#;

#[test]
fn zsh_completes_commands_flags_and_values() {
    let place = with_script("zsh", "_convoke");
    typed_in_zsh(
        &place,
        &[
            ("convoke doct", "convoke doctor"),
            ("convoke sess", "convoke session"),
            ("convoke sessions und", "convoke sessions undo"),
            ("convoke runs und", "convoke runs undo"),
            ("convoke session --for", "convoke session --fork"),
            ("convoke run --sandbox rea", "convoke run --sandbox read-only"),
            ("convoke --mode of", "convoke --mode off"),
        ],
    );
}

/// Types this in zsh, each with a Tab, and waits for what it shows.
fn typed_in_zsh(place: &TestHome, typed: &[(&str, &str)]) {
    let mut args = vec!["60", "zsh", "-f", "-c", TYPING, "typing"];
    args.extend(typed.iter().flat_map(|(keys, shown)| [*keys, *shown]));
    let got = shell(place, "timeout", &args);
    let expected: String = typed.iter().map(|(_, shown)| format!("{shown}\n")).collect();
    assert_eq!((got.code, got.out), (0, expected), "{}", got.err);
}

/// What bash offers behind these words, by the function that it has for the command.
fn offered_by_bash(place: &TestHome, words: &[&str]) -> Finished {
    let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
    let last = words.len() - 1;
    let before = words.len() - 2;
    let line = format!(
        "source ./convoke.bash; set -- $(complete -p convoke); while [ $1 != -F ]; do shift; done; \
         COMP_WORDS=({list}); COMP_CWORD={last}; $2 convoke \"${{COMP_WORDS[{last}]}}\" \
         \"${{COMP_WORDS[{before}]}}\"; echo \"${{COMPREPLY[@]}}\""
    );
    shell(place, "bash", &["--norc", "-c", &line])
}

/// A session of a team with alice and bob, a saved workflow, and the scripts of the three shells.
async fn furnished() -> (TeamPlace, String) {
    let team = TeamPlace::new().await;
    let place = &team.place;
    for (shell, file) in [("bash", "convoke.bash"), ("zsh", "_convoke"), ("fish", "convoke.fish")] {
        write_script(place, shell, file);
    }
    place.write(&place.path("work/.convoke/workflows/polish.js"), "export const meta = { name: 'polish' }\n");
    let listed: serde_json::Value =
        serde_json::from_str(&place.convoke(&["runs", "list", "-o", "json"]).out).unwrap();
    let run = listed["runs"][0]["run"].as_str().unwrap().to_owned();
    (team, run)
}

#[tokio::test]
async fn bash_fish_and_zsh_complete_runs_workflows_models_and_teammates() {
    let (team, run) = furnished().await;
    let place = &team.place;
    let half = &run[..6];
    let cases: &[(&str, &str, &str)] = &[
        ("convoke sessions show", half, &run),
        ("convoke resume", "las", "last"),
        ("convoke workflow run", "pol", "polish"),
        ("convoke workflow plan", "rev", "review"),
        ("convoke run --model", "fab", "fable"),
        ("convoke --worker-model", "claude-haiku-4-5-2", "claude-haiku-4-5-20251001"),
        ("convoke team show", "al", "alice"),
        ("convoke mail send", "bo", "bob"),
    ];
    for (before, typed, whole) in cases {
        let words: Vec<&str> = before.split(' ').chain([*typed]).collect();
        let got = offered_by_bash(place, &words);
        let first = got.out.split_whitespace().next();
        assert_eq!(
            (got.code, first, got.err.as_str()),
            (0, Some(*whole), ""),
            "bash: {before} {typed}: {}",
            got.out
        );
        let asked = format!("source convoke.fish; complete -C '{before} {typed}'");
        let got = shell(place, "fish", &["--no-config", "-c", &asked]);
        let found = got.out.lines().any(|line| line.split('\t').next() == Some(*whole));
        assert!(
            got.code == 0 && got.err.is_empty() && found,
            "fish: {before} {typed}: {}{}",
            got.out,
            got.err
        );
    }
    let typed: Vec<(String, String)> = cases
        .iter()
        .map(|(before, typed, whole)| (format!("{before} {typed}"), format!("{before} {whole}")))
        .collect();
    let typed: Vec<(&str, &str)> =
        typed.iter().map(|(keys, shown)| (keys.as_str(), shown.as_str())).collect();
    typed_in_zsh(place, &typed);
    let all = offered_by_bash(place, &["convoke", "runs", "show", ""]);
    assert_eq!(all.out.split_whitespace().collect::<Vec<_>>(), ["last", &run]);
}

#[tokio::test]
async fn completion_writes_nothing_waits_for_nothing_and_complains_of_nothing() {
    let place = TestHome::new();
    write_script(&place, "bash", "convoke.bash");
    let ask = |words: &str| {
        let since = std::time::Instant::now();
        let got = offered_by_bash(&place, &words.split(' ').collect::<Vec<_>>());
        assert_eq!((got.code, got.err.as_str()), (0, ""), "{words}");
        assert!(since.elapsed() < Duration::from_secs(15), "{words} took {:?}", since.elapsed());
        assert!(
            !got.out.contains("last") && !got.out.contains("claude") && !got.out.contains("alice"),
            "{}",
            got.out
        );
    };
    ask("convoke sessions show ");
    assert!(!place.journal_file().exists(), "no journal is made for a look");
    // A server that takes connections and says nothing, one that is not there, and a file that is no journal.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("postgres://nobody@{}/x", silent.local_addr().unwrap());
    for journal in [silent.as_str(), "postgres://nobody@127.0.0.1:9/x", "/etc/hostname"] {
        ask(&format!("convoke --journal {journal} runs show "));
        ask(&format!("convoke --journal {journal} team show "));
    }
    place.write(&place.user_config(), "this is no configuration");
    ask("convoke run --model ");

    let (team, run) = furnished().await;
    let file = team.place.journal_file();
    team.writer.journal.clone().close().await.unwrap();
    let bytes = std::fs::read(&file).unwrap();
    assert!(offered_by_bash(&team.place, &["convoke", "resume", "s_"]).out.contains(&run));
    assert_eq!(std::fs::read(&file).unwrap(), bytes, "looking changes no byte");
}
