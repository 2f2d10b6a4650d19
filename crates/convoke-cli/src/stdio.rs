//! The two ends a command writes to: stdout for what was asked for, stderr for everything else; and the one
//! it reads from. A reader that has gone away is no failure. Inside of a capture nothing reaches the terminal
//! and nothing is read from it: a session runs the very commands of the command line and draws what they say
//! by itself. In CI nothing that is put or told is obeyed by the runner.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::escape::{Escaper, Form};
use crate::failure::Failure;
use crate::named::text_of;
use crate::render::{escaped, terminal_size};

/// Whether stdout still has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    /// It has one.
    There,
    /// The other end was closed, as `| head` does.
    Gone,
}

/// What catches the output of one task.
struct Capture {
    width: usize,
    caught: Mutex<Vec<u8>>,
}

/// The two ends in front of a CI runner: which of them it reads, and where each stands in its line.
#[derive(Default)]
struct Runner {
    reads: [bool; 2],
    lines: [Escaper; 2],
    last: usize,
}

const OUT: usize = 0;
const ERR: usize = 1;

static RUNNER: Mutex<Option<Runner>> = Mutex::new(None);

tokio::task_local! {
    static CAPTURE: Arc<Capture>;
}

/// Settles whether what is written is made harmless for a CI runner: as a person said, or where GitHub's
/// variable says that there is one and an end does not lead into a file, which no runner reads.
pub(crate) fn settle(wish: Option<bool>) {
    let actions = std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    let is_file = |end: std::io::Result<OwnedFd>| {
        end.is_ok_and(|end| std::fs::File::from(end).metadata().is_ok_and(|meta| meta.is_file()))
    };
    let files = || {
        let out = std::io::stdout().as_fd().try_clone_to_owned();
        let err = std::io::stderr().as_fd().try_clone_to_owned();
        [is_file(out), is_file(err)]
    };
    let reads = match wish {
        Some(on) => [on; 2],
        None if actions => files().map(|file| !file),
        None => [false; 2],
    };
    *RUNNER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Runner { reads, ..Runner::default() });
}

/// The bytes as they go to an end.
fn harmless(end: usize, bytes: &[u8], form: Form) -> Cow<'_, [u8]> {
    let mut runner = RUNNER.lock().unwrap_or_else(PoisonError::into_inner);
    match runner.as_mut() {
        Some(runner) if runner.reads[end] => {
            // Both may lead to the same place, and then what the other one wrote has ended this line.
            if runner.last != end {
                runner.lines[end] = Escaper::default();
            }
            runner.last = end;
            runner.lines[end].pass(bytes, form)
        }
        _ => Cow::Borrowed(bytes),
    }
}

/// Prints what is wrong with a command line, or its help.
pub(crate) fn complain(error: &clap::Error) {
    let text = error.render().to_string();
    let end = if error.use_stderr() { ERR } else { OUT };
    match harmless(end, text.as_bytes(), Form::Text) {
        // That stdout or stderr is gone can be told nowhere.
        Cow::Borrowed(_) => drop(error.print()),
        Cow::Owned(_) if end == ERR => tell(&text),
        Cow::Owned(_) => drop(put(&text)),
    }
}

/// Stderr for a picture that moves.
pub(crate) struct Talk;

impl Write for Talk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        std::io::stderr().write_all(&harmless(ERR, bytes, Form::Text)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

/// Does this, and catches everything that it puts and tells on the way, in that order. What it prints is made
/// for a person who reads it at this width, without colours and without being asked anything. What it does in
/// other tasks or threads is not caught.
pub(crate) async fn captured<T>(width: usize, future: impl Future<Output = T>) -> (T, String) {
    let capture = Arc::new(Capture { width, caught: Mutex::new(Vec::new()) });
    let done = CAPTURE.scope(capture.clone(), future).await;
    let caught = String::from_utf8_lossy(&capture.caught()).into_owned();
    (done, caught)
}

/// Whether output is caught here.
pub(crate) fn is_captured() -> bool {
    captured_width().is_some()
}

/// The columns that caught output is made for, if it is caught here.
pub(crate) fn captured_width() -> Option<usize> {
    CAPTURE.try_with(|capture| capture.width).ok()
}

/// Whether what is put on stdout is shown on a terminal, which must not obey it.
pub(crate) fn is_shown() -> bool {
    is_captured() || std::io::stdout().is_terminal()
}

/// Whether a person can be asked on stdin.
pub(crate) fn can_ask() -> bool {
    !is_captured() && std::io::stdin().is_terminal()
}

/// Whether a person sits in front of it with keys and a screen, as a session needs.
pub(crate) fn has_person() -> bool {
    can_ask() && std::io::stdout().is_terminal()
}

/// Everything that stands on stdin.
pub(crate) fn read_all() -> std::io::Result<String> {
    if is_captured() {
        return Err(std::io::Error::other("in a session it is the keyboard; write the text itself"));
    }
    text_of(std::io::stdin().lock())
}

/// Puts data on stdout, as it is.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    put_more(text).map(|_| ())
}

