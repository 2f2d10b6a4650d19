//! What can be told from texts is told from texts; the rest is tried on this machine, as far as it has it.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::place::{Own, locate};
use super::*;

const LONG: Duration = Duration::from_secs(60);

const HYBRID_MOUNTS: &str = "\
24 30 0:22 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
25 24 0:23 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
26 24 0:24 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
27 24 0:25 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
";

const UNIFIED_MOUNTS: &str =
    "25 24 0:23 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

fn check_place(
    mounts: &str,
    groups: &str,
    version: Version,
    controller: Controller,
    expected: Result<(&str, &str), &str>,
) {
    let found = locate(mounts, groups, version, controller);
    match expected {
        Ok((top, below)) => assert_eq!(found, Ok(Own { top: top.into(), below: below.into() }), "{groups}"),
        Err(words) => assert!(found.as_ref().is_err_and(|why| why.contains(words)), "{found:?}"),
    }
}

#[test]
fn our_own_group_is_found_in_every_hierarchy() {
    use {Controller::*, Version::*};
    let groups = "9:name=systemd:/\n8:pids:/\n4:memory:/someone/else\n0::/\n";
    check_place(HYBRID_MOUNTS, groups, One, Processes, Ok(("/sys/fs/cgroup/pids", "")));
    check_place(HYBRID_MOUNTS, groups, One, Memory, Ok(("/sys/fs/cgroup/memory", "someone/else")));
    check_place(HYBRID_MOUNTS, groups, Two, Kill, Ok(("/sys/fs/cgroup/unified", "")));
    check_place(
        UNIFIED_MOUNTS,
        "0::/user.slice/a.scope\n",
        Two,
        Memory,
        Ok(("/sys/fs/cgroup", "user.slice/a.scope")),
    );
    check_place(
        UNIFIED_MOUNTS,
        "0::/user.slice/a.scope\n",
        One,
        Memory,
        Err("no memory hierarchy of version 1"),
    );
    check_place("", "", Two, Memory, Err("no hierarchy of version 2"));
    // In a container the mount begins at the container's group.
    let mounts = "25 24 0:23 /docker/abc /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n";
    check_place(mounts, "8:pids:/docker/abc\n", One, Processes, Ok(("/sys/fs/cgroup/pids", "")));
    check_place(mounts, "8:pids:/docker/other\n", One, Processes, Err("cannot be seen from here"));
    // Having moved into a leaf, we are still at home in the group above.
    let leaf = format!("0::/a.scope/{}\n", group_name("host"));
    check_place(UNIFIED_MOUNTS, &leaf, Two, Memory, Ok(("/sys/fs/cgroup", "a.scope")));
}

#[test]
fn every_limit_has_its_file() {
    let limits = Limits { memory: 1000, processes: 20, file_size: 1, open_files: 1 };
    let check = |version, controller, expected: &[(&str, &str, bool)]| {
        let found = settings(version, controller, &limits);
        let found: Vec<_> =
            found.iter().map(|setting| (setting.file, &*setting.value, setting.required)).collect();
        assert_eq!(found, expected);
    };
    check(Version::Two, Controller::Memory, &[("memory.max", "1000", true), ("memory.swap.max", "0", false)]);
    let memory = [("memory.limit_in_bytes", "1000", true), ("memory.memsw.limit_in_bytes", "1000", false)];
    check(Version::One, Controller::Memory, &memory);
    check(Version::One, Controller::Processes, &[("pids.max", "28", true)]);
    check(Version::Two, Controller::Processes, &[("pids.max", "28", true)]);
    check(Version::Two, Controller::Kill, &[]);
}

#[test]
fn strikes_are_counted_from_the_kernels_words() {
    let check = |text, key, expected| assert_eq!(count(text, key), expected, "{text}");
    check("low 0\nhigh 3\nmax 4\noom 2\noom_kill 1\noom_group_kill 9\n", "oom_kill", 1);
    check("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n", "oom_kill", 7);
    check("max 5\n", "max", 5);
    check("", "max", 0);
}

