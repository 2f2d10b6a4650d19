//! SIGINT, SIGTERM and SIGHUP: the first asks the session to stop softly, the second cuts off what is under
//! way, the third leaves at once. Everything that was recorded stays, so a session stopped in any of these
//! ways can be resumed.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use convoke_kernel::StoppedBy;
use convoke_runtime::{Control, StopLevel, Stopper};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use crate::failure::{Exit, Failure};
use crate::render::Message;

/// What stopped a session: a signal, or a command in another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
    /// `convoke sessions pause`.
    Pause,
    /// `convoke sessions stop`.
    Stop,
}

impl From<Control> for Caught {
    fn from(control: Control) -> Self {
        match control {
            Control::Pause => Self::Pause,
            Control::Stop => Self::Stop,
        }
    }
}

impl Caught {
    /// The signal's name, or the command.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::HangUp => "SIGHUP",
            Self::Pause => "`convoke sessions pause`",
            Self::Stop => "`convoke sessions stop`",
        }
    }

    /// The exit code it leads to.
    pub(crate) fn exit(self) -> Exit {
        Exit::coded(self.by().code())
    }

    /// The same as facts for the function that decides how a session ended.
    pub(crate) fn by(self) -> StoppedBy {
        match self {
            Self::Interrupt => StoppedBy::Interrupt,
            Self::Terminate => StoppedBy::Terminate,
            Self::HangUp => StoppedBy::HangUp,
            Self::Pause => StoppedBy::Pause,
            Self::Stop => StoppedBy::Stop,
        }
    }
}

/// Listens for as long as it lives.
pub(crate) struct Signals {
    first: Arc<OnceLock<Caught>>,
    task: JoinHandle<()>,
}

impl Signals {
    /// Turns signals into requests to stop. The third one leaves at once, and removes `throwaway` before.
    pub(crate) fn listen(
        stopper: Stopper,
        screen: UnboundedSender<Message>,
        throwaway: Vec<PathBuf>,
    ) -> Result<Self, Failure> {
        let mut sources =
            Sources::new().map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
        let first = Arc::new(OnceLock::new());
        let seen = Arc::clone(&first);
        let task = tokio::spawn(async move {
            let caught = sources.next().await;
            // This task is the only one that sets it.
            let _ = seen.set(caught);
            // The screen hears of it first, so that it can name the signal when the session answers.
            let _ = screen.send(Message::Stopping(caught.name()));
            stopper.ask(StopLevel::Drain);
            let again = sources.next().await;
            stopper.ask(StopLevel::Cut);
            let line =
                format!("{} again: cutting off what is under way; once more leaves at once", again.name());
            let _ = screen.send(Message::Line(line));
            sources.next().await;
            crate::doc_test::remove(&throwaway);
            std::process::exit(i32::from(caught.exit() as u8));
        });
        Ok(Self { first, task })
    }

    /// The first signal that came.
    pub(crate) fn caught(&self) -> Option<Caught> {
        self.first.get().copied()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The signals that ask for an end.
pub(crate) struct Sources {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Sources {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
            _ = self.hang_up.recv() => Caught::HangUp,
        }
    }
}
