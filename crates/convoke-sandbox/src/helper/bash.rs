//! One bash and how it is spoken to.
//!
//! Bash reads a script from a private socket and the command of the moment from a file in memory, which it sources; the
//! command itself is evaluated inside, with all redirections on that one `eval`, so that bash undoes whatever the command
//! does to them. The script then reports over the socket. Nothing of this is a variable or a function, so commands
//! neither see nor break it, and a report is believed only if it carries a random token that bash has not even read
//! while the command runs.
//!
//! A command is stopped by a signal whose trap returns from the sourced file, and lets every command return that bash
//! would go on with. So loops, functions and `wait` end too, and the shell keeps its state.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::sys::{self, Pid};

/// Bash's private descriptors: the command's text, the output pipe, the reports. All are closed for commands.
const TEXT: i32 = 196;
const OUT: i32 = 197;
const REPORT: i32 = 198;

/// Where bash keeps `REPORT` while a command runs: it saves what the `eval` redirects from 10 on, in order.
const REPORT_SAVED: i32 = 14;

/// Bash would act on these at its start; the first two are exported again once it runs, the others describe bash itself.
const NOT_AT_START: [&str; 6] = ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "SHLVL", "_"];

/// Bash's own, which say nothing that the directory does not.
const NOT_REPORTED: [&str; 5] = ["SHELLOPTS", "BASHOPTS", "SHLVL", "_", "PWD"];

/// Exported variables; values need not be text.
pub(crate) type Env = BTreeMap<OsString, OsString>;

/// What every bash of one session is started with.
pub(crate) struct Launcher {
    bash: PathBuf,
    env: PathBuf,
    output: OwnedFd,
    text: File,
    /// What each bash does to itself at its start, besides.
    before: Option<fn() -> io::Result<()>>,
}

/// What bash said about itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) code: i32,
    /// `None` when the directory has been removed.
    pub(crate) cwd: Option<PathBuf>,
    /// `None` when it could not be listed.
    pub(crate) env: Option<Env>,
}

/// A running bash.
pub(crate) struct Bash {
    pub(crate) pid: Pid,
    socket: UnixStream,
    /// A program that bash was replaced by (`exec`) has no socket.
    pub(crate) silent: bool,
    said: Vec<u8>,
    exit_token: String,
    /// Set when the last command was stopped: the trap that stopped it must go first.
    stopped: bool,
}

impl Launcher {
    /// Finds the programs and makes the file that commands are handed over in.
    pub(crate) fn new(
        output: OwnedFd,
        path: Option<&OsStr>,
        before: Option<fn() -> io::Result<()>>,
    ) -> Result<Self, String> {
        let find = |name: &str| find_program(name, path).ok_or(format!("{name} was not found; install it"));
        let text = sys::memory_file().map_err(|error| format!("no file in memory: {error}"))?;
        Ok(Self { bash: find("bash")?, env: find("env")?, output, text: File::from(text), before })
    }

    /// Starts a bash in `cwd` with exactly these variables.
    pub(crate) fn start(&self, cwd: &Path, env: &Env) -> io::Result<Bash> {
        let (ours, theirs) = UnixStream::pair()?;
        let exit_token = sys::random_token()?;
        let mut command = Command::new(&self.bash);
        command.args(["--noprofile", "--norc", "-s"]).current_dir(cwd).env_clear();
        command.envs(env.iter().filter(|(name, _)| !NOT_AT_START.iter().any(|own| name == own)));
        command.stdin(Stdio::from(OwnedFd::from(theirs.try_clone()?))).stdout(Stdio::null()).stderr(Stdio::null());
        sys::prepare_child(&mut command);
        if let Some(before) = self.before {
            sys::before_exec(&mut command, before);
        }
        let child = {
            // Open under these numbers only for the moment in which bash inherits them.
            let _text = sys::duplicate_as(self.text.as_fd(), TEXT, false)?;
            let _out = sys::duplicate_as(self.output.as_fd(), OUT, false)?;
            let _report = sys::duplicate_as(theirs.as_fd(), REPORT, false)?;
            command.spawn()?
        };
        ours.set_nonblocking(true)?;
        let pid = Pid::try_from(child.id()).map_err(io::Error::other)?;
        let mut bash = Bash { pid, socket: ours, silent: false, said: Vec::new(), exit_token, stopped: false };
        let again = ["BASH_ENV", "ENV"].map(|name| env.get(OsStr::new(name)).map(|value| (name, value)));
        let mut script = self.opening(&bash.exit_token);
        for (name, value) in again.into_iter().flatten() {
            script.extend_from_slice(format!("\\builtin export {name}=").as_bytes());
            script.extend_from_slice(&quote(value.as_bytes()));
            script.push(b'\n');
        }
        bash.tell(&script);
        Ok(bash)
    }

