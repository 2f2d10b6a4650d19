//! That a command waits for its answer and what else happens meanwhile: other places, other processes, the
//! end of the command, background jobs, and shells that are replaced.

use std::path::Path;
use std::time::{Duration, Instant};

use convoke_sandbox::{
    Access, Ending, Finished, LayerSet, OutputSpec, RunCommand, Shell, ShellConfig, WriteGate,
};

use super::super::{Inside, World, in_both_sets};
use super::{Gate, traced};
use crate::{LONG, until};

in_both_sets! {
    a_command_waits_for_its_answer_and_nothing_else_does
    a_command_that_waits_is_ended_at_once_and_its_question_dropped
    a_deadline_passes_while_a_command_waits
    a_shell_that_is_stopped_drops_its_questions
    a_background_job_asks_while_no_command_runs
    what_is_still_open_for_writing_is_said
    jobs_and_shells_ask_after_the_shell_was_replaced
    two_processes_that_want_one_file_ask_once
    a_shell_that_is_not_asked_for_writes_has_nothing_more
    writes_are_asked_for_by_shells_of_one_template_each_at_its_own_gate
}

fn command(inside: &Inside, command: &str, deadline: Duration) -> RunCommand {
    RunCommand { command: command.to_owned(), deadline, output: OutputSpec::new(inside.full.clone()) }
}

fn exited(finished: &Finished) -> bool {
    finished.ending == Ending::Exited(0) && finished.shell_replaced.is_none()
}

async fn a_command_waits_for_its_answer_and_nothing_else_does(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    gate.close("slow");
    let project = world.at("home/project");
    let look = async {
        gate.until_asked("slow").await;
        gate.until_asked("fast").await;
        until("the other is written", || {
            std::fs::read(project.join("fast")).is_ok_and(|text| text == b"b\n")
        })
        .await;
        assert!(!project.join("slow").exists());
        assert_eq!(gate.questions_open(), 1);
        gate.open("slow");
    };
    let script = "echo a > slow & ls > /dev/null; echo b > fast; wait; cat slow fast";
    let run = inside.shell.run(
        RunCommand {
            command: script.to_owned(),
            deadline: LONG,
            output: OutputSpec::new(world.at("full output")),
        },
        std::future::pending(),
    );
    let (finished, ()) = tokio::join!(run, look);
    let finished = finished.unwrap();
    assert!(exited(&finished) && finished.output.text == "a\nb\n", "{finished:?}");
    assert_eq!(gate.questions_open(), 0);
}

async fn a_command_that_waits_is_ended_at_once_and_its_question_dropped(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    inside.check("kept=here", "").await;
    gate.close("slow");
    for waiting in [
        "echo a > slow",
        "bash -c 'echo a > slow'",
        "(echo a > slow) & wait",
        "while :; do echo a > slow; done",
        "f() { echo a > slow; echo no; }; f; echo no",
        "perl -e '$SIG{TERM} = $SIG{INT} = sub { }; open my $f, \">\", \"slow\"; sleep 3000'",
    ] {
        let run = command(&inside, waiting, LONG);
        let since = Instant::now();
        let finished = inside.shell.run(run, gate.until_asked("slow")).await.unwrap();
        assert_eq!((&finished.ending, &finished.shell_replaced), (&Ending::Cancelled, &None), "{waiting}");
        assert!(since.elapsed() < Duration::from_secs(4), "{waiting}: {:?}", since.elapsed());
        assert!(!finished.output.text.contains("no\n"), "{waiting}: {finished:?}");
        until("the question is dropped", || gate.questions_open() == 0).await;
        assert!(!world.at("home/project/slow").exists(), "{waiting}");
        gate.take();
        inside.check("echo $kept > other; cat other", "here\n").await;
        gate.take();
    }
    gate.open("slow");
    inside.check("echo a > slow; cat slow", "a\n").await;
}

