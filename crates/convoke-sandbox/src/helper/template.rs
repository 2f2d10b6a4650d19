//! A template: a helper that runs no shell but forks the helpers of shells, one each time it is asked. What
//! all of them have in common (a program that is loaded, and bubblewrap's namespaces where there are any) is
//! made once, with it. It has one thread, runs no command, and ends when the host goes away; in a pid
//! namespace all that it has forked ends with it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::{Begun, CONTROL, OUTPUT, give_up, read_begin, say, serve_as_init, serve_shell, silence};
use crate::confine;
use crate::sys::{self, Apart, Held};
use crate::wire::{self, Decoder, FromHelper, ProcessHold, ToHelper};

/// Serves until the host goes away. `apart` is how the forked helpers stand apart from it; without it they
/// reach their hold themselves.
pub(super) fn serve(mut control: UnixStream, apart: Option<Apart>) -> i32 {
    let signals = match sys::child_signals() {
        Ok(signals) => File::from(signals),
        Err(error) => return give_up(&mut control, format!("the ends of children cannot be seen: {error}")),
    };
    let _ = sys::refuse_tracing();
    match say(&mut control, &FromHelper::Prepared).and_then(|()| obey(&mut control, &signals, apart)) {
        Ok(code) => code,
        Err(message) => give_up(&mut control, message),
    }
}

/// Forks as it is told. Returns in a child too, with the exit code of its whole life.
fn obey(control: &mut UnixStream, mut signals: &File, apart: Option<Apart>) -> Result<i32, String> {
    let text = |error: io::Error| format!("the host cannot be heard: {error}");
    let mut decoder = Decoder::default();
    let mut handles: Vec<OwnedFd> = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let ready = sys::wait_readable(&[control.as_fd(), signals.as_fd()], None).map_err(text)?;
        if ready[1] {
            while matches!(signals.read(&mut buffer), Ok(count) if count > 0) {}
            while matches!(sys::reap(-1, sys::Waiting::Look), Ok(Some(_))) {}
        }
        if !ready[0] {
            continue;
        }
        match sys::receive(control.as_fd(), &mut buffer) {
            Ok((0, _)) => return Ok(0),
            Ok((count, received)) => {
                decoder.feed(&buffer[..count]);
                handles.extend(received);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(0),
            Err(error) => return Err(text(error)),
        }
        while let Some(frame) = decoder.next()? {
            let given: Result<[OwnedFd; 2], _> = std::mem::take(&mut handles).try_into();
            let (ToHelper::Fork, Ok([shell, output])) = (frame, given) else {
                return Err("a template was told something else than to fork".to_owned());
            };
            let forked = match apart {
                Some(apart) => sys::fork_apart(apart),
                None => sys::fork(),
            };
            let Some(pid) = forked.map_err(|error| format!("no process: {error}"))? else {
                return Ok(live(&shell, &output, apart));
            };
            // Before it is reaped, so that the number is still its own.
            let Some(Held::Descriptor(process)) = sys::hold_process(pid) else {
                return Err("the kernel has no handles of processes".to_owned());
            };
            sys::send_with_descriptors(
                control.as_fd(),
                &wire::encode(&FromHelper::Forked)?,
                &[process.as_fd()],
            )
            .map_err(|error| format!("the host cannot be told: {error}"))?;
        }
    }
}

/// The life of a forked helper. What the template had open is closed; nothing here goes back to it.
fn live(shell: &OwnedFd, output: &OwnedFd, apart: Option<Apart>) -> i32 {
    let taken = || -> io::Result<(UnixStream, OwnedFd)> {
        // Above the numbers that they are to have, so that neither is closed before it is there.
        let shell = sys::duplicate_above(shell.as_fd(), OUTPUT + 1)?;
        let output = sys::duplicate_above(output.as_fd(), OUTPUT + 1)?;
        let control = UnixStream::from(sys::duplicate_as(shell.as_fd(), CONTROL, true)?);
        let output_there = sys::duplicate_as(output.as_fd(), OUTPUT, true)?;
        drop((shell, output));
        if apart.is_some() {
            sys::die_with_parent()?;
        }
        // The template refuses it, and what follows maps users as a helper that has just been started does;
        // it is refused again where the hold stands.
        sys::allow_tracing()?;
        sys::new_session()?;
        silence()?;
        Ok((control, output_there))
    };
    let Ok((mut control, output)) = taken() else { std::process::exit(2) };
    let begin = match read_begin(&mut control) {
        Ok(begin) => begin,
        Err(message) => std::process::exit(give_up(&mut control, message)),
    };
    std::process::exit(match apart {
        None => serve_shell(control, output, begin),
        Some(apart) => {
            let confine = begin.confine.ok_or_else(|| "a helper that stands apart has no policy".to_owned());
            match confine.and_then(|confine| confine::enter_apart(*confine, begin.shell, apart)) {
                Ok(inner) => {
                    let _ = sys::refuse_tracing();
                    let hold = ProcessHold::PidNamespace;
                    serve_as_init(control, output, hold, Begun::Confined(Box::new(inner)))
                }
                Err(message) => give_up(&mut control, message),
            }
        }
    })
}
