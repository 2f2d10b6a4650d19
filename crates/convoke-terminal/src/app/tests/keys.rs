//! What keys lead to.

use crossterm::event::{KeyCode, KeyModifiers};

use super::play::{LEAD, Player, asking, asks, call, facts};
use crate::app::{Act, Picture};
use crate::screen_update::{About, Candidate, Facts, ScreenUpdate};
use crate::user_action::{QuestionAnswer, UserAction};

const SIZE: (u16, u16) = (80, 24);

fn can_go_on(player: &mut Player, can_go_on: bool) {
    player.told(ScreenUpdate::Facts(Box::new(Facts { can_go_on, ..facts() })));
}

fn say(text: &str) -> Vec<UserAction> {
    vec![UserAction::Say(text.into())]
}

fn answer(question: u64, answer: QuestionAnswer) -> Vec<UserAction> {
    vec![UserAction::Answer { question, answer }]
}

#[test]
fn esc_stops_safely_and_again_cuts_and_then_means_nothing() {
    let mut player = Player::at_work(SIZE, "go");
    assert_eq!(player.key(KeyCode::Esc), [UserAction::Stop]);
    player.sees("Esc again cuts off");
    // Being told again that the lead works does not take the stop back.
    player.told(ScreenUpdate::Working(true));
    assert_eq!(player.key(KeyCode::Esc), [UserAction::Cut]);
    assert_eq!(player.key(KeyCode::Esc), []);
    player.told(ScreenUpdate::Working(false));
    assert_eq!(player.key(KeyCode::Esc), []);
    player.told(ScreenUpdate::Working(true));
    assert_eq!(player.key(KeyCode::Esc), [UserAction::Stop]);
}

#[test]
fn ctrl_c_clears_then_stops_then_cuts_then_leaves() {
    let mut player = Player::at_work(SIZE, "go");
    player.types("half a thought");
    assert_eq!(player.ctrl('c'), []);
    player.sees_not("half a thought");
    assert_eq!(player.ctrl('c'), [UserAction::Stop]);
    assert_eq!(player.ctrl('c'), [UserAction::Cut]);
    assert_eq!(player.ctrl('c'), []);
    player.sees("once more stops it safely and leaves");
    assert_eq!(player.ctrl('c'), [UserAction::Leave]);
    player.sees("leaving");
    // What was thrown away is in the history.
    player.key(KeyCode::Up);
    player.sees("› half a thought");
}

#[test]
fn ctrl_c_and_ctrl_d_ask_once_before_they_leave_and_another_key_takes_that_back() {
    for key in ['c', 'd'] {
        let mut player = Player::at(SIZE);
        assert_eq!(player.ctrl(key), []);
        player.sees("once more leaves");
        player.types("x");
        player.key(KeyCode::Backspace);
        player.sees_not("once more leaves");
        assert_eq!(player.ctrl(key), []);
        assert_eq!(player.ctrl(key), [UserAction::Leave]);
    }
}

#[test]
fn ctrl_d_deletes_while_something_is_written() {
    let mut player = Player::at(SIZE);
    player.types("ab");
    player.key(KeyCode::Home);
    assert_eq!(player.ctrl('d'), []);
    player.sees("› b");
    player.sees_not("once more leaves");
}

#[test]
fn enter_alone_goes_on_only_with_something_unfinished() {
    let mut player = Player::at(SIZE);
    assert_eq!(player.key(KeyCode::Enter), []);
    can_go_on(&mut player, true);
    player.sees("Enter goes on");
    assert_eq!(player.key(KeyCode::Enter), [UserAction::GoOn]);
    player.told(ScreenUpdate::Working(true));
    assert_eq!(player.key(KeyCode::Enter), []);
    player.told(ScreenUpdate::Working(false));
    player.types("  ");
    assert_eq!(player.key(KeyCode::Enter), []);
}

