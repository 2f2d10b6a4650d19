//! One attempt, and one try of it: in a fresh world, under one policy, held by one set of layers. What came
//! of it is looked up in the world, never believed of the command, but where it is the command that must not
//! learn a secret.

use std::time::Duration;

use convoke_sandbox::{
    Access, Ending, Finished, HoldChoice, LayerSet, OutputSpec, RunCommand, Shell, ShellConfig, ShellState,
    Templates,
};

use super::world::World;
use crate::helper;

/// How long a command may try.
const DEADLINE: Duration = Duration::from_secs(20);

/// Under what an attempt is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) access: Access,
    pub(super) set: Option<LayerSet>,
    pub(super) hold: HoldChoice,
}

/// When the world is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// While the shell still stands.
    Running,
    /// When the shell was stopped.
    Stopped,
}

/// One way to get out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) name: &'static str,
    pub(super) family: &'static str,
    lay: fn(&mut World),
    /// A template, see [`World::fill`].
    command: &'static str,
    escaped: fn(&World, &Tried<'_>) -> bool,
    when: When,
    /// The policy under which alone it means something.
    only: Option<Access>,
    /// Without a sandbox it is tried in a plain bash that is killed, because our own helper catches it even
    /// then.
    plain: bool,
    /// A second command for a new shell that goes on where the first left off.
    again: Option<&'static str>,
    /// Whether the shell is asked for more afterwards.
    goes_on: bool,
    /// Whether it needs a terminal.
    terminal: bool,
    /// Whether the command is followed by a word on whether it was refused.
    says_whether: bool,
}

/// What the host saw of the command, besides the world.
pub(super) struct Tried<'a> {
    pub(super) text: String,
    pub(super) ending: Option<Ending>,
    /// Whether something outside is not as it was.
    pub(super) touched: bool,
    pub(super) shell: Option<&'a Shell>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Came {
    pub(super) escaped: bool,
    /// Whether the shell still worked after it.
    pub(super) alive: bool,
    pub(super) text: String,
}