/// Puts data on stdout, and says whether it is worth going on.
pub(crate) fn put_more(text: &str) -> Result<Reader, Failure> {
    put_bytes(text.as_bytes())
}

/// Puts bytes on stdout that may be no text, and says whether it is worth going on.
pub(crate) fn put_bytes(bytes: &[u8]) -> Result<Reader, Failure> {
    put_as(bytes, Form::Text)
}

/// Puts bytes on stdout that a program wants as they are. Where a CI runner reads them and would obey some,
/// they are changed all the same, and that is said.
pub(crate) fn put_exact(bytes: &[u8]) -> Result<Reader, Failure> {
    let mut alone = Escaper::default();
    let reads = RUNNER
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .is_some_and(|runner| runner.reads[OUT]);
    if reads && !is_captured() && matches!(alone.pass(bytes, Form::Text), Cow::Owned(_)) {
        tell(
            "warning: lines that the CI runner would obey are changed (a backslash is put in); --ci-safe off \
                keeps every byte\n",
        );
    }
    put_bytes(bytes)
}

fn put_as(bytes: &[u8], form: Form) -> Result<Reader, Failure> {
    if catch(bytes) {
        return Ok(Reader::There);
    }
    let bytes = harmless(OUT, bytes, form);
    let mut out = std::io::stdout().lock();
    match out.write_all(&bytes).and_then(|()| out.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(Failure::failed(format!("stdout cannot be written to: {error}"))),
    }
}

/// Puts JSON on stdout, and says whether it is worth going on. A terminal gets the same values in a form it
/// does not obey; everything else gets the text as it is.
pub(crate) fn put_json(json: &str) -> Result<Reader, Failure> {
    if is_shown() {
        put_as(escaped(json).as_bytes(), Form::Json)
    } else {
        put_as(json.as_bytes(), Form::Json)
    }
}

/// Puts talk on stderr, as it is.
pub(crate) fn tell(text: &str) {
    if !catch(text.as_bytes()) {
        // That stderr is gone can be told nowhere.
        let _ = std::io::stderr().write_all(&harmless(ERR, text.as_bytes(), Form::Text));
    }
}

/// How many columns a table may have: those of the terminal, or those the caller states in COLUMNS, or any
/// number.
pub(crate) fn width() -> Option<usize> {
    if let Some(width) = captured_width() {
        return Some(width);
    }
    if std::io::stdout().is_terminal() {
        return Some(terminal_size().0);
    }
    let stated = std::env::var_os("COLUMNS")?;
    stated.to_str()?.parse().ok().filter(|columns| *columns >= 20)
}

/// Keeps this if output is caught here; says whether it is.
fn catch(bytes: &[u8]) -> bool {
    CAPTURE.try_with(|capture| capture.caught().extend_from_slice(bytes)).is_ok()
}

impl Capture {
    /// What was caught. The bytes are whole even if a thread panicked in between.
    fn caught(&self) -> MutexGuard<'_, Vec<u8>> {
        self.caught.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::args::{ConfigCommand, ConfigShowArgs, GlobalArgs, ListArgs, SessionsCommand, SettingFlags};
    use crate::commands;
    use crate::failure::Exit;
    use crate::render::{Look, Talk};
    use crate::settings::{Environment, OutputFormat, Settings};

    /// What these lines of code print when they are caught at 50 columns.
    async fn check(printing: impl FnOnce(), expected: &str) {
        let (done, caught) = captured(50, async { printing() }).await;
        assert_eq!((done, caught.as_str()), ((), expected));
    }

    fn settings(home: &Path, model: &str) -> Settings {
        let environment: Environment =
            [("HOME", home.to_str().unwrap()), ("TERM", "xterm"), ("ANTHROPIC_MODEL", model)]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into_iter()
                .collect();
        Settings::resolve(&GlobalArgs::default(), &environment, home).unwrap()
    }

