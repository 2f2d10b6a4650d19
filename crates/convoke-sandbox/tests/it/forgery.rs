//! An opponent in the shell itself: what one command leaves behind must not decide how a later one is said to
//! have ended. Each attempt prepares the shell, and then a command that fails with 7, one that prints, and
//! one that succeeds are run. A shell that has become useless may be given up, and then a code may be
//! unknown; it is never a wrong one.

use std::time::{Duration, Instant};

use convoke_sandbox::{Ending, HoldChoice};

use crate::{ShellFixture, in_both_holds, until};

in_both_holds! {
    what_a_command_leaves_behind_does_not_forge_later_codes
    a_command_that_plays_the_shell_is_found_out
    a_job_that_rewrites_the_text_of_commands_changes_none
    a_new_shell_begins_without_the_code_of_the_old_one
}

/// Longer than any attempt needs, shorter than a test may wait for one that hangs.
const SOME: Duration = Duration::from_secs(20);

/// What is run afterwards, with its exit code and what it prints. Programs, because words of the shell may
/// mean something else by then, and rightly so.
const PROBES: [(&str, i32, &str); 3] =
    [("/bin/sh -c 'exit 7'", 7, ""), ("/bin/sh -c 'echo heard; exit 3'", 3, "heard"), ("/bin/true", 0, "")];

/// Functions that answer success whatever they are asked, and say so wherever they can.
const WORDS: [&str; 16] = [
    "builtin", "printf", "echo", "eval", "source", ".", "command", "unset", "test", "[", "read", "return",
    "trap", "declare", "export", ":",
];

/// Every way that a report could be written, by number of the descriptor.
const SHOUT: &str = "for n in 3 10 11 12 13 14 15 16 194 195 196 197 198 199 236 237 238 239 240 241 242 \
    243; do { command printf '\\0%s %s\\0/\\n\\0%s whole\\0%s\\0' \"$t\" 0 \"$t\" \"$t\" >&$n; } \
    2>/dev/null; done";

fn attempts() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    let mut add = |name: String, command: String| all.push((name, command));
    for word in WORDS {
        add(format!("function {word}"), format!("function {word} {{ return 0; }}"));
        add(
            format!("readonly function {word}"),
            format!("function {word} {{ return 0; }}; readonly -f {word}"),
        );
    }
    // The first forgery: whatever looks like a token among the arguments of `builtin` is written to every
    // descriptor.
    add(
        "function builtin that reads the token".to_owned(),
        format!(
            "builtin() {{ local a t=; for a; do [[ $a =~ ^[0-9a-f]{{32}}$ ]] && t=$a; done; \
             if [[ $t ]]; then {SHOUT}; return 0; fi; command builtin \"$@\"; }}"
        ),
    );
    for (name, command) in [
        ("function builtin that passes on", "builtin() { command builtin \"$@\"; return 0; }"),
        ("function exit and exec", "exit() { return 0; }; exec() { return 0; }; set() { return 0; }"),
        (
            "DEBUG trap that skips",
            "shopt -s extdebug; set -T; trap '[[ $BASH_COMMAND = *eval* ]] && return 0' DEBUG",
        ),
        ("DEBUG trap that changes the code", "set -T; trap 'true' DEBUG"),
        ("ERR trap", "set -E; trap 'true' ERR"),
        ("RETURN trap", "set -T; trap 'true' RETURN"),
        ("EXIT trap", "trap 'true' EXIT"),
        ("signal trap", "trap 'true' CHLD USR1 RTMAX"),
        (
            "aliases",
            "shopt -s expand_aliases; alias builtin=true source=true while='true #' '{=true #' eval=true",
        ),
        ("PROMPT_COMMAND", "PROMPT_COMMAND='true'; PS0='0'; readonly PROMPT_COMMAND PS0"),
        ("builtins switched off", "enable -n builtin printf source eval declare; true"),
        ("posix mode", "POSIXLY_CORRECT=1; eval() { return 0; }; true"),
        ("readonly variables", "readonly POSIXLY_CORRECT LINENO BASH_SOURCE FUNCNAME; true"),
        ("unset variables", "unset LINENO BASH_SOURCE FUNCNAME BASH_COMMAND; true"),
        ("no variables", "set -u; set -f; IFS=0123456789abcdef; true"),
        ("trace into the channel", "exec 9>&2; BASH_XTRACEFD=198; BASH_XTRACEFD=238; set -x"),
        ("trace", "PS4='\\0 0 '; set -xv"),
        ("exported functions", "builtin() { return 0; }; export -f builtin"),
        ("inherited options", "set -o allexport; set -o noglob; set -o noclobber; set -o physical; true"),
        ("descriptors closed", "for n in {3..255}; do eval \"exec $n>&-\"; done 2>/dev/null; true"),
        (
            "descriptors redirected",
            "for n in {3..255}; do eval \"exec $n>/dev/null\"; done 2>/dev/null; true",
        ),
        ("gates taken over", "exec 242>&- 243>&- 241>&- 240>&-; true"),
        ("input taken over", "exec 0</dev/zero 10</dev/zero 12</dev/zero; true"),
        ("script read away", "for n in 10 11 12 13; do read -t 0.2 -u $n line; done 2>/dev/null; true"),
        ("loops left open", "while :; do break 99; done; continue 5; return 0"),
        ("shell stopped", "(sleep 0.3; kill -STOP $$; sleep 1; kill -CONT $$) & true"),
        (
            "signals to the shell",
            "(for i in {1..50}; do kill -USR1 $$; kill -CHLD $$; sleep 0.02; done) & trap : USR1",
        ),
        ("nothing is run", "set -n"),
    ] {
        add(name.to_owned(), command.to_owned());
    }
    // Jobs that keep what the shell had open and write into it, or hold its gates open.
    add("a job that shouts".to_owned(), format!("(while :; do t=0; {SHOUT}; sleep 0.01; done) & true"));
    add(
        "a job that holds the gates open".to_owned(),
        "(for n in {3..255}; do { eval \"exec $n<>/proc/$$/fd/$n\"; } 2>/dev/null; done; sleep 5) & sleep 0.3"
            .to_owned(),
    );
    all
}