async fn a_deadline_passes_while_a_command_waits(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    gate.close("slow");
    let run = command(&inside, "echo begun; echo a > slow; echo no", Duration::from_millis(300));
    let finished = inside.shell.run(run, std::future::pending()).await.unwrap();
    assert_eq!((finished.ending, finished.shell_replaced), (Ending::DeadlinePassed, None));
    assert!(finished.output.text.starts_with("begun\n") && !finished.output.text.contains("no\n"));
    inside.check("echo on", "on\n").await;
}

async fn a_shell_that_is_stopped_drops_its_questions(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    gate.close("slow");
    inside.check("(echo a > slow) >/dev/null 2>&1 &", "").await;
    gate.until_asked("slow").await;
    inside.shell.stop().await.unwrap();
    until("the question is dropped", || gate.questions_open() == 0).await;
    assert!(!world.at("home/project/slow").exists());
}

async fn a_background_job_asks_while_no_command_runs(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    let project = world.at("home/project");
    inside.check("mkfifo go", "").await;
    gate.close("later");
    inside.check("{ read < go; echo a > later; echo b > later; echo c > after; } &", "").await;
    gate.take();
    // Opening it waits for the job to read.
    tokio::task::spawn_blocking({
        let go = project.join("go");
        move || std::fs::write(go, "now\n").unwrap()
    })
    .await
    .unwrap();
    gate.until_asked("later").await;
    assert!(!project.join("later").exists());
    // A command runs meanwhile as if nothing waited.
    inside.check("echo x > other; cat other", "x\n").await;
    assert_eq!(gate.questions_open(), 1, "the end of a command drops no question of a job");
    gate.open("later");
    until("the job has written", || std::fs::read(project.join("after")).is_ok_and(|text| text == b"c\n"))
        .await;
    assert_eq!(std::fs::read(project.join("later")).unwrap(), b"b\n");
    assert_eq!(gate.take(), ["later", "other", "after"]);
}

async fn what_is_still_open_for_writing_is_said(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    let held = |finished: &Finished| -> Vec<String> {
        finished.held.iter().map(|path| path.display().to_string()).collect()
    };
    let finished = inside.run("echo a > x; exec 3< x; exec 4> \"$TMPDIR/y\"").await;
    assert_eq!(held(&finished), [""; 0]);
    let finished = inside.run("mkdir d; exec 5>> d/log; sleep 3000 > job 2>&1 & exec 6<> x").await;
    assert_eq!((held(&finished), finished.jobs), (vec!["d/log".into(), "job".into(), "x".into()], true));
    let finished = inside.run("exec 6>&-; mv d/log moved").await;
    assert_eq!(held(&finished), ["job", "moved"], "under the name that it has now");
    let finished = inside.run("rm job").await;
    assert_eq!(held(&finished), ["moved"], "what has no name any more is nowhere");
    let finished = inside.run("kill %1; wait; exec 5>&-").await;
    assert_eq!((held(&finished), finished.jobs), (vec![], false));
    if Path::new("/usr/bin/python3").exists() {
        let map = "import mmap, os; f = open('x', 'r+b'); m = mmap.mmap(f.fileno(), 2); f.close(); \
                   open('ready', 'w').close(); input()";
        let wait = "while ! [ -e ready ]; do :; done";
        let finished = inside.run(&format!("exec 7<> <(:); python3 -c \"{map}\" <&7 & {wait}")).await;
        assert_eq!(held(&finished), ["x"], "mapped and closed: {finished:?}");
    }
}

async fn jobs_and_shells_ask_after_the_shell_was_replaced(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    let project = world.at("home/project");
    inside.check("mkfifo go", "").await;
    inside.check("(read < go; echo a > of-the-job) &", "").await;
    gate.take();
    for (ends, asked) in [
        ("exec bash -c 'echo a > exec'", "exec"),
        ("echo a > left; exit 3", "left"),
        ("echo a > k; kill -9 $$", "k"),
    ] {
        let finished = inside.run(ends).await;
        assert!(finished.shell_replaced.is_some(), "{finished:?}");
        assert_eq!(gate.take(), [asked]);
        inside.check("echo b > next; cat next", "b\n").await;
        assert_eq!(gate.take(), ["next"]);
    }
    tokio::task::spawn_blocking({
        let go = project.join("go");
        move || std::fs::write(go, "now\n").unwrap()
    })
    .await
    .unwrap();
    gate.until_asked("of-the-job").await;
    until("the job has written", || project.join("of-the-job").exists()).await;
}

