//! `convoke` without a task, in a terminal: a session. It makes everything ready, has the terminal drawn by a
//! thread of its own, because a terminal may stand still for as long as it likes, and does what the person
//! asks for until the person leaves.

mod agents;
mod export;
mod front;
mod offers;
mod ready;
mod said;
mod session_loop;
mod shell;
mod slash;
mod waits;
mod watching;
mod whole;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use convoke_runtime::Clock;
use convoke_terminal::{Ends, Opens, Screen, ScreenOptions, ScreenUpdate, Theme};
use tokio::runtime::Handle;
use tokio::sync::mpsc::unbounded_channel;

use self::front::QuestionFront;
use self::ready::Ready;
use self::session_loop::SessionLoop;
use super::run::choose;
use crate::again::Naming;
use crate::args::SessionArgs;
use crate::catalog::{self, Catalog};
use crate::failure::{Exit, Failure};
use crate::greeting::Greeting;
use crate::open;
use crate::render::{Look, terminal_size};
use crate::settings::Settings;
use crate::signals::{Caught, Sources};
use crate::stdio::{self, tell};

/// How long a stop waits for what is under way in a session.
const PATIENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Opens a session, or takes one up.
pub(crate) async fn run(settings: &Settings, args: SessionArgs) -> Result<Exit, Failure> {
    if !stdio::has_person() {
        return Err(Failure::usage("a session needs a terminal to read from and to write to")
            .hint("give the task on the command line: `convoke review the error handling in src`")
            .hint("`convoke run` alone reviews this directory"));
    }
    // A person who has waited long enough presses Esc again: until then nothing that is paid for is thrown
    // away.
    let settings = &Settings { drain: PATIENCE, ..settings.clone() };
    let look = Look::of(settings);
    // Named wrongly, it is told before anything is made.
    let given = match &args.session {
        Some(given) => Some(known(settings, given).await?),
        None => None,
    };
    let journal = open::quiet_journal(settings).await?;
    let (screen, news) = unbounded_channel();
    let front = QuestionFront::new(screen.clone());
    tokio::spawn(waits::tell(journal.waits(), journal.outage(), settings.postgres.1, screen.clone()));
    let ready = match &given {
        Some(given) => Ready::again(settings, look, given, &journal, &front).await?,
        None => {
            let mut ready = Ready::anew(settings, look, &choose(settings, look)?, &journal, &front).await?;
            if let Some(fan_out) = ready.start.as_mut().and_then(|start| start.fan_out.as_mut()) {
                fan_out.fresh = args.fresh;
            }
            ready
        }
    };
    let history = settings.state_dir.join("history");
    let facts = &ready.facts;
    let editor = settings.editor.clone();
    let named = facts.session.as_ref().map(|session| session.as_str());
    let greeting =
        Greeting::new(settings, (&facts.model, facts.effort.as_deref()), &ready.confinement, named);
    let lines = greeting.lines(!history.exists(), terminal_size().0.saturating_sub(4));
    let opens: Opens = Arc::new(move |file, line| {
        let (program, args) = editor.command(file, line.and_then(|line| u32::try_from(line).ok()));
        let mut command = Command::new(program);
        command.args(args);
        command
    });
    let manner = ScreenOptions {
        theme: Theme { colour: look.colour },
        plain: settings.plain,
        history: Some(history),
        greeting: lines,
        opens,
        dir: settings.dir.clone(),
        clock: now,
    };
    let (asks, wanted) = unbounded_channel();
    // The first picture says which model answers.
    let _ = screen.send(Screen::Update(ScreenUpdate::Facts(Box::new(ready.facts.clone()))));
    let handle = Handle::current();
    let shown = std::thread::spawn(move || convoke_terminal::run(manner, Ends { news, asks }, &handle));
    let mut session_loop = SessionLoop::new(settings.clone(), journal.clone(), screen.clone(), front, ready);
    let exit = session_loop.conduct(wanted, args.fork).await;
    // Whatever happened, the terminal is given back before anything is said on it.
    let _ = screen.send(Screen::Update(ScreenUpdate::Over));
    let drawn = tokio::select! {
        drawn = tokio::task::spawn_blocking(move || shown.join()) => drawn,
        // The screen may be lent to an editor. A further signal does not wait for it; the guard gives the
        // terminal back.
        signal = again() => std::process::exit(i32::from(signal.exit() as u8)),
    };
    let session = session_loop.session();
    session_loop.shell.stop();
    drop(session_loop);
    // The leases go back at once, so that a resume need not find out that this process is gone.
    let _ = journal.close().await;
    if let Some(session) = session
        && let Some(command) = Naming::of(settings).command(&format!("session {session}"))
    {
        tell(&format!("to go on: {command}\n"));
    }
    if let Ok(Err(_)) = &drawn {
        return Err(Failure::failed("the screen broke off; everything that was recorded is kept"));
    }
    exit
}

/// The whole id of a session that was named by the beginning of it.
async fn known(settings: &Settings, given: &str) -> Result<String, Failure> {
    let journal = catalog::open_existing(settings).await?;
    let catalog = Catalog::load(settings, journal.as_ref()).await?;
    let session = catalog.find(given)?.session.to_string();
    if let Some(journal) = journal {
        let _ = journal.close().await;
    }
    Ok(session)
}

/// The next signal that asks for an end.
async fn again() -> Caught {
    match Sources::new() {
        Ok(mut sources) => sources.next().await,
        Err(_) => std::future::pending().await,
    }
}

fn now() -> u64 {
    Clock::system().now()
}
