//! The completion scripts in the shells they are for: what a shell would offer is asked of the shell itself.

use std::process::Command;

use crate::support::{Finished, Place, ran};

/// A place with the script of a shell in a file of this name.
fn with_script(shell: &str, file: &str) -> Place {
    let place = Place::new();
    let script = place.convoke(&["completions", shell]);
    assert_eq!((script.code, script.err.as_str()), (0, ""));
    place.write(&place.path("work").join(file), &script.out);
    place
}

/// Runs a shell in the place, with nothing of the caller's environment but the path to programs.
fn shell(place: &Place, program: &str, args: &[&str]) -> Finished {
    let mut command = Command::new(program);
    let plain = place.command(&[]);
    command.args(args).current_dir(place.path("work")).env_clear();
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("TERM", "xterm");
    ran(&mut command)
}

#[test]
fn bash_completes_commands_flags_and_values() {
    let place = with_script("bash", "convoke.bash");
    let check = |words: &[&str], expected: &str| {
        // What bash does when somebody presses Tab behind these words.
        let list = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let (last, before) = (words.len() - 1, words.len() - 2);
        let line = format!(
            "source ./convoke.bash; complete -p convoke >/dev/null || exit 9; COMP_WORDS=({list}); COMP_CWORD={last}; \
             _convoke convoke \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{before}]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let got = shell(&place, "bash", &["--norc", "-c", &line]);
        assert_eq!((got.code, got.out.trim(), got.err.as_str()), (0, expected, ""), "{words:?}");
    };
    check(&["convoke", "doc"], "doctor");
    check(&["convoke", "ses"], "session");
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
    check("convoke sess", &["session"]);
    check("convoke runs un", &["undo"]);
    check("convoke session --for", &["--fork"]);
    check("convoke run --sandbox ", &["off", "read-only", "workspace"]);
    check("convoke run --mode o", &["off", "on"]);
}

#[test]
fn zsh_completes_commands_flags_and_values() {
    // zsh completes at a prompt alone, so another zsh types there. It waits for what it sees.
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
    let place = with_script("zsh", "_convoke");
    let check = |typed: &[(&str, &str)]| {
        let mut args = vec!["60", "zsh", "-f", "-c", TYPING, "typing"];
        args.extend(typed.iter().flat_map(|(keys, shown)| [*keys, *shown]));
        let got = shell(&place, "timeout", &args);
        let expected: String = typed.iter().map(|(_, shown)| format!("{shown}\n")).collect();
        assert_eq!((got.code, got.out), (0, expected), "{}", got.err);
    };
    check(&[
        ("convoke doct", "convoke doctor"),
        ("convoke sess", "convoke session"),
        ("convoke runs und", "convoke runs undo"),
        ("convoke session --for", "convoke session --fork"),
        ("convoke run --sandbox rea", "convoke run --sandbox read-only"),
        ("convoke --mode of", "convoke --mode off"),
    ]);
}