#[test]
fn what_is_typed_before_a_question_is_seen_is_no_answer_to_it() {
    let mut player = Player::at_work(SIZE, "go");
    player.types("a dra");
    player.asks(call(1, "git push"));
    // The question has not been drawn yet: both letters belong to the draft.
    assert_eq!(player.press(KeyCode::Char('f'), KeyModifiers::NONE), []);
    assert_eq!(player.press(KeyCode::Char('t'), KeyModifiers::NONE), []);
    player.look();
    player.sees("wants to run this command");
    // The rest of the sentence is no answer either, and the word `y` in it agrees to nothing.
    player.sees("a question waits");
    player.types(" y");
    player.sees("› a draft y");
    assert_eq!(player.key(KeyCode::Enter), say("a draft y"));
    player.look();
    player.types("y");
    player.sees("answer › y");
    assert_eq!(player.key(KeyCode::Enter), answer(1, QuestionAnswer::Yes));
    player.sees_not("wants to run this command");
}

#[test]
fn yes_is_refused_while_not_all_of_the_question_fits_and_no_is_not() {
    let mut player = Player::at_work(SIZE, "go");
    let long = "line\n".repeat(60);
    player.asks(call(1, &long));
    player.look();
    player.sees("Ctrl-O shows all of it, yes is said there");
    player.types("y");
    assert_eq!(player.key(KeyCode::Enter), []);
    player.sees("not all of it is seen here");
    assert_eq!(player.key(KeyCode::Enter), []);
    player.size = (80, 90);
    player.look();
    assert_eq!(player.key(KeyCode::Enter), answer(1, QuestionAnswer::Yes));

    player.size = SIZE;
    player.asks(call(2, &long));
    player.look();
    player.types("n");
    assert_eq!(player.key(KeyCode::Enter), answer(2, QuestionAnswer::No));
}

#[test]
fn a_question_that_just_fits_stays_answerable_after_a_wrong_answer() {
    let mut player = Player::at_work(SIZE, "go");
    let rows = usize::from(SIZE.1) - 3;
    let command = vec!["line"; rows - 3].join("\n");
    player.asks(call(1, &command));
    player.look();
    player.sees_not("more rows");
    assert_eq!(player.key(KeyCode::Enter), []);
    player.sees("y or n, and Enter");
    player.sees_not("more rows");
    player.types("y");
    assert_eq!(player.key(KeyCode::Enter), answer(1, QuestionAnswer::Yes));
}

#[test]
fn on_a_terminal_that_is_too_narrow_nothing_can_be_agreed_to() {
    let mut player = Player::at_work((11, 60), "go");
    player.asks(call(1, "ls"));
    player.look();
    player.types("y");
    assert_eq!(player.key(KeyCode::Enter), []);
}

#[test]
fn questions_come_one_after_the_other_the_oldest_first() {
    let mut player = Player::at_work(SIZE, "go");
    for (id, command) in [(3, "one"), (1, "two"), (2, "three")] {
        player.asks(call(id, command));
    }
    // Asked again it is still one question.
    player.asks(call(1, "two"));
    for (id, command) in [(3, "$ one"), (1, "$ two"), (2, "$ three")] {
        player.look();
        player.sees(command);
        player.types("n");
        assert_eq!(player.key(KeyCode::Enter), answer(id, QuestionAnswer::No));
    }
    player.sees_not("answer ›");
}

#[test]
fn a_question_that_was_answered_elsewhere_vanishes_and_takes_its_answer_along() {
    let mut player = Player::at_work(SIZE, "go");
    player.asks(call(1, "one"));
    player.asks(call(2, "two"));
    player.look();
    player.types("y");
    player.told(ScreenUpdate::Withdrawn(1));
    // The person has not seen that yet: neither agrees to the next one nor says it to the lead.
    assert_eq!(player.press(KeyCode::Enter, KeyModifiers::NONE), []);
    player.look();
    player.sees("$ two");
    player.sees_not("answer › y");
    assert_eq!(player.key(KeyCode::Enter), []);
    player.told(ScreenUpdate::Withdrawn(2));
    assert_eq!(player.press(KeyCode::Char('y'), KeyModifiers::NONE), []);
    assert_eq!(player.press(KeyCode::Enter, KeyModifiers::NONE), []);
    player.look();
    player.sees_not("answer ›");
    player.sees("Esc stops");
    assert_eq!(player.key(KeyCode::Esc), [UserAction::Stop]);
}

#[test]
fn a_withdrawn_question_is_said_to_be_gone() {
    let mut player = Player::at_work(SIZE, "go");
    player.asks(call(1, "one"));
    player.look();
    player.told(ScreenUpdate::Withdrawn(1));
    player.look();
    player.sees("that question needs no answer any more");
}

