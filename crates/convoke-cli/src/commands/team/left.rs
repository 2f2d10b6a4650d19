//! What is left to do for a team whose lead has ended: unread letters, work that is open, tasks that can be
//! claimed. A session with any of it can go on.

use std::collections::HashMap;

use convoke_journal::Journal;
use convoke_kernel::{Board, Claimant, LEAD, MemberState, SessionId, Standing, Status};
use convoke_runtime::{Clock, MemberRow};

use super::target::team_client;
use crate::catalog::{ListedSession, teams};
use crate::failure::Failure;

/// What is left of these sessions, for those of which anything is; those that go on anyway are not looked at.
pub(crate) async fn left<'a>(
    journal: &Journal,
    sessions: impl Iterator<Item = &'a ListedSession>,
) -> Result<HashMap<SessionId, String>, Failure> {
    let ended: Vec<&ListedSession> = sessions.filter(|listed| !listed.lead().summary.can_go_on).collect();
    let mut found = HashMap::new();
    if ended.is_empty() {
        return Ok(found);
    }
    let teams = teams(journal).await?;
    for listed in ended.into_iter().filter(|listed| teams.contains(listed.session.as_str())) {
        if let Some(what) = left_of(journal, &listed.session).await? {
            found.insert(listed.session.clone(), what);
        }
    }
    Ok(found)
}

/// What is left of one session's team, in words.
pub(crate) async fn left_of(journal: &Journal, session: &SessionId) -> Result<Option<String>, Failure> {
    let team = team_client(journal);
    let rows = team.members(session).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    Ok(first_left(&rows, &team.board(session).await?, Clock::system().now()))
}

/// The first thing that a member of the team would do.
fn first_left(rows: &[MemberRow], board: &Board, now: u64) -> Option<String> {
    rows.iter().filter(|row| row.state != MemberState::Stopped).find_map(|row| of_member(row, board, now))
}

fn of_member(row: &MemberRow, board: &Board, now: u64) -> Option<String> {
    let member = &row.member;
    let name = &row.member.name;
    if member.waiting > 0 {
        let letters = if member.waiting == 1 { "letter waits" } else { "letters wait" };
        return Some(format!("{} {letters} for {name}", member.waiting));
    }
    if name == LEAD {
        return None;
    }
    if let Standing::Stopping { .. } = member.standing {
        return Some(format!("{name} was asked to stop"));
    }
    // One whose work failed waits for a letter, and claims nothing before that.
    if let Standing::Failed { .. } = member.standing {
        return None;
    }
    if row.summary.as_ref().is_none_or(|summary| summary.status == Status::Open) {
        return Some(format!("{name} has work open"));
    }
    if let Some(task) = &row.task {
        return Some(format!("{name} has not finished #{} {}", task.number, task.subject));
    }
    let me = Claimant { name: name.clone(), agent: Some(member.agent.clone()), role: member.role.clone() };
    let task = board.claimable(&me, now).into_iter().next()?;
    Some(format!("{name} can claim #{} {}", task.number, task.subject))
}

#[cfg(test)]
mod tests {
    use super::*;
    use convoke_kernel::{AgentId, BoardEntry, Member, NewTask, Role, Summary, TaskId, Usage};

    fn member(name: &str, waiting: u32, standing: Standing) -> MemberRow {
        let member = Member {
            name: name.to_owned(),
            role: "coder".to_owned(),
            agent: AgentId::derived(&[name]),
            by: LEAD.to_owned(),
            at: 1,
            requires_plan: false,
            standing,
            waiting,
            urgent: 0,
            asleep: None,
            told: false,
        };
        let summary = Summary {
            session: SessionId::from_bits([1; 10]),
            role: Role::Teammate,
            label: name.to_owned(),
            dir: "/".to_owned(),
            task: "t".to_owned(),
            forked_from: None,
            refused: None,
            model: "m".to_owned(),
            effort: None,
            status: Status::Done,
            failure: None,
            can_go_on: false,
            started_at: 1,
            turns: 1,
            calls: 1,
            commands: 0,
            usage: Usage::default(),
            cost_nano: None,
        };
        MemberRow { member, state: MemberState::Idle, why: None, task: None, summary: Some(summary) }
    }

    fn check(rows: &[MemberRow], board: &Board, expected: Option<&str>) {
        assert_eq!(first_left(rows, board, 10).as_deref(), expected);
    }

    #[test]
    fn a_team_with_letters_open_work_or_a_claimable_task_can_go_on() {
        let empty = Board::default();
        let lead = || member(LEAD, 0, Standing::Live);
        check(&[lead(), member("alice", 0, Standing::Live)], &empty, None);
        check(&[member(LEAD, 1, Standing::Live)], &empty, Some("1 letter waits for lead"));
        check(&[lead(), member("alice", 2, Standing::Live)], &empty, Some("2 letters wait for alice"));
        let fresh = MemberRow { summary: None, ..member("bob", 0, Standing::Live) };
        check(&[lead(), fresh], &empty, Some("bob has work open"));
        let mut board = Board::default();
        let task = NewTask { subject: "Write".to_owned(), ..NewTask::default() };
        let entry = BoardEntry::Create { id: TaskId::derived(&["x"]), task, by: LEAD.to_owned() };
        for event in board.decide(&entry, 1).unwrap() {
            board.apply(&event, 1);
        }
        check(&[lead()], &board, None);
        check(&[lead(), member("alice", 0, Standing::Live)], &board, Some("alice can claim #1 Write"));
        let failed = Standing::Failed { why: "no".to_owned(), at: 2 };
        check(&[lead(), member("alice", 0, failed)], &board, None);
        let stopped = MemberRow {
            state: MemberState::Stopped,
            ..member("alice", 3, Standing::Stopped { why: "asked".to_owned(), at: 2 })
        };
        check(&[lead(), stopped], &board, None);
    }
}
