//! One program from its start to its end: its output is read, its patience watched, and its group killed when
//! it must be.

use std::io::{PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::progress::Progress;
use super::{Program, ProgramOutput, start};
use crate::error::Error;
use crate::sys::{self, ChildEnd, Launched, Waiting};

/// How often it is looked whether the program gets on.
const LOOK: Duration = Duration::from_secs(1);

/// Runs a program until it ends, or until the other end of `abandoned` is closed. Blocks.
pub(super) fn run(program: &Program, abandoned: Option<&PipeReader>) -> Result<ProgramOutput, Error> {
    let (mut stdout, stdout_writer) = Collector::new(program.cap)?;
    let (mut stderr, stderr_writer) = Collector::new(program.cap)?;
    let begun = Instant::now();
    let mut group = Group { launched: start::start(program, stdout_writer, stderr_writer)?, reaped: false };
    let mut progress = Progress::new(group.launched.leader, program.patience);
    loop {
        let left = program.deadline.saturating_sub(begun.elapsed());
        let mut watched = vec![group.launched.ended.as_fd()];
        watched
            .extend([&stdout, &stderr].into_iter().filter(|collector| collector.open).map(Collector::as_fd));
        watched.extend(abandoned.map(AsFd::as_fd));
        let ready = sys::wait_readable(&watched, Some(left.min(LOOK)))
            .map_err(Error::system("waiting for a program"))?;
        let mut ready = ready.into_iter();
        let ended = ready.next() == Some(true);
        for collector in [&mut stdout, &mut stderr] {
            if collector.open && ready.next() == Some(true) {
                collector.read()?;
            }
        }
        if ended {
            break;
        }
        if ready.next() == Some(true) {
            let source = std::io::ErrorKind::Interrupted.into();
            return Err(Error::System { doing: "waiting for a program that is no longer wanted", source });
        }
        if begun.elapsed() >= program.deadline {
            return Err(Error::ProgramDeadline { program: program.path.clone(), deadline: program.deadline });
        }
        if let Some(waiting_for) = progress.stalled() {
            let (program, patience) = (program.path.clone(), program.patience);
            return Err(Error::ProgramStalled { program, patience, waiting_for });
        }
    }
    let code = group.reap()?.code();
    stdout.drain()?;
    stderr.drain()?;
    let truncated = stdout.truncated || stderr.truncated;
    Ok(ProgramOutput { stdout: stdout.kept, stderr: stderr.kept, truncated, code })
}

/// The program and all it started. They are killed when it is not waited for to its end.
struct Group {
    launched: Launched,
    reaped: bool,
}

impl Group {
    fn reap(&mut self) -> Result<ChildEnd, Error> {
        let waiting = Error::system("waiting for a program");
        let (_, end) =
            sys::reap(self.launched.leader, Waiting::Block).map_err(waiting)?.ok_or_else(|| {
                let source = std::io::Error::other("its exit status was taken by other code of this process");
                Error::System { doing: "waiting for a program", source }
            })?;
        self.reaped = true;
        Ok(end)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.reaped {
            // It has not been reaped, so its number cannot mean another group.
            sys::signal_group(self.launched.leader, libc::SIGKILL);
            let _ = self.reap();
        }
    }
}

/// One output of the program.
struct Collector {
    pipe: PipeReader,
    buffer: Vec<u8>,
    kept: Vec<u8>,
    cap: usize,
    truncated: bool,
    open: bool,
}

impl Collector {
    fn new(cap: usize) -> Result<(Self, OwnedFd), Error> {
        let (pipe, writer) = std::io::pipe().map_err(Error::system("making a pipe"))?;
        let collector =
            Self { pipe, buffer: vec![0; 64 * 1024], kept: Vec::new(), cap, truncated: false, open: true };
        Ok((collector, writer.into()))
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Reads some bytes, which must be there, and says how many came.
    fn read(&mut self) -> Result<usize, Error> {
        let count = self.pipe.read(&mut self.buffer).map_err(Error::system("reading a program's output"))?;
        self.open = count > 0;
        let keep = count.min(self.cap - self.kept.len());
        self.kept.extend_from_slice(&self.buffer[..keep]);
        self.truncated |= keep < count;
        Ok(count)
    }

    /// Reads what is there now that the program has ended; another process may hold the pipe open, or go on
    /// filling it.
    fn drain(&mut self) -> Result<(), Error> {
        let mut left =
            sys::bytes_waiting(self.pipe.as_fd()).map_err(Error::system("measuring a program's output"))?;
        while self.open && left > 0 {
            left = left.saturating_sub(self.read()?);
        }
        Ok(())
    }
}
