//! Agents that share a directory work in it at the same time: their commands do not wait for each other, each
//! change is its agent's, and two that write the same file are both told. Real sandboxes and real HTTP.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_kernel::{AgentId, Outcome, Sandbox};
use convoke_runtime::{Crash, DriveMode, Error, Moment, Stop};
use convoke_sim::{Reply, calls, says};
use convoke_trees::{DiffForm, Keeper};
use serde_json::{Value, json};

use crate::programs::{program, run, script, value};
use crate::support::{Rig, shuffled, within};
use crate::team::Team;
use crate::workers::{lead_read, rig as rig_of};

fn bash(command: &str) -> Reply {
    calls("bash", json!({"command": command}))
}

fn edit(input: Value) -> Reply {
    calls("str_replace_based_edit_tool", input)
}

fn git(dir: &Path, args: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let output = Command::new("git").args(identity).args(args).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A repository in which confined agents write, and what they change is kept.
async fn rig(team: Team) -> Rig {
    let mut rig = rig_of(team).await.confined(Sandbox::Workspace);
    rig.keeps = true;
    rig.max_concurrent = 64;
    for name in ["a", "b", "shared"] {
        std::fs::write(rig.work.path().join(name), "0\n").unwrap();
    }
    for name in ["log", "own"] {
        std::fs::create_dir(rig.work.path().join(name)).unwrap();
    }
    std::fs::write(rig.work.path().join(".gitignore"), "log/\nseen-*\n").unwrap();
    for args in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "x"]] {
        git(rig.work.path(), args);
    }
    rig
}

async fn keeper(rig: &Rig, lead: &AgentId) -> Keeper {
    Keeper::open(&rig.places(), rig.work.path(), lead.as_str()).await.unwrap()
}

/// The agents that changed each file.
async fn authors(keeper: &Keeper) -> BTreeMap<String, Vec<String>> {
    let changes = keeper.changes().await.unwrap();
    changes
        .into_iter()
        .map(|file| {
            assert!(!file.mixed, "{file:?}");
            (file.path.to_string_lossy().into_owned(), file.agents)
        })
        .collect()
}

