//! A walk at random over everything that can be done to a board, by twenty claimants at two hundred tasks,
//! with leases that run out and writes that come late. After every step what must always hold is checked.

use std::collections::BTreeMap;

use super::*;

const TASKS: u64 = 200;
const CLAIMANTS: u64 = 20;
const STEPS: u32 = 6_000;
const ROLES: [&str; 3] = ["coder", "tester", "writer"];

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// The board, and beside it what is known of it from its events alone.
struct Walk {
    dice: Dice,
    at: u64,
    board: Board,
    /// The fold of the events as they stand in a journal.
    folded: Board,
    claimants: Vec<Claimant>,
    /// Every claim that was ever made, for writes that come late: task, claimant, token.
    claims: Vec<(u64, Claimant, u64)>,
    token: u64,
    done: BTreeMap<TaskId, u32>,
    accepted: BTreeMap<&'static str, u32>,
    refused: u32,
    late: u32,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let claimant = |number: u64| {
            let name = format!("member{number}");
            // Every fifth is a script of a person's: it has a name and a role, but no agent.
            let agent = (!number.is_multiple_of(5)).then(|| agent(&name));
            Claimant { name, agent, role: ROLES[number as usize % ROLES.len()].to_uppercase() }
        };
        let mut walk = Self {
            dice: Dice(seed),
            at: 1_000,
            board: Board::default(),
            folded: Board::default(),
            claimants: (0..CLAIMANTS).map(claimant).collect(),
            claims: Vec::new(),
            token: 0,
            done: BTreeMap::new(),
            accepted: BTreeMap::new(),
            refused: 0,
            late: 0,
        };
        for number in 1..=TASKS {
            let mut task = new(&format!("task {number}"));
            for _ in 0..walk.dice.below(3).min(number - 1) {
                task.blocked_by.push(id(1 + walk.dice.below(number - 1)));
            }
            task.role = (walk.dice.below(3) == 0).then(|| (*walk.dice.of(&ROLES)).to_owned());
            task.priority = walk.dice.below(5) as i32;
            walk.does(&create(number, task));
        }
        walk
    }

    /// Decides, checks each event against the state it is decided on, folds it both ways and checks what must
    /// always hold.
    fn does(&mut self, entry: &BoardEntry) -> bool {
        let Ok(events) = self.board.decide(entry, self.at) else {
            self.refused += 1;
            return false;
        };
        for event in &events {
            self.check_event(entry, event);
            let count = self.board.count();
            self.board.apply(event, self.at);
            assert_eq!(self.board.count(), count + 1);
            self.folded.apply(&BoardEvent::decode(&event.encode().unwrap()).unwrap(), self.at);
            *self.accepted.entry(event.kind()).or_default() += 1;
        }
        if !events.is_empty() {
            self.check_state();
        }
        true
    }

    fn check_event(&mut self, entry: &BoardEntry, event: &BoardEvent) {
        match event {
            BoardEvent::TaskClaimed(claimed) => {
                let BoardEntry::Claim { claimant, .. } = entry else { panic!("{entry:?} claims") };
                let task = self.board.task(&claimed.task).unwrap();
                match &task.state {
                    TaskState::Pending => {}
                    TaskState::Claimed { until, .. } => {
                        assert!(*until <= self.at, "taken from a living holder: {task:?}")
                    }
                    state => panic!("claimed although {state:?}"),
                }
                for needed in &task.blocked_by {
                    assert!(
                        matches!(self.board.task(needed).unwrap().state, TaskState::Done { .. }),
                        "{task:?}"
                    );
                }
                assert!(
                    task.role.as_ref().is_none_or(|role| role.eq_ignore_ascii_case(&claimant.role)),
                    "{task:?}"
                );
                assert!(claimed.token > self.token, "tokens grow");
                self.token = claimed.token;
                self.claims.push((task.number, claimant.clone(), claimed.token));
            }
            BoardEvent::TaskFinished(finished) => {
                let BoardEntry::Finish { holder, token, .. } = entry else { panic!("{entry:?} finishes") };
                let task = self.board.task(&finished.task).unwrap();
                let TaskState::Claimed { name, agent, token: now, .. } = &task.state else {
                    panic!("{task:?}")
                };
                assert_eq!((name, agent), (&holder.name, &holder.agent));
                assert!(token.is_none_or(|token| token == *now), "fenced");
                let times = self.done.entry(finished.task.clone()).or_default();
                *times += 1;
                assert_eq!(*times, 1, "done once: {task:?}");
            }
            _ => {}
        }
    }

    fn check_state(&self) {
        assert_eq!(self.board, self.folded);
        let mut hands: BTreeMap<(&str, Option<&AgentId>), u64> = BTreeMap::new();
        let mut done = 0;
        for task in self.board.tasks() {
            match &task.state {
                TaskState::Claimed { name, agent, .. } => {
                    let other = hands.insert((name, agent.as_ref()), task.number);
                    assert_eq!(other, None, "{name} has two tasks in its hands, one of them {}", task.number);
                    assert!(self.board.is_ready(task), "{task:?}");
                    assert!(agent.as_ref().is_none_or(|agent| self.board.held_by(agent) == Some(task)));
                }
                TaskState::Done { .. } => {
                    done += 1;
                    assert_eq!(self.done.get(&task.id), Some(&1));
                }
                TaskState::Pending | TaskState::Failed { .. } => {}
            }
        }
        assert_eq!(done, self.done.len(), "what is done stays done");
    }

    /// What the list of claimable tasks says is what a claim is answered.
    fn check_claimable(&self, claimant: &Claimant) {
        let listed = self.board.claimable(claimant, self.at);
        for task in self.board.tasks() {
            let events = self.board.decide(&claim(task.number, claimant), self.at).unwrap_or_default();
            let claims = events.iter().any(|event| event.kind() == "task_claimed");
            assert_eq!(listed.contains(&task), claims, "{task:?} by {claimant:?}");
        }
    }

    fn step(&mut self) {
        let claimant = self.dice.of(&self.claimants.clone()).clone();
        let number = 1 + self.dice.below(TASKS);
        let held =
            self.board.tasks().into_iter().find(
                |task| matches!(&task.state, TaskState::Claimed { name, .. } if *name == claimant.name),
            );
        let own = held.map_or(number, |task| task.number);
        match self.dice.below(24) {
            0..=4 => {
                let best = self.board.claimable(&claimant, self.at).first().map(|task| task.number);
                self.does(&claim(best.unwrap_or(number), &claimant));
            }
            5 => {
                self.does(&claim(number, &claimant));
            }
            6 => {
                self.does(&finish(own, &claimant, None, "well"));
            }
            7 => {
                self.does(&fail(own, &claimant, "badly"));
            }
            8 => {
                self.does(&release(own, &claimant, None));
            }
            9..=12 => self.late_write(),
            13..=14 => {
                let agents = self.claimants.iter().filter_map(|claimant| claimant.agent.clone());
                let agents = agents.filter(|_| self.dice.below(2) == 0).collect();
                self.does(&BoardEntry::Renew { agents, ttl: TTL });
            }
            15 => {
                self.does(&BoardEntry::Expire);
            }
            16 => {
                self.does(&BoardEntry::ReleaseAll {
                    agent: agent(&claimant.name),
                    why: "stopped".to_owned(),
                });
            }
            17 => {
                self.does(&BoardEntry::Offer { task: id(own), agent: agent(&claimant.name) });
            }
            18 if self.dice.below(4) == 0 => {
                self.does(&BoardEntry::Cancel { task: id(number), by: "person".to_owned() });
            }
            19 => {
                self.does(&BoardEntry::Retry { task: id(number), by: "person".to_owned() });
            }
            20 => {
                let changed = TaskEdit {
                    priority: Some(self.dice.below(5) as i32),
                    add_blocked_by: vec![id(1 + self.dice.below(TASKS))],
                    remove_blocked_by: vec![id(1 + self.dice.below(TASKS))],
                    ..TaskEdit::default()
                };
                self.does(&edit(number, changed));
            }
            _ => self.at += self.dice.below(TTL / 2),
        }
    }

    /// A claimant writes under a claim that may be long over.
    fn late_write(&mut self) {
        let recent = self.claims.len().saturating_sub(40);
        if self.claims.is_empty() {
            return;
        }
        let (number, holder, token) = self.dice.of(&self.claims[recent..]).clone();
        let state = self.board.task(&id(number)).unwrap().state.clone();
        let still = matches!(state, TaskState::Claimed { token: now, .. } if now == token);
        let done = matches!(&state, TaskState::Done { name, .. } if *name == holder.name);
        let result = format!("under claim {token}");
        let accepted = self.does(&finish(number, &holder, Some(token), &result));
        assert!(accepted == still || done, "claim {token} of task {number}: {state:?}");
        if done {
            // At most a repetition of what was said already.
            assert_eq!(self.board.task(&id(number)).unwrap().state, state);
        }
        self.late += u32::from(!accepted);
    }

    /// All claimants work on until nothing is left.
    fn works_off(&mut self) {
        for _ in 0..TASKS {
            self.at += TTL;
            self.does(&BoardEntry::Expire);
            for number in 1..=TASKS {
                self.does(&BoardEntry::Retry { task: id(number), by: "person".to_owned() });
            }
            for claimant in self.claimants.clone() {
                let Some(number) = self.board.claimable(&claimant, self.at).first().map(|task| task.number)
                else {
                    continue;
                };
                assert!(self.does(&claim(number, &claimant)));
                assert!(self.does(&finish(number, &claimant, None, "in the end")));
            }
            if self.board.unfinished().is_empty() {
                return;
            }
        }
    }
}

#[test]
fn w31_w33_w35_w37_w41_a_long_walk_never_gives_a_task_twice_nor_to_the_wrong_one_and_every_task_is_done_once()
{
    for seed in [1, 2] {
        let mut walk = Walk::new(seed);
        for step in 0..STEPS {
            walk.step();
            if step % 100 == 0 {
                let claimant = walk.dice.of(&walk.claimants.clone()).clone();
                walk.check_claimable(&claimant);
                let row = serde_json::to_string(&walk.board).unwrap();
                assert_eq!(serde_json::from_str::<Board>(&row).unwrap(), walk.board);
            }
        }
        let accepted = walk.accepted.clone();
        let refused = walk.refused;
        let late = walk.late;
        assert_eq!(accepted.len(), 9, "every kind of event happened: {accepted:?}");
        assert!(refused > 500 && late > 100, "seed {seed}: {refused} refused, {late} late writes");
        walk.works_off();
        assert_eq!(walk.done.len() as u64, TASKS, "seed {seed}: {:?}", walk.board.unfinished());
        println!("seed {seed}: {accepted:?}, {refused} refused, {late} of them late writes");
    }
}
