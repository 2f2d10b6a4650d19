//! The helper process: from the host's executable being started again to the loop of its init. It has one thread and
//! blocks in `poll`; no async code runs here, and it inherits no descriptor but the two it is given.

mod bash;
mod hold;
mod init;
mod tree;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use self::hold::Role;
use crate::sys;
use crate::wire::{self, Decoder, FromHelper, HoldChoice, ShellSetup, ToHelper};

/// The first argument by which an executable recognises that it was started as a helper.
pub const HELPER_ARGUMENT: &str = "__helper";

/// Keeps other processes of the same user, commands among them, from reading this one's environment and memory through
/// `/proc`. A host that holds a secret calls it early in `main`. It does not stop root.
pub fn forbid_inspection() {
    // Where the kernel refuses, commands in a pid namespace still cannot see this process at all.
    let _ = sys::refuse_tracing();
}

/// Where the helper keeps the host's socket and the write end of the output pipe; everything above is closed.
const CONTROL: i32 = 3;
const OUTPUT: i32 = 4;

/// To be called first in `main`, before any thread exists. Returns at once in the host; in a helper (the first argument
/// is [`HELPER_ARGUMENT`]) it serves and never returns.
pub fn helper_entry() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == HELPER_ARGUMENT) {
        std::process::exit(serve());
    }
}

/// The helper's whole life; its result is the exit code.
fn serve() -> i32 {
    let Ok((mut control, output)) = take_descriptors() else { return 2 };
    let (choice, setup) = match read_begin(&mut control) {
        Ok(begin) => begin,
        Err(message) => return give_up(&mut control, message),
    };
    let hold = match hold::reach(choice) {
        Ok(Role::Init(hold)) => hold,
        Ok(Role::Outer(init)) => {
            // The host must see the socket close when init ends, so this process keeps nothing of it.
            drop((control, output));
            return match sys::reap(init, sys::Waiting::Block) {
                Ok(Some((_, end))) => end.code(),
                Ok(None) | Err(_) => 1,
            };
        }
        Err(message) => return give_up(&mut control, message),
    };
    match init::serve(&mut control, output, hold, setup) {
        Ok(()) => 0,
        Err(message) => give_up(&mut control, message),
    }
}

/// Moves the socket and the pipe away from the standard descriptors and closes everything else.
fn take_descriptors() -> io::Result<(UnixStream, OwnedFd)> {
    let control = UnixStream::from(sys::duplicate_as(sys::standard(0), CONTROL, true)?);
    let output = sys::duplicate_as(sys::standard(1), OUTPUT, true)?;
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    for number in 0..=2 {
        sys::duplicate_as_standard(null.as_fd(), number)?;
    }
    drop(null);
    sys::close_from(OUTPUT + 1)?;
    // Somebody who types the argument by hand has no socket here and is turned away.
    control.peer_addr()?;
    sys::new_session()?;
    Ok((control, output))
}

fn read_begin(control: &mut UnixStream) -> Result<(HoldChoice, Option<ShellSetup>), String> {
    // Exactly this frame: what follows it belongs to init.
    let mut read = |length: usize| {
        let mut bytes = vec![0; length];
        control.read_exact(&mut bytes).map(|()| bytes).map_err(|error| format!("the host said nothing: {error}"))
    };
    let mut decoder = Decoder::default();
    decoder.feed(&read(wire::PREFIX)?);
    decoder.feed(&read(decoder.missing()?)?);
    match decoder.next()? {
        Some(ToHelper::Begin { hold, shell }) => Ok((hold, shell)),
        Some(ToHelper::Run { .. } | ToHelper::Kill { .. }) | None => Err("the first frame was not `begin`".into()),
    }
}

/// Sends one frame to the host.
fn say(control: &mut UnixStream, frame: &FromHelper) -> Result<(), String> {
    control.write_all(&wire::encode(frame)?).map_err(|error| format!("the host cannot be told: {error}"))
}

fn give_up(control: &mut UnixStream, message: String) -> i32 {
    // If even this cannot be said the host sees the socket close, which tells it enough.
    let _ = say(control, &FromHelper::Fatal { message });
    1
}