#[test]
fn a_paste_into_the_answer_is_one_line_and_is_not_sent() {
    let mut player = Player::at_work(SIZE, "go");
    player.asks(asking(1, "Which?", About::Checkpoint));
    player.look();
    assert_eq!(player.app.paste("the\nblue\r\none\n"), []);
    player.sees("answer › the blue one");
    assert_eq!(player.key(KeyCode::Enter), answer(1, QuestionAnswer::Text("the blue one".into())));
}

#[test]
fn esc_leaves_a_programs_question_for_later_and_stops_at_an_agents() {
    let mut player = Player::at_work(SIZE, "go");
    player.asks(asking(1, "Which?", About::Checkpoint));
    player.asks(call(2, "ls"));
    player.look();
    player.types("x");
    assert_eq!(player.key(KeyCode::Esc), []);
    player.sees_not("answer › x");
    assert_eq!(player.key(KeyCode::Esc), answer(1, QuestionAnswer::Later));
    assert_eq!(player.key(KeyCode::Esc), [UserAction::Stop]);
    player.told(ScreenUpdate::Working(false));
    assert_eq!(player.key(KeyCode::Esc), []);
    player.sees("n and Enter says no");
    assert_eq!(player.ctrl('d'), []);
    assert_eq!(player.ctrl('d'), [UserAction::Leave]);
}

#[test]
fn the_answer_can_be_edited() {
    let mut player = Player::at_work(SIZE, "go");
    player.asks(asking(1, "Which?", About::Checkpoint));
    player.look();
    player.types("ab👨‍👩‍👧");
    player.key(KeyCode::Backspace);
    player.ctrl('h');
    player.sees("answer › a\n");
    player.ctrl('u');
    player.types("c");
    assert_eq!(player.ctrl('c'), []);
    player.types("d");
    assert_eq!(player.key(KeyCode::Enter), answer(1, QuestionAnswer::Text("d".into())));
}

#[test]
fn ctrl_o_goes_to_the_fleet_and_back_and_finishes_nothing() {
    let mut player = Player::at_work(SIZE, "go");
    player.types("a draft");
    assert_eq!(player.ctrl('o'), []);
    assert_eq!(player.app.picture(), Picture::Fleet);
    player.fleet();
    assert_eq!(player.ctrl('o'), []);
    assert_eq!(player.app.picture(), Picture::Session);
    player.sees("› a draft");
    assert_eq!(player.key(KeyCode::Enter), say("a draft"));
    for leaves in [KeyCode::Char('q'), KeyCode::Esc] {
        player.ctrl('o');
        player.fleet();
        assert_eq!(player.key(leaves), []);
        assert_eq!(player.app.picture(), Picture::Session);
    }
    player.ctrl('o');
    assert_eq!(player.ctrl('c'), []);
    assert_eq!(player.app.picture(), Picture::Session);
}

#[test]
fn a_long_question_can_be_agreed_to_in_the_fleet_once_it_was_read() {
    let mut player = Player::at_work(SIZE, "go");
    player.asks(call(1, &"line\n".repeat(60)));
    player.look();
    player.ctrl('o');
    player.fleet();
    player.press(KeyCode::Down, KeyModifiers::NONE);
    player.fleet();
    assert_eq!(player.press(KeyCode::Char('y'), KeyModifiers::NONE), []);
    player.press(KeyCode::Enter, KeyModifiers::NONE);
    player.fleet();
    for _ in 0..5 {
        player.press(KeyCode::PageDown, KeyModifiers::NONE);
        player.fleet();
    }
    assert_eq!(asks(player.press(KeyCode::Char('y'), KeyModifiers::NONE)), answer(1, QuestionAnswer::Yes));
    player.ctrl('o');
    player.sees_not("answer ›");
}

#[test]
fn commands_that_concern_the_picture_are_done_here_and_others_are_wanted() {
    let mut player = Player::at(SIZE);
    player.types("/help");
    assert_eq!(player.key(KeyCode::Enter), []);
    player.sees("/quit");
    player.types("/agents");
    assert_eq!(player.key(KeyCode::Enter), []);
    assert_eq!(player.app.picture(), Picture::Fleet);
    player.ctrl('o');
    player.types("/cost");
    assert!(
        matches!(player.key(KeyCode::Enter).as_slice(), [UserAction::Command(given)] if given.name == "cost")
    );
    player.types("/quit");
    assert_eq!(player.key(KeyCode::Enter), [UserAction::Leave]);
}

