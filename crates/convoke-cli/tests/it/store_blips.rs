//! PostgreSQL goes away under a fan-out of the real binary: its backends are ended, it is restarted, it
//! crashes and stays away for seconds. The session ends as an undisturbed one, and asks no agent twice. A
//! session that is killed meanwhile loses no reply that came. `scripts/soak` ends backends fifty times and
//! has the server away for twenty seconds.

mod cluster;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use self::cluster::Cluster;
use crate::kill_fan_out::brain::{self, FanOutBrain};
use crate::stage::{Seen, Stage};

/// A whole session, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(300);
/// Requests at once.
const AT_ONCE: usize = 10;
/// As many as a store has unless the setting wants another number.
const CONNECTIONS: i64 = 8;

fn number(name: &str, or: usize) -> usize {
    std::env::var_os(name).map_or(or, |n| n.to_str().unwrap().parse().unwrap())
}

/// What an undisturbed run takes: two requests of the lead, and two of every worker and verifier.
fn requests_of(items: usize) -> usize {
    2 + 4 * items
}

/// A fan-out whose journal is in a database of its own.
struct Run<'a> {
    stage: Stage,
    scratch: TempDir,
    cluster: &'a Cluster,
    database: String,
}

impl<'a> Run<'a> {
    async fn new(cluster: &'a Cluster, database: &str, items: usize) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let stage = FanOutBrain::new(items, scratch.path()).stage().await;
        cluster.create(database).await;
        Self { stage, scratch, cluster, database: database.to_owned() }
    }

    /// The binary, or an older one that is to be seen failing.
    fn command(&self, args: &[&str]) -> Command {
        let binary = std::env::var_os("CONVOKE_BLIPS_BINARY").map(PathBuf::from);
        let mut command =
            self.stage.prepare(binary.as_deref().unwrap_or(Path::new(env!("CARGO_BIN_EXE_convoke"))));
        let place = self.cluster.url(&self.database);
        command.args(["--journal", &place, "--output", "json", "--sandbox", "off"]).args(args);
        command.stdout(Stdio::piped()).stderr(std::fs::File::create(self.talk()).unwrap());
        command
    }

    fn begin(&self) -> Child {
        let run =
            ["run", "--max-concurrent", &AT_ONCE.to_string(), "--budget-usd", "none", "review every file"];
        self.command(&run).spawn().unwrap()
    }

    fn talk(&self) -> PathBuf {
        self.scratch.path().join("stderr")
    }

    async fn end(&self, child: Child) -> Seen {
        let output = timeout(PATIENCE, child.wait_with_output()).await;
        let stderr = std::fs::read_to_string(self.talk()).unwrap();
        let output = output.unwrap_or_else(|_| panic!("it takes too long: {stderr}")).unwrap();
        Seen { code: output.status.code(), stdout: String::from_utf8(output.stdout).unwrap(), stderr }
    }

    async fn requests(&self, count: usize) {
        drop(timeout(PATIENCE, self.stage.sim().wait_for_requests(count)).await.unwrap());
    }

    /// The files that hold replies until they are recorded.
    fn spooled(&self) -> usize {
        let entries = std::fs::read_dir(self.stage.state().join("spool")).into_iter().flatten();
        entries
            .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "json"))
            .count()
    }
}

