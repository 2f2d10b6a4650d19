//! The host's side of a worker: a helper that computes and does nothing else. It is asked one question at a
//! time and gives one reply; it is locked before it hears the first, and killed when it takes too long. What
//! is computed is the program's own matter (see [`crate::helper_entry`]); nothing here looks into questions
//! or replies.

use std::io::{self, PipeWriter};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::error::Error;
use crate::link::PATIENCE;
use crate::shell::HelperPath;

/// The second argument of a helper that is a worker.
pub(crate) const WORKER: &str = "worker";

/// What a worker says once it is locked; anything else is the reason why it is not.
pub(crate) const READY: &str = "ready";

/// Room for that reason.
const MAX_OPENING: usize = 64 * 1024;

/// How long a worker that has closed its pipe may take to be gone, before it is made to.
const LEAVING: Duration = Duration::from_secs(1);

/// What a worker may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Bytes of memory beyond what it starts with. Its stack, up to 256 MiB, comes on top.
    pub memory_bytes: u64,
    /// Bytes of one reply.
    pub reply_bytes: usize,
    /// Seconds of processor time over its whole life. A last resort: the deadline of each question is what
    /// normally holds.
    pub cpu_seconds: u64,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self { memory_bytes: 512 << 20, reply_bytes: 64 << 20, cpu_seconds: 3_600 }
    }
}

/// Why a worker can be asked nothing more. Whatever the reason, its process is gone by then.
#[derive(Debug, thiserror::Error)]
pub enum WorkerEnd {
    /// It had not replied at its deadline and was killed.
    #[error("the worker had not replied at its deadline and was killed")]
    Deadline,
    /// It ended by itself or was ended by the kernel.
    #[error("the worker ended: {how}")]
    Died {
        /// How, in words.
        how: String,
    },
    /// It announced a reply that is longer than it may be, and was killed.
    #[error("the worker's reply of {bytes} bytes is longer than it may be; ask for less at a time")]
    TooLong {
        /// The length it announced.
        bytes: usize,
    },
    /// The pipe to it failed, or what came through it was not text, and it was killed.
    #[error("the pipe to the worker failed: {0}")]
    Pipe(#[source] io::Error),
}

/// A process that computes and can do nothing else: it opens no file, makes no socket, starts no process, and
/// cannot read the clock by asking the kernel. Dropping it kills it, and so does the end of this process,
/// however it comes.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    questions: ChildStdin,
    replies: ChildStdout,
    /// Nothing is ever written here. When it closes, the kernel kills the worker even in the midst of
    /// computing.
    #[expect(dead_code, reason = "it is held for what its closing does")]
    lifeline: PipeWriter,
    limits: WorkerLimits,
    standing: Standing,
}

/// Whether the worker can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Idle,
    /// A question is under way, or was when its future was dropped.
    Asked,
    Over,
}

/// What kept a question from being answered.
enum NoAnswer {
    Closed,
    TooLong(usize),
    Failed(io::Error),
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                Self::Closed
            }
            _ => Self::Failed(error),
        }
    }
}

