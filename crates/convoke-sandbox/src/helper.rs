//! The helper process: from the host's executable being started again to the loop of its init. It has one
//! thread and blocks in `poll`; no async code runs here, and it inherits no descriptor but the two it is
//! given.

mod bash;
mod gate;
mod hold;
mod init;
mod listing;
mod script;
mod template;
mod trace;
mod tree;
mod watch;
mod worker;

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

pub(crate) use self::bash::find_bash;
pub(crate) use self::gate::sees_depth;
use self::hold::Role;
pub(crate) use self::hold::map_ids;
pub use self::worker::Compute;
use crate::confine::{self, Inner};
use crate::policy::{LayerSet, Network};
use crate::sys::{self, Pid};
use crate::wire::{self, Confine, Decoder, FromHelper, HoldChoice, ProcessHold, ShellSetup, ToHelper};
use crate::worker::WORKER;

/// The first argument by which an executable recognises that it was started as a helper.
pub const HELPER_ARGUMENT: &str = "__helper";

/// Keeps other processes of the same user, commands among them, from reading this one's environment and
/// memory through `/proc`. A host that holds a secret calls it early in `main`. It does not stop root.
pub fn forbid_inspection() {
    // Where the kernel refuses, commands in a pid namespace still cannot see this process at all.
    let _ = sys::refuse_tracing();
}

/// Where the helper keeps the host's socket and the write end of the output pipe; everything above is closed.
const CONTROL: i32 = 3;
const OUTPUT: i32 = 4;

/// The second argument of the helper that bubblewrap starts inside.
pub(crate) const INNER: &str = "inner";

/// The second argument of the helper that bubblewrap starts as a template; the third says whether its network
/// is its own.
pub(crate) const FORKS: &str = "forks";

/// To be called first in `main`, before any thread exists. Returns at once in the host; in a helper (the
/// first argument is [`HELPER_ARGUMENT`]) it serves and never returns.
///
/// `compute` makes what a [`crate::Worker`] answers its questions with. It is called before the lock, and is
/// the place for whatever must be done before it, but without files; what it returns is called after the
/// lock.
pub fn helper_entry(compute: fn() -> Compute) {
    let argument =
        |index: usize| std::env::args_os().nth(index).and_then(|argument| argument.into_string().ok());
    let number = |index: usize| argument(index)?.parse().ok();
    if argument(1).as_deref() == Some(HELPER_ARGUMENT) {
        std::process::exit(match argument(2).as_deref() {
            Some(INNER) => serve_inside(),
            Some(FORKS) => serve_template_inside(argument(3).as_deref() == Some("1")),
            Some(WORKER) => worker::serve(number(3), number(4), compute),
            _ => serve(),
        });
    }
}

/// The helper's whole life; its result is the exit code.
fn serve() -> i32 {
    let Ok((mut control, output)) = take_descriptors() else { return 2 };
    match read_first(&mut control) {
        Ok(ToHelper::Prepare { bubblewrap: Some(bubblewrap), own_network }) => {
            let why = confine::become_template(&bubblewrap, &control, own_network);
            give_up(&mut control, why)
        }
        Ok(ToHelper::Prepare { bubblewrap: None, .. }) => {
            drop(output);
            template::serve(control, None)
        }
        Ok(first) => match begin_of(first) {
            Ok(begin) => serve_shell(control, output, begin),
            Err(message) => give_up(&mut control, message),
        },
        Err(message) => give_up(&mut control, message),
    }
}

/// The life of a helper that has heard what its shell begins with.
fn serve_shell(mut control: UnixStream, output: OwnedFd, begin: Begin) -> i32 {
    let inner = match begin.confine.map(|confine| *confine) {
        Some(confine) if confine.set == LayerSet::Namespaces => {
            return match confine::start_namespaces([&control, &output], confine, begin.shell) {
                Ok(bubblewrap) => {
                    drop((control, output));
                    wait_for(bubblewrap)
                }
                Err(message) => give_up(&mut control, message),
            };
        }
        Some(confine) => match confine::enter_landlock(confine, begin.shell) {
            Ok(inner) => Begun::Confined(Box::new(inner)),
            Err(message) => return give_up(&mut control, message),
        },
        None => Begun::Free(begin.shell),
    };
    let hold = match hold::reach(begin.hold) {
        Ok(Role::Init(hold)) => hold,
        Ok(Role::Outer(init)) => {
            // The host must see the socket close when init ends, so this process keeps nothing of it.
            drop((control, output));
            return wait_for(init);
        }
        Err(message) => return give_up(&mut control, message),
    };
    serve_as_init(control, output, hold, inner)
}