impl Attempt {
    /// An attempt that has succeeded when `escaped` says so, or when anything outside has changed.
    pub(super) const fn new(
        name: &'static str,
        family: &'static str,
        command: &'static str,
        escaped: fn(&World, &Tried<'_>) -> bool,
    ) -> Self {
        Self {
            name,
            family,
            lay: |_| (),
            command,
            escaped,
            when: When::Running,
            only: None,
            plain: false,
            again: None,
            goes_on: true,
            terminal: false,
            says_whether: false,
        }
    }

    /// With something laid out before.
    pub(super) const fn laid(self, lay: fn(&mut World)) -> Self {
        Self { lay, ..self }
    }

    /// Under this policy alone.
    pub(super) const fn only(self, access: Access) -> Self {
        Self { only: Some(access), ..self }
    }

    /// Looked at when the shell was stopped; compared with a bash that was killed.
    pub(super) const fn outlives(self) -> Self {
        Self { when: When::Stopped, plain: true, ..self }
    }

    /// Looked at when the shell was stopped.
    pub(super) const fn stopped(self) -> Self {
        Self { when: When::Stopped, ..self }
    }

    /// With another command in a new shell of the same agent.
    pub(super) const fn again(self, command: &'static str) -> Self {
        Self { again: Some(command), ..self }
    }

    /// Aims at the helper itself, after which the shell is not asked for more.
    pub(super) const fn at_helper(self) -> Self {
        Self { goes_on: false, ..self }
    }

    /// Whether it means something under a policy.
    pub(super) fn concerns(&self, access: Access) -> bool {
        access == Access::Off || self.only.is_none_or(|only| only == access)
    }

    /// No way out: says whether a command fails. Nothing is laid, and nothing outside may change.
    pub(super) const fn tell(command: &'static str) -> Self {
        Self { says_whether: true, ..Self::new("tell", "told", command, |_, _| false) }
    }

    /// Tried by a host in a terminal of its own, which is then looked at.
    pub(super) const fn in_terminal(self) -> Self {
        Self { terminal: true, ..self }
    }

    /// Whether it depends on which processes can be seen, and so on the hold.
    pub(super) fn concerns_processes(&self) -> bool {
        let words = ["{foreign}", "{everybody}", "/proc/", "$PPID"];
        ["processes", "survivors", "bombs"].contains(&self.family)
            || words.iter().any(|word| self.command.contains(word))
    }

    /// Tries it once.
    pub(super) async fn attempt(&self, cell: Cell) -> Came {
        let mut world = World::new(cell.access);
        (self.lay)(&mut world);
        if self.terminal {
            return self.attempt_in_terminal(&world, cell);
        }
        if self.plain && cell.access == Access::Off {
            return self.attempt_plainly(&world);
        }
        let mut shell = start(&world, cell, None).await;
        let before = world.outside();
        let mut text = String::new();
        let mut ending = None;
        for command in [Some(self.command), self.again].into_iter().flatten() {
            if ending.is_some() {
                let state = shell.state().clone();
                shell.stop().await.unwrap();
                shell = start(&world, cell, Some(state)).await;
            }
            let asked = format!("{{ {command}; }} 2>/dev/null || echo refused");
            let command = if self.says_whether { &asked } else { command };
            match run(&mut shell, &world, command, DEADLINE).await {
                Some(finished) => {
                    text.push_str(&finished.output.text);
                    ending = Some(finished.ending);
                }
                None => break,
            }
        }
        let touched = world.outside() != before;
        let tried = Tried { text, ending, touched, shell: Some(&shell) };
        let mut escaped = touched || (self.when == When::Running && (self.escaped)(&world, &tried));
        let mut text = tried.text;
        let mut alive = true;
        if self.goes_on {
            let more = run(&mut shell, &world, "echo alive", DEADLINE).await;
            alive = more.is_some_and(|more| more.output.text.contains("alive\n"));
        } else if let Some(pid) = shell.helper_pid() {
            // An attempt that aimed at the helper may have stopped it.
            world.host(&format!("kill -CONT {pid}"));
        }
        let stopped = shell.stop().await;
        if self.when == When::Stopped {
            text.push_str(&format!("{stopped:?}"));
            let tried = Tried { text: text.clone(), ending: None, touched, shell: None };
            escaped |= (self.escaped)(&world, &tried);
            world.end_marked();
        }
        Came { escaped, alive, text }
    }

    fn attempt_plainly(&self, world: &World) -> Came {
        let script = world.at("state/plain");
        std::fs::write(&script, world.fill(self.command)).unwrap();
        let mut bash = std::process::Command::new("bash")
            .arg(script)
            .current_dir(world.at("home/project"))
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        bash.wait().unwrap();
        let tried = Tried { text: String::new(), ending: None, touched: false, shell: None };
        let escaped = (self.escaped)(world, &tried);
        world.end_marked();
        Came { escaped, alive: true, text: String::new() }
    }
}

impl Attempt {
    /// The host, or a plain bash where nothing is confined, runs in a terminal that `script` makes and writes
    /// down. When it is over, whatever was typed meanwhile is read by the next in the same terminal.
    fn attempt_in_terminal(&self, world: &World, cell: Cell) -> Came {
        let log = world.at("log");
        let text = world.at("text");
        let given = world.at("given");
        std::fs::write(&given, world.fill(self.command)).unwrap();
        std::fs::create_dir(world.at("private")).unwrap();
        std::fs::create_dir(world.at("workspace")).unwrap();
        let word = match (cell.set, cell.hold) {
            (None, _) => None,
            (Some(LayerSet::Namespaces), _) => Some("namespaces"),
            (Some(LayerSet::Landlock), HoldChoice::Best) => Some("landlock"),
            (Some(LayerSet::Landlock), HoldChoice::Subreaper) => Some("alone"),
        };
        let more = if cell.access == Access::Workspace { "-workspace" } else { "" };
        let program = helper().program.display().to_string();
        let [world_at, text_at, given_at] =
            [&world.at(""), &text, &given].map(|path| path.display().to_string());
        let run = match word {
            None => format!("bash {text_at} >/dev/null 2>&1"),
            Some(word) => format!("{program} once {word}{more} {world_at} {text_at}"),
        };
        let all = format!(
            "sed \"s,TERMINAL,$(tty),\" {given_at} > {text_at}; {run}; read -t 0.3 typed; \
                echo \"typed=$typed\""
        );
        let script = std::process::Command::new("script")
            .args(["-qec", &all])
            .arg(&log)
            .env("SHELL", "/bin/bash")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
        let Ok(mut script) = script else {
            return Came { escaped: false, alive: true, text: "no terminal can be made".to_owned() };
        };
        // It reads its input until the end, which must not come before the terminal's.
        let input = script.stdin.take();
        script.wait().unwrap();
        drop(input);
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let tried = Tried { text: text.clone(), ending: None, touched: false, shell: None };
        convoke_sandbox::remove_private(&world.at("private"));
        Came { escaped: (self.escaped)(world, &tried), alive: text.contains("typed="), text }
    }
}

async fn start(world: &World, cell: Cell, restored: Option<ShellState>) -> Shell {
    let home = world.at("home").display().to_string();
    let env = [("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"), ("HOME", &home)];
    let config = ShellConfig {
        helper: helper(),
        cwd: world.at("home/project"),
        env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        restored,
        hold: cell.hold,
        policy: world.policy(),
        layers: cell.set,
        templates: Templates::default(),
        promise: Default::default(),
        writes: None,
    };
    Shell::start(config).await.unwrap()
}

async fn run(shell: &mut Shell, world: &World, command: &str, deadline: Duration) -> Option<Finished> {
    let output = OutputSpec::new(world.at("state/full"));
    let command = RunCommand { command: world.fill(command), deadline, output };
    shell.run(command, std::future::pending()).await.ok()
}

/// The calls that attempts make by number.
pub(super) const CALLS: &[(&str, i64)] = &[
    ("add_key", libc::SYS_add_key),
    ("bpf", libc::SYS_bpf),
    ("chroot", libc::SYS_chroot),
    ("clone", libc::SYS_clone),
    ("clone3", libc::SYS_clone3),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("keyctl", libc::SYS_keyctl),
    ("linkat", libc::SYS_linkat),
    ("memfd_create", libc::SYS_memfd_create),
    ("mknodat", libc::SYS_mknodat),
    ("mount", libc::SYS_mount),
    ("mq_open", libc::SYS_mq_open),
    ("mq_timedreceive", libc::SYS_mq_timedreceive),
    ("mq_timedsend", libc::SYS_mq_timedsend),
    ("mq_unlink", libc::SYS_mq_unlink),
    ("name_to_handle_at", libc::SYS_name_to_handle_at),
    ("openat", libc::SYS_openat),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("open_tree", libc::SYS_open_tree),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("personality", libc::SYS_personality),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("pidfd_open", libc::SYS_pidfd_open),
    ("pidfd_send_signal", libc::SYS_pidfd_send_signal),
    ("prctl", libc::SYS_prctl),
    ("prlimit64", libc::SYS_prlimit64),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("process_vm_writev", libc::SYS_process_vm_writev),
    ("ptrace", libc::SYS_ptrace),
    ("renameat2", libc::SYS_renameat2),
    ("sched_setaffinity", libc::SYS_sched_setaffinity),
    ("setns", libc::SYS_setns),
    ("setpriority", libc::SYS_setpriority),
    ("setxattr", libc::SYS_setxattr),
    ("socketpair", libc::SYS_socketpair),
    ("unshare", libc::SYS_unshare),
    ("userfaultfd", libc::SYS_userfaultfd),
];
