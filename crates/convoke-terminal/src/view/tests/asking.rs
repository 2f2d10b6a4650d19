//! A question is agreed to only after all of it was seen, and an answer never goes to another question.

use crossterm::event::KeyCode;

use super::sample::{Person, asking};
use crate::screen_update::About;
use crate::user_action::{QuestionAnswer, UserAction};
use crate::view::{Did, Pane};

fn answered(question: u64, answer: QuestionAnswer) -> Did {
    Did::Wants(UserAction::Answer { question, answer })
}

fn call() -> About {
    About::Call { always: None }
}

#[test]
fn a_question_that_is_seen_as_a_whole_is_answered_by_a_key() {
    for (key, answer) in
        [("y", QuestionAnswer::Yes), ("n", QuestionAnswer::No), ("a", QuestionAnswer::Always)]
    {
        let mut person = Person::at(80, 24);
        person.types("5");
        person.sees("run: cargo test\\t--workspace \\u{1b}[2J");
        assert_eq!(person.types(key), answered(1, answer));
    }
}

#[test]
fn yes_is_accepted_only_once_all_of_the_question_was_seen() {
    let long: String = (0..50).map(|number| format!("line {number}\n")).collect();
    let mut person = Person::at(80, 24);
    person.questions = vec![asking(4, "lead", &format!("run: {long}rm -rf build"), call())];
    person.types("5");
    person.sees_not("rm -rf build");
    for key in ["y", "a"] {
        assert_eq!(person.types(key), Did::Changed);
        person.sees("Not all of the question was seen");
    }
    person.press(KeyCode::Enter);
    assert_eq!(person.types("y"), Did::Changed);
    person.press(KeyCode::PageDown);
    assert_eq!(person.types("y"), Did::Changed);
    person.press(KeyCode::End);
    person.sees("rm -rf build");
    assert_eq!(person.types("y"), answered(4, QuestionAnswer::Yes));
}

#[test]
fn no_is_accepted_at_any_time() {
    let mut person = Person::at(40, 4);
    person.types("5");
    assert_eq!(person.types("y"), Did::Changed);
    assert_eq!(person.types("n"), answered(1, QuestionAnswer::No));
}

#[test]
fn always_is_refused_where_it_is_not_offered() {
    let mut person = Person::at(80, 24);
    person.questions = vec![asking(1, "lead", "run: ls", call())];
    person.types("5");
    assert_eq!(person.types("a"), Did::Changed);
    person.sees("Always is not offered here");
}

#[test]
fn a_key_pressed_twice_does_not_answer_the_next_question() {
    let mut person = Person::at(80, 24);
    person.questions = vec![asking(1, "lead", "run: ls", call()), asking(2, "lead", "run: rm -rf /", call())];
    person.types("5");
    assert_eq!(person.types("y"), answered(1, QuestionAnswer::Yes));
    person.questions.remove(0);
    person.look();
    assert_eq!(person.types("y"), Did::Changed);
    person.sees("Choose a question first");
    person.press(KeyCode::Down);
    assert_eq!(person.types("y"), answered(2, QuestionAnswer::Yes));
}

#[test]
fn a_question_that_goes_leaves_nothing_chosen_that_was_not_looked_at() {
    let mut person = Person::at(80, 24);
    person.questions = vec![asking(1, "lead", "run: ls", call()), asking(2, "lead", "run: rm -rf /", call())];
    person.types("5");
    person.questions.remove(0);
    assert_eq!(person.types("y"), Did::Changed);
    person.press(KeyCode::Down);
    person.press(KeyCode::Enter);
    person.questions.clear();
    assert_eq!(person.types("y"), Did::Changed);
    person.sees("needs no answer any more");
}

#[test]
fn a_filter_of_rows_hides_no_question() {
    let mut person = Person::at(80, 24);
    person.types("/zzz");
    person.press(KeyCode::Enter);
    person.types("5");
    person.sees("[5 Questions 1]");
    person.types("/");
    person.sees("Questions are not filtered");
}

#[test]
fn a_checkpoint_is_answered_in_words() {
    let mut person = Person::at(80, 24);
    person.questions = vec![asking(3, "collect-tables", "Which tables?", About::Checkpoint)];
    person.types("5");
    assert_eq!(person.types("y"), Did::Changed);
    person.types("全部");
    person.sees("answer: 全部");
    assert_eq!(person.press(KeyCode::Enter), answered(3, QuestionAnswer::Text("全部".to_owned())));
}

#[test]
fn a_question_that_comes_into_an_open_list_waits_until_it_is_chosen() {
    let mut person = Person::at(80, 24);
    person.questions.clear();
    person.view.open(Pane::Questions);
    person.look();
    person.questions = vec![asking(9, "lead", "run: ls", call())];
    assert_eq!(person.types("y"), Did::Changed);
    person.sees("Choose a question first");
    person.types("j");
    assert_eq!(person.types("y"), answered(9, QuestionAnswer::Yes));
}
