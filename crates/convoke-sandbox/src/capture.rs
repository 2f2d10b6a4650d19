//! One trusted program of ours, such as git: no shell, no input, a deadline, bounded output. Never for anything a model
//! wrote.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use crate::error::Error;
use crate::sys::{self, Pid};

/// What a program printed and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramOutput {
    /// Its standard output, up to the cap.
    pub stdout: Vec<u8>,
    /// Its error output, up to the cap.
    pub stderr: Vec<u8>,
    /// Whether either was longer than the cap.
    pub truncated: bool,
    /// Its exit code; 128 and the signal if one killed it.
    pub code: i32,
}

/// Runs `program` with exactly the environment `env`, keeping at most `cap` bytes of each output. At the deadline, or when
/// the future is dropped, its whole process group is killed.
///
/// A process it leaves behind does not delay the answer.
pub async fn capture(
    program: &str,
    args: &[OsString],
    cwd: &Path,
    env: &BTreeMap<String, String>,
    deadline: Duration,
    cap: usize,
) -> Result<ProgramOutput, Error> {
    let (mut stdout, stdout_writer) = Collector::new(cap)?;
    let (mut stderr, stderr_writer) = Collector::new(cap)?;
    let child = Command::new(program)
        .args(args)
        .current_dir(cwd)
        .env_clear()
        .envs(env)
        .stdin(Stdio::null())
        .stdout(stdout_writer)
        .stderr(stderr_writer)
        .process_group(0)
        .spawn()
        .map_err(|source| Error::ProgramStart { program: program.to_owned(), source })?;
    let mut group = Group(child);
    let work = async {
        let status = loop {
            tokio::select! {
                status = group.0.wait() => break status.map_err(Error::system("waiting for a program"))?,
                more = stdout.read(), if stdout.open => drop(more?),
                more = stderr.read(), if stderr.open => drop(more?),
            }
        };
        stdout.drain().await?;
        stderr.drain().await?;
        Ok::<ExitStatus, Error>(status)
    };
    let status = match tokio::time::timeout(deadline, work).await {
        Ok(status) => status?,
        Err(_) => return Err(Error::ProgramDeadline { program: program.to_owned(), deadline }),
    };
    let code =
        status.code().unwrap_or_else(|| 128 + std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0));
    let truncated = stdout.truncated || stderr.truncated;
    Ok(ProgramOutput { stdout: stdout.kept, stderr: stderr.kept, truncated, code })
}

/// Kills the group when the program is not waited for to its end.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // The id is there only as long as the child has not been reaped, so it cannot mean another group.
        if let Some(leader) = self.0.id().and_then(|id| Pid::try_from(id).ok()) {
            sys::signal_group(leader, libc::SIGKILL);
        }
    }
}

struct Collector {
    pipe: pipe::Receiver,
    buffer: Vec<u8>,
    kept: Vec<u8>,
    cap: usize,
    truncated: bool,
    open: bool,
}

impl Collector {
    fn new(cap: usize) -> Result<(Self, Stdio), Error> {
        let (reader, writer) = std::io::pipe().map_err(Error::system("making a pipe"))?;
        let pipe = pipe::Receiver::from_owned_fd(reader.into()).map_err(Error::system("watching a pipe"))?;
        let buffer = vec![0; 16 * 1024];
        let collector = Self { pipe, buffer, kept: Vec::new(), cap, truncated: false, open: true };
        Ok((collector, Stdio::from(OwnedFd::from(writer))))
    }

    /// Waits for some bytes and says how many came.
    async fn read(&mut self) -> Result<usize, Error> {
        self.pipe.readable().await.map_err(Error::system("waiting for a program's output"))?;
        match self.pipe.try_read(&mut self.buffer) {
            Ok(count) => {
                self.open = count > 0;
                let keep = count.min(self.cap - self.kept.len());
                self.kept.extend_from_slice(&self.buffer[..keep]);
                self.truncated |= keep < count;
                Ok(count)
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(Error::System { doing: "reading a program's output", source: error }),
        }
    }

    /// Reads what is there now that the program has ended; somebody else may hold the pipe open, or go on filling it.
    async fn drain(&mut self) -> Result<(), Error> {
        let mut left = sys::bytes_waiting(self.pipe.as_fd()).map_err(Error::system("measuring a program's output"))?;
        while self.open && left > 0 {
            left = left.saturating_sub(self.read().await?);
        }
        Ok(())
    }
}
