//! The interpreter of workflow programs as the host has it: a worker process that is locked before it hears
//! the first line of a program, and killed when it computes too long. This file carries questions and
//! replies; what they mean is decided elsewhere, and no program is ever run in this process.

use std::time::Duration;

use convoke_sandbox::{HelperPath, Worker, WorkerEnd, WorkerLimits};
use convoke_script::{GuestMessage, HostMessage, Limits};

/// To be called first in `main`, before any thread exists. Returns at once in the host; where the executable
/// was started again as a helper, of a shell or as an interpreter, it serves and never returns.
pub fn helper_entry() {
    convoke_sandbox::helper_entry(|| {
        let mut interpreter = convoke_script::Interpreter::new();
        Box::new(move |line| interpreter.hear_line(line))
    });
}

/// Checks a program without running it, in an interpreter of its own.
pub async fn check(helper: &HelperPath, source: &str) -> Result<GuestMessage, InterpreterError> {
    let mut interpreter = Interpreter::start(helper, HardLimits::default()).await?;
    let told =
        interpreter.ask(&HostMessage::Check { source: source.to_owned(), limits: Limits::default() }).await;
    interpreter.stop().await;
    told
}

/// Why an interpreter gave no reply. Its process is gone by then; the program can be run again in another.
#[derive(Debug, thiserror::Error)]
pub enum InterpreterError {
    /// The program computed for too long at a time.
    #[error(
        "the program computed for more than {} s without waiting for anything, and was stopped",
        .step.as_secs_f64()
    )]
    Deadline {
        /// How long it may.
        step: Duration,
    },
    /// The process ended, most likely because of what the program did.
    #[error("the program's interpreter is gone: {how}")]
    Died {
        /// How.
        how: String,
    },
    /// The process could not be started or locked, so the program was not run.
    #[error("programs cannot be run here: {0}")]
    Refused(#[source] convoke_sandbox::Error),
    /// What was to be asked, or what came back, is not our protocol.
    #[error(
        "the interpreter cannot be understood ({problem}); is the helper the same version of this program?"
    )]
    Unreadable {
        /// What was wrong.
        problem: String,
    },
}

/// The limits that hold whatever the engine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HardLimits {
    /// How long a program may compute between two waits.
    pub(crate) step: Duration,
    /// Bytes of memory. More than the engine's own limit, so that the engine can say first what there is too
    /// much of.
    pub(crate) memory: u64,
}

impl Default for HardLimits {
    fn default() -> Self {
        Self { step: Duration::from_secs(30), memory: 768 << 20 }
    }
}

/// One program's interpreter. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Interpreter {
    worker: Worker,
    wall: HardLimits,
}

impl Interpreter {
    /// Starts a process and waits until it is locked.
    pub(crate) async fn start(helper: &HelperPath, wall: HardLimits) -> Result<Self, InterpreterError> {
        let limits = WorkerLimits { memory_bytes: wall.memory, ..WorkerLimits::default() };
        let worker = Worker::start(helper, limits).await.map_err(InterpreterError::Refused)?;
        Ok(Self { worker, wall })
    }

    /// One question, one reply. Only the time in between counts: a program that waits for its agents is not
    /// asked anything.
    pub(crate) async fn ask(&mut self, ask: &HostMessage) -> Result<GuestMessage, InterpreterError> {
        let unreadable =
            |error: serde_json::Error| InterpreterError::Unreadable { problem: error.to_string() };
        let line = serde_json::to_string(ask).map_err(unreadable)?;
        match self.worker.ask(&line, self.wall.step).await {
            Ok(reply) => serde_json::from_str(&reply).map_err(unreadable),
            Err(WorkerEnd::Deadline) => Err(InterpreterError::Deadline { step: self.wall.step }),
            Err(WorkerEnd::Died { how }) => Err(InterpreterError::Died { how }),
            Err(end @ (WorkerEnd::TooLong { .. } | WorkerEnd::Pipe(_))) => {
                Err(InterpreterError::Died { how: end.to_string() })
            }
        }
    }

    /// Ends the process and waits until it is gone.
    pub(crate) async fn stop(self) {
        self.worker.stop().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_told_in_words_of_the_program() {
        let told = InterpreterError::Deadline { step: Duration::from_millis(2_500) }.to_string();
        assert_eq!(
            told,
            "the program computed for more than 2.5 s without waiting for anything, and was stopped"
        );
    }

    #[tokio::test]
    async fn without_a_helper_programs_are_refused_and_the_reason_is_said() {
        let helper = HelperPath::new("/nowhere/helper".into());
        let refused = check(&helper, "").await.unwrap_err();
        assert!(matches!(refused, InterpreterError::Refused(_)));
        assert!(refused.to_string().contains("/nowhere/helper"), "{refused}");
    }
}
