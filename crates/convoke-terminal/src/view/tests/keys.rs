//! What comes of keys: drilling, moving, filtering, searching, following, stopping, trying again, writing.

use crossterm::event::{KeyCode, KeyModifiers};

use convoke_kernel::{Event, ExchangeStopped, TaskId};
use convoke_view::{AgentState, FilePosition, Fleet};

use super::sample::{Person, agent, agent_id, agents, findings, letters, run_id, runs, tasks};
use crate::user_action::UserAction;
use crate::view::{Did, Pane};

fn stopped(by: &str) -> Event {
    Event::ExchangeStopped(ExchangeStopped { by: by.to_owned() })
}

#[test]
fn one_drills_from_a_run_to_an_agent_to_its_turns_to_an_output_and_back() {
    let mut person = Person::at(80, 24);
    assert_eq!(person.types("g"), Did::Changed);
    person.sees("6 subtasks");
    person.sees_not("scout");
    assert_eq!(person.press(KeyCode::Enter), Did::Wants(UserAction::Open(agent_id(2))));
    person.sees("reading…");
    person.reads();
    person.sees("turn 2");
    person.press(KeyCode::Home);
    person.types("jjj");
    assert!(person.chosen().contains("$ cargo test"));
    person.press(KeyCode::Right);
    person.sees("test part_1 ... ok");
    person.press(KeyCode::Left);
    person.sees("turn 2");
    person.types("q");
    person.sees("working");
    assert_eq!(person.press(KeyCode::Esc), Did::Changed, "first the filter goes");
    person.sees("scout");
    assert_eq!(person.press(KeyCode::Esc), Did::Leaves);
    assert_eq!(person.types("q"), Did::Leaves);
}

#[test]
fn an_agent_that_was_read_is_not_asked_for_again() {
    let mut person = Person::at(80, 24);
    person.press(KeyCode::Enter);
    person.reads();
    person.press(KeyCode::Esc);
    assert_eq!(person.press(KeyCode::Enter), Did::Changed);
    person.sees("turn 2");
}

#[test]
fn a_large_screen_reads_the_chosen_agent_by_itself_and_one_at_a_time() {
    let mut person = Person::at(200, 60);
    assert_eq!(person.wants(), Some(UserAction::Open(agent_id(1))));
    assert_eq!(person.wants(), None, "it is being read");
    person.reads();
    person.sees("turn 2");
    assert_eq!(person.types("j"), Did::Wants(UserAction::Open(agent_id(2))));
    assert_eq!(Person::at(80, 24).wants(), None, "a small one has no room for it");
}

#[test]
fn every_list_has_its_number_and_tab_goes_through_them() {
    let mut person = Person::at(80, 24);
    for (key, title) in
        [("2", "[2 Tasks 5]"), ("3", "[3 Mail 2]"), ("4", "[4 Findings 3]"), ("5", "[5 Questions 1]")]
    {
        person.types(key);
        person.sees(title);
    }
    person.press(KeyCode::Tab);
    person.sees("[1 Agents 12]");
    person.press(KeyCode::BackTab);
    person.sees("[5 Questions 1]");
}

#[test]
fn the_choice_stays_on_its_row_when_rows_move() {
    let mut person = Person::at(80, 24);
    person.types("jjj");
    assert!(person.chosen().contains("Secrets"));
    let mut rows = agents();
    rows.extend((20..25).map(|number| agent(number, "one more", "working", AgentState::Running)));
    person.fleet = Fleet::of_rows(rows, runs(), tasks(), letters(), findings());
    assert!(person.chosen().contains("Secrets"));
    let rows = agents().into_iter().filter(|row| row.id != agent_id(4)).collect();
    person.fleet = Fleet::of_rows(rows, runs(), tasks(), letters(), findings());
    assert!(!person.chosen().is_empty(), "the row in its place is chosen");
}

#[test]
fn a_list_longer_than_the_screen_is_scrolled_by_the_choice() {
    let mut person = Person::at(40, 10);
    let rows = (0..200)
        .map(|number| agent(number, &format!("number {number}"), "working", AgentState::Running))
        .collect();
    person.fleet = Fleet::of_rows(rows, Vec::new(), Vec::new(), Vec::new(), Vec::new());
    person.press(KeyCode::End);
    assert!(person.chosen().contains("number 199"));
    person.press(KeyCode::PageUp);
    assert!(person.chosen().contains("number 192"), "{}", person.chosen());
    person.press(KeyCode::Home);
    assert!(person.chosen().contains("number 0"));
    person.press(KeyCode::Up);
    assert!(person.chosen().contains("number 0"));
}