async fn two_processes_that_want_one_file_ask_once(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let Some(mut inside) = traced(&world, set, &gate).await else { return };
    gate.close("x");
    let run =
        command(&inside, "for i in 1 2 3 4 5; do echo $i >> x & done; echo y > y; wait; wc -l < x", LONG);
    let look = async {
        gate.until_asked("y").await;
        gate.open("x");
    };
    let (finished, ()) = tokio::join!(inside.shell.run(run, std::future::pending()), look);
    assert_eq!(finished.unwrap().output.text.trim(), "5");
    let mut asked = gate.take();
    asked.sort();
    assert_eq!(asked, ["x", "y"]);
}

/// How many filters lie on the shell, and how many descriptors its helper has, where that can be seen.
async fn seen(inside: &mut Inside) -> (String, Option<usize>) {
    let filters = inside.run("while read name count; do [[ $name == Seccomp_filters: ]] && echo $count; done < /proc/$$/status; true").await;
    let helper = inside.shell.helper_pid().unwrap();
    let descriptors = std::fs::read_dir(format!("/proc/{helper}/fd")).ok().map(Iterator::count);
    (filters.output.text.trim().to_owned(), descriptors)
}

async fn a_shell_that_is_not_asked_for_writes_has_nothing_more(set: LayerSet) {
    let world = World::new();
    let gate = Gate::new();
    let mut plain = world.shell(set, world.policy(Access::Workspace, "b")).await;
    assert!(!plain.shell.is_traced());
    let config = world.config(set, world.policy(Access::ReadOnly, "b"), None);
    let writes: std::sync::Arc<dyn WriteGate> = std::sync::Arc::clone(&gate) as _;
    let shell = Shell::start(ShellConfig { writes: Some(writes), ..config }).await.unwrap();
    let mut copy = Inside { shell, full: world.at("full output") };
    assert!(!copy.shell.is_traced(), "a throwaway copy has no other writers");
    let (filters, descriptors) = seen(&mut plain).await;
    let of_copy = seen(&mut copy).await;
    assert_eq!(of_copy, (filters.clone(), descriptors));
    for inside in [&mut plain, &mut copy] {
        inside.check("echo a > x; cat x", "a\n").await;
        assert_eq!(gate.take(), [""; 0]);
    }
    let Some(mut traced) = traced(&world, set, &gate).await else { return };
    let (more_filters, more_descriptors) = seen(&mut traced).await;
    if let (Ok(few), Ok(more)) = (filters.parse::<u32>(), more_filters.parse::<u32>()) {
        assert_eq!(few + 1, more);
    }
    // Elsewhere the process that is known is not the one that asks.
    if let (LayerSet::Namespaces, Some(few), Some(more)) = (set, descriptors, more_descriptors) {
        assert_eq!(few + 2, more, "a socket to the host and one listener");
    }
}

async fn writes_are_asked_for_by_shells_of_one_template_each_at_its_own_gate(set: LayerSet) {
    let world = World::new();
    let templates = convoke_sandbox::Templates::default();
    let mut shells = Vec::new();
    for agent in ["a", "b"] {
        let gate = Gate::new();
        let writes: std::sync::Arc<dyn WriteGate> = std::sync::Arc::clone(&gate) as _;
        let config = world.config(set, world.policy(Access::Workspace, agent), None);
        let config = ShellConfig { writes: Some(writes), templates: templates.clone(), ..config };
        let shell = Shell::start(config).await.unwrap();
        if !shell.is_traced() {
            println!("not run: writes cannot be seen here");
            return;
        }
        shells.push((Inside { shell, full: world.at("full output") }, gate));
    }
    for (number, (inside, gate)) in shells.iter_mut().enumerate() {
        inside.check(&format!("echo a > of-{number}"), "").await;
        assert_eq!(gate.take(), [format!("of-{number}")]);
    }
}
