//! What a member does next when it has nothing under way. One pure
//! function, called by the driver of the member.

use crate::ids::TaskId;
use crate::team::{Board, Claimant, LEAD, RequestKind, RequestState, Roster, Standing};

/// What a member without an open exchange does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It stops: it was asked to, and has no work of its own left to finish.
    Stop,
    /// It reads its letters.
    Read,
    /// It goes on with the task that it holds and has not finished.
    GoOn(TaskId),
    /// The task that it holds was offered back to it as often as is sensible: it is given back to the board.
    GiveBack(TaskId),
    /// It claims this task.
    Claim(TaskId),
    /// There is nothing for it to do.
    Rest,
}

/// How often a member that ended its work without finishing its task is asked to go on with it.
pub(crate) const OFFERS: u32 = 2;

/// Decides. In this order: control messages, letters, its own unfinished task, a new one. The lead only
/// reads: tasks are for teammates, and a letter makes it go on.
pub fn next(roster: &Roster, board: &Board, me: &Claimant, at: u64) -> Next {
    let Some(member) = roster.member(&me.name) else { return Next::Rest };
    if me.agent.as_ref().is_some_and(|agent| *agent != member.agent) {
        // A new member has the name by now: the one that had it before has stopped.
        return Next::Rest;
    }
    let held = board.held_by(&member.agent);
    let letters = if member.waiting > 0 { Some(Next::Read) } else { None };
    match &member.standing {
        Standing::Stopped { .. } => Next::Rest,
        Standing::Stopping { request, .. } => {
            // Without work of its own there is nothing to decide: it stops without a request to the model.
            let unread = roster.request(request).is_some_and(|asked| asked.state == RequestState::Pending);
            let only_the_request = unread && member.waiting == 1 && held.is_none();
            letters.filter(|_| !only_the_request).unwrap_or(Next::Stop)
        }
        Standing::Failed { .. } => letters.unwrap_or(Next::Rest),
        Standing::Live => letters.unwrap_or_else(|| match held {
            _ if member.name == LEAD || awaits_approval(roster, &member.name) => Next::Rest,
            Some(task) if task.offers < OFFERS => Next::GoOn(task.id.clone()),
            Some(task) => Next::GiveBack(task.id.clone()),
            None => {
                match board.claimable(me, at).iter().find(|task| task.given_up.as_ref() != Some(&me.name)) {
                    Some(task) => Next::Claim(task.id.clone()),
                    None => Next::Rest,
                }
            }
        }),
    }
}

