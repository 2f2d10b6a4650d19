//! The agents that work for the lead, seen from outside: a tree in a terminal, which is gone at the end;
//! lines with names in a pipe; nothing with `--quiet`.

use std::process::{Command, Stdio};

use crate::stage::{Seen, Stage};

/// Something for every check of the offline model to look at.
fn planted() -> Stage {
    let stage = Stage::bare();
    for number in 0..8 {
        let text = format!("// TODO: mend this\npub fn f{number}() {{\n    todo!()\n}}\n");
        std::fs::write(stage.work().join(format!("part{number}.rs")), text).unwrap();
    }
    std::fs::write(stage.work().join("README.md"), "See [the plan](missing.md).\n").unwrap();
    stage
}

/// Runs a review in a terminal of this size; the terminal's whole output is stdout.
async fn in_terminal(stage: &Stage, (columns, rows): (u32, u32), flags: &str) -> Seen {
    let binary = env!("CARGO_BIN_EXE_convoke");
    let line =
        format!("stty rows {rows} cols {columns}; exec {binary} {flags} --offline 'Review this repository'");
    let plain = stage.command(&[]);
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(stage.work()).stdin(Stdio::null());
    script.env_clear().envs(plain.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.env("TERM", "xterm").env("SHELL", "/bin/sh").env("NO_COLOR", "1");
    crate::stage::to_its_end(script.into()).await
}

#[tokio::test]
async fn in_a_terminal_there_is_a_tree_while_agents_work_and_none_afterwards() {
    for size in [(80, 24), (40, 10)] {
        let stage = planted();
        let seen = in_terminal(&stage, size, "").await.exits(0);
        let out = &seen.stdout;
        for part in ["lead · Workflow of ", " working: ", "▸ ", "of 500 agents"] {
            assert!(out.contains(part), "{size:?}: no {part:?} in {out}");
        }
        // Wrapping is off only while the tree is drawn, and neither another screen nor a hidden cursor is
        // used.
        assert_eq!(out.matches("\u{1b}[?7l").count(), out.matches("\u{1b}[?7h").count());
        assert!(!out.contains("\u{1b}[?1049h") && !out.contains("\u{1b}[?25l"), "{out}");
        let (_, after) = out.rsplit_once("\u{1b}[?7h").unwrap();
        assert!(after.contains("\u{1b}[J"), "the last picture is taken away: {after:?}");
        assert!(after.contains("done · offline") && !after.contains("├ "), "{after}");
        // Nothing that is drawn is wider than the terminal.
        for row in out.split("\u{1b}[K").filter(|row| row.contains(['├', '│', '└'])) {
            let row = row.rsplit(['\n', '\r']).next().unwrap();
            assert!(row.chars().count() < size.0 as usize, "{row:?}");
        }
    }
}

#[tokio::test]
async fn w90_in_a_pipe_there_are_few_lines_and_quiet_is_quiet() {
    let stage = planted();
    let piped = stage.run(&["--offline", "Review this repository"]).await.exits(0);
    assert!(!piped.stderr.contains('\u{1b}') && !piped.stderr.contains('├'), "{}", piped.stderr);
    assert!(piped.stderr.contains("[workflow] fanning out"), "{}", piped.stderr);
    let quiet = stage.run(&["--quiet", "--fresh", "--offline", "Review this repository"]).await.exits(0);
    assert_eq!(quiet.stderr, "");
    let shown = in_terminal(&stage, (80, 24), "--quiet --fresh").await.exits(0);
    assert!(!shown.stdout.contains('\u{1b}') && !shown.stdout.contains("working:"), "{}", shown.stdout);
}
