//! Asking the host before commands write in the tree. A filter on each bash reports the calls that begin a
//! write; the helper finds out which place is meant, and lets the call go on at once if it lies elsewhere or
//! has been granted to the command of the moment, and else when the host has answered. It never waits itself:
//! a call that waits for an answer holds up its own process and no other.
//!
//! This is for the record of who wrote what and confines nothing. A process that changes its path between the
//! question and the call, or writes through what was opened earlier, is held by the walls alone.

mod calls;
mod claims;
mod resolve;
mod trial;

use std::collections::{BTreeSet, HashMap};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::rc::Rc;
use std::time::Duration;

use self::calls::{Act, act};
use self::claims::Claims;
use self::resolve::{Spot, Stands, Views};
use super::gate;
use super::tree::Tree;
use crate::sys::{self, Call, Instruction, Pid, Reports};
use crate::wire::{self, Answer, Decoder, Question};
use crate::writes::WritePath;

/// How many calls of one bash and its processes are answered before anything else is looked at.
const AT_ONCE: usize = 64;

/// How many threads are remembered before those that have ended are forgotten.
const MANY: usize = 4096;

/// The calls of everything below this helper that begin a write.
pub(crate) struct Tracer {
    views: Views,
    program: Vec<Instruction>,
    /// One for each bash that lives, or of which something lives on.
    listeners: Vec<Rc<OwnedFd>>,
    host: UnixStream,
    decoder: Decoder,
    /// Granted since the last command ended.
    granted: Claims,
    asked: Vec<Asked>,
    last_id: u64,
    /// What each thread was let do last, while it is not known to be done.
    begun: HashMap<Pid, Begun>,
    /// A bash whose command is being ended: it shall come back and not wait.
    refused: Option<Pid>,
}

/// A question that the host has not answered.
struct Asked {
    id: u64,
    places: Vec<WritePath>,
    /// What waits for the answer, each with all that it is about to write.
    waiting: Vec<(Waiting, Vec<WritePath>)>,
}

/// A call that was let go on.
struct Begun {
    number: i64,
    places: Vec<WritePath>,
}

struct Waiting {
    listener: Rc<OwnedFd>,
    call: Call,
}

impl Waiting {
    fn answer(&self, error: Option<i32>) {
        sys::answer_call(self.listener.as_fd(), self.call.id, error);
    }
}

impl Tracer {
    /// Begins, if it is possible here, which is tried on a process that does nothing else. With the socket
    /// that is the host's.
    pub(crate) fn begin(tree: &Path) -> Option<(Self, OwnedFd)> {
        let program = calls::filter()?;
        if !trial::succeeds(&program).unwrap_or(false) {
            return None;
        }
        let (host, theirs) = UnixStream::pair().ok()?;
        let tracer = Self {
            views: Views::of(tree),
            program,
            listeners: Vec::new(),
            host,
            decoder: Decoder::default(),
            granted: Claims::default(),
            asked: Vec::new(),
            last_id: 0,
            begun: HashMap::new(),
            refused: None,
        };
        Some((tracer, theirs.into()))
    }

    /// Starts a program whose calls, and those of all that it starts, are reported here.
    pub(crate) fn spawn(&mut self, command: &mut Command) -> io::Result<Child> {
        let (ours, theirs) = UnixStream::pair()?;
        sys::report_calls_on_exec(command, self.program.clone(), theirs.into());
        let child = command.spawn()?;
        // It was sent before the program began.
        let (_, mut received) = sys::receive(ours.as_fd(), &mut [0])?;
        let listener = received.pop().ok_or(ErrorKind::UnexpectedEof)?;
        self.listeners.push(Rc::new(listener));
        Ok(child)
    }