impl Worker {
    /// Starts a worker and waits until it is locked. If it cannot be locked it is an error that says why, and
    /// nothing is computed.
    pub async fn start(helper: &HelperPath, limits: WorkerLimits) -> Result<Self, Error> {
        let (watched, lifeline) = io::pipe().map_err(Error::system("making a pipe"))?;
        let mut process = Command::new(&helper.program)
            .args(&helper.args)
            .args([WORKER, &limits.memory_bytes.to_string(), &limits.cpu_seconds.to_string()])
            .env_clear()
            // What is computed is to be the same on every machine, and the machine's own zone is in a file.
            .env("TZ", "UTC0")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::from(watched))
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| Error::HelperStart { program: helper.program.clone(), source })?;
        let (Some(questions), Some(replies)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::WorkerRefused { message: "it was started without its pipes".to_owned() });
        };
        let mut worker = Self { process, questions, replies, lifeline, limits, standing: Standing::Asked };
        let message = match timeout(PATIENCE, worker.hear(MAX_OPENING)).await {
            Ok(Ok(said)) if said == READY => {
                worker.standing = Standing::Idle;
                return Ok(worker);
            }
            Ok(Ok(reason)) => reason,
            Ok(Err(NoAnswer::Failed(error))) => error.to_string(),
            Ok(Err(NoAnswer::TooLong(_))) => {
                "it said something else; is it the same version of this program?".to_owned()
            }
            Ok(Err(NoAnswer::Closed)) => format!("it ended before that: {}", worker.leave().await),
            Err(_) => format!("it said nothing for {PATIENCE:?}"),
        };
        worker.kill().await;
        Err(Error::WorkerRefused { message })
    }

    /// Asks one question and waits for the reply, for no longer than `deadline`. An error means that the
    /// process is gone. If the future is dropped the worker is of no more use: the next question finds it
    /// ended.
    pub async fn ask(&mut self, line: &str, deadline: Duration) -> Result<String, WorkerEnd> {
        if self.standing != Standing::Idle {
            self.kill().await;
            return Err(WorkerEnd::Died { how: "it was ended together with an earlier question".to_owned() });
        }
        self.standing = Standing::Asked;
        let end = match timeout(deadline, self.exchange(line)).await {
            Ok(Ok(reply)) => {
                self.standing = Standing::Idle;
                return Ok(reply);
            }
            Ok(Err(NoAnswer::Closed)) => WorkerEnd::Died { how: self.leave().await },
            Ok(Err(NoAnswer::TooLong(bytes))) => WorkerEnd::TooLong { bytes },
            Ok(Err(NoAnswer::Failed(error))) => WorkerEnd::Pipe(error),
            Err(_) => WorkerEnd::Deadline,
        };
        self.kill().await;
        Err(end)
    }

    /// Ends the worker and waits until it is gone.
    pub async fn stop(mut self) {
        self.kill().await;
    }

    /// The process id, while it runs.
    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    async fn exchange(&mut self, question: &str) -> Result<String, NoAnswer> {
        let length = u32::try_from(question.len()).map_err(|_| {
            NoAnswer::Failed(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a question of more than 4 GiB cannot be asked",
            ))
        })?;
        self.questions.write_all(&length.to_le_bytes()).await?;
        self.questions.write_all(question.as_bytes()).await?;
        self.hear(self.limits.reply_bytes).await
    }

    async fn hear(&mut self, most: usize) -> Result<String, NoAnswer> {
        let mut length = [0; 4];
        self.replies.read_exact(&mut length).await?;
        let length = u32::from_le_bytes(length) as usize;
        if length > most {
            return Err(NoAnswer::TooLong(length));
        }
        let mut bytes = vec![0; length];
        self.replies.read_exact(&mut bytes).await?;
        String::from_utf8(bytes)
            .map_err(|error| NoAnswer::Failed(io::Error::new(io::ErrorKind::InvalidData, error)))
    }

    /// The worker has closed its pipe; says how it ended.
    async fn leave(&mut self) -> String {
        match timeout(LEAVING, self.process.wait()).await {
            Ok(Ok(status)) => in_words(status, &self.limits),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it closed its pipe".to_owned(),
        }
    }

    async fn kill(&mut self) {
        self.standing = Standing::Over;
        // Both fail only if the process has ended and been reaped already.
        let _ = self.process.start_kill();
        let _ = self.process.wait().await;
    }
}

/// How a worker ended, as a person would want to know it.
fn in_words(status: ExitStatus, limits: &WorkerLimits) -> String {
    let how = match status.signal() {
        Some(libc::SIGSYS) => "it asked the kernel for something that a worker may not have",
        Some(libc::SIGABRT) => "it gave up, most likely because it had no more memory",
        Some(libc::SIGSEGV | libc::SIGBUS) => "its stack overflowed, or it touched memory that is not there",
        Some(libc::SIGXCPU) => {
            return format!("it had used its {} s of processor time ({status})", limits.cpu_seconds);
        }
        Some(libc::SIGKILL) => "it was killed from outside, perhaps because the machine had no more memory",
        Some(_) => "it was ended from outside",
        None if status.code() == Some(PANICKED) => "it panicked",
        None => "it went away",
    };
    format!("{how} ({status})")
}

/// The exit code of a worker whose computation panicked, which is the one Rust programs have in any case.
pub(crate) const PANICKED: i32 = 101;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_end_is_told_apart() {
        let check = |raw: i32, expected: &str| {
            let words = in_words(ExitStatus::from_raw(raw), &WorkerLimits::default());
            assert!(words.contains(expected), "{raw}: {words}");
        };
        check(libc::SIGSYS, "may not have");
        check(libc::SIGABRT, "memory");
        check(libc::SIGSEGV, "stack");
        check(libc::SIGXCPU, "3600 s of processor time");
        check(libc::SIGKILL, "killed from outside");
        check(libc::SIGHUP, "ended from outside");
        check(PANICKED << 8, "panicked");
        check(0, "went away");
    }
}
