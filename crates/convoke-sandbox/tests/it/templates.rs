//! Helpers that are forked from a template: what is started, what is not, and that agents of one template
//! are as far apart as those of two.

use std::path::Path;

use convoke_sandbox::{Access, Ending, HoldChoice, LayerSet, Shell, ShellConfig, Templates};

use crate::confine::{Inside, World, holds};
use crate::{config, until};

/// The processes below one, itself not among them.
fn below(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children: Vec<u32> = children.split_whitespace().map(|child| child.parse().unwrap()).collect();
    children.iter().flat_map(|child| std::iter::once(*child).chain(below(*child))).collect()
}

fn parent(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap().trim().parse().unwrap()
}

/// Three shells of one session, each of another agent.
async fn three(world: &World, set: LayerSet, templates: &Templates) -> Vec<Inside> {
    let mut shells = Vec::new();
    for agent in ["a", "b", "c"] {
        std::fs::create_dir_all(world.at("state").join(agent)).unwrap();
        let policy = world.policy(Access::ReadOnly, agent);
        let config = ShellConfig { templates: templates.clone(), ..world.config(set, policy, None) };
        shells.push(Inside { shell: Shell::start(config).await.unwrap(), full: world.at("full output") });
    }
    shells
}

#[tokio::test]
async fn shells_of_one_session_come_from_one_template() {
    // How many processes each shell is: in namespaces of the template's making its init and bash; otherwise
    // also the one that waits for that init.
    for (set, each) in [(LayerSet::Namespaces, 2), (LayerSet::Landlock, 3)] {
        if !holds(set).await {
            continue;
        }
        let world = World::new();
        let templates = Templates::default();
        let shells = three(&world, set, &templates).await;
        let helpers: Vec<u32> = shells.iter().map(|inside| inside.shell.helper_pid().unwrap()).collect();
        assert!(shells.iter().all(|inside| inside.shell.is_forked()), "{set:?}");
        let template = parent(helpers[0]);
        assert!(helpers.iter().all(|helper| parent(*helper) == template), "{set:?}: {helpers:?}");
        assert_eq!(below(template).len(), 3 * each, "{set:?}");
        for inside in shells {
            inside.shell.stop().await.unwrap();
        }
        until("the template has nothing left", || below(template).is_empty()).await;
        assert!(Path::new(&format!("/proc/{template}")).exists(), "it stays for the next shell");
        drop(templates);
        until("the template is gone", || {
            let status = std::fs::read_to_string(format!("/proc/{template}/status")).unwrap_or_default();
            status.is_empty() || status.contains("State:\tZ")
        })
        .await;
    }
}

/// Numbers of processes are given in turn, and a pid namespace has its own.
#[tokio::test]
async fn a_command_starts_no_process_besides_its_own() {
    let world = World::new();
    let mut shells = Vec::new();
    for set in [LayerSet::Namespaces, LayerSet::Landlock] {
        if holds(set).await {
            shells.push(world.shell(set, world.policy(Access::ReadOnly, "a")).await);
        }
    }
    let free = Shell::start(config(&world.dir, HoldChoice::Best, None)).await.unwrap();
    shells.push(Inside { shell: free, full: world.at("full output") });
    for mut inside in shells {
        if inside.shell.hold() != &convoke_sandbox::ProcessHold::PidNamespace {
            println!("not run: there is no pid namespace");
            continue;
        }
        let mut numbers = Vec::new();
        for _ in 0..5 {
            let finished = inside.run("bash -c 'echo $$'").await;
            numbers.push(finished.output.text.trim().parse::<u32>().unwrap());
            let finished = inside.run("cd /tmp; export GIVEN=$((GIVEN + 1))").await;
            assert_eq!(finished.ending, Ending::Exited(0));
        }
        // The init is 1 and bash 2; what begins a shell starts nothing either.
        assert_eq!(numbers, [3, 4, 5, 6, 7]);
    }
}

#[tokio::test]
async fn agents_of_one_template_do_not_meet() {
    if !holds(LayerSet::Namespaces).await {
        return;
    }
    let world = World::new();
    let mut shells = three(&world, LayerSet::Namespaces, &Templates::default()).await;
    let leave = "echo a > /tmp/left && echo a > /dev/shm/left && echo a > left && \
                 mkdir -p ~/.cache/tool && echo a > ~/.cache/tool/left && hostname of-a 2>/dev/null; \
                 perl -e 'my $id = shmget(4711, 8, 01666); print defined $id ? \"shared\\n\" : \"none\\n\"'; \
                 perl -MIO::Socket::INET -e 'IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1:4711\") \
                 or die; print \"listens\\n\"; $| = 1; close STDOUT; close STDERR; sleep 3000' & \
                 sleep 0.3; script -qec 'sleep 3000' /dev/null </dev/null >/dev/null 2>&1 & sleep 0.1";
    let finished = shells[0].run(leave).await;
    assert!(finished.output.text.contains("listens"), "{finished:?}");
    let look = "cat /tmp/left /dev/shm/left left ~/.cache/tool/left 2>/dev/null; \
                pgrep -c sleep; pgrep -c perl; ls /dev/pts; \
                perl -e 'print defined shmget(4711, 8, 0666) ? \"shared\\n\" : \"\"'; \
                perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(PeerAddr => \"127.0.0.1:4711\") ? \
                \"connected\\n\" : \"\"'; echo looked";
    for other in &mut shells[1..] {
        let finished = other.run(look).await;
        assert_eq!(finished.output.text, "0\n0\nptmx\nlooked\n");
    }
    let again = shells[0].run("cat /tmp/left /dev/shm/left left ~/.cache/tool/left").await;
    assert_eq!(again.output.text, "a\na\na\na\n", "each keeps its own");
}

#[tokio::test]
async fn a_template_that_was_killed_is_made_anew_and_its_shells_are_gone() {
    if !holds(LayerSet::Namespaces).await {
        return;
    }
    let world = World::new();
    let templates = Templates::default();
    let mut shells = three(&world, LayerSet::Namespaces, &templates).await;
    let template = parent(shells[0].shell.helper_pid().unwrap());
    assert!(
        std::process::Command::new("kill").args(["-9", &template.to_string()]).status().unwrap().success()
    );
    // The kernel ends what stands in the template's namespace after the kill has returned.
    let helpers: Vec<u32> = shells.iter().filter_map(|inside| inside.shell.helper_pid()).collect();
    let gone = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.is_empty() || status.contains("State:\tZ")
    };
    until("the helpers are gone", || helpers.iter().all(gone)).await;
    let command = |inside: &Inside| convoke_sandbox::RunCommand {
        command: "echo on".to_owned(),
        deadline: crate::LONG,
        output: convoke_sandbox::OutputSpec::new(inside.full.clone()),
    };
    for inside in &mut shells {
        let asked = command(inside);
        let run = inside.shell.run(asked, std::future::pending()).await;
        assert!(matches!(run, Err(convoke_sandbox::Error::HelperEnded { .. })), "{run:?}");
    }
    let mut shells = three(&world, LayerSet::Namespaces, &templates).await;
    assert!(shells.iter().all(|inside| inside.shell.is_forked()));
    shells[0].check("echo on", "on\n").await;
    assert_ne!(parent(shells[0].shell.helper_pid().unwrap()), template);
}