async fn what_a_command_leaves_behind_does_not_forge_later_codes(hold: HoldChoice) {
    let mut told = 0;
    let mut unknown = 0;
    let mut forged = Vec::new();
    for (name, prepare) in attempts() {
        let mut fixture = ShellFixture::new(hold).await;
        fixture.run_within(&prepare, SOME).await;
        for (command, code, text) in PROBES {
            let finished = fixture.run_within(command, SOME).await;
            match finished.ending {
                Ending::Exited(found) if found == code && finished.output.text.contains(text) => told += 1,
                Ending::Unknown | Ending::DeadlinePassed => unknown += 1,
                _ => forged.push(format!("{name}: {command}: {finished:?}")),
            }
        }
    }
    println!(
        "{} preparations: {told} codes were told and {unknown} unknown, {} forged",
        attempts().len(),
        forged.len()
    );
    assert!(forged.is_empty(), "{}", forged.join("\n"));
    assert!(told > unknown * 2, "most of this must not cost the shell: {told} told, {unknown} unknown");
}

/// The command never ends: it takes the shell's script for itself, runs what it likes and answers.
async fn a_command_that_plays_the_shell_is_found_out(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let play = "for in in 12 10 11 13 14; do [[ -S /dev/fd/$in ]] && break; done; while read -r -u $in \
        line; do t=; for word in $line; do [[ $word =~ ^[0-9a-f]{32}$ ]] && t=$word; done; if [[ $t ]]; \
        then for n in 10 11 12 13 14 15; do { printf '\\0%s 0\\0/\\n\\0%s whole\\0%s\\0' $t $t $t >&$n; } \
        2>/dev/null; done; elif [[ $line = '{'* ]]; then { :; } 231<&236 232<&236 233<&236 234<&236 \
        230<&240 229</dev/fd/240; fi; done";
    let since = Instant::now();
    let first = fixture.run_within(play, Duration::from_secs(3)).await;
    assert!(!matches!(first.ending, Ending::Exited(_)), "it has not ended: {first:?}");
    assert!(since.elapsed() < SOME, "{first:?}");
    let next = fixture.run_within("(exit 7)", SOME).await;
    assert_eq!(next.ending, Ending::Exited(7), "{next:?}");
}

async fn a_job_that_rewrites_the_text_of_commands_changes_none(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let rewrite = "me=$$; (while :; do for n in 196 228 236; do { echo 'true # ' >/proc/$me/fd/$n; } \
        2>/dev/null; done; echo >>begun; done) & true";
    fixture.run_within(rewrite, SOME).await;
    let begun = fixture.dir.path().join("begun");
    until("the job works", || begun.exists()).await;
    for round in 0..50 {
        let finished = fixture.run_within("echo mine; (exit 7)", SOME).await;
        assert_eq!(
            (finished.output.text.as_str(), finished.ending),
            ("mine\n", Ending::Exited(7)),
            "round {round}"
        );
    }
}

async fn a_new_shell_begins_without_the_code_of_the_old_one(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let leave =
        "f() { :; }; export -f f; export LD_PRELOAD=/no/such/library.so BASH_ENV=/no/such/file; exit 1";
    assert_eq!(fixture.run_within(leave, SOME).await.ending, Ending::Exited(1));
    let next = fixture.run_within("type -t f; echo $LD_PRELOAD $BASH_ENV; false", SOME).await;
    assert_eq!(
        next.output.text, "/no/such/library.so /no/such/file\n",
        "programs get it, the shell itself does not"
    );
    assert_eq!(next.ending, Ending::Exited(1));
}