#[test]
fn what_a_command_takes_is_picked_the_mode_is_a_key_and_an_own_command_is_ended_first() {
    let mut player = Player::at(SIZE);
    player.types("/model");
    let wanted = player.key(KeyCode::Enter);
    assert!(
        matches!(wanted.as_slice(), [UserAction::Complete { command: Some(of), .. }] if of == "model"),
        "{wanted:?}"
    );
    let one = |text: &str| Candidate { text: text.into(), about: String::new() };
    player.told(ScreenUpdate::Offers {
        word: String::new(),
        candidates: vec![one("claude-a"), one("claude-b")],
    });
    player.sees("▸ claude-a");
    player.key(KeyCode::Down);
    let picked = player.key(KeyCode::Enter);
    assert!(
        matches!(picked.as_slice(), [UserAction::Command(given)] if given.words == ["claude-b"]),
        "{picked:?}"
    );
    let switched = player.key(KeyCode::BackTab);
    assert!(
        matches!(switched.as_slice(), [UserAction::Command(given)] if given.name == "mode"),
        "{switched:?}"
    );
    player.types("!sleep 9");
    assert_eq!(player.key(KeyCode::Enter), [UserAction::Shell("sleep 9".into())]);
    player.told(ScreenUpdate::Shell(Some("sleep 9".into())));
    player.sees("! sleep 9 · Esc ends it");
    assert_eq!(player.key(KeyCode::Esc), [UserAction::StopShell]);
}

#[test]
fn what_was_written_is_remembered_unless_it_is_a_key() {
    let mut player = Player::at(SIZE);
    player.types("hello");
    let acts = player.press(KeyCode::Enter, KeyModifiers::NONE);
    assert_eq!(acts, [Act::Remember("hello".into()), Act::Send(UserAction::Say("hello".into()))]);
    player.types("sk-ant-api03-abcdefghijklmnopqrstuvwxyz");
    assert_eq!(player.press(KeyCode::Enter, KeyModifiers::NONE), []);
    player.sees("looks like an API key");
    player.sees_not("abcdefghij");
    assert_eq!(player.press(KeyCode::Char('c'), KeyModifiers::CONTROL), []);
}

#[test]
fn suspending_and_drawing_anew_work_everywhere() {
    let mut player = Player::at_work(SIZE, "go");
    player.asks(call(1, "ls"));
    for _ in 0..2 {
        player.look();
        assert_eq!(player.press(KeyCode::Char('z'), KeyModifiers::CONTROL), [Act::Suspend]);
        assert_eq!(player.press(KeyCode::Char('l'), KeyModifiers::CONTROL), [Act::Redraw]);
        player.ctrl('o');
    }
}

#[test]
fn candidates_that_come_are_drawn_and_a_single_directory_is_gone_into() {
    let mut player = Player::at(SIZE);
    player.types("see @s");
    let wanted = |word: &str| UserAction::Complete { word: word.into(), command: None };
    assert_eq!(player.key(KeyCode::Tab), [wanted("@s")]);
    player.app.take_dirty();
    let offers = |word: &str, texts: &[&str]| ScreenUpdate::Offers {
        word: word.into(),
        candidates: texts
            .iter()
            .map(|text| Candidate { text: (*text).into(), about: String::new() })
            .collect(),
    };
    player.told(offers("@s", &["@src/"]));
    assert!(player.app.take_dirty());
    assert_eq!(player.app.take_asks(), [wanted("@src/")]);
    assert_eq!(player.app.take_asks(), []);
    player.told(offers("@src/", &["@src/a.rs", "@src/b.rs"]));
    assert!(player.app.take_dirty());
    player.sees("@src/b.rs");
    assert_eq!(player.app.take_asks(), []);
}

#[test]
fn on_a_wide_screen_the_history_of_the_chosen_agent_is_asked_for_once() {
    let mut player = Player::at_work((200, 60), "go");
    player.ctrl('o');
    assert_eq!(player.app.take_asks(), []);
    player.fleet();
    assert_eq!(player.app.take_asks(), [UserAction::Open(super::play::id(LEAD))]);
    player.fleet();
    assert_eq!(player.app.take_asks(), []);
}
