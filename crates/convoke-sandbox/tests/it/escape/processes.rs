//! Other processes: looking into them, ending them, slowing them down; using up the machine; living on after
//! the shell.

use std::time::{Duration, Instant};

use convoke_sandbox::Ending;

use super::attempt::{Attempt, Tried};
use super::world::{LIMITS, World};

/// How long a bomb may take to come, and to be ended once it is there; a tenth of a second is meant, a busy
/// machine takes longer.
const COMES_WITHIN: Duration = Duration::from_millis(1500);
const ENDED_WITHIN: Duration = Duration::from_millis(2500);

const fn at_stranger(
    name: &'static str,
    command: &'static str,
    escaped: fn(&World, &Tried<'_>) -> bool,
) -> Attempt {
    Attempt::new(name, "processes", command, escaped).laid(World::stranger)
}

const fn outlive(name: &'static str, command: &'static str) -> Attempt {
    Attempt::new(name, "survivors", command, |world, _| !world.marked().is_empty()).outlives()
}

fn noted(world: &World, _: &Tried<'_>) -> bool {
    world.soon(|world| world.exists("elsewhere/noted"))
}

fn traced(world: &World, _: &Tried<'_>) -> bool {
    world.soon(|world| world.of_stranger("TracerPid:") != "0")
}

fn environment_changed(world: &World, _: &Tried<'_>) -> bool {
    world.in_stranger("environ").contains("CHANGED")
}

/// Whether the helper or one of its kind below it stands still.
fn helper_stopped(world: &World, tried: &Tried<'_>) -> bool {
    let helper = tried.shell.and_then(convoke_sandbox::Shell::helper_pid).map(|pid| pid.to_string());
    world.soon(|_| {
        let mut open: Vec<String> = helper.iter().cloned().collect();
        while let Some(pid) = open.pop() {
            let of = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            if of("comm").starts_with("convoke") && of("status").contains("State:\tT") {
                return true;
            }
            open.extend(of(&format!("task/{pid}/children")).split_whitespace().map(str::to_owned));
        }
        false
    })
}

fn struck(tried: &Tried<'_>) -> bool {
    matches!(tried.ending, Some(Ending::LimitPassed { .. }))
}

fn too_many(world: &World) -> bool {
    world.marked().len() as u64 > LIMITS.processes * 2
}

fn too_large(world: &World) -> bool {
    world.resident() > LIMITS.memory + (32 << 20)
}

/// What may come after the command has returned is given time to come, and then to be ended.
fn later(world: &World, passed: fn(&World) -> bool) -> bool {
    let since = Instant::now();
    let mut seen = None;
    while seen.is_some() || since.elapsed() < COMES_WITHIN {
        match (passed(world), seen) {
            (true, None) => seen = Some(Instant::now()),
            (true, Some(first)) if first.elapsed() > ENDED_WITHIN => return true,
            (false, Some(_)) => return false,
            (true, Some(_)) | (false, None) => {}
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

pub(super) const ALL: &[Attempt] = &[
    at_stranger("kill", "kill -9 {foreign}", |world, _| {
        world.soon(|world| world.of_stranger("State:").starts_with('Z'))
    }),
    at_stranger("stop", "kill -STOP {foreign}", |world, _| {
        world.soon(|world| world.of_stranger("State:").starts_with('T'))
    }),
    at_stranger("signal-to-all", "perl -e 'kill URG => {everybody}'", noted),
    at_stranger(
        "signal-by-handle",
        r#"perl -e '$p = call({sys:pidfd_open}, {foreign}, 0); call({sys:pidfd_send_signal}, $p, 23, 0, 0)'"#,
        noted,
    ),
    at_stranger(
        "signal-by-descriptor",
        r#"perl -e 'pipe(R, W); fcntl(R, 8, {foreign}); fcntl(R, 10, 23); fcntl(R, 4, 020000); syswrite(W, "x"); select(undef, undef, undef, 0.05)'"#,
        noted,
    ),
    at_stranger(
        "trace",
        r#"perl -e '{begin} call({sys:ptrace}, 16, {foreign}, 0, 0); {stay}' {mark}"#,
        traced,
    ),
    at_stranger(
        "trace-quietly",
        r#"perl -e '{begin} call({sys:ptrace}, 0x4206, {foreign}, 0, 0); {stay}' {mark}"#,
        traced,
    ),
    at_stranger(
        "memory-written-by-call",
        r#"perl -e '$b = "CHANGED"; $i = pack("QQ", unpack("Q", pack("P", $b)), 7); $o = pack("QQ", {environment}, 7); call({sys:process_vm_writev}, {foreign}, $i, 1, $o, 1, 0)'"#,
        environment_changed,
    ),
    at_stranger(
        "memory-written-by-file",
        r#"perl -e 'open(F, "+<", "/proc/{foreign}/mem"); sysseek(F, {environment}, 0); syswrite(F, "CHANGED")'"#,
        environment_changed,
    ),
    at_stranger("limits-of-another", "prlimit --pid {foreign} --nofile=77:77", |world, _| {
        world
            .in_stranger("limits")
            .lines()
            .any(|line| line.starts_with("Max open files") && line.contains(" 77 "))
    }),
    at_stranger("victim-of-memory-shortage", "echo 777 > /proc/{foreign}/oom_score_adj", |world, _| {
        world.in_stranger("oom_score_adj").trim() == "777"
    }),
    at_stranger("slowed-down", "renice 19 -p {foreign}", |world, _| {
        let stat = world.in_stranger("stat");
        stat[stat.rfind(')').unwrap()..].split(' ').nth(17) == Some("19")
    }),
    at_stranger("moved-to-one-processor", "taskset -pc 0 {foreign}", |world, _| {
        world.of_stranger("Cpus_allowed_list:") == "0"
    }),
    Attempt::new("helper-stopped", "processes", "(sleep 0.02; kill -STOP $PPID) & :", helper_stopped)
        .at_helper(),
    Attempt::new(
        "helper-killed",
        "survivors",
        "setsid perl -e 'sleep 1 while 1' {mark} & sleep 0.1; kill -9 $PPID; sleep 0.1",
        |world, _| !world.marked().is_empty(),
    )
    .stopped()
    .at_helper(),
    Attempt::new(
        "helper-descriptors",
        "processes",
        "for f in /proc/$PPID/fd/*; do echo forged > $f; done; ls -l /proc/$PPID/fd/",
        |_, tried| tried.text.contains("socket:"),
    ),
    Attempt::new(
        "fork-bomb",
        "bombs",
        "for i in {1..120}; do (exec -a {mark} sleep 1000) & done; sleep 0.5",
        |world, tried| !struck(tried) && later(world, too_many),
    ),
    Attempt::new(
        "fork-bomb-detached",
        "bombs",
        "for i in {1..120}; do (setsid bash -c 'exec -a {mark} sleep 1000' &); done; sleep 0.5",
        |world, tried| !struck(tried) && later(world, too_many),
    ),
    Attempt::new(
        "fork-bomb-later",
        "bombs",
        "(sleep 0.1; for i in {1..120}; do (exec -a {mark} sleep 1000) & done) >/dev/null 2>&1 & :",
        |world, _| later(world, too_many),
    ),
    Attempt::new(
        "memory-bomb",
        "bombs",
        r#"perl -e '{begin} $x = "a" x (200 << 20); {stay}' {mark}; sleep 0.3"#,
        |world, tried| !struck(tried) && later(world, too_large),
    ),
    Attempt::new(
        "memory-bomb-in-parts",
        "bombs",
        r#"for i in {1..5}; do perl -e '{begin} $x = "a" x (40 << 20); {stay}' {mark}; done; sleep 0.5"#,
        |world, tried| !struck(tried) && later(world, too_large),
    ),
    Attempt::new(
        "memory-bomb-later",
        "bombs",
        r#"(sleep 0.1; for i in {1..5}; do perl -e '{begin} $x = "a" x (40 << 20); {stay}' {mark}; done) >/dev/null 2>&1 & :"#,
        |world, _| later(world, too_large),
    ),
    Attempt::new(
        "one-large-file",
        "bombs",
        "head -c 32M /dev/zero > large; head -c 32M /dev/zero > ${TMPDIR:-.}/large",
        |world, _| world.anywhere(|about| about.is_file() && about.len() > LIMITS.file_size),
    ),
    Attempt::new(
        "limit-raised",
        "bombs",
        "ulimit -f unlimited; prlimit --pid $$ --fsize=unlimited:unlimited; head -c 32M /dev/zero > large",
        |world, _| world.anywhere(|about| about.is_file() && about.len() > LIMITS.file_size),
    ),
    Attempt::new(
        "disk-filler",
        "bombs",
        "for i in {1..48}; do head -c 1M /dev/zero > ${TMPDIR:-.}/f$i; sleep 0.05; done",
        |world, tried| !struck(tried) && world.stored() > 40 << 20,
    ),
    Attempt::new(
        "descriptors",
        "bombs",
        r#"ulimit -n 900; perl -e '{begin} open($f[$_], "<", "/dev/null") for 1..800; {stay}' {mark}"#,
        |world, _| world.descriptors().len() > 700,
    ),
    outlive("background", "perl -e 'sleep 1 while 1' {mark} &"),
    outlive("no-hangup", "nohup perl -e 'sleep 1 while 1' {mark} > /dev/null 2>&1 &"),
    outlive("own-session", "setsid perl -e 'sleep 1 while 1' {mark} & sleep 0.05"),
    outlive(
        "daemon",
        r#"perl -e 'use POSIX; exit if fork; POSIX::setsid(); exit if fork; open(STDOUT, ">", "/dev/null"); open(STDERR, ">", "/dev/null"); chdir "/"; sleep 1 while 1' {mark}; sleep 0.05"#,
    ),
    outlive("deaf", r#"perl -e '$SIG{$_} = "IGNORE" for keys %SIG; sleep 1 while 1' {mark} &"#),
    outlive("stopped", "perl -e 'kill STOP => $$; sleep 1 while 1' {mark} & sleep 0.1"),
    outlive("pipe-holder", "(exec -a {mark} sleep 1000; cat) & disown"),
    outlive(
        "traced-child",
        r#"perl -e 'if (!fork) { call({sys:ptrace}, 0, 0, 0, 0); kill STOP => $$; sleep 1 while 1 } sleep 1 while 1' {mark} & sleep 0.1"#,
    ),
    outlive(
        "own-reaper",
        r#"setsid perl -e 'call({sys:prctl}, 36, 1, 0, 0, 0); if (!fork) { exit if fork; sleep 1 while 1 } sleep 1 while 1' {mark} & sleep 0.1"#,
    ),
    outlive(
        "child-of-helper",
        r#"perl -e 'call({sys:clone}, 0x8011, 0, 0, 0, 0); sleep 1 while 1' {mark} & sleep 0.1; kill -9 $!"#,
    ),
];
