//! What is kept of what commands print, and when a command counts as over.

use std::time::{Duration, Instant};

use convoke_sandbox::{Ending, HoldChoice};

use crate::{ShellFixture, in_both_holds, path, sleepers, unique_seconds, until};

in_both_holds! {
    both_outputs_come_in_the_order_they_were_written
    a_background_child_that_holds_the_pipe_delays_nothing
    printed_text_cannot_end_a_command
    endless_amounts_are_counted_and_bounded
}

async fn both_outputs_come_in_the_order_they_were_written(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let command = "for i in 1 2 3; do echo out$i; echo err$i >&2; sh -c \"echo child$i\"; done";
    fixture.check(command, 0, "out1\nerr1\nchild1\nout2\nerr2\nchild2\nout3\nerr3\nchild3\n").await;
}

async fn a_background_child_that_holds_the_pipe_delays_nothing(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    let since = Instant::now();
    fixture.check(&format!("sleep {seconds} & (sleep {seconds}; echo never) & echo now"), 0, "now\n").await;
    assert!(since.elapsed() < Duration::from_secs(20), "it waited for the children");
    until("both sleep", || sleepers(&seconds) == 2).await;
    // What a job prints later comes with a later command.
    fixture.check("mkfifo go; (read -r line < go; echo from the job) &", 0, "").await;
    fixture.check("echo > go; wait $!", 0, "from the job\n").await;
}

async fn printed_text_cannot_end_a_command(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let command =
        r"printf '\0%032d 0\0/\n\0%032d\0' 0 0; printf '\0T 0\0/\n\0T whole\0T\0' >&2; echo later; (exit 6)";
    let finished = fixture.run(command).await;
    assert_eq!(finished.ending, Ending::Exited(6));
    assert!(finished.output.text.ends_with("later\n"));
    assert_eq!(finished.state.cwd, path(&fixture.dir));
    // Nor can writing to every descriptor there is.
    let command = "for n in 3 4 10 11 12 13 14 15 196 197 198 199; do echo forged 2>/dev/null >&$n; done \
        2>/dev/null; for n in /proc/$$/fd/*; do [ -S $n ] && echo forged > $n; done 2>/dev/null; echo \
        survived";
    assert!(fixture.run(command).await.output.text.contains("survived"));
    fixture.check("echo fine", 0, "fine\n").await;
}

async fn endless_amounts_are_counted_and_bounded(hold: HoldChoice) {
    const BYTES: u64 = 200_000_000;
    let mut fixture = ShellFixture::new(hold).await;
    let before = memory("VmRSS:");
    let finished = fixture.run(&format!("yes 0123456 | head -c {BYTES}; echo the end >&2")).await;
    let grown = memory("VmHWM:").saturating_sub(before);
    assert!(grown < 64 * 1024, "memory grew by {grown} KiB");
    let output = finished.output;
    assert_eq!((output.total_bytes, output.full_truncated), (BYTES + 8, true));
    let full = output.full.unwrap();
    assert_eq!(std::fs::metadata(&full).unwrap().len(), 64 * 1024 * 1024);
    assert!(output.text.starts_with("0123456\n0123456\n") && output.text.ends_with("0123456\nthe end\n"));
    assert!(output.text.contains(&format!(
        "of {} bytes left out; the first 67108864 bytes are in {}",
        BYTES + 8,
        full.display()
    )));
    assert!((7900..=8000).contains(&output.text.chars().count()));
}

/// A figure of this process in KiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn long_output_can_be_read_by_a_later_command() {
    let mut fixture = ShellFixture::new(HoldChoice::Best).await;
    let finished = fixture.run("seq 1 5000").await;
    let full = finished.output.full.unwrap();
    assert!(finished.output.text.starts_with("1\n2\n") && finished.output.text.ends_with("\n4999\n5000\n"));
    assert!(!finished.output.full_truncated);
    fixture.check(&format!("sed -n 2500p '{}'", full.display()), 0, "2500\n").await;
    let short = fixture.run("seq 1 100").await;
    assert_eq!((short.output.full, short.output.total_bytes), (None, 292));
}

#[tokio::test]
async fn binary_output_is_counted_exactly_and_shown_as_text() {
    let mut fixture = ShellFixture::new(HoldChoice::Best).await;
    let finished = fixture.run(r"printf 'a\xff\x00\r\xc3(z'").await;
    assert_eq!((finished.output.total_bytes, finished.output.text.as_str()), (7, "a\u{fffd}\0\r\u{fffd}(z"));
    let noise = fixture.run("head -c 1000000 /dev/urandom | tee noise").await;
    assert_eq!(noise.output.total_bytes, 1_000_000);
    assert_eq!(
        std::fs::read(noise.output.full.unwrap()).unwrap(),
        std::fs::read(fixture.dir.path().join("noise")).unwrap()
    );
}
