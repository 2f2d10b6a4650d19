//! Which session a resume goes on with: the one that is named, or the newest unfinished one of this
//! directory.

use std::collections::HashMap;

use convoke_journal::{LiveOwner, Process};
use convoke_kernel::SessionId;

use crate::catalog::{Catalog, ListedSession};
use crate::failure::Failure;
use crate::keeping::Checkout;
use crate::render::first_line;
use crate::settings::Settings;

/// How many other sessions an error names.
const MOST_NAMED: usize = 5;

/// The session that is meant. A person may name one that has ended; by itself only an unfinished one is
/// taken.
pub(super) fn pick<'a>(
    settings: &Settings,
    catalog: &'a Catalog,
    given: Option<&str>,
    left: &HashMap<SessionId, String>,
    here: &Process,
    more: bool,
) -> Result<&'a ListedSession, Failure> {
    match given {
        Some(id) => not_running(catalog.find(id)?, here),
        None => newest(settings, catalog, left, here, more),
    }
}

/// Refuses a session that another process drives.
fn not_running<'a>(listed: &'a ListedSession, here: &Process) -> Result<&'a ListedSession, Failure> {
    let session = &listed.session;
    if let Some(owner) = &listed.lead().owner {
        let silent = owner.silent_for.as_secs();
        let holder = holder(owner, here);
        let take_over = match is_here(&owner.process, here) {
            true => format!("to take it over, end that process first: `kill {}`", owner.process.pid),
            false => "to take it over, end that process where it runs".to_owned(),
        };
        return Err(Failure::failed(format!(
            "{session} is running: {holder} holds it, last heard of {silent} s ago"
        ))
        .hint(format!("to watch it: `convoke sessions watch {session}`"))
        .hint(format!("to have it finish what is under way and end: `convoke sessions pause {session}`"))
        .hint(take_over));
    }
    Ok(listed)
}

/// The process that holds a session. A pid means something only where it was given.
fn holder(owner: &LiveOwner, here: &Process) -> String {
    match is_here(&owner.process, here) {
        true => owner.to_string(),
        false => format!("process {} on another machine or in another container", owner.process.id),
    }
}

/// Whether a process's pid names it here too: on this boot and in this pid namespace, as far as they are
/// known.
fn is_here(process: &Process, here: &Process) -> bool {
    let known = !here.boot.is_empty() && !here.pid_namespace.is_empty();
    known && process.boot == here.boot && process.pid_namespace == here.pid_namespace
}

/// The newest unfinished session of this directory that no process works on. One whose lead has ended is
/// unfinished too if something is left to do for its team, or if there is `more` room for what had none.
fn newest<'a>(
    settings: &Settings,
    catalog: &'a Catalog,
    left: &HashMap<SessionId, String>,
    this: &Process,
    more: bool,
) -> Result<&'a ListedSession, Failure> {
    let dir = &settings.dir;
    let here = || catalog.sessions.iter().filter(|listed| Checkout::of_listed(settings, listed) == *dir);
    let goes_on = |listed: &ListedSession| {
        let lost = listed.own_program().is_none() && listed.losses.to_retry(more).next().is_some();
        listed.lead().summary.can_go_on
            || left.contains_key(&listed.session)
            || lost
            || (more && listed.losses.is_short())
    };
    let waits = |listed: &&ListedSession| goes_on(listed) && listed.lead().owner.is_none();
    if let Some(listed) = here().find(waits) {
        return Ok(listed);
    }
    let failure = Failure::usage(format!("no unfinished session of {} waits to be resumed", dir.display()));
    if here().next().is_some() {
        return Err(list(failure, here(), this));
    }
    let failure = failure.hint(
        "no session was ever started here; `convoke sessions list --all` shows those of other directories",
    );
    Err(list(failure, catalog.sessions.iter().filter(waits), this))
}

fn list<'a>(failure: Failure, sessions: impl Iterator<Item = &'a ListedSession>, here: &Process) -> Failure {
    sessions.take(MOST_NAMED).fold(failure, |failure, listed| failure.hint(line(listed, here)))
}

fn line(listed: &ListedSession, here: &Process) -> String {
    let owner = listed.lead().owner.as_ref();
    let holder = owner.map(|owner| format!(" in {}", holder(owner, here))).unwrap_or_default();
    let task = first_line(&listed.lead().summary.task, 60);
    format!("{} ({}{holder}): {task}", listed.session, listed.state().words())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_pid_is_named_only_where_it_was_given() {
        let here = Process::current([1; 10]);
        let check = |process: Process, expected: bool| {
            let owner = LiveOwner { process, silent_for: Duration::ZERO };
            let said = holder(&owner, &here);
            assert_eq!(is_here(&owner.process, &here), expected, "{said}");
            assert_eq!(said.contains("pid "), expected, "{said}");
            assert_eq!(said.contains("on another machine or in another container"), !expected, "{said}");
        };
        check(Process { id: "p_2".into(), ..here.clone() }, true);
        check(Process { boot: "another".into(), ..here.clone() }, false);
        check(Process { pid_namespace: "pid:[1]".into(), ..here.clone() }, false);
        let unknown = Process { pid_namespace: String::new(), ..here.clone() };
        assert!(!is_here(&unknown, &unknown), "what is not known is not the same");
    }
}
