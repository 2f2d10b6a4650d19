//! What lasts from one command to the next, and what does not end the session.

use std::collections::{BTreeMap, BTreeSet};

use convoke_sandbox::{Ending, Error, HoldChoice, Shell, ShellState};
use tempfile::TempDir;

use crate::{LONG, ShellFixture, config, in_both_holds, path, sleepers, unique_seconds};

in_both_holds! {
    directory_variables_and_functions_last
    background_jobs_last
    a_signal_while_the_shell_is_let_go_on_keeps_no_command_from_its_end
    exit_codes_are_bashs
    what_ends_the_shell_keeps_directory_and_variables
    settings_of_the_shell_do_not_break_it
    closed_or_redirected_output_is_whole_again_for_the_next_command
    commands_that_read_input_get_none
    odd_syntax_is_just_a_failed_command
}

async fn directory_variables_and_functions_last(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    fixture.check(
        "mkdir -p sub/dir; cd sub/dir; plain=1; export OUT='a b'; declare -A map=([k]=v); f() { echo f$1; }",
        0,
        "",
    )
    .await;
    let here = path(&fixture.dir).join("sub/dir");
    fixture
        .check("pwd; echo $plain $OUT ${map[k]}; f 2", 0, &format!("{}\n1 a b v\nf2\n", here.display()))
        .await;
    let state = fixture.shell.state();
    assert_eq!(state.cwd, here);
    assert_eq!(state.set.get("OUT").map(String::as_str), Some("a b"));
    assert!(!state.set.contains_key("plain"));
    fixture.check("set -- one two; shopt -s nullglob; alias x=y", 0, "").await;
    fixture.check("echo $2 nothing*here", 0, "two\n").await;
}

async fn background_jobs_last(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    fixture.check(&format!("sleep {seconds} & first=$!"), 0, "").await;
    fixture.check("[ $! = $first ] && kill -0 $! && jobs -r | wc -l", 0, "1\n").await;
    fixture.check("kill %1; wait $first", 143, "").await;
    assert_eq!(sleepers(&seconds), 0);
    fixture.check("(exit 7) & wait $!", 7, "").await;
}

async fn a_signal_while_the_shell_is_let_go_on_keeps_no_command_from_its_end(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    // The mark shows when the shell is held; a stop is a signal that lasts longer than the look at the shell.
    // In most rounds it comes in that moment, behind this command or in front of the next.
    let job = "for ((i = 0; i < 9999; i++)); do [[ -e /proc/$$/fd/230 ]] && break; done; kill -STOP $$; \
        sleep 0.05; kill -CONT $$";
    for _ in 0..8 {
        fixture.check(&format!("({job}) & :"), 0, "").await;
        fixture.check("echo on", 0, "on\n").await;
        fixture.check("wait", 0, "").await;
    }
    // The end of a job is the signal that comes by itself. Bash may say then that it has no record of it.
    for turns in 0..60 {
        let kill = format!("kill $last; for ((i = 0; i < {turns} * 6; i++)); do :; done");
        for command in ["sleep 1000 & last=$!", &kill] {
            let finished = fixture.run(command).await;
            assert_eq!((finished.ending, finished.shell_replaced), (Ending::Exited(0), None), "{command}");
        }
    }
}

async fn exit_codes_are_bashs(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    for (command, code) in
        [("true", 0), ("false", 1), ("(exit 42)", 42), ("", 0), ("# nothing", 0), ("return 9", 9)]
    {
        fixture.check(command, code, "").await;
    }
    assert_eq!(fixture.run("sh -c 'kill -9 $$'").await.ending, Ending::Exited(137));
    assert_eq!(fixture.run("no_such_program").await.ending, Ending::Exited(127));
    assert_eq!(fixture.run("-x").await.ending, Ending::Exited(127));
    fixture.check("false | true", 0, "").await;
    fixture.check("set -o pipefail; false | true", 1, "").await;
}