#[test]
fn a_list_is_filtered_while_the_text_is_being_written() {
    let mut person = Person::at(80, 24);
    person.types("/merge");
    person.sees("[1 Agents 2 of 12]");
    assert!(person.cursor.is_some());
    person.view.paste("\nconflicts in");
    person.sees("filter: mergeconflicts in");
    for _ in 0.."conflicts in".len() {
        person.press(KeyCode::Backspace);
    }
    person.press(KeyCode::Enter);
    person.sees("/merge");
    assert_eq!(person.cursor, None);
    person.press(KeyCode::Esc);
    person.sees("[1 Agents 12]");
}

#[test]
fn f_goes_through_the_states() {
    let mut person = Person::at(80, 24);
    for count in ["1 of 12", "4 of 12", "1 of 12", "1 of 12", "3 of 12"] {
        person.types("f");
        person.sees(&format!("[1 Agents {count}]"));
    }
    person.types("f");
    person.sees("[1 Agents 12]");
    person.types("/zzz");
    person.sees("Nothing passes the filter. Esc takes it away.");
}

#[test]
fn g_goes_through_the_runs_and_findings_go_with_them() {
    let mut person = Person::at(80, 24);
    person.types("gg");
    person.sees("collect-tables");
    person.sees("[1 Agents 1 of 12]");
    person.types("4");
    person.sees("[4 Findings 1 of 3]");
    person.types("g");
    person.sees("[4 Findings 3]");
}

#[test]
fn following_stays_on_what_happened_last_until_one_moves() {
    let mut person = Person::at(80, 24);
    person.types("F");
    person.sees("following");
    assert!(person.chosen().contains("lead"));
    let mut rows = agents();
    rows[8].since = super::sample::NOW;
    person.fleet = Fleet::of_rows(rows, runs(), tasks(), letters(), findings());
    assert!(person.chosen().contains("Names of people"), "{}", person.chosen());
    person.types("k");
    person.sees_not("following");
}

#[test]
fn a_page_keeps_to_its_end_while_it_is_followed_and_stays_where_one_goes() {
    let mut person = Person::at(80, 24);
    person.press(KeyCode::Enter);
    person.view.hear(&agent_id(1), 9, 9, &stopped("somebody meanwhile"));
    let history: Vec<_> = (0..30).map(|seq| (seq, seq, stopped(&format!("number {seq}")))).collect();
    person.view.history(&agent_id(2), &history);
    person.sees("reading…");
    person.view.history(&agent_id(1), &history);
    assert!(person.chosen().contains("stopped by number 29"), "{}", person.chosen());
    person.sees_not("meanwhile");
    person.view.hear(&agent_id(1), 30, 30, &stopped("number 30"));
    assert!(person.chosen().contains("stopped by number 30"));
    person.types("k");
    person.view.hear(&agent_id(1), 31, 31, &stopped("number 31"));
    person.view.hear(&agent_id(2), 32, 32, &stopped("another's"));
    assert!(person.chosen().contains("stopped by number 29"));
    person.types("F");
    assert!(person.chosen().contains("stopped by number 31"));
}

#[test]
fn a_text_is_found_in_a_page_and_in_an_output() {
    let mut person = Person::at(80, 24);
    person.press(KeyCode::Enter);
    person.reads();
    person.types("/THE_LAST");
    person.press(KeyCode::Enter);
    assert!(person.chosen().contains("$ cargo test"));
    person.press(KeyCode::Enter);
    person.sees("the_last_of_all");
    person.types("/part_5");
    person.press(KeyCode::Enter);
    person.sees("/part_5 2 of 11");
    person.types("n");
    person.sees("/part_5 3 of 11");
    person.types("NN");
    person.sees("/part_5 1 of 11");
    person.types("N");
    person.sees("/part_5 11 of 11");
    person.types("/nowhere");
    person.press(KeyCode::Enter);
    person.sees("This text is not here.");
}

#[test]
fn an_agent_is_stopped_only_after_a_yes() {
    let mut person = Person::at(80, 24);
    person.types("j");
    assert_eq!(person.types("s"), Did::Changed);
    person.sees("stop \"Unresolved merge conflicts in every cra…\"? y/n");
    assert_eq!(person.types("n"), Did::Changed);
    person.types("s");
    assert_eq!(person.press(KeyCode::Enter), Did::Changed);
    person.types("s");
    assert_eq!(person.types("y"), Did::Wants(UserAction::StopAgent(agent_id(2))));
    person.types("jjjj");
    person.types("s");
    person.sees("is not at work: it is done");
}