/// What a session said: everything in it that a blip must not change.
fn said(seen: &Seen) -> (Value, Vec<Value>) {
    let object = seen.json();
    assert_eq!(object["status"], "done", "{object:#}");
    let findings = object["findings"].as_array().unwrap().iter().cloned().map(|mut finding| {
        finding.as_object_mut().unwrap().retain(|name, _| name != "agent" && name != "run");
        finding
    });
    (object["answer"].clone(), findings.collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_fan_out_ends_as_undisturbed_whatever_befalls_its_postgres() {
    let Some(cluster) = Cluster::start("a_fan_out_ends_as_undisturbed_whatever_befalls_its_postgres") else {
        return;
    };
    let cuts = number("CONVOKE_SOAK_BLIPS", 6);
    let away = number("CONVOKE_SOAK_OUTAGE", 3);
    let items = number("CONVOKE_SOAK_BLIP_SUBTASKS", 12);
    let all = requests_of(items);
    let mut wanted = None;
    let mut connections = Vec::new();
    for kind in ["undisturbed", "terminated", "restarted", "crashed"] {
        let run = Run::new(&cluster, kind, items).await;
        let watch = cluster.watch(kind);
        let began = Instant::now();
        let child = run.begin();
        let mut ended = 0;
        match kind {
            "terminated" => {
                for cut in 1..=cuts {
                    run.requests(cut * all / (cuts + 1)).await;
                    ended += cluster.terminate(kind).await;
                }
                assert!(ended > 0, "the cuts must have hit something");
            }
            "restarted" => {
                run.requests(all / 2).await;
                cluster.down("fast");
                cluster.up();
            }
            "crashed" => {
                run.requests(all / 2).await;
                cluster.down("immediate");
                // An outage is time that passes; nothing can be waited for meanwhile.
                tokio::time::sleep(Duration::from_secs(away as u64)).await;
                cluster.up();
            }
            _ => {}
        }
        let seen = run.end(child).await.exits(0);
        let wall = began.elapsed();
        let most = watch.most();
        let asked = run.stage.sim().requests().len();
        let result = said(&seen);
        let repeated = asked as i64 - all as i64;
        println!(
            "{kind}: {items} subtasks, {asked} requests, {repeated} of them repeated, {ended} connections \
             ended, at most {most} at once, {wall:.1?}"
        );
        assert_eq!(*wanted.get_or_insert_with(|| result.clone()), result, "{kind}");
        assert_eq!(repeated, 0, "no lease was lost, so nobody is asked twice");
        connections.push(most);
        if kind == "crashed" {
            assert!(seen.stderr.contains("the journal does not answer ("), "{}", seen.stderr);
            assert!(seen.stderr.contains("the journal answers again after"), "{}", seen.stderr);
        }
    }
    // The server counts a connection that was ended until its backend is gone, and its successor may be there
    // by then.
    assert!((1..=CONNECTIONS).contains(&connections[0]), "{connections:?} connections");
    assert!(connections.iter().all(|most| *most <= 2 * CONNECTIONS), "{connections:?} connections");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_run_that_is_killed_while_its_store_is_away_loses_no_reply_that_came() {
    let test = "a_run_that_is_killed_while_its_store_is_away_loses_no_reply_that_came";
    let Some(cluster) = Cluster::start(test) else { return };
    let items = 12;
    let run = Run::new(&cluster, "killed", items).await;
    // One reply is on its way for certain when the store goes: on a busy machine the others may all be
    // recorded.
    let hold = run.stage.sim().hold("<subtask>", 1, 1);
    let mut child = run.begin();
    timeout(PATIENCE, hold.entered()).await.unwrap();
    run.requests(requests_of(items) / 2).await;
    cluster.down("immediate");
    hold.release();
    // Those that had been sent are answered and kept.
    let kept = timeout(PATIENCE, async {
        while run.spooled() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        run.spooled()
    });
    let kept = kept.await.unwrap();
    let asked = run.stage.sim().requests().len();
    child.start_kill().unwrap();
    child.wait().await.unwrap();
    cluster.up();
    let resumed = run.command(&["resume"]).spawn().unwrap();
    let seen = run.end(resumed).await.exits(0);
    said(&seen);
    let repeated = run.stage.sim().requests().len() - requests_of(items);
    println!(
        "{asked} requests before the kill, {kept} outcomes kept in files, {repeated} requests more than \
            undisturbed"
    );
    assert!(kept > 0);
    // A command that was cut off is run again, which takes one more request; a reply that was kept takes
    // none, and as many requests as are sent at once may have been in flight.
    let unknown: usize =
        run.stage.sim().requests().iter().map(|request| brain::told_unknown(&request.body)).sum();
    assert!(repeated <= unknown + AT_ONCE, "{repeated} more, {unknown} commands unknown");
    assert_eq!(run.spooled(), 0, "what is recorded is not kept any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_store_that_stays_away_ends_the_run_with_exit_1_and_a_resume_goes_on() {
    let test = "a_store_that_stays_away_ends_the_run_with_exit_1_and_a_resume_goes_on";
    let Some(cluster) = Cluster::start(test) else { return };
    let items = 4;
    let run = Run::new(&cluster, "away", items).await;
    let config = run.stage.home().join(".config/convoke/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[postgres]\noutage = \"2s\"\nconnections = 3\n")).unwrap();
    let watch = cluster.watch("away");
    let child = run.begin();
    run.requests(requests_of(items) / 2).await;
    cluster.down("fast");
    let seen = run.end(child).await.exits(1);
    assert!(
        seen.stderr.contains("then given up") && seen.stderr.contains("convoke resume"),
        "{}",
        seen.stderr
    );
    // One that cannot be reached at the start is a matter of what was configured; nothing was started.
    let refused = run.end(run.command(&["resume"]).spawn().unwrap()).await.exits(2);
    assert!(refused.stderr.contains("is not available"), "{}", refused.stderr);
    cluster.up();
    let resumed = run.end(run.command(&["resume"]).spawn().unwrap()).await.exits(0);
    said(&resumed);
    let most = watch.most();
    assert!(most <= 3, "{most} connections");
    println!("{} requests, {} undisturbed", run.stage.sim().requests().len(), requests_of(items));
}