    /// What is waited for: answers of the host, and calls.
    pub(crate) fn watched(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.host.as_fd()).chain(self.listeners.iter().map(|listener| listener.as_fd()))
    }

    /// Answers what can be answered now. False when the host is gone.
    pub(crate) fn serve(&mut self) -> Result<bool, String> {
        let text = |error: io::Error| format!("calls cannot be looked after: {error}");
        let answered = sys::wait_readable(&[self.host.as_fd()], Some(Duration::ZERO)).map_err(text)?;
        if answered[0] && !self.hear()? {
            return Ok(false);
        }
        for listener in self.listeners.clone() {
            for _ in 0..AT_ONCE {
                match sys::reports(listener.as_fd()) {
                    Reports::None => break,
                    Reports::Ended => {
                        self.listeners.retain(|other| !Rc::ptr_eq(other, &listener));
                        break;
                    }
                    Reports::Some => {
                        if let Some(call) = sys::take_call(listener.as_fd()).map_err(text)? {
                            self.weigh(Waiting { listener: Rc::clone(&listener), call })?;
                        }
                    }
                }
            }
        }
        Ok(true)
    }

    /// The command of this bash is being ended: bash itself must not go on waiting, or it would have to be
    /// killed. All others are killed anyway.
    pub(crate) fn refuse(&mut self, bash: Pid) -> Result<(), String> {
        self.refused = Some(bash);
        for asked in &mut self.asked {
            asked.waiting.retain(|(waiting, _)| {
                let refused = waiting.call.thread == bash;
                if refused {
                    waiting.answer(Some(libc::ECANCELED));
                }
                !refused
            });
        }
        self.withdraw()
    }

    /// A command is over: nothing is granted any more. Says what of the tree is still open for writing.
    pub(crate) fn command_over(
        &mut self,
        tree: &Tree,
        shell: Option<Pid>,
    ) -> Result<BTreeSet<PathBuf>, String> {
        self.granted.clear();
        self.refused = None;
        for asked in &mut self.asked {
            asked.waiting.retain(|(waiting, _)| sys::still_waits(waiting.listener.as_fd(), waiting.call.id));
        }
        self.withdraw()?;
        let mut open = tree.open_for_writing(shell, &|path| self.views.relative(path));
        // A job that was let go on a moment ago may not have opened its file yet.
        for (thread, begun) in std::mem::take(&mut self.begun) {
            if Some(thread) != shell && gate::may_be_at(thread, begun.number) {
                open.extend(begun.places.into_iter().map(|place| place.path));
            }
        }
        Ok(open)
    }

    /// Lets a call go on that writes these places.
    fn let_go_on(&mut self, waiting: &Waiting, places: Vec<WritePath>) {
        if self.begun.len() >= MANY {
            self.begun.retain(|thread, begun| gate::may_be_at(*thread, begun.number));
        }
        self.begun.insert(waiting.call.thread, Begun { number: waiting.call.number, places });
        waiting.answer(None);
    }

    /// Tells the host of questions that nothing waits for any more.
    fn withdraw(&mut self) -> Result<(), String> {
        let (open, unneeded): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.asked).into_iter().partition(|asked| !asked.waiting.is_empty());
        self.asked = open;
        unneeded.into_iter().try_for_each(|asked| self.say(&Question::Withdraw { id: asked.id }))
    }

    fn weigh(&mut self, waiting: Waiting) -> Result<(), String> {
        let places = self.wanted(waiting.call);
        if places.is_empty() {
            waiting.answer(None);
            return Ok(());
        }
        if places.iter().all(|place| self.granted.cover(place)) {
            self.let_go_on(&waiting, places);
            return Ok(());
        }
        if self.refused == Some(waiting.call.thread) {
            waiting.answer(Some(libc::ECANCELED));
            return Ok(());
        }
        // The number of a process that has gone may have come to mean another one while it was looked into.
        if !sys::still_waits(waiting.listener.as_fd(), waiting.call.id) {
            return Ok(());
        }
        let missing: Vec<WritePath> =
            places.iter().filter(|place| !self.granted.cover(place)).cloned().collect();
        let waits = (waiting, places);
        if let Some(asked) = self.asked.iter_mut().find(|asked| asked.covers(&missing)) {
            asked.waiting.push(waits);
            return Ok(());
        }
        self.last_id += 1;
        let id = self.last_id;
        let bytes = |place: &WritePath| (place.path.as_os_str().as_bytes().to_vec(), place.whole);
        self.say(&Question::Ask { id, places: missing.iter().map(bytes).collect() })?;
        self.asked.push(Asked { id, places: missing, waiting: vec![waits] });
        Ok(())
    }

    /// The places of the tree that a call is about to write, as far as the kernel will let it.
    fn wanted(&self, call: Call) -> Vec<WritePath> {
        let named = |name, follow| self.views.named(call.thread, name, follow);
        let places = match act(call.number, call.arguments) {
            Act::Nothing => Vec::new(),
            Act::Open(_, flags) if is_no_write(flags) => Vec::new(),
            Act::Open(name, flags) => {
                let makes = flags & libc::O_CREAT != 0;
                let only_new = makes && flags & libc::O_EXCL != 0;
                let spot = named(name, flags & libc::O_NOFOLLOW == 0 && !only_new);
                one(spot, false, |stands| match stands {
                    Stands::Nothing => makes,
                    Stands::Directory => false,
                    Stands::Other => !only_new,
                })
            }
            Act::Change { name, follow } => one(named(name, follow), false, is_there),
            Act::ChangeOpen(descriptor) => one(self.views.open(call.thread, descriptor), false, is_there),
            Act::Make { name, directory } => {
                one(named(name, false), directory, |stands| stands == Stands::Nothing)
            }
            Act::Remove { name, directory } => one(named(name, false), false, |stands| match stands {
                Stands::Nothing => false,
                Stands::Directory => directory,
                Stands::Other => !directory,
            }),
            Act::Move { from, to, flags } => moved(named(from, false), named(to, false), flags),
        };
        // The tree itself can be neither made nor moved, and what else can be done to it is no content.
        places.into_iter().filter(|place| place.whole || !place.path.as_os_str().is_empty()).collect()
    }

    /// Takes in what the host has answered. False when it is gone.
    fn hear(&mut self) -> Result<bool, String> {
        let mut buffer = [0; 16 * 1024];
        match self.host.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => self.decoder.feed(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
            Err(error) => return Err(format!("the host cannot be heard: {error}")),
        }
        while let Some(Answer { id }) = self.decoder.next()? {
            // What was withdrawn meanwhile is no longer among them.
            if let Some(index) = self.asked.iter().position(|asked| asked.id == id) {
                let asked = self.asked.swap_remove(index);
                self.granted.add(asked.places);
                asked.waiting.into_iter().for_each(|(waiting, places)| self.let_go_on(&waiting, places));
            }
        }
        Ok(true)
    }

    fn say(&mut self, question: &Question) -> Result<(), String> {
        match self.host.write_all(&wire::encode(question)?) {
            // That the host is gone is seen where it is heard.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            said => said.map_err(|error| format!("the host cannot be asked: {error}")),
        }
    }
}