    /// Hands a command to bash; its report will carry `token`.
    pub(crate) fn run(&self, bash: &mut Bash, command: &str, token: &str) -> io::Result<()> {
        let mut text = b"\\builtin eval -- ".to_vec();
        text.extend_from_slice(&quote(command.as_bytes()));
        text.extend_from_slice(format!(" >&{OUT} 2>&1 </dev/null {TEXT}<&- {OUT}>&- {REPORT}>&-\n").as_bytes());
        self.text.set_len(0)?;
        self.text.write_all_at(&text, 0)?;
        let clean = if std::mem::take(&mut bash.stopped) { "\\builtin trap - DEBUG; \\builtin set +T\n" } else { "" };
        let report = self.report(token, REPORT);
        bash.said.clear();
        bash.tell(format!("{clean}\\builtin source /dev/fd/{TEXT}\n{report}\n").as_bytes());
        Ok(())
    }

    /// Whether bash still has the descriptors it needs for the next command: `exec 12>file` may have taken one over.
    pub(crate) fn is_intact(&self, bash: &Bash) -> bool {
        let same = |number: i32, ours: BorrowedFd<'_>| {
            let theirs = std::fs::metadata(format!("/proc/{}/fd/{number}", bash.pid));
            let ours = ours.try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
            match (theirs, ours) {
                (Ok(theirs), Ok(ours)) => theirs.ino() == ours.ino() && theirs.dev() == ours.dev(),
                (Err(error), _) => error.kind() != io::ErrorKind::NotFound,
                (Ok(_), Err(_)) => true,
            }
        };
        same(TEXT, self.text.as_fd()) && same(OUT, self.output.as_fd())
    }

    /// The traps that every bash begins with.
    fn opening(&self, exit_token: &str) -> Vec<u8> {
        let unwind = r"((${#BASH_SOURCE[@]})) && \builtin return 137";
        // Inside the double quotes it must be expanded only when the inner trap runs.
        let later = unwind.replace('\\', r"\\").replace('$', r"\$");
        let stop = format!(r#"\builtin set -T; \builtin trap "{later}" DEBUG; {unwind}"#);
        let at_exit = [REPORT_SAVED, REPORT]
            .map(|number| format!("if [[ -S /dev/fd/{number} ]]; then {}", self.report(exit_token, number)))
            .join("; el");
        let mut bytes = Vec::new();
        for (trap, signal) in [(stop, "RTMAX"), (format!("{at_exit}; fi"), "EXIT")] {
            bytes.extend_from_slice(b"\\builtin trap ");
            bytes.extend_from_slice(&quote(trap.as_bytes()));
            bytes.extend_from_slice(format!(" {signal}\n").as_bytes());
        }
        bytes
    }

    /// The script that reports to descriptor `to`. Every part is redirected by itself, so that what a trap of the
    /// command's own prints in between goes nowhere. The token is an argument: in the format its digits would be read as an
    /// escape.
    fn report(&self, token: &str, to: i32) -> String {
        let env = String::from_utf8_lossy(&quote(self.env.as_os_str().as_bytes())).into_owned();
        format!(
            r#"\builtin printf '\0%s %s\0' {token} "$?" >&{to}; \builtin pwd -P >&{to} || \builtin :; \builtin printf '\0' >&{to}; {env} -0 >&{to} && \builtin printf '%s whole\0' {token} >&{to} || \builtin :; \builtin printf '%s\0' {token} >&{to}"#
        )
    }
}