async fn what_ends_the_shell_keeps_directory_and_variables(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    fixture
        .check(&format!("mkdir deep; cd deep; export KEPT=$'x\\n\\'y\\'' ; gone=1; sleep {seconds} &"), 0, "")
        .await;
    let here = path(&fixture.dir).join("deep");
    let ends = [
        ("echo out; exit 3", 3, "out\n", "exit code 3"),
        ("exec true", 0, "", "exit code 0"),
        ("set -e; false; echo no", 1, "", "exit code 1"),
        ("kill -9 $$", 137, "", "signal 9"),
        ("kill $$; sleep 5", 143, "", "signal 15"),
        ("exec bash -c 'echo other; exit 5'", 5, "other\n", "exit code 5"),
    ];
    for (command, code, text, reason) in ends {
        let finished = fixture.run(command).await;
        assert_eq!(
            (&finished.ending, finished.output.text.as_str()),
            (&Ending::Exited(code), text),
            "{command}"
        );
        assert!(
            finished.shell_replaced.as_ref().is_some_and(|why| why.contains(reason)),
            "{command}: {finished:?}"
        );
        assert_eq!(finished.state.cwd, here, "{command}");
        fixture.check("pwd; echo \"$KEPT\" $gone", 0, &format!("{}\nx\n'y'\n", here.display())).await;
    }
    assert_eq!(sleepers(&seconds), 1, "jobs of an ended shell go on");
    // What the ending command itself changed is known as well, if bash could still say it.
    let finished = fixture.run("cd /; export LATE=1; exit 4").await;
    assert_eq!(finished.state.cwd.to_str(), Some("/"));
    fixture.check("pwd; echo $LATE", 0, "/\n1\n").await;
    let unbound = fixture.run("set -u; echo $no_such_variable; echo no").await;
    assert!(
        unbound.output.text.contains("unbound variable") && unbound.shell_replaced.is_some(),
        "{unbound:?}"
    );
    fixture.shell.stop().await.unwrap();
    assert_eq!(sleepers(&seconds), 0);
}

async fn settings_of_the_shell_do_not_break_it(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    fixture.check(
        "printf() { echo mine; }; read() { :; }; eval() { :; }; source() { :; }; trap() { :; }; pwd() { :; }",
        0,
        "",
    )
    .await;
    fixture.check("IFS=0123456789abcdef; set -u; set -f; set -C", 0, "").await;
    fixture.check("builtin trap 'echo bug' DEBUG; echo a", 0, "bug\na\n").await;
    fixture.check("builtin trap - DEBUG; builtin trap 'echo failed' ERR; (exit 3)", 3, "failed\n").await;
    fixture
        .check("builtin trap - ERR; builtin trap 'echo signal' USR1; kill -USR1 \"$$\"", 0, "signal\n")
        .await;
    assert!(fixture.run("set -xv").await.shell_replaced.is_none());
    assert_eq!(
        fixture.run("echo b").await.output.text.matches("builtin").count(),
        0,
        "our own script is not traced"
    );
    assert!(fixture.run("set +xv").await.shell_replaced.is_none());
    fixture.check("break; continue; builtin echo on", 0, &break_text()).await;
    fixture.check("shopt -s expand_aliases; alias builtin=false; alias source=false", 0, "").await;
    fixture.check("unset HOME PWD OLDPWD; PATH=; echo still", 0, "still\n").await;
    fixture.check("PATH=/usr/bin:/bin; set -o posix; ls / >/dev/null; echo \"$?\"", 0, "0\n").await;
}

/// What bash itself says about loop words outside of a loop.
fn break_text() -> String {
    let line = |word: &str| {
        format!("/dev/fd/236: line 1: {word}: only meaningful in a `for', `while', or `until' loop\n")
    };
    format!("{}{}on\n", line("break"), line("continue"))
}

async fn closed_or_redirected_output_is_whole_again_for_the_next_command(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    for command in
        ["exec >&- 2>&-", "exec >file", "exec 2>/dev/null", "exec </dev/zero", "exec 10>ten 11>eleven"]
    {
        fixture.check(command, 0, "").await;
        fixture.check("echo heard; echo also >&2; cat", 0, "heard\nalso\n").await;
    }
    fixture.check("exec 5>five; echo lasts >&5", 0, "").await;
    fixture
        .check("echo longer >&5; cat five; ls /proc/self/fd | tr '\\n' ' '", 0, "lasts\nlonger\n0 1 2 3 5 ")
        .await;
    // Descriptors that bash itself works with may be taken over; then there is a new shell rather than
    // silence.
    fixture.run("exec 12>a 13>b").await;
    let finished = fixture.run("echo heard").await;
    assert_eq!(finished.output.text, "heard\n");
}

async fn commands_that_read_input_get_none(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    fixture.check("cat; read -r line; echo \"read said $?\"; head -c 5; wc -c", 0, "read said 1\n0\n").await;
    fixture.check("cat <<'END'\na 'b'\nEND\ncat <<<here", 0, "a 'b'\nhere\n").await;
}