impl Asked {
    fn covers(&self, places: &[WritePath]) -> bool {
        let covers = |wanted: &WritePath| {
            self.places
                .iter()
                .any(|place| place == wanted || (place.whole && wanted.path.starts_with(&place.path)))
        };
        places.iter().all(covers)
    }
}

/// A handle of a path writes nothing, and a file without a name is in the tree only when it is given one.
fn is_no_write(flags: i32) -> bool {
    flags & libc::O_PATH != 0 || flags & libc::O_TMPFILE == libc::O_TMPFILE
}

fn is_there(stands: Stands) -> bool {
    stands != Stands::Nothing
}

/// What a process could write that does not let itself be looked into: anything.
fn anything() -> WritePath {
    WritePath { path: PathBuf::new(), whole: true }
}

fn one(spot: Spot, whole: bool, is_written: impl Fn(Stands) -> bool) -> Vec<WritePath> {
    match spot {
        Spot::Here { path, stands } if is_written(stands) => vec![WritePath { path, whole }],
        Spot::Here { .. } | Spot::Elsewhere | Spot::Nowhere => Vec::new(),
        Spot::Unknown => vec![anything()],
    }
}

/// Both names of what is moved, with all that is below if it is a directory.
fn moved(from: Spot, to: Spot, flags: u32) -> Vec<WritePath> {
    let exchanged = flags & libc::RENAME_EXCHANGE != 0;
    match (from, to) {
        (Spot::Unknown, _) | (_, Spot::Unknown) => vec![anything()],
        (Spot::Nowhere, _) | (_, Spot::Nowhere) => Vec::new(),
        (Spot::Here { stands: Stands::Nothing, .. }, _) => Vec::new(),
        (Spot::Here { path: from, stands }, Spot::Here { path: to, stands: over }) => {
            if !exchanged && !is_replaced(stands, over, flags) {
                return Vec::new();
            }
            let whole = stands == Stands::Directory || over == Stands::Directory;
            [from, to].into_iter().map(|path| WritePath { path, whole }).collect()
        }
        (Spot::Here { path, stands }, Spot::Elsewhere) => {
            vec![WritePath { path, whole: exchanged || stands == Stands::Directory }]
        }
        // What comes from elsewhere may be a directory.
        (Spot::Elsewhere, Spot::Here { path, .. }) => vec![WritePath { path, whole: true }],
        (Spot::Elsewhere, Spot::Elsewhere) => Vec::new(),
    }
}

/// Whether the kernel puts something in the place of what stands there.
fn is_replaced(stands: Stands, over: Stands, flags: u32) -> bool {
    match over {
        Stands::Nothing => true,
        over => flags & libc::RENAME_NOREPLACE == 0 && over == stands,
    }
}