impl Bash {
    /// The socket, for `poll`.
    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes in what bash has said.
    pub(crate) fn listen(&mut self) {
        let mut buffer = [0; 16 * 1024];
        while !self.silent {
            match self.socket.read(&mut buffer) {
                Ok(0) => self.silent = true,
                Ok(count) => self.said.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Bash ended with unread script in its socket.
                Err(_) => self.silent = true,
            }
        }
    }

    /// The report with this token, once it is complete.
    pub(crate) fn report(&self, token: &str) -> Option<Report> {
        parse_report(&self.said, token)
    }

    /// What bash said when it ended, if it could.
    pub(crate) fn last_words(&self) -> Option<Report> {
        parse_report(&self.said, &self.exit_token)
    }

    /// Lets the command of the moment return as soon as bash gets to it.
    pub(crate) fn interrupt(&mut self) {
        self.stopped = true;
        sys::signal_child(self.pid, libc::SIGRTMAX());
    }

    fn tell(&mut self, script: &[u8]) {
        // The script is far smaller than the socket's buffer. If bash has just ended nobody listens, and its end is seen
        // by the signal that follows.
        let _ = self.socket.write_all(script);
    }
}

fn parse_report(said: &[u8], token: &str) -> Option<Report> {
    let header = format!("\0{token} ").into_bytes();
    let start = said.windows(header.len()).position(|window| window == header)? + header.len();
    let body = said[start..].strip_suffix(format!("{token}\0").as_bytes())?;
    let mut parts = body.splitn(3, |&byte| byte == 0);
    let code = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
    let cwd = parts.next()?.strip_suffix(b"\n").filter(|path| path.starts_with(b"/"));
    let env = parts.next()?.strip_suffix(format!("{token} whole\0").as_bytes()).map(|entries| {
        entries
            .split(|&byte| byte == 0)
            .filter_map(|entry| {
                let equals = entry.iter().skip(1).position(|&byte| byte == b'=')? + 1;
                let (name, value) = (OsStr::from_bytes(&entry[..equals]), &entry[equals + 1..]);
                let ours = NOT_REPORTED.iter().any(|own| name == *own);
                (!ours).then(|| (name.to_owned(), OsString::from_vec(value.to_vec())))
            })
            .collect()
    });
    Some(Report { code, cwd: cwd.map(|path| PathBuf::from(OsStr::from_bytes(path))), env })
}

/// Single quotes, in which only the quote itself is special.
fn quote(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'\''];
    for &byte in text {
        if byte == b'\'' {
            quoted.extend_from_slice(b"'\\''");
        } else {
            quoted.push(byte);
        }
    }
    quoted.push(b'\'');
    quoted
}

/// The usual places come first, so that a directory which commands can write does not choose the shell. What is found runs
/// where commands run, behind the same door, so it need not be more trusted than they are.
fn find_program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    ["/usr/bin", "/bin"]
        .into_iter()
        .map(PathBuf::from)
        .chain(path.into_iter().flat_map(std::env::split_paths).filter(|directory| directory.is_absolute()))
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_exactly() {
        let said = b"noise\0T 7\0/a b\n\0A=1\0B=x\ny=\0_=no\0T whole\0T\0";
        let report = parse_report(said, "T").unwrap();
        let env = Env::from([("A".into(), "1".into()), ("B".into(), "x\ny=".into())]);
        assert_eq!(report, Report { code: 7, cwd: Some("/a b".into()), env: Some(env) });
    }

    #[test]
    fn a_report_without_directory_or_variables_is_still_one() {
        assert_eq!(parse_report(b"\0T 0\0\0A=cut offT\0", "T"), Some(Report { code: 0, cwd: None, env: None }));
    }

    #[test]
    fn an_incomplete_or_foreign_report_is_none() {
        let whole: &[u8] = b"\0T 0\0/\n\0T whole\0T\0";
        assert!(parse_report(whole, "T").is_some());
        for cut in 0..whole.len() {
            assert_eq!(parse_report(&whole[..cut], "T"), None, "cut at {cut}");
        }
        assert_eq!(parse_report(whole, "U"), None);
    }

    #[test]
    fn quoting_keeps_quotes() {
        assert_eq!(quote(b"it's"), b"'it'\\''s'");
    }
}
