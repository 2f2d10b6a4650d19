//! A shell in a pane of a tmux server of its own, in which the binary is started as a person starts it. What
//! is seen is waited for, every byte that is written can be kept, and no process of another test is touched.

use std::cell::RefCell;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::pane::tmux;
use crate::stage::Stage;

/// How long anything may take to be seen: two cores, many tests at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A shell in a pane, with the environment of a stage. Its server ends with it.
pub(crate) struct Shell {
    folder: TempDir,
    environment: Vec<(String, String)>,
    /// What is tried in it now.
    case: RefCell<String>,
}

impl Shell {
    /// A bash that has shown its prompt, which says how the last command ended: `0:ready> `. The binary is
    /// `convoke` in it.
    pub(crate) fn open(stage: &Stage, (columns, rows): (u16, u16), more: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // A shell that sets bracketed paste itself would hide that the session has not set it back.
        std::fs::write(folder.path().join("inputrc"), "set enable-bracketed-paste off\n").unwrap();
        let mut shell = Self { environment: environment(stage, &folder), folder, case: RefCell::default() };
        shell.environment.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let dir = stage.work().to_string_lossy().into_owned();
        let columns = columns.to_string();
        let rows = rows.to_string();
        let size = ["new-session", "-d", "-x", &columns, "-y", &rows, "-c", &dir];
        shell.tmux(&[&size[..], &BASH].concat());
        shell.tmux(&["set-option", "-g", "remain-on-exit", "on"]);
        shell.prompts();
        shell
    }

    /// Says what is tried from now on, for the message of a failure.
    pub(crate) fn tries(&self, case: String) {
        self.case.replace(case);
    }

    /// Types a line.
    pub(crate) fn enter(&self, line: &str) {
        self.types(line);
        self.keys(&["Enter"]);
    }

    /// Types this, letter by letter.
    pub(crate) fn types(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
    }

    /// Presses keys by their names.
    pub(crate) fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Pastes a text as a terminal does: marked as such if the program that reads wants that.
    pub(crate) fn pastes(&self, text: &str) {
        self.tmux(&["set-buffer", text]);
        self.tmux(&["paste-buffer", "-p"]);
    }