    #[tokio::test]
    async fn everything_that_is_put_and_told_is_caught_in_order() {
        check(|| put("one\n").unwrap(), "one\n").await;
        check(
            || {
                put("answer ").unwrap();
                tell("talk ");
                assert_eq!(put_more("more ").unwrap(), Reader::There);
                put_bytes(b"bytes").unwrap();
            },
            "answer talk more bytes",
        )
        .await;
        // A character may come in two pieces, and what is no text at all does no harm.
        check(
            || [&[0xc3][..], &[0xa9], &[0xff]].iter().for_each(|piece| drop(put_bytes(piece))),
            "é\u{fffd}",
        )
        .await;
    }

    #[tokio::test]
    async fn caught_data_is_in_the_form_that_a_terminal_does_not_obey() {
        check(|| assert_eq!(put_json("\"a\u{9b}2J\"").unwrap(), Reader::There), "\"a\\u009b2J\"").await;
    }

    #[tokio::test]
    async fn a_capture_has_its_own_width_and_ends_with_itself() {
        let ((), _) = captured(33, async { assert_eq!(width(), Some(33)) }).await;
        assert!(!is_captured());
        let (inner, outer) = captured(33, async {
            put("before ").unwrap();
            let inner = captured(20, async { put("inside").unwrap() }).await.1;
            put("after").unwrap();
            (inner, width())
        })
        .await;
        assert_eq!((inner, outer), (("inside".to_owned(), Some(33)), "before after".to_owned()));
    }

    #[tokio::test]
    async fn nobody_is_asked_and_nothing_is_coloured_or_moves_in_a_capture() {
        let (look, _) = captured(50, async {
            assert!(is_shown() && !can_ask() && !has_person());
            assert!(read_all().unwrap_err().to_string().contains("write the text itself"));
            Look::detect(OutputFormat::Text, false)
        })
        .await;
        assert!(!look.is_interactive() && !look.colour && look.talk == Talk::Sparse, "{look:?}");
        assert!(look.answer_on_terminal, "what a model wrote is cleaned: {look:?}");
        let (text, _) =
            captured(20, async { (look.bold("x"), look.fit("words that do not fit on one line")) }).await;
        assert_eq!(text.0, "x");
        assert!(text.1.lines().all(|line| line.chars().count() <= 20), "{}", text.1);
    }

    #[tokio::test]
    async fn two_tasks_are_caught_at_once_without_mixing() {
        let both = Arc::new(tokio::sync::Barrier::new(2));
        let speaking = |name: &'static str, width: usize| {
            let both = both.clone();
            tokio::spawn(captured(width, async move {
                for number in 0..50 {
                    put(&format!("{name}{number} ")).unwrap();
                    tell(&format!("{name}w{} ", super::width().unwrap()));
                    both.wait().await;
                }
            }))
        };
        let one = speaking("a", 40);
        let other = speaking("b", 80);
        let expected = |name: &str, width: usize| {
            (0..50).map(|number| format!("{name}{number} {name}w{width} ")).collect::<String>()
        };
        assert_eq!(one.await.unwrap().1, expected("a", 40));
        assert_eq!(other.await.unwrap().1, expected("b", 80));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn commands_of_the_command_line_are_caught_in_two_tasks_at_once() {
        let home = tempfile::tempdir().unwrap();
        let looking = |model: &'static str, width: usize| {
            let settings = settings(home.path(), model);
            tokio::spawn(captured(width, async move {
                let show = ConfigCommand::Show(ConfigShowArgs { flags: SettingFlags::default() });
                for _ in 0..10 {
                    assert_eq!(commands::config::run(&settings, &show).unwrap(), Exit::Done);
                    let list = SessionsCommand::List(ListArgs { all: true, dir: None });
                    assert_eq!(commands::sessions::run(&settings, &list).await.unwrap(), Exit::Done);
                }
            }))
        };
        let check = |(_, caught): ((), String), own: &str, others: &str| {
            assert_eq!(caught.matches(own).count(), 10, "{caught}");
            assert!(!caught.contains(others) && !caught.contains('\u{1b}'), "{caught}");
            assert!(caught.lines().filter(|line| line.starts_with("model ")).count() == 10, "{caught}");
        };
        let one = looking("model-a", 60);
        let other = looking("model-b", 120);
        check(one.await.unwrap(), "model-a", "model-b");
        check(other.await.unwrap(), "model-b", "model-a");
    }
}