/// Whether a plan of its own waits for an answer: until that comes as a letter it may do nothing.
fn awaits_approval(roster: &Roster, name: &str) -> bool {
    let open = roster.open_requests();
    open.iter().any(|(_, request)| request.kind == RequestKind::Plan && request.from == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AgentId, MessageId};
    use crate::team::{BoardEntry, LetterHeader, LetterKind, NewTask, RosterEntry};

    const AT: u64 = 1_000;

    /// A roster with alice, the coder, a board, and what is tried with them.
    struct Team {
        roster: Roster,
        board: Board,
    }

    impl Team {
        fn of_alice() -> Team {
            let mut team = Team { roster: Roster::default(), board: Board::default() };
            team.does(RosterEntry::Open { lead: AgentId::derived(&["lead"]) });
            team.spawns();
            team
        }

        fn spawns(&mut self) {
            let agent = self.agent();
            let name = "alice".parse().unwrap();
            let role = "coder".to_owned();
            self.does(RosterEntry::Spawn { name, role, agent, requires_plan: true, by: LEAD.to_owned() });
        }

        /// The agent that alice has if it is spawned now.
        fn agent(&self) -> AgentId {
            AgentId::derived(&["alice", &self.roster.generation("alice").to_string()])
        }

        fn does(&mut self, entry: RosterEntry) {
            for event in self.roster.decide(&entry, AT).unwrap() {
                self.roster.apply(&event, AT);
            }
        }

        fn notes(&mut self, entry: BoardEntry) {
            for event in self.board.decide(&entry, AT).unwrap() {
                self.board.apply(&event, AT);
            }
        }

        fn writes(&mut self, word: &str, priority: i32, role: Option<&str>) -> TaskId {
            let id = TaskId::derived(&[word]);
            let role = role.map(str::to_owned);
            let task = NewTask { subject: word.to_owned(), priority, role, ..NewTask::default() };
            self.notes(BoardEntry::Create { id: id.clone(), task, by: LEAD.to_owned() });
            id
        }

        fn claims(&mut self, task: &TaskId) {
            self.notes(BoardEntry::Claim { task: task.clone(), claimant: self.alice(), ttl: 60_000 });
        }

        fn writes_to(&mut self, name: &str, kind: LetterKind) {
            let id = MessageId::derived(&["letter"]);
            let from = "person".to_owned();
            self.does(RosterEntry::Post(LetterHeader { id, from, to: name.to_owned(), kind, urgent: false }));
        }

        fn reads(&mut self) {
            let waiting = self.roster.member("alice").unwrap().waiting;
            let letters = (0..waiting).map(|n| (MessageId::derived(&[&n.to_string()]), false)).collect();
            self.does(RosterEntry::Take { name: "alice".to_owned(), letters });
        }

        /// The request and the letter that carries it, as they are always made together.
        fn asks_to_stop(&mut self) {
            let from = LEAD.to_owned();
            let to = "alice".to_owned();
            self.does(RosterEntry::AskShutdown { request: request(), from, to, deadline: AT + 60 });
            self.writes_to("alice", LetterKind::ShutdownRequest);
        }

        fn alice(&self) -> Claimant {
            let agent = self.roster.member("alice").map(|member| member.agent.clone());
            Claimant { name: "alice".to_owned(), agent, role: "coder".to_owned() }
        }

        #[track_caller]
        fn check(&self, expected: Next) {
            assert_eq!(next(&self.roster, &self.board, &self.alice(), AT), expected);
        }
    }

    fn request() -> MessageId {
        MessageId::derived(&["request"])
    }

    fn name() -> String {
        "alice".to_owned()
    }

    #[test]
    fn c9_letters_come_first_then_the_best_task_and_then_rest() {
        let mut team = Team::of_alice();
        team.check(Next::Rest);
        team.writes("old", 0, None);
        let best = team.writes("urgent", 5, Some("coder"));
        team.writes("not for it", 9, Some("tester"));
        team.check(Next::Claim(best.clone()));
        team.writes_to("alice", LetterKind::Message);
        team.check(Next::Read);
        team.reads();
        team.check(Next::Claim(best));
    }

    #[test]
    fn w26_its_own_unfinished_task_comes_before_a_new_one_and_is_given_back_in_the_end() {
        let mut team = Team::of_alice();
        let task = team.writes("mine", 0, None);
        team.claims(&task);
        team.writes("another", 9, None);
        for _ in 0..OFFERS {
            team.check(Next::GoOn(task.clone()));
            let agent = team.alice().agent.unwrap();
            team.notes(BoardEntry::Offer { task: task.clone(), agent });
        }
        team.check(Next::GiveBack(task.clone()));
        team.writes_to("alice", LetterKind::Message);
        team.check(Next::Read);
        team.reads();
        let holder = team.alice();
        team.notes(BoardEntry::Finish { task, holder, token: None, result: "done".to_owned() });
        team.check(Next::Claim(TaskId::derived(&["another"])));
    }

    #[test]
    fn w23_one_that_rests_and_is_asked_to_stop_stops_without_a_model_call() {
        let mut team = Team::of_alice();
        team.writes("claimable", 0, None);
        team.does(RosterEntry::Sleep { name: name() });
        team.asks_to_stop();
        team.check(Next::Stop);
    }

    #[test]
    fn w24_one_that_is_asked_to_stop_reads_what_else_waits_before_it_stops() {
        let mut team = Team::of_alice();
        team.writes_to("alice", LetterKind::Message);
        team.asks_to_stop();
        team.check(Next::Read);
        team.reads();
        team.check(Next::Stop);
        // It has read the request if it agreed to it, so this letter is another one.
        team.does(RosterEntry::AnswerShutdown { request: request(), by: name(), approve: true });
        team.check(Next::Stop);
        team.writes_to("alice", LetterKind::Message);
        team.check(Next::Read);
    }

    #[test]
    fn w24_one_that_holds_a_task_is_asked_before_it_stops_and_may_refuse() {
        let mut team = Team::of_alice();
        let task = team.writes("mine", 0, None);
        team.claims(&task);
        team.asks_to_stop();
        team.check(Next::Read);
        team.reads();
        team.check(Next::Stop);
        team.does(RosterEntry::AnswerShutdown { request: request(), by: name(), approve: false });
        team.check(Next::GoOn(task));
    }

    #[test]
    fn w16_a_failed_member_reads_letters_and_takes_no_work() {
        let mut team = Team::of_alice();
        let task = team.writes("claimable", 0, None);
        team.does(RosterEntry::Fail { name: name(), why: "no".to_owned() });
        team.check(Next::Rest);
        team.writes_to("alice", LetterKind::Message);
        team.check(Next::Read);
        team.reads();
        team.does(RosterEntry::Recover { name: name() });
        team.check(Next::Claim(task));
    }

    #[test]
    fn one_whose_plan_waits_for_an_answer_reads_letters_and_does_nothing_else() {
        let mut team = Team::of_alice();
        let task = team.writes("mine", 0, None);
        team.check(Next::Claim(task.clone()));
        team.does(RosterEntry::AskPlan { request: request(), from: name(), task: None });
        team.check(Next::Rest);
        team.claims(&task);
        team.check(Next::Rest);
        team.writes_to("alice", LetterKind::PlanAnswer);
        team.check(Next::Read);
        team.reads();
        team.does(RosterEntry::AnswerPlan { request: request(), by: LEAD.to_owned(), approve: true });
        team.check(Next::GoOn(task));
    }

    #[test]
    fn w17_one_that_has_stopped_does_nothing_even_if_another_has_its_name() {
        let mut team = Team::of_alice();
        team.writes("claimable", 0, None);
        let old = team.alice();
        team.does(RosterEntry::Stop { name: name(), why: "asked to".to_owned() });
        team.check(Next::Rest);
        team.spawns();
        team.writes_to("alice", LetterKind::Message);
        team.check(Next::Read);
        assert_eq!(next(&team.roster, &team.board, &old, AT), Next::Rest);
        let nobody = Claimant { name: "nobody".to_owned(), agent: None, role: "coder".to_owned() };
        assert_eq!(next(&team.roster, &team.board, &nobody, AT), Next::Rest);
    }

    #[test]
    fn w13_the_lead_reads_what_is_written_to_it_and_claims_nothing() {
        let mut team = Team::of_alice();
        team.writes("claimable", 0, None);
        let agent = Some(AgentId::derived(&["lead"]));
        let lead = Claimant { name: LEAD.to_owned(), agent, role: LEAD.to_owned() };
        assert_eq!(next(&team.roster, &team.board, &lead, AT), Next::Rest);
        team.writes_to(LEAD, LetterKind::Result);
        assert_eq!(next(&team.roster, &team.board, &lead, AT), Next::Read);
    }
}
