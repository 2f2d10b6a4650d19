//! A task that speaks to a team that is there already: a broadcast, a look into the inbox, a teammate that is
//! to find work on the board. A session of its own has an empty inbox, an empty board and no member to hear,
//! so it would be paid for nothing: it is not begun, and the session that is meant is named.

use convoke_kernel::{Board, Roster, Standing, TaskState};

use super::target::{newest_with, team_client};
use crate::again::{Naming, shell_word};
use crate::catalog::{self, Catalog};
use crate::failure::Failure;
use crate::settings::Settings;

/// What of a team a task speaks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Addressed {
    /// Its members.
    Members,
    /// The tasks on its board.
    Board,
}

/// Refuses a task that speaks to a team of this directory; everything else passes.
pub(crate) async fn check(settings: &Settings, task: &str) -> Result<(), Failure> {
    let Some(addressed) = addressed(task) else { return Ok(()) };
    let Some(journal) = catalog::open_existing(settings).await? else { return Ok(()) };
    let team = team_client(&journal);
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let fits = |roster: &Roster, board: &Board| match addressed {
        Addressed::Members => !names(roster).is_empty(),
        Addressed::Board => open_tasks(board) > 0,
    };
    let Some((listed, roster, board)) = newest_with(settings, &journal, &team, &catalog, fits).await? else {
        return Ok(());
    };
    let session = listed.session.as_str();
    let (who, lacks) = match addressed {
        Addressed::Members => (names(&roster).join(", "), "would have no member to hear it"),
        Addressed::Board => {
            (format!("{} open on its board", many(open_tasks(&board))), "would have an empty board")
        }
    };
    let failure = Failure::usage(format!(
        "the team of this directory is in session {session} ({who}), and a new session {lacks}"
    ));
    let failure =
        match Naming::of(settings).command(&format!("resume {session} --say {}", shell_word(task.trim()))) {
            Some(command) => failure.hint(format!("`{command}` says it there")),
            None => failure,
        };
    Err(failure.hint("--fresh begins a new session all the same"))
}

fn names(roster: &Roster) -> Vec<String> {
    let others =
        roster.members().skip(1).filter(|member| !matches!(member.standing, Standing::Stopped { .. }));
    others.map(|member| member.name.to_string()).collect()
}

fn open_tasks(board: &Board) -> usize {
    board.tasks().iter().filter(|task| matches!(task.state, TaskState::Pending)).count()
}

fn many(tasks: usize) -> String {
    if tasks == 1 { "1 task".to_owned() } else { format!("{tasks} tasks") }
}

/// What a look into the inbox or at the team is made of; any other word makes it something else.
const LOOKS: &str = "check read show look list see at in into the lead lead's my our your team's inbox \
    mailbox mail for any new unread messages message letters please me team teammates members roster and";

/// What of a team a task speaks to, by its words; strict, because a task that is no such thing must not be
/// held up.
fn addressed(task: &str) -> Option<Addressed> {
    let plain = without_quotes(&task.to_lowercase());
    let words: Vec<&str> = plain
        .split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '-'))
        .filter(|word| !word.is_empty() && *word != "please")
        .collect();
    let has = |table: &[&str]| words.iter().any(|word| table.contains(word));
    let first = words.first().copied().unwrap_or_default();
    if words.len() > 24 {
        return None;
    }
    if has(&["spawn", "hire", "recruit"]) {
        let finds =
            has(&["find", "finds", "claim", "claims", "pick", "look"]) && has(&["work", "tasks", "task"]);
        let makes = has(&["create", "add", "put", "write", "make", "post"]);
        return (finds && has(&["board"]) && !makes).then_some(Addressed::Board);
    }
    let shows = ["inbox", "mailbox", "teammates"];
    let only_looks = ["check", "read", "show", "look", "list", "see"].contains(&first)
        && has(&shows)
        && words.iter().all(|word| LOOKS.split_whitespace().any(|known| known == *word));
    let broadcasts = ["broadcast", "announce"].contains(&first)
        && words[words.len().saturating_sub(4)..]
            .iter()
            .any(|word| ["teammates", "team", "everyone"].contains(word));
    (only_looks || broadcasts).then_some(Addressed::Members)
}

/// A text without what stands in double quotes.
fn without_quotes(text: &str) -> String {
    let parts = text.split(['"', '“', '”']).step_by(2);
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_speaks_to_a_team_and_to_nothing_else_is_held_up() {
        let check = |task: &str, expected| assert_eq!(addressed(task), expected, "{task}");
        let members = Some(Addressed::Members);
        let board = Some(Addressed::Board);
        check("Broadcast \"status update: phase 1 complete\" to all teammates", members);
        check("broadcast that phase 1 is done to the team", members);
        check("Check the lead inbox for any messages", members);
        check("Please list teammates", members);
        check("Spawn a coder teammate and let it find work from the task board itself", board);
        check("Broadcast events to all subscribers", None);
        check("Check the inbox module for bugs", None);
        check("Check the inbox handling", None);
        check("Read the mail parser", None);
        check("List the files", None);
        check("Create 3 tasks on the board, then spawn alice and bob. Watch them auto-claim.", None);
        check("Spawn alice (coder) and bob (tester). Have alice send bob a message.", None);
        check("Spawn a coder teammate", None);
        check("", None);
    }
}