/// The same life, begun by bubblewrap inside its namespaces.
fn serve_inside() -> i32 {
    let taken = sys::inherited(CONTROL).and_then(|control| Ok((control, sys::inherited(OUTPUT)?)));
    let Ok((control, output)) = taken else { return 2 };
    let mut control = UnixStream::from(control);
    // From here on bubblewrap has nothing more to say, and commands must not inherit where it would have said
    // it.
    let inner =
        confine::read_inner().and_then(|inner| silence().map(|()| inner).map_err(|error| error.to_string()));
    let inner = match inner {
        Ok(inner) => inner,
        Err(message) => return give_up(&mut control, message),
    };
    let hold = if inner.form.own_proc {
        let _ = sys::refuse_tracing();
        Ok(ProcessHold::PidNamespace)
    } else {
        hold::adopt("no /proc of its own can be mounted here".to_owned())
    };
    match hold {
        Ok(hold) => serve_as_init(control, output, hold, Begun::Confined(Box::new(inner))),
        Err(message) => give_up(&mut control, message),
    }
}

/// The life of a template, begun by bubblewrap inside its namespaces.
fn serve_template_inside(own_network: bool) -> i32 {
    let Ok(control) = sys::inherited(CONTROL) else { return 2 };
    let mut control = UnixStream::from(control);
    match silence().and_then(|()| sys::close_from(OUTPUT)) {
        Ok(()) if std::process::id() == 1 => template::serve(control, Some(confine::apart(own_network))),
        Ok(()) => give_up(&mut control, "the pid namespace has another init".to_owned()),
        Err(error) => give_up(&mut control, error.to_string()),
    }
}

/// What the helper begins with: confined or not, with a shell or only to try.
enum Begun {
    Free(Option<ShellSetup>),
    Confined(Box<Inner>),
}

fn serve_as_init(mut control: UnixStream, output: OwnedFd, hold: ProcessHold, begun: Begun) -> i32 {
    let served = say(&mut control, &FromHelper::Hello { hold: hold.clone() }).and_then(|()| {
        let (shell, confined) = match begun {
            Begun::Free(shell) => (shell, None),
            Begun::Confined(inner) => {
                let about = (inner.policy.limits, inner.tree.clone());
                (confine_here(&control, *inner)?, Some(about))
            }
        };
        shell.map_or(Ok(()), |shell| init::serve(&mut control, output, &hold, shell, confined))
    });
    match served {
        Ok(()) => 0,
        Err(message) => give_up(&mut control, message),
    }
}

/// Hands out what the host needs, shuts the door, and says what the shell begins with.
fn confine_here(control: &UnixStream, mut inner: Inner) -> Result<Option<ShellSetup>, String> {
    let sent = confine::Sent::open(&inner)?;
    let proxy = sent.listener.as_ref().map(|(_, port)| *port);
    let tree = inner.tree.to_string_lossy().into_owned();
    let frame = wire::encode(&FromHelper::Confined { tree, proxy, form: inner.form.clone() })?;
    confine::shut(&inner)?;
    sys::send_with_descriptors(control.as_fd(), &frame, &sent.descriptors())
        .map_err(|error| format!("the host cannot be told: {error}"))?;
    let mut shell = inner.shell.take();
    if let Some(shell) = &mut shell {
        for directory in [&mut shell.cwd, &mut shell.fallback_cwd] {
            // Where the tree stands elsewhere, or stood elsewhere for an earlier shell, so does every
            // directory in it.
            let rest = [inner.places.workspace.clone(), inner.places.private.join("copy")]
                .iter()
                .find_map(|root| directory.strip_prefix(root).ok().map(Path::to_owned));
            if let Some(rest) = rest {
                *directory = inner.tree.components().chain(rest.components()).collect();
            }
        }
        for (name, value) in proxy.into_iter().flat_map(|port| proxy_variables(port, &inner.policy.network)) {
            shell.env.entry(name).or_insert(value);
        }
    }
    Ok(shell)
}

