//! Where nothing is to be drawn or coloured, and what a terminal of another size shows.

use std::process::Stdio;

use convoke_sim::{Script, says};

use super::{IDLE, bash, configure, say, session};
use crate::pane::Pane;
use crate::stage::{Stage, to_its_end};

async fn stage() -> Stage {
    Stage::with(
        Script::new().conversation("*", [bash("touch one"), says("**Bold** and `code`."), says("More.")]),
    )
    .await
}

#[tokio::test]
async fn nothing_is_coloured_with_no_color_and_something_is_without_it() {
    for (more, coloured) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let stage = stage().await;
        let pane = Pane::with(&stage, (80, 24), more).await;
        pane.enter("convoke").await;
        pane.shows(IDLE).await;
        say(&pane, "Colours?").await;
        let has_colour = |screen: &str| {
            let codes = screen
                .split("\u{1b}[")
                .skip(1)
                .filter_map(|part| part.split_once('m'))
                .map(|(codes, _)| codes);
            codes
                .flat_map(|codes| codes.split(';').map(str::to_owned).collect::<Vec<_>>())
                .any(|code| matches!(code.parse::<u32>(), Ok(30..=38 | 40..=48 | 90..=97 | 100..=107)))
        };
        let drawn = pane.coloured().await;
        assert_eq!(has_colour(&drawn), coloured, "{drawn:?}");
        pane.press("C-o").await;
        pane.shows("[1 Agents 1]").await;
        let drawn = pane.coloured().await;
        assert_eq!(has_colour(&drawn), coloured, "{drawn:?}");
    }
}

#[tokio::test]
async fn plain_mode_is_lines_in_and_lines_out() {
    for (args, more) in
        [("session --plain", &[][..]), ("", &[("TERM", "dumb")][..]), ("", &[("ORCH_PLAIN", "1")][..])]
    {
        let stage = stage().await;
        configure(&stage, "[[rules]]\ncommand = \"touch\"\ndecision = \"ask\"\n");
        let pane = Pane::with(&stage, (80, 24), more).await;
        // What it writes is kept beside the screen, to look for sequences in it.
        pane.enter(&format!("script -qec 'convoke {args}' ../bytes")).await;
        pane.shows("\n>").await;
        pane.enter("Make one").await;
        pane.shows("$ touch one").await;
        pane.shows("answer>").await;
        pane.enter("y").await;
        pane.shows("Bold").await;
        pane.told("done · 2 turns", 1).await;
        pane.enter("/budget").await;
        pane.told("of $10.00", 1).await;
        pane.enter("/tem").await;
        pane.told("did you mean /team?", 1).await;
        pane.enter("/agents").await;
        pane.told("the fleet is drawn", 1).await;
        pane.enter("/quit").await;
        pane.shows("to go on: convoke session s_").await;
        pane.is_usable().await;
        let bytes = std::fs::read_to_string(stage.work().parent().unwrap().join("bytes")).unwrap();
        assert!(bytes.contains("of $10.00") && !bytes.contains('\u{1b}'), "{args} {more:?}: {bytes:?}");
        assert!(stage.work().join("one").exists());
    }
}

#[tokio::test]
async fn where_nobody_sits_no_session_is_opened_and_no_sequence_is_written() {
    let stage = Stage::bare();
    std::fs::write(stage.work().join("a.py"), "print(1)\n").unwrap();
    let check = async |script: &str, code: i32, expected: &str| {
        let mut command = stage.shell(script, &[]);
        command.stdin(Stdio::null()).env("TERM", "xterm-256color");
        let seen = to_its_end(command).await.exits(code);
        let all = format!("{}{}", seen.stdout, seen.stderr);
        assert!(all.contains(expected), "{script}: {all}");
        assert!(!all.contains('\u{1b}'), "{script}: {all:?}");
    };
    check("set -o pipefail; \"$0\" --offline | cat", 0, "Offline model").await;
    check("\"$0\" session </dev/null", 2, "a session needs a terminal").await;
    check("\"$0\" session --offline | cat; exit ${PIPESTATUS[0]}", 2, "`convoke run` alone reviews").await;
}

#[tokio::test]
async fn another_size_is_drawn_anew_and_leaves_nothing_behind() {
    let stage = stage().await;
    let pane = session(&stage, "").await;
    say(&pane, "Say something").await;
    for size in [(40, 10), (200, 60), (20, 6), (80, 24)] {
        pane.resize(size).await;
        let width = usize::from(size.0);
        let fits = |screen: &str| screen.lines().filter(|row| row.starts_with("› ")).count() <= 2;
        let screen = pane
            .until("one input, as wide as it may be", |screen| fits(screen) && screen.contains('$'))
            .await;
        assert!(screen.lines().all(|row| row.chars().count() <= width), "{screen}");
    }
    pane.types("still here").await;
    let whole = |screen: &str| screen.contains("› still here") && screen.contains("mode on");
    let screen = pane.until("the input and the status", whole).await;
    assert_eq!(screen.matches("mode on").count(), 1, "one status line: {screen}");
    assert_eq!(pane.all().await.matches("Say something").count(), 1, "{}", pane.all().await);
}