    /// What the pane shows.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Everything that the pane has shown and shows; rows that it has broken are joined.
    pub(crate) fn all(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// What tmux knows of the pane.
    pub(crate) fn knows(&self, format: &str) -> String {
        self.tmux(&["display-message", "-p", format]).trim().to_owned()
    }

    /// Waits until this is on the screen.
    #[track_caller]
    pub(crate) fn sees(&self, text: &str) {
        self.until(text, || self.screen().contains(text));
    }

    /// Waits until this is on the screen, however its rows are broken and filled.
    #[track_caller]
    pub(crate) fn reads(&self, text: &str) {
        let wanted = squeezed(text);
        self.until(text, || squeezed(&self.screen()).contains(&wanted));
    }

    /// Waits until this is so.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so() {
            let in_time = Instant::now() < deadline;
            let case = self.case.borrow();
            assert!(in_time, "{case}: waited in vain for {what}:\n{}", self.screen());
            drop(case);
            std::thread::sleep(Duration::from_millis(40));
        }
    }

    /// Waits until the shell waits for a command, and says how the last one ended.
    #[track_caller]
    pub(crate) fn prompts(&self) -> i32 {
        let code = || self.screen().trim_end().lines().last()?.strip_suffix(":ready>")?.parse().ok();
        self.until("the shell's prompt", || code().is_some());
        code().unwrap()
    }

    /// Keeps every byte that is written to the terminal from now on.
    pub(crate) fn keeps(&self) -> PathBuf {
        let file = self.folder.path().join("written");
        self.tmux(&["pipe-pane", &format!("cat > {}", file.display())]);
        self.until("the file with what is written", || file.exists());
        file
    }

    /// Every byte that was written since [`keeps`](Self::keeps), once nothing more can come.
    pub(crate) fn kept(&self) -> Vec<u8> {
        // What the shell says last is the end of it.
        self.enter("printf 'end%s\\n' of-all");
        let file = self.folder.path().join("written");
        let is_whole = |bytes: &[u8]| bytes.windows(9).any(|part| part == b"endof-all");
        self.until("the rest of what is written", || is_whole(&std::fs::read(&file).unwrap()));
        std::fs::read(&file).unwrap()
    }

    /// Sends a signal to the binary, not to its guard.
    #[track_caller]
    pub(crate) fn signal(&self, signal: Signal) {
        let found = self.processes(Whom::Session);
        let [process] = found.as_slice() else { panic!("one session is to run here, not {found:?}") };
        kill(Pid::from_raw(*process), signal).unwrap();
    }

    /// Processes of the binary in this terminal.
    pub(crate) fn processes(&self, whom: Whom) -> Vec<i32> {
        let terminal = std::fs::metadata(self.knows("#{pane_tty}")).unwrap().rdev();
        let numbers = std::fs::read_dir("/proc").unwrap();
        let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        numbers.filter(|number| is_here(*number, terminal, whom).unwrap_or(false)).collect()
    }

    /// Ends the shell without a word, as if its window were closed, waits until these have ended too, and
    /// opens a new one. What is to be done `meanwhile` is done when the shell is gone and these have taken
    /// the hang-up in: the kernel has sent it to them by then, but a process on a busy machine may come to it
    /// later.
    #[track_caller]
    pub(crate) fn breaks_off(&self, numbers: &[i32], meanwhile: impl FnOnce()) {
        let shell: i32 = self.knows("#{pane_pid}").parse().unwrap();
        kill(Pid::from_raw(shell), Signal::SIGKILL).unwrap();
        self.until("the end of the shell", || self.knows("#{pane_dead}") == "1");
        for _ in 0..HAND_OVERS {
            let mut awake: Vec<PathBuf> = numbers.iter().flat_map(|number| threads(*number)).collect();
            self.until("the hang-up to be taken in", || {
                awake.retain(|thread| !sleeps(thread));
                awake.is_empty()
            });
        }
        meanwhile();
        let lives =
            |number: &i32| std::fs::read(format!("/proc/{number}/cmdline")).is_ok_and(|it| !it.is_empty());
        self.until(&format!("the end of {numbers:?}"), || !numbers.iter().any(lives));
        self.tmux(&[&["respawn-pane", "-k"], &BASH[..]].concat());
        self.prompts();
    }

    /// The shell has the terminal again, and it is as it was before the binary took it.
    #[track_caller]
    pub(crate) fn is_usable(&self) {
        self.until("the end of the session", || self.processes(Whom::Session).is_empty());
        self.until("the end of the guard", || self.processes(Whom::Guard).is_empty());
        let code = self.prompts();
        let flags = "#{alternate_on} #{cursor_flag} #{wrap_flag} #{mouse_any_flag} #{insert_flag} \
            #{origin_flag} #{keypad_cursor_flag} #{scroll_region_upper}";
        assert_eq!(self.knows(flags), "0 1 1 0 0 0 0 0", "{}", self.screen());
        let bottom = (self.knows("#{scroll_region_lower}"), self.knows("#{e|-:#{pane_height},1}"));
        assert_eq!(bottom.0, bottom.1, "the whole screen scrolls");
        // In a row of its own: nothing of the session stands before the prompt or behind it.
        self.enter("echo alive$((40+2))");
        let asked = format!("{code}:ready> echo alive$((40+2))");
        let answered = "alive42";
        self.until(&asked, || {
            let screen = self.screen();
            let rows: Vec<&str> = screen.lines().map(str::trim_end).collect();
            rows.windows(2).any(|rows| rows == [asked.as_str(), answered])
        });
        self.enter("clear; cat -v");
        self.until("cat to run", || self.knows("#{pane_current_command}") == "cat");
        self.pastes("pasted words");
        self.keys(&["Enter"]);
        self.until("what was pasted, twice", || self.screen().matches("pasted words").count() == 2);
        assert!(!self.screen().contains("0~"), "pastes are still marked:\n{}", self.screen());
        self.keys(&["C-c"]);
        self.until("Ctrl-C to end it", || self.screen().contains("130:ready>"));
        self.enter("clear; stty -a; echo all$((40+2))");
        self.sees("all42");
        let settings = self.screen();
        for setting in ["isig", "icanon", "iexten", "echo", "echoe", "opost", "onlcr", "icrnl", "ixon"] {
            assert!(settings.split_whitespace().any(|word| word == setting), "{setting} is off:\n{settings}");
        }
        self.enter("clear");
        self.until("a clear screen", || self.screen().trim_end() == "0:ready>");
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        assert!(status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tmux());
        command
            .arg("-u")
            .arg("-S")
            .arg(self.folder.path().join("s"))
            .args(["-f", "/dev/null"])
            .args(arguments);
        command.env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

const BASH: [&str; 3] = ["bash", "--norc", "--noprofile"];

/// Which processes of the binary are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whom {
    Session,
    Guard,
}