/// Where programs look for their proxy.
pub(crate) fn proxy_variables(port: u16, network: &Network) -> Vec<(String, String)> {
    let listed = |local: &&str| match network {
        Network::Hosts(hosts) => hosts.iter().any(|host| host.split(':').next() == Some(*local)),
        Network::Off | Network::On => false,
    };
    // What listens inside is reached directly, unless the list of allowed hosts has that name.
    let direct: Vec<&str> = ["localhost", "127.0.0.1"].into_iter().filter(|local| !listed(local)).collect();
    let mut variables = Vec::new();
    for name in PROXY_VARIABLES {
        let value = if name == "NO_PROXY" { direct.join(",") } else { format!("http://127.0.0.1:{port}") };
        variables.push((name.to_lowercase(), value.clone()));
        variables.push((name.to_owned(), value));
    }
    variables
}

/// Their names in capitals; each is set in small letters too.
pub(crate) const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];

fn wait_for(process: Pid) -> i32 {
    match sys::reap(process, sys::Waiting::Block) {
        Ok(Some((_, end))) => end.code(),
        Ok(None) | Err(_) => 1,
    }
}

/// Moves the socket and the pipe away from the standard descriptors and closes everything else.
fn take_descriptors() -> io::Result<(UnixStream, OwnedFd)> {
    let control = UnixStream::from(sys::duplicate_as(sys::standard(0), CONTROL, true)?);
    let output = sys::duplicate_as(sys::standard(1), OUTPUT, true)?;
    silence()?;
    // A helper that was started by hand has no socket here and is turned away.
    control.peer_addr()?;
    sys::new_session()?;
    Ok((control, output))
}

/// Leaves nothing open but the socket and the pipe.
fn silence() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    for number in 0..=2 {
        sys::duplicate_as_standard(null.as_fd(), number)?;
    }
    drop(null);
    sys::close_from(OUTPUT + 1)
}

/// The first frame, taken apart.
struct Begin {
    hold: HoldChoice,
    shell: Option<ShellSetup>,
    confine: Option<Box<Confine>>,
}

fn read_begin(control: &mut UnixStream) -> Result<Begin, String> {
    begin_of(read_first(control)?)
}

fn begin_of(frame: ToHelper) -> Result<Begin, String> {
    match frame {
        ToHelper::Begin { hold, shell, confine } => Ok(Begin { hold, shell, confine }),
        _ => Err("the first frame was not `begin`".into()),
    }
}

fn read_first(control: &mut UnixStream) -> Result<ToHelper, String> {
    // Exactly this frame: what follows it belongs to init.
    let mut read = |length: usize| {
        let mut bytes = vec![0; length];
        control
            .read_exact(&mut bytes)
            .map(|()| bytes)
            .map_err(|error| format!("the host said nothing: {error}"))
    };
    let mut decoder = Decoder::default();
    decoder.feed(&read(wire::PREFIX)?);
    decoder.feed(&read(decoder.missing()?)?);
    decoder.next()?.ok_or_else(|| "the first frame is not whole".to_owned())
}

/// Sends one frame to the host.
fn say(control: &mut UnixStream, frame: &FromHelper) -> Result<(), String> {
    control.write_all(&wire::encode(frame)?).map_err(|error| format!("the host cannot be told: {error}"))
}

/// The same with a descriptor. For a frame that is small.
fn say_with(
    control: &UnixStream,
    frame: &FromHelper,
    descriptor: std::os::fd::BorrowedFd<'_>,
) -> Result<(), String> {
    sys::send_with_descriptors(control.as_fd(), &wire::encode(frame)?, &[descriptor])
        .map_err(|error| format!("the host cannot be told: {error}"))
}

fn give_up(control: &mut UnixStream, message: String) -> i32 {
    // If even this cannot be said the host sees the socket close, which tells it enough.
    let _ = say(control, &FromHelper::Fatal { message });
    1
}