async fn odd_syntax_is_just_a_failed_command(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    for command in ["echo 'unterminated", "if true; then", "echo $(", "fi", "cat <<END\nno end $(", "a=("] {
        let finished = fixture.run(command).await;
        assert!(matches!(finished.ending, Ending::Exited(code) if code != 0), "{command}: {finished:?}");
        assert!(
            !finished.output.text.is_empty() && finished.shell_replaced.is_none(),
            "{command}: {finished:?}"
        );
        fixture.check("echo fine", 0, "fine\n").await;
    }
    fixture.check(
        "cat <<END\nno end",
        0,
        "/dev/fd/236: line 2: warning: here-document at line 1 delimited by end-of-file (wanted `END')\nno \
            end\n",
    )
    .await;
    let large = "x".repeat(300_000);
    fixture.check(&format!("cat > large <<'END'\n{large}\nEND\nwc -c < large"), 0, "300001\n").await;
    let command = fixture.command("echo a\0b", LONG);
    let refused = fixture.shell.run(command, std::future::pending()).await;
    assert!(matches!(refused, Err(Error::NulByte { .. })), "{refused:?}");
    fixture.check("echo fine", 0, "fine\n").await;
}

#[tokio::test]
async fn restored_state_is_where_the_next_shell_begins() {
    let mut fixture = ShellFixture::new(HoldChoice::Best).await;
    let odd = "export ODD=$'new\\nline \"quoted\" \\'single\\' \\\\ =$ \\xe2\\x82\\xac'; unset GIVEN; export \
        TERM=vt100 EMPTY=; cd /usr";
    fixture.check(odd, 0, "").await;
    let state = fixture.shell.state().clone();
    let text = serde_json::to_string(&state).unwrap();
    fixture.shell.stop().await.unwrap();

    let restored: ShellState = serde_json::from_str(&text).unwrap();
    assert_eq!(restored, state);
    assert_eq!(state.unset, BTreeSet::from(["GIVEN".to_owned()]));
    let shell = Shell::start(config(&fixture.dir, HoldChoice::Best, Some(restored))).await.unwrap();
    assert_eq!(shell.opening().missing_cwd, None);
    let mut fixture = ShellFixture { shell, dir: fixture.dir };
    let expected = "/usr\nnew\nline \"quoted\" 'single' \\ =$ €\nvt100 gone set\n";
    fixture.check("pwd; echo \"$ODD\"; echo $TERM ${GIVEN-gone} ${EMPTY+set}", 0, expected).await;
    let again = fixture.shell.state();
    let without = |state: &ShellState| -> BTreeMap<String, String> {
        state.set.clone().into_iter().filter(|(name, _)| name != "OLDPWD").collect()
    };
    assert_eq!((&again.cwd, without(again), &again.unset), (&state.cwd, without(&state), &state.unset));
}

#[tokio::test]
async fn a_restored_directory_that_is_gone_is_reported() {
    let dir = TempDir::new().unwrap();
    let gone = path(&dir).join("gone");
    let state = ShellState { cwd: gone.clone(), set: BTreeMap::new(), unset: BTreeSet::new() };
    let shell = Shell::start(config(&dir, HoldChoice::Best, Some(state))).await.unwrap();
    assert_eq!((&shell.opening().cwd, &shell.opening().missing_cwd), (&path(&dir), &Some(gone)));
    let mut fixture = ShellFixture { shell, dir };
    let here = format!("{}\n", path(&fixture.dir).display());
    fixture.check("pwd", 0, &here).await;
}

#[tokio::test]
async fn a_directory_removed_under_the_shell_is_reported_when_it_matters() {
    let mut fixture = ShellFixture::new(HoldChoice::Best).await;
    fixture.check("mkdir d; cd d", 0, "").await;
    fixture.check("rmdir ../d; echo on", 0, "on\n").await;
    assert!(fixture.run("exit").await.shell_replaced.is_some());
    let finished = fixture.run("echo on").await;
    assert!(finished.shell_replaced.is_some_and(|why| why.contains("cannot be entered")));
    assert_eq!(finished.state.cwd, path(&fixture.dir));
}

#[tokio::test]
async fn a_directory_that_never_was_is_refused() {
    let dir = TempDir::new().unwrap();
    let mut config = config(&dir, HoldChoice::Best, None);
    config.cwd = dir.path().join("none");
    assert!(matches!(Shell::start(config).await, Err(Error::NoDirectory { .. })));
}