/// Says a figure where it is seen although the test is well.
pub(crate) fn note(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// The text without blanks, line breaks and what frames it.
pub(crate) fn squeezed(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !"│┃|".contains(*c)).collect()
}

/// What the shell and everything in it finds in its environment.
fn environment(stage: &Stage, folder: &TempDir) -> Vec<(String, String)> {
    let plain = stage.command(&[]);
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let mut environment: Vec<(String, String)> =
        plain.as_std().get_envs().filter_map(|(name, value)| Some((text(name), text(value?)))).collect();
    let binary = PathBuf::from(env!("CARGO_BIN_EXE_convoke"));
    for (name, value) in &mut environment {
        if name == "PATH" {
            *value = format!("{}:{value}", binary.parent().unwrap().display());
        }
    }
    let inputrc = folder.path().join("inputrc").to_string_lossy().into_owned();
    let own =
        [("PS1", "$?:ready> "), ("INPUTRC", &inputrc), ("SHELL", "/bin/bash"), ("TERM", "xterm-256color")];
    environment.extend(
        own.into_iter().chain([("LC_ALL", "C.UTF-8")]).map(|(name, value)| (name.into(), value.into())),
    );
    environment
}

/// Whether a process is the binary (or its guard) and lives in this terminal; `None` if it is gone.
fn is_here(number: i32, terminal: u64, whom: Whom) -> Option<bool> {
    let words = std::fs::read_to_string(format!("/proc/{number}/cmdline")).ok()?;
    let state = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    let fields: Vec<&str> = state.rsplit(')').next()?.split_whitespace().collect();
    let guards = words.contains("__convoke-guard");
    let is_ours = words.split('\0').next()?.rsplit('/').next()? == "convoke";
    Some(is_ours && fields.get(4)?.parse() == Ok(terminal) && guards == (whom == Whom::Guard))
}

/// How many threads a signal wakes one after the other before the session has taken it in, and some more: the
/// handler's, the one that waits for files, the one that leads the session, the one that drives the lead.
const HAND_OVERS: usize = 8;

/// The threads of a process. A process that has ended has none.
fn threads(number: i32) -> Vec<PathBuf> {
    let all = std::fs::read_dir(format!("/proc/{number}/task")).into_iter().flatten().flatten();
    all.map(|thread| thread.path()).collect()
}

/// Whether a thread sleeps or is gone, and no signal waits for its process. A thread that wakes another one
/// sleeps only after the other one is awake: when every thread was seen asleep, a signal has come one thread
/// further at least. To wait for a moment in which all of them sleep at once would take longer than the
/// session waits for its reply, on a busy machine.
fn sleeps(thread: &Path) -> bool {
    let Ok(status) = std::fs::read_to_string(thread.join("status")) else { return true };
    let values = |name: &'static str| {
        status.lines().filter_map(move |line| Some(line.strip_prefix(name)?.trim_start_matches(':').trim()))
    };
    let pending =
        ["SigPnd", "ShdPnd"].iter().flat_map(|name| values(name)).any(|set| set.contains(|bit| bit != '0'));
    !pending && values("State").any(|state| state.starts_with(['S', 'Z', 'X']))
}
