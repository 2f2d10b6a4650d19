//! Deadlines, cancelling and stopping: what dies, what lives on, and that nothing hangs.

use std::time::{Duration, Instant};

use convoke_sandbox::{Ending, HoldChoice};

use crate::{LONG, ShellFixture, in_both_holds, sleepers, unique_seconds, until};

/// Long enough for a command to get going on a busy machine.
const SHORT: Duration = Duration::from_millis(700);

in_both_holds! {
    a_deadline_kills_all_the_command_started_and_nothing_older
    loops_and_waits_end_at_the_deadline_and_the_shell_stays
    a_shell_that_does_not_react_is_replaced
    a_flood_of_forks_ends
    cancelling_ends_the_command
    a_dropped_run_is_ended_before_the_next
    stopping_leaves_nothing
    dropping_leaves_nothing
}

async fn a_deadline_kills_all_the_command_started_and_nothing_older(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let older = unique_seconds();
    let newer = unique_seconds();
    // The older job goes on making children of its own.
    fixture.check(&format!("(while :; do sleep {older}; done) & plain=1; f() {{ echo f; }}"), 0, "").await;
    until("the job sleeps", || sleepers(&older) == 1).await;
    let command = format!(
        "echo partial; cd /; sleep {newer} & nohup sleep {newer} & setsid sleep {newer} & \
         (setsid bash -c 'sleep {newer} & sleep {newer}' &); sleep {newer} | cat; echo no"
    );
    let since = Instant::now();
    let finished = fixture.run_within(&command, SHORT).await;
    assert!(since.elapsed() < Duration::from_secs(15));
    assert_eq!((finished.ending, finished.shell_replaced), (Ending::DeadlinePassed, None));
    let text = finished.output.text;
    assert!(text.starts_with("partial\n") && !text.contains("no\n"), "{text}");
    assert_eq!((sleepers(&newer), sleepers(&older)), (0, 1));
    // Bash learns of its children's ends when it next waits for one, and may say so then.
    fixture.run("sleep 0").await;
    fixture.check("pwd; echo $plain; f; jobs -rp | wc -l", 0, "/\n1\nf\n1\n").await;
}

async fn loops_and_waits_end_at_the_deadline_and_the_shell_stays(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    fixture.check(&format!("sleep {seconds} & mark=here"), 0, "").await;
    let endless = [
        "while :; do :; done; echo no".to_owned(),
        format!("while :; do sleep {seconds}; done; echo no"),
        "wait; echo no".to_owned(),
        "f() { while :; do :; done; echo no; }; g() { f; echo no; }; g; echo no\necho no".to_owned(),
        format!("x=$(sleep {seconds}); echo no"),
        format!("set -m; sleep {seconds}; echo no"),
    ];
    for command in endless {
        let finished = fixture.run_within(&command, Duration::from_millis(300)).await;
        assert_eq!(
            (&finished.ending, &finished.shell_replaced),
            (&Ending::DeadlinePassed, &None),
            "{command}"
        );
        assert!(!finished.output.text.contains("no\n"), "{command}: {finished:?}");
        fixture.check("set +m; echo $mark", 0, "here\n").await;
    }
    assert_eq!(sleepers(&seconds), 1, "only the older job lives");
}

async fn a_shell_that_does_not_react_is_replaced(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    fixture.check("cd /usr; export KEPT=1", 0, "").await;
    for command in
        ["trap '' RTMAX; while :; do :; done", "kill -STOP $$", "mkfifo /tmp/no/such; exec 3<> <(:); set -n"]
    {
        let finished = fixture.run_within(command, SHORT).await;
        if finished.shell_replaced.is_none() {
            // `set -n` shows only with the next command, which bash reads and does not run.
            let next = fixture.run_within("echo unheard", SHORT).await;
            assert_eq!((next.ending, next.output.text.as_str()), (Ending::Unknown, ""), "{command}");
            assert!(next.shell_replaced.is_some(), "{command}");
        } else {
            assert!(
                matches!(finished.ending, Ending::DeadlinePassed | Ending::Unknown),
                "{command}: {finished:?}"
            );
        }
        fixture.check("pwd; echo $KEPT", 0, "/usr\n1\n").await;
    }
}

async fn a_flood_of_forks_ends(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    let command = format!(
        "for i in $(seq 200); do (setsid sleep {seconds} & ) ; done; f() {{ (f) ; }}; sleep {seconds}"
    );
    let finished = fixture.run_within(&command, Duration::from_secs(3)).await;
    assert_eq!((finished.ending, sleepers(&seconds)), (Ending::DeadlinePassed, 0));
    let chain = "f() { sleep 0.01; (f &) ; }; f; f; f; sleep 1000";
    assert_eq!(fixture.run_within(chain, SHORT).await.ending, Ending::DeadlinePassed);
    fixture.check("ps -e -o args= | grep -c '[s]leep 0.01'; jobs | wc -l", 0, "0\n0\n").await;
}

async fn cancelling_ends_the_command(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    let command = fixture.command(&format!("echo begun; sleep {seconds}; echo no"), LONG);
    let cancel = until("the command runs", || sleepers(&seconds) == 1);
    let finished = fixture.shell.run(command, cancel).await.unwrap();
    assert_eq!((finished.ending, finished.shell_replaced), (Ending::Cancelled, None));
    assert!(finished.output.text.starts_with("begun\n"));
    assert_eq!(sleepers(&seconds), 0);
    fixture.check("echo fine", 0, "fine\n").await;
}

async fn a_dropped_run_is_ended_before_the_next(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    let command = fixture.command(&format!("echo lost; mark=here; sleep {seconds}"), LONG);
    tokio::select! {
        finished = fixture.shell.run(command, std::future::pending()) => panic!("{finished:?}"),
        () = until("the command runs", || sleepers(&seconds) == 1) => {}
    }
    let finished = fixture.run("echo $mark").await;
    assert_eq!((finished.ending, finished.output.text.as_str()), (Ending::Exited(0), "here\n"));
    assert_eq!(sleepers(&seconds), 0);
}

/// Processes that try to get away, in the background.
fn escapees(seconds: &str) -> String {
    format!(
        "sleep {seconds} & nohup sleep {seconds} >/dev/null 2>&1 & (setsid bash -c 'sleep {seconds} & wait' \
            &)"
    )
}

async fn stopping_leaves_nothing(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    fixture.check(&escapees(&seconds), 0, "").await;
    until("all sleep", || sleepers(&seconds) == 3).await;
    fixture.shell.stop().await.unwrap();
    assert_eq!(sleepers(&seconds), 0);
}

async fn dropping_leaves_nothing(hold: HoldChoice) {
    let mut fixture = ShellFixture::new(hold).await;
    let seconds = unique_seconds();
    fixture.check(&escapees(&seconds), 0, "").await;
    until("all sleep", || sleepers(&seconds) == 3).await;
    drop(fixture);
    until("all are gone", || sleepers(&seconds) == 0).await;
}
