//! How a program begins: prepared in the host, locked before its first instruction, started by a thread that
//! never ends.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, OnceLock};

use seccompiler::BpfProgram;

use super::{Program, Sight, view};
use crate::confine::program_filters;
use crate::error::Error;
use crate::sys::{self, Launch, Launched};

type Filters = Arc<Vec<BpfProgram>>;

/// A program to start, and where it is awaited.
type Order = (Launch, SyncSender<io::Result<Launched>>);

/// Starts the program with these outputs.
pub(super) fn start(program: &Program, stdout: OwnedFd, stderr: OwnedFd) -> Result<Launched, Error> {
    let refused = |why: String| Error::ProgramLock { program: program.path.clone(), why };
    let (ruleset, filters) = match &program.sight {
        Sight::Everything => (None, Filters::default()),
        Sight::LikeCommands(unseen) => (
            Some(view::ruleset(program, unseen).map_err(refused)?),
            filters(program.children).map_err(refused)?,
        ),
    };
    let started = prepare(program, [stdout, stderr], ruleset, filters)
        .and_then(|launch| if sys::is_main_thread() { sys::launch(&launch) } else { by_starter(launch) });
    started.map_err(|source| Error::ProgramStart { program: program.path.clone(), source })
}

fn prepare(
    program: &Program,
    [stdout, stderr]: [OwnedFd; 2],
    ruleset: Option<OwnedFd>,
    filters: Filters,
) -> io::Result<Launch> {
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(io::Error::from);
    let pair = |(name, value): (&std::ffi::OsString, &std::ffi::OsString)| {
        text(&[name.as_os_str(), value].join(OsStr::new("=")))
    };
    let name = [program.path.as_os_str()].into_iter();
    Ok(Launch {
        program: text(program.path.as_os_str())?,
        args: name.chain(program.args.iter().map(AsRef::as_ref)).map(text).collect::<io::Result<_>>()?,
        env: program.env.iter().map(pair).collect::<io::Result<_>>()?,
        cwd: text(program.cwd.as_os_str())?,
        standard: [File::open("/dev/null")?.into(), stdout, stderr],
        ruleset,
        filters,
    })
}

/// The call filters, which are the same for all programs of a kind and are made once.
fn filters(children: bool) -> Result<Filters, String> {
    static ALONE: OnceLock<Result<Filters, String>> = OnceLock::new();
    static WITH_CHILDREN: OnceLock<Result<Filters, String>> = OnceLock::new();
    let made = if children { &WITH_CHILDREN } else { &ALONE };
    made.get_or_init(|| program_filters(children).map(Arc::new)).clone()
}

/// The kernel ends a program with its parent when the *thread* ends that started it, and not when the process
/// does. Threads of a pool come and go, so one thread that lives as long as the process starts every program.
/// The main thread does it by itself: it lives as long, and the helper, which locks itself thread by thread,
/// must not have a second one.
fn by_starter(launch: Launch) -> io::Result<Launched> {
    static STARTER: OnceLock<Option<Sender<Order>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, taken) = channel::<Order>();
        let work = move || {
            for (launch, answer) in taken {
                // The thread that asked waits for the answer, and cannot be cancelled meanwhile.
                let _ = answer.send(sys::launch(&launch));
            }
        };
        std::thread::Builder::new().name("starter".to_owned()).spawn(work).ok().map(|_| orders)
    });
    let gone = || io::Error::other("the thread that starts programs is not there");
    let (answer, answered) = sync_channel(1);
    starter.as_ref().ok_or_else(gone)?.send((launch, answer)).map_err(|_| gone())?;
    answered.recv().map_err(|_| gone())?
}