#[test]
fn a_limit_that_struck_is_told_once() {
    let dir = tempfile::TempDir::new().unwrap();
    let part = |name: &str, controller| {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        Part { directory: dir.path().join(name), version: Version::Two, controllers: vec![controller] }
    };
    let parts = vec![part("m", Controller::Memory), part("p", Controller::Processes)];
    let group = Group { parts, seen: [AtomicU64::new(0), AtomicU64::new(0)] };
    let set = |file: &str, text: &str| std::fs::write(dir.path().join(file), text).unwrap();
    assert_eq!(group.killed(), None);
    set("m/memory.events", "oom_kill 2\n");
    assert_eq!((group.killed(), group.killed()), (Some("memory"), None));
    set("p/pids.events", "max 9\n");
    assert_eq!((group.killed(), group.killed()), (Some("processes"), None));
    set("m/memory.events", "oom_kill 3\n");
    assert_eq!((group.killed(), group.killed()), (Some("memory"), None));
}

#[test]
fn only_groups_of_the_provably_dead_are_left_over() {
    let namespace = pid_namespace();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let check = |name: &str, expected| assert_eq!(is_left_over(name), expected, "{name}");
    check(&format!("convoke-{}-{namespace}-x", gone.id()), true);
    check(&group_name("x"), false);
    check(&format!("convoke-{}-1-x", gone.id()), false);
    check(&format!("other-{}-{namespace}-x", gone.id()), false);
    check("convoke-x-y", false);
    check("system.slice", false);
}

#[test]
fn names_are_plain() {
    assert!(group_name("../a b/ü_1").ends_with("-ab_1"), "{}", group_name("../a b/ü_1"));
}

#[test]
fn what_is_offered_is_told_with_reasons() {
    let refused = |why: &str| Err(why.to_owned());
    let offered = Offered {
        v2_memory: refused("none"),
        v2_pids: refused("none"),
        v1_memory: refused("not ours"),
        v1_pids: Ok(()),
        kill: Ok(()),
    };
    let expected = "memory: no (version 2: none; version 1: not ours), processes: version 1, kill: at once";
    assert_eq!((offered.to_string().as_str(), offered.any_limit()), (expected, true));
    println!("this machine: {}", super::offered());
}

/// A shell in the group, which waits for its script until it is there.
fn member(group: &Group, script: &str) -> Child {
    let mut child = Command::new("/bin/sh").stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    group.add(child.id()).unwrap();
    child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    child
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let since = Instant::now();
    while !condition() {
        assert!(since.elapsed() < LONG, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_process_bomb_is_stopped_told_killed_and_cleaned_away() {
    let limits = Limits { processes: 8, ..Limits::default() };
    let group = match Group::make("bomb", &limits) {
        Ok(group) if group.parts.iter().any(|part| part.controllers.contains(&Controller::Processes)) => {
            group
        }
        other => return println!("not run, since processes cannot be limited here: {other:?}"),
    };
    let directories: Vec<PathBuf> = group.parts.iter().map(|part| part.directory.clone()).collect();
    let mut child = member(&group, "for i in $(seq 100); do sleep 300 & done; wait\n");
    until("the limit strikes", || group.killed() == Some("processes"));
    group.kill();
    child.wait().unwrap();
    drop(group);
    until("the group is gone", || !directories.iter().any(|directory| directory.exists()));
}

#[test]
fn dropping_a_group_ends_what_is_in_it() {
    let group = match Group::make("dropped", &Limits::default()) {
        Ok(group) => group,
        Err(why) => return println!("not run, since there are no groups here: {why}"),
    };
    let directories: Vec<PathBuf> = group.parts.iter().map(|part| part.directory.clone()).collect();
    let mut child = member(&group, "setsid sleep 300 & sleep 300\n");
    drop(group);
    assert!(!child.wait().unwrap().success());
    until("the group is gone", || !directories.iter().any(|directory| directory.exists()));
}

#[test]
fn a_sweep_removes_the_groups_of_the_dead_and_no_others() {
    let Ok(base) = place::base(Version::Two, Controller::Kill) else {
        return println!("not run: no groups here");
    };
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let left_over = base.join(format!("convoke-{}-{}-x", gone.id(), pid_namespace()));
    let ours = base.join(group_name("kept"));
    if let Err(error) = std::fs::create_dir(&left_over) {
        return println!("not run, since no group can be made here: {error}");
    }
    std::fs::create_dir(&ours).unwrap();
    sweep();
    assert_eq!((left_over.exists(), ours.exists()), (false, true));
    std::fs::remove_dir(ours).unwrap();
}
