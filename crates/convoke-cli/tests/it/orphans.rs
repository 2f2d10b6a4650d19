//! `kill -9` on the real binary while twenty confined agents have commands running: everything they started
//! dies with it, whatever it did to stay, and no other process is touched.

#[path = "kill/processes.rs"]
#[expect(clippy::duplicate_mod, reason = "the tests of kills look at processes in the same way")]
mod processes;

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use convoke_sim::calls;
use serde_json::json;
use tokio::time::{sleep, timeout};

use self::processes::{cmdline, ours, started_at};
use crate::team::Team;

const AGENTS: usize = 20;
/// On a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time that is meant is a second; it is printed.
const ORPHANS_END_WITHIN: Duration = Duration::from_secs(10);

/// Ways to stay: a daemon in its own session, a double fork, a child that holds the output, a stopped child,
/// one that ignores every signal it can.
const STAY: &str = "setsid sleep 600 >/dev/null 2>&1 & (sh -c 'setsid sleep 601 >/dev/null 2>&1 &' &) ; \
    sleep 602 & sh -c 'kill -STOP $$; sleep 603' & sh -c 'trap \"\" TERM HUP INT; while :; do sleep 604; \
    done' & echo begun > $TMPDIR/begun; sleep 605";

/// A process that no agent started, for as long as the test lasts.
struct Foreign(Child);

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

async fn killed_with(layers: &str) {
    let subtasks: Vec<String> = (0..AGENTS).map(|number| format!("stay {number}")).collect();
    let subtasks: Vec<&str> = subtasks.iter().map(String::as_str).collect();
    let stay = |_: &str| vec![calls("bash", json!({"command": STAY}))];
    let stage = Team::fanning_out(&subtasks).workers(stay).stage().await;
    let mut foreign = Foreign(quiet(Command::new("sleep").arg("600")).spawn().unwrap());
    let flags = [
        "--sandbox-layers",
        layers,
        "--max-concurrent",
        "20",
        "--budget-usd",
        "none",
        "--bash-timeout",
        "600",
        "review it",
    ];
    let said = stage.home().join("stderr");
    let mut command = stage.command(&flags);
    command.stdout(Stdio::null()).stderr(File::create(&said).unwrap()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let private = stage.home().join(".local/state/convoke/private");
    let begun = || {
        let agents = std::fs::read_dir(&private).into_iter().flatten().flatten();
        agents.filter(|agent| agent.path().join("tmp/begun").exists()).count()
    };
    let all = async {
        while begun() < AGENTS {
            sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(
        timeout(PATIENCE, all).await.is_ok(),
        "only {} of {AGENTS} agents have begun: {}",
        begun(),
        std::fs::read_to_string(said).unwrap()
    );
    let left = ours(&[&stage.home()]);
    assert!(left.len() > 5 * AGENTS, "only {} processes were seen", left.len());
    let since = Instant::now();
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    let alive = || left.iter().find(|(pid, start)| started_at(**pid) == Some(**start)).map(|(pid, _)| *pid);
    while let Some(pid) = alive() {
        assert!(since.elapsed() < ORPHANS_END_WITHIN, "process {pid} outlives its convoke: {}", cmdline(pid));
        sleep(Duration::from_millis(2)).await;
    }
    let gone = since.elapsed().as_millis();
    let line =
        format!("{layers}: {} processes of {AGENTS} agents were gone {gone} ms after kill -9\n", left.len());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    assert_eq!(foreign.0.try_wait().unwrap(), None, "somebody else's process lives");
}

#[tokio::test]
async fn kill_9_leaves_nothing_of_twenty_confined_agents() {
    killed_with("best").await;
}

#[tokio::test]
async fn kill_9_leaves_nothing_of_twenty_agents_where_namespaces_are_not_used() {
    killed_with("landlock").await;
}