/// The tool results that an agent with this task has read, by its last request.
fn read_by(rig: &Rig, task: &str) -> Vec<String> {
    let requests = rig.sim.requests();
    let first =
        |body: &Value| body["messages"][0]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    let last = requests.iter().rfind(|request| first(&request.body).contains(task)).unwrap();
    let messages = last.body["messages"].as_array().unwrap().clone();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results.map(|block| block["content"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Waits for what another agent's command does, which only comes if both are under way at once.
fn until(what: &str) -> String {
    format!("until {what}; do sleep 0.02; done")
}

#[tokio::test]
async fn six_agents_of_a_program_write_at_the_same_time() {
    // Each of them ends only when all six have begun, and all have written by then.
    let team = Team::new([says("never asked")]).callees(|prompt| {
        let number = prompt.rsplit(' ').next().unwrap();
        let all = until("[ \"$(ls seen-* | wc -l)\" -ge 6 ]");
        vec![
            bash(&format!("echo {number} > of-{number}; touch seen-{number}; {all}; echo on >> of-{number}")),
            says("done"),
        ]
    });
    let rig = rig(team).await;
    let body = "return await parallel([1, 2, 3, 4, 5, 6].map(n => () => agent(`write ${n}`)))";
    let (lead, ended, program) = run(&rig, body, None).await;
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    assert_eq!(value(&program), json!(vec!["done"; 6]));
    let keeper = keeper(&rig, &lead).await;
    let authors = authors(&keeper).await;
    assert_eq!(authors.len(), 6, "{authors:?}");
    let agents: BTreeSet<&String> = authors.values().flatten().collect();
    assert_eq!(agents.len(), 6, "each file has one author: {authors:?}");
    for number in 1..=6 {
        assert_eq!(rig.read(&format!("of-{number}")), format!("{number}\non\n"));
    }
    assert_eq!(keeper.notes().unwrap(), [""; 0]);
}

#[tokio::test]
async fn two_that_write_one_file_are_both_told_with_their_next_results() {
    let team = Team::new([says("never asked")]).callees(|prompt| match prompt {
        "first" => vec![
            bash(&format!("echo first > shared; touch seen-1; {}; touch log/x", until("[ -e seen-2 ]"))),
            bash(&until("git log --glob='refs/convoke/*' --format=%b | grep -q 'echo second'")),
            says("done"),
        ],
        _ => vec![
            bash(&format!("{}; touch seen-2; echo second > shared", until("[ -e seen-1 ]"))),
            says("done"),
        ],
    });
    let rig = rig(team).await;
    let body = "return await parallel(['first', 'second'].map(n => () => agent(n)))";
    let (lead, ended, _) = run(&rig, body, None).await;
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    let (first, second) = (read_by(&rig, "first"), read_by(&rig, "second"));
    assert!(second[0].contains("shared was changed by agent a_"), "{second:?}");
    assert!(second[0].contains("put back what is missing"), "{second:?}");
    let told: Vec<&String> =
        first.iter().filter(|text| text.contains("shared, which you had changed")).collect();
    let keeper = keeper(&rig, &lead).await;
    assert_eq!(told.len(), 1, "{first:?}");
    let show = told[0].split('`').nth(1).unwrap();
    assert_eq!(git(rig.work.path(), &show.split(' ').skip(1).collect::<Vec<_>>()), "first\n");
    assert_eq!(keeper.notes().unwrap().len(), 1);
    assert_eq!(authors(&keeper).await["shared"].len(), 2);
}

#[tokio::test]
async fn a_command_that_writes_nothing_and_a_record_that_is_not_begun() {
    let team =
        Team::new([bash("cat a; ls; grep -r 0 . | wc -l; echo x > /tmp/x"), bash("true"), says("done")]);
    let rig = rig(team).await;
    let (_, ended) = rig.ask("go").await;
    assert_eq!(ended.outcome, Some(Outcome::Ok { text: "done".into() }));
    assert!(lead_read(&rig)[0].0.contains("0\n"));
    // A git that runs for the record makes its store first.
    assert!(!rig.scratch.path().join("state").exists(), "git was run for commands that wrote nothing");
}

#[tokio::test]
async fn a_job_goes_on_writing_and_sees_what_others_change() {
    // It copies what the second agent writes into a file of its own.
    let server = "( until grep -q second b; do sleep 0.02; done; cp b copied; echo ends >> server.log ) \
        > server.log 2>&1 &";
    let team = Team::new([says("never asked")]).callees(move |prompt| match prompt {
        "first" => vec![
            bash(&format!("{server} touch seen-1")),
            bash(&until("grep -q ends server.log")),
            says("done"),
        ],
        _ => vec![bash(&format!("{}; echo second > b", until("[ -e seen-1 ]"))), says("done")],
    });
    let rig = rig(team).await;
    let body = "return await parallel(['first', 'second'].map(n => () => agent(n)))";
    let (lead, ended, _) = run(&rig, body, None).await;
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    let keeper = keeper(&rig, &lead).await;
    let authors = authors(&keeper).await;
    assert_eq!(authors.keys().collect::<Vec<_>>(), ["b", "copied", "server.log"]);
    assert_eq!(authors["copied"], authors["server.log"]);
    assert_ne!(authors["copied"], authors["b"]);
    assert_eq!(rig.read("copied"), "second\n");
    assert_eq!(keeper.undo(false).await.unwrap().kept, []);
    assert_eq!(git(rig.work.path(), &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn file_tools_work_while_a_command_of_another_agent_goes_on() {
    let team = Team::new([says("never asked")]).callees(|prompt| match prompt {
        "first" => {
            vec![bash(&format!("echo first > a; touch seen-1; {}", until("grep -q second b"))), says("done")]
        }
        _ => vec![
            bash(&until("[ -e seen-1 ]")),
            edit(json!({"command": "str_replace", "path": "b", "old_str": "0", "new_str": "second"})),
            edit(json!({"command": "create", "path": "new/file", "file_text": "made\n"})),
            says("done"),
        ],
    });
    let rig = rig(team).await;
    let body = "return await parallel(['first', 'second'].map(n => () => agent(n)))";
    let (lead, ended, _) = run(&rig, body, None).await;
    assert!(matches!(ended.outcome, Some(Outcome::Ok { .. })), "{ended:?}");
    let keeper = keeper(&rig, &lead).await;
    let authors = authors(&keeper).await;
    assert_eq!(authors.keys().collect::<Vec<_>>(), ["a", "b", "new/file"]);
    assert_eq!(authors["b"], authors["new/file"]);
    assert_ne!(authors["a"], authors["b"]);
}

#[tokio::test]
async fn a_stop_ends_a_command_that_waits_for_a_file_of_another_one() {
    use convoke_runtime::{StopLevel, Stopper};
    let team = Team::new([says("never asked")]).callees(|prompt| match prompt {
        "first" => vec![bash("echo first > shared; touch seen-1; sleep 600"), says("done")],
        _ => vec![
            bash(&format!("{}; touch seen-2; echo second > shared", until("[ -e seen-1 ]"))),
            says("done"),
        ],
    });
    let mut rig = rig(team).await;
    rig.limits.bash_timeout_ms = 600_000;
    let input =
        json!({"script": script("return await parallel(['first', 'second'].map(n => () => agent(n)))")});
    let runtime = rig.life(None).await;
    let lead = runtime.start_call(rig.start(), "workflow probe", &input).await.unwrap();
    let (stopper, stop) = Stopper::new();
    let seen = rig.work.path().join("seen-2");
    let watch = async {
        while !seen.exists() {
            tokio::task::yield_now().await;
        }
        stopper.ask(StopLevel::Cut);
    };
    let (ended, ()) =
        within(async { tokio::join!(runtime.drive(&lead, DriveMode::New, stop, None), watch) }).await;
    assert!(ended.unwrap().outcome.is_none());
    assert_eq!(rig.read("shared"), "first\n");
    let keeper = keeper(&rig, &lead).await;
    assert_eq!(keeper.undo(false).await.unwrap().kept, []);
    assert_eq!(git(rig.work.path(), &["status", "--porcelain"]), "");
}

/// How many agents there are, how many of them write the same file, and how often the process dies.
struct Size {
    agents: usize,
    sharing: usize,
    kills: usize,
}

/// What an agent does in one of its commands: it writes its own file, reads the shared one, and writes that
/// anew as whole; then it writes down outside of what is kept that it has.
fn command(agent: usize, turn: usize, shares: bool) -> String {
    let line = format!("{agent}.{turn}");
    let own = format!("echo {line} >> own/{agent}; echo own {line} >> log/{agent}");
    let shared = format!(
        "{{ cat shared; echo {line}; }} > log/next-{agent} && mv log/next-{agent} shared && echo shared {line} \
         >> log/{agent}"
    );
    if shares { format!("{own}; {shared}") } else { own }
}

/// Agents edit files of one tree, some of them the same file; the process dies at random commits and is taken
/// up. No change is lost, each has its author, and what was written over is in a step and was told.
async fn many(size: &Size, seed: u64) {
    let sharing = size.sharing;
    let team = Team::new([says("never asked")]).callees(move |prompt| {
        let agent: usize = prompt.rsplit(' ').next().unwrap().parse().unwrap();
        let turn = |turn| bash(&command(agent, turn, agent < sharing));
        vec![turn(0), turn(1), bash("cat shared > /dev/null"), says("done")]
    });
    let mut rig = rig(team).await;
    rig.lost_replies = true;
    let body = format!(
        "return await parallel([...Array({}).keys()].map(n => () => agent(`agent ${{n}}`)))",
        size.agents
    );
    let input = json!({"script": script(&body)});
    let mut kills = shuffled((1..size.agents * 6).collect(), seed).into_iter().take(size.kills);
    let mut dies = || {
        let at = kills.next()?;
        let commits = AtomicUsize::new(0);
        Some(Crash::when(move |moment, _| {
            moment == Moment::BeforeCommit && commits.fetch_add(1, Ordering::SeqCst) >= at
        }))
    };
    let mut runtime = rig.life(dies()).await;
    let lead = runtime.start_call(rig.start(), "workflow probe", &input).await.unwrap();
    let mut take = DriveMode::New;
    let mut cut = 0;
    loop {
        match within(runtime.drive(&lead, take.clone(), Stop::never(), None)).await {
            Err(Error::Crashed) => {
                cut += 1;
                runtime = rig.life(dies()).await;
                take = DriveMode::Resume { changed: Vec::new() };
            }
            Err(error) => panic!("{error}"),
            Ok(ended) => {
                assert!(ended.outcome.is_some(), "{ended:?}");
                break;
            }
        }
    }
    let ended = program(&rig, &lead).await;
    assert_eq!(value(&ended), json!(vec!["done"; size.agents]));

    let keeper = keeper(&rig, &lead).await;
    let authors = authors(&keeper).await;
    let log: Vec<String> = (0..size.agents)
        .flat_map(|agent| {
            let text = rig.read(&format!("log/{agent}"));
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let history = git(
        rig.work.path(),
        &["log", "-p", "--format=", &format!("refs/convoke/{lead}/after"), "--", "shared"],
    );
    let mut written_over = 0;
    for line in &log {
        let (file, line) = line.split_once(' ').unwrap();
        let agent = line.split('.').next().unwrap();
        if file == "own" {
            assert!(rig.read(&format!("own/{agent}")).lines().any(|own| own == line), "{line} is lost");
            assert_eq!(authors[&format!("own/{agent}")].len(), 1, "{authors:?}");
        } else {
            let recorded = history.lines().any(|added| added == format!("+{line}"));
            assert!(recorded, "{line} of the shared file is in no step");
            written_over += usize::from(!rig.read("shared").lines().any(|there| there == line));
        }
    }
    let own: BTreeSet<&String> =
        authors.iter().filter(|(path, _)| path.starts_with("own/")).flat_map(|(_, agents)| agents).collect();
    let wrote: BTreeSet<&str> =
        log.iter().filter_map(|line| line.strip_prefix("own ")?.split('.').next()).collect();
    assert!(own.len() >= wrote.len(), "each has its own file: {authors:?}");
    let notes = keeper.notes().unwrap();
    assert!(written_over == 0 || !notes.is_empty(), "{written_over} lines were written over and not told");
    for note in notes.iter().filter(|note| note.starts_with("shared was written by ")) {
        let names: Vec<&str> = note.split(' ').filter(|word| word.starts_with("a_")).take(2).collect();
        for (name, other) in [(names[0], names[1]), (names[1], names[0])] {
            let file = authors.iter().find(|(path, by)| path.starts_with("own/") && by[0] == name).unwrap().0;
            let number = file.strip_prefix("own/").unwrap();
            let told = |text: &String| text.contains("shared") && text.contains(&format!("agent {other}"));
            let was_told = read_by(&rig, &format!("agent {number}")).iter().any(told);
            let waits = Keeper::overlaps(&rig.places(), rig.work.path(), lead.as_str(), name).unwrap();
            assert!(
                was_told || waits.iter().any(|overlap| overlap.with == other),
                "{name} was not told: {note}"
            );
        }
    }
    println!(
        "{} agents, {} of them on one file, died {cut} times: {} lines, {written_over} written over, {} notes",
        size.agents,
        size.sharing,
        log.len(),
        notes.len()
    );
    assert!(!keeper.diff(DiffForm::Patch).await.unwrap().is_empty());
    assert_eq!(keeper.undo(false).await.unwrap().kept, []);
    assert_eq!(git(rig.work.path(), &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn many_agents_in_one_tree_that_is_left_and_taken_up_lose_nothing_and_are_told() {
    let number = |name: &str| -> Option<u64> {
        std::env::var_os(name).map(|number| number.to_str().unwrap().parse().unwrap())
    };
    let soak = number("CONVOKE_SOAK_SIDE_BY_SIDE");
    let rounds = soak.unwrap_or(1);
    let seed = number("CONVOKE_SEED").unwrap_or(1);
    for seed in seed..seed + rounds {
        println!("seed {seed}");
        let size = match soak {
            Some(_) => Size { agents: 40, sharing: 4, kills: 3 },
            None => Size { agents: 10, sharing: 3, kills: 1 },
        };
        many(&size, seed).await;
    }
}