#[test]
fn what_failed_is_tried_again() {
    let mut person = Person::at(80, 24);
    person.types("r");
    person.sees("only what failed or was stopped is tried again");
    person.types("jjj");
    assert_eq!(person.types("r"), Did::Wants(UserAction::RetryAgent(agent_id(4))));
    person.types("R");
    person.sees("try again what failed in \"6 subtasks\"? y/n");
    assert_eq!(person.types("y"), Did::Wants(UserAction::RetryRun(run_id(1))));
    person.types("2");
    person.types("r");
    person.sees("This task is claimed");
    person.types("jjj");
    assert_eq!(person.types("r"), Did::Wants(UserAction::RetryTask(TaskId::from_bits([4; 10]))));
}

#[test]
fn a_message_goes_to_those_who_read_mail() {
    let mut person = Person::at(80, 24);
    person.types("j");
    person.types("m");
    person.sees("is a worker, and takes no messages");
    person.types("k");
    person.types("mlook");
    person.view.paste(" here\nand there");
    person.sees("look here⏎and there");
    let text = "look here\nand there".to_owned();
    assert_eq!(person.press(KeyCode::Enter), Did::Wants(UserAction::Message { to: agent_id(1), text }));
    person.types("m");
    assert_eq!(person.press(KeyCode::Enter), Did::Changed);
    person.sees("nothing is sent");
    person.types("mx");
    assert_eq!(person.press(KeyCode::Esc), Did::Changed);
}

#[test]
fn a_long_line_is_seen_where_one_writes() {
    let mut person = Person::at(40, 10);
    person.types("m");
    person.view.paste(&format!("{}漢字 the end", "x".repeat(5_000)));
    person.sees("漢字 the end");
    assert_eq!(person.cursor, Some((39, 9)));
    person.press(KeyCode::Home);
    person.sees("to lead: xxxx");
    assert_eq!(person.cursor, Some((9, 9)));
}

#[test]
fn an_output_that_grows_is_seen_to_its_end_by_who_stands_there() {
    let mut person = Person::at(80, 24);
    person.press(KeyCode::Enter);
    person.reads();
    person.press(KeyCode::Enter);
    let more: String = (0..90).map(|number| format!("line {number}\n")).collect();
    person.view.pager.as_mut().expect("an output").update(&more);
    person.sees("line 89");
    person.press(KeyCode::Home);
    person.view.pager.as_mut().expect("an output").update(&format!("{more}line 90\n"));
    person.sees("line 0");
}

#[test]
fn a_place_is_opened_at_its_line_and_of_several_one_is_chosen() {
    let place = |path: &str, line| {
        Did::Wants(UserAction::Edit(FilePosition { path: path.to_owned(), line: Some(line) }))
    };
    let mut person = Person::at(120, 24);
    person.types("4");
    person.types("o");
    person.sees("2 crates/payments/src/store/mod.rs:7");
    assert_eq!(person.types("2"), place("crates/payments/src/store/mod.rs", 7));
    person.types("j");
    assert_eq!(person.types("o"), place("src/money.rs", 120));
    person.press(KeyCode::Enter);
    assert_eq!(person.types("o"), place("src/money.rs", 120));
    person.press(KeyCode::Esc);
    person.types("j");
    person.types("o");
    person.sees("No file belongs to this.");
    person.types("1");
    person.press(KeyCode::Enter);
    person.reads();
    person.types("kkk");
    assert_eq!(person.types("o"), place("src/letters.rs", 41));
}

#[test]
fn a_remark_stands_until_the_next_key() {
    let mut person = Person::at(80, 24);
    person.view.remark("The agent had\nended \u{1b}[2J already.", true);
    person.sees("The agent had ended ␛[2J already.");
    assert_eq!(person.press(KeyCode::F(7)), Did::Changed);
    person.sees_not("The agent had");
    assert_eq!(person.press(KeyCode::F(7)), Did::Nothing);
}

#[test]
fn help_comes_and_goes_and_control_l_draws_again() {
    let mut person = Person::at(80, 24);
    person.types("?");
    person.sees("stay on what happened last");
    person.types("q");
    person.sees("[1 Agents 12]");
    assert_eq!(person.press_with(KeyCode::Char('l'), KeyModifiers::CONTROL), Did::Changed);
    assert_eq!(person.press_with(KeyCode::Char('s'), KeyModifiers::CONTROL), Did::Nothing);
    assert_eq!(person.view.paste("s"), Did::Nothing);
}

#[test]
fn opening_again_shows_the_list_that_was_asked_for() {
    let mut person = Person::at(80, 24);
    person.press(KeyCode::Enter);
    person.view.open(Pane::Mail);
    person.sees("[3 Mail 2]");
    person.sees("lead → scout");
}
