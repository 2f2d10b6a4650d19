//! Commands that look, on a terminal: data does nothing to it, and its size is believed only if it has one.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Finished, TestHome, Writer, ran};

/// Everything a terminal would obey and JSON need not escape, with the ways out of a string around it.
const WILD: &str = "a\u{7f}\u{85}\u{9b}2J\u{202e}b\u{2066}c\u{1b}[2J\n\t\"end\\";

/// Runs the binary in a terminal of its own, after `first`. Quiet, because such a terminal shows stderr too.
fn in_terminal(place: &TestHome, first: &str, args: &str) -> Finished {
    let line = format!("{first}exec {} --quiet {args}", env!("CARGO_BIN_EXE_convoke"));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(place.path("work")).stdin(Stdio::null());
    let plain = place.command(&[]);
    script.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.env("TERM", "xterm").env("SHELL", "/bin/sh");
    ran(&mut script)
}

/// The values in a text, however many there are.
fn values(text: &str) -> Vec<Value> {
    let read = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    read.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {text:?}"))
}

#[tokio::test]
async fn data_on_a_terminal_means_the_same_and_does_nothing() {
    let place = TestHome::new();
    let writer = Writer::open(&place.journal_file()).await;
    let mut run = writer.start(1, &place.path("work"), WILD).await;
    run.command(1, WILD, WILD, 0).await;
    run.answer(2, WILD).await;
    run.release().await;
    let id = convoke_kernel::SessionId::from_bits([1; 10]).to_string();
    place.write(&place.user_config(), "system = \"a\u{9b}2J\u{202e}b\"\n");
    let check = |args: &str, wild: bool| {
        let words: Vec<&str> = args.split(' ').collect();
        let piped = place.convoke(&words);
        assert_eq!(piped.code, 0, "{args}: {}", piped.err);
        let shown = in_terminal(&place, "", args);
        assert_eq!(shown.code, 0, "{args}: {}{}", shown.out, shown.err);
        assert_eq!(piped.out.contains('\u{9b}'), wild, "{args}: a pipe gets it as it is");
        let obeyed = |c: char| (c.is_control() && !"\r\n".contains(c)) || "\u{202e}\u{2066}".contains(c);
        assert!(!shown.out.contains(obeyed), "{args}: {:?}", shown.out);
        assert_eq!(values(&shown.out), values(&piped.out), "{args}");
        assert_eq!(shown.out.lines().count(), piped.out.lines().count(), "{args}: lines stay lines");
    };
    check(&format!("runs show {id} --output json"), true);
    check(&format!("runs show {id} --output jsonl"), true);
    check("runs list --output json", true);
    check("runs list --output jsonl", true);
    check(&format!("runs export {id}"), true);
    check("config show --output json", true);
    check("cost --output json", false);
}

#[test]
fn a_terminal_without_a_size_has_eighty_columns() {
    let place = TestHome::new();
    let check = |columns: u32, expected: &str| {
        let got = in_terminal(&place, &format!("stty rows {columns} cols {columns}; "), "doctor");
        let words = got.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains(&format!("stdout terminal, stderr terminal, width {expected}")),
            "{}",
            got.out
        );
    };
    check(0, "80");
    check(70, "70");
    check(3, "20");
}
