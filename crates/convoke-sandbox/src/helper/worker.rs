//! The helper as a worker: it locks itself, says so, and then turns questions into replies until its pipe
//! closes. If it cannot be locked it says why and ends; it never computes unlocked, and once locked it can do
//! nothing but compute.

use std::hash::RandomState;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::confine;
use crate::sys;
use crate::worker::{PANICKED, READY};

/// What a worker does with a question.
pub type Compute = Box<dyn FnMut(&str) -> String>;

/// The stack that is computed on. Only what is touched takes memory, and nested input should meet the limits
/// of its parser before this one.
const STACK: usize = 256 << 20;

/// What the program itself has mapped, where `/proc` does not say.
const USUAL_PROGRAM: u64 = 512 << 20;

/// For the guard and the bookkeeping of the second thread.
const SLACK: u64 = 4 << 20;

/// The worker's whole life; its result is the exit code.
pub(super) fn serve(memory: Option<u64>, cpu_seconds: Option<u64>, compute: fn() -> Compute) -> i32 {
    let (Some(memory), Some(cpu_seconds)) = (memory, cpu_seconds) else { return 2 };
    // A worker that was started by hand has no pipes here and is turned away.
    if !(0..=2).all(|number| sys::is_pipe(sys::standard(number))) {
        return 2;
    }
    if let Err(reason) = prepare(memory, cpu_seconds) {
        return refuse(&reason);
    }
    // The thread that computes has a large stack of its own, which the first thread of a program cannot be
    // given. It ends the whole process itself, so this thread waits for ever.
    let computing = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        let code = catch_unwind(AssertUnwindSafe(|| work(compute))).unwrap_or(PANICKED);
        std::process::exit(code)
    });
    match computing {
        Ok(computing) => computing.join().map_or(PANICKED, |never| never),
        Err(error) => refuse(&format!("a stack of {STACK} bytes cannot be had: {error}")),
    }
}

/// Everything but the filter, which would forbid the rest.
fn prepare(memory: u64, cpu_seconds: u64) -> Result<(), String> {
    let failed = |doing: &'static str| move |error: io::Error| format!("{doing}: {error}");
    sys::close_from(3).map_err(failed("descriptors cannot be closed"))?;
    sys::new_session().map_err(failed("the terminal cannot be left"))?;
    // Before file rules, which would ask whether signals may cross them.
    sys::die_when_closed(sys::standard(2)).map_err(failed("the host's end cannot be watched"))?;
    sys::refuse_tracing().map_err(failed("tracing cannot be refused"))?;
    // A fault is to end the process at once, and a panic to print nothing: it would not be read.
    sys::default_faults().map_err(failed("faults cannot be left to the kernel"))?;
    std::panic::set_hook(Box::new(|_| ()));
    sys::keep_one_heap();
    sys::read_time_zone();
    let mapped = mapped_bytes().unwrap_or(USUAL_PROGRAM);
    let room = mapped.saturating_add(STACK as u64).saturating_add(SLACK).saturating_add(memory);
    let limiting = failed("limits cannot be set");
    sys::lower_limit(libc::RLIMIT_AS, room)
        .and_then(|()| sys::lower_limit(libc::RLIMIT_CORE, 0))
        .and_then(|()| sys::lower_limit(libc::RLIMIT_FSIZE, 0))
        .and_then(|()| sys::lower_limits(libc::RLIMIT_CPU, cpu_seconds, cpu_seconds.saturating_add(1)))
        .map_err(limiting)?;
    sys::drop_capabilities(0).map_err(failed("capabilities cannot be dropped"))?;
    sys::gain_no_privileges().map_err(failed("new privileges cannot be ruled out"))?;
    confine::rule_everything_out().map_err(|error| format!("file rules cannot be set: {error}"))?;
    sys::lower_limit(libc::RLIMIT_NOFILE, 3).map_err(limiting)
}

/// How much this process has mapped now.
fn mapped_bytes() -> Option<u64> {
    let pages: u64 = std::fs::read_to_string("/proc/self/statm").ok()?.split(' ').next()?.parse().ok()?;
    Some(pages * sys::page_size())
}

/// The life of the thread that computes.
fn work(compute: fn() -> Compute) -> i32 {
    // The keys of hash maps are drawn once in a thread, and after the lock random bytes cannot be asked for.
    drop(RandomState::new());
    let mut compute = compute();
    let locked = sys::lower_limit(libc::RLIMIT_NPROC, 0)
        .map_err(|error| format!("limits cannot be set: {error}"))
        .and_then(|()| confine::allow_computing());
    if let Err(reason) = locked {
        return refuse(&reason);
    }
    // From here on a failed pipe means that the host is gone.
    if say(READY).is_err() {
        return 1;
    }
    while let Some(question) = hear() {
        if say(&compute(&question)).is_err() {
            return 1;
        }
    }
    0
}

fn refuse(reason: &str) -> i32 {
    // If even this cannot be said the host sees the pipe close, which tells it enough.
    let _ = say(reason);
    1
}

/// The next question; `None` when the host has closed the pipe, or sends what is no text.
fn hear() -> Option<String> {
    let mut questions = io::stdin().lock();
    let mut length = [0; 4];
    questions.read_exact(&mut length).ok()?;
    let mut bytes = vec![0; u32::from_le_bytes(length) as usize];
    questions.read_exact(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

fn say(reply: &str) -> io::Result<()> {
    let length = u32::try_from(reply.len()).map_err(io::Error::other)?;
    let mut replies = io::stdout().lock();
    replies.write_all(&length.to_le_bytes())?;
    replies.write_all(reply.as_bytes())?;
    replies.flush()
}
