//! What the loops do without a terminal: news taken in, and the plain manner as it is read aloud.

use std::cell::RefCell;
use std::rc::Rc;

use tokio::sync::mpsc::unbounded_channel;

use super::lines::Talk;
use super::*;
use crate::app::Act;
use crate::screen_update::{About, Asking, Facts};
use crate::user_action::QuestionAnswer;

fn app() -> App {
    App::new(Theme { colour: false }, Vec::new())
}

fn note(number: usize) -> Screen {
    Screen::Update(ScreenUpdate::Note(format!("note {number}")))
}

#[test]
fn everything_that_was_sent_is_taken_in_in_order_and_no_more_than_a_key_can_wait_for() {
    for (sent, first, rest) in
        [(1, 1, 0), (3, 3, 0), (2_000, 2_000, 0), (2_001, 2_000, 1), (4_500, 2_000, 2_500)]
    {
        let (sender, mut news) = unbounded_channel();
        (1..sent).for_each(|number| sender.send(note(number)).unwrap());
        let mut app = app();
        take_in(&mut app, note(0), &mut news);
        let taken = app.take_blocks();
        assert_eq!((taken.len(), news.len()), (first, rest), "of {sent}");
        let expected: Vec<_> =
            (0..first).map(|number| crate::transcript::Block::Note(format!("note {number}"))).collect();
        assert!(taken == expected, "in order");
    }
}

#[test]
fn a_greeting_of_one_line_is_a_remark_and_of_several_a_paragraph() {
    let rows = |lines: &[&str]| {
        let mut app = app();
        greet(&mut app, &lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        app.printed(60).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[]), Vec::<String>::new());
    assert_eq!(rows(&["one"]), ["· one"]);
    assert_eq!(rows(&["answers  me", "help     /help"]), ["", "answers  me", "help     /help"]);
}

/// What happens in a talk in the plain manner.
enum Step<'a> {
    Tells(ScreenUpdate),
    Types(&'a str),
}

use Step::{Tells, Types};

/// Goes through the steps as the loop does; gives what stands on the terminal then, what was typed included,
/// and what is wanted.
fn talk(steps: Vec<Step<'_>>) -> (String, Vec<UserAction>) {
    let mut app = app();
    let mut drawn = Drawn::default();
    let mut wanted = Vec::new();
    let out = Shared::default();
    let mut talk = Talk::new(out.clone());
    talk.say(&mut app, &mut drawn).unwrap();
    for step in steps {
        match step {
            Tells(told) => app.told(told),
            Types(line) => {
                out.0.borrow_mut().extend_from_slice(format!("{line}\n").as_bytes());
                let acts = talk.hear(&mut app, line).unwrap();
                wanted.extend(
                    acts.into_iter()
                        .filter_map(|act| if let Act::Send(ask) = act { Some(ask) } else { None }),
                );
            }
        }
        talk.say(&mut app, &mut drawn).unwrap();
    }
    let said = out.0.borrow().clone();
    (String::from_utf8(said).unwrap(), wanted)
}

/// A terminal that is written to by both.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn asked(id: u64, wanted: &str, about: About) -> Step<'static> {
    let who = "tidy".to_owned();
    let why = "a rule".to_owned();
    Tells(ScreenUpdate::Asked(Box::new(Asking {
        id,
        agent: None,
        who,
        wanted: wanted.into(),
        why,
        details: Vec::new(),
        about,
    })))
}

#[test]
fn plainly_a_line_is_said_and_a_backslash_goes_on_in_the_next_one() {
    let (said, wanted) = talk(vec![
        Types("hello"),
        Types("first \\"),
        Types("second"),
        Tells(ScreenUpdate::Note("heard".into())),
    ]);
    assert_eq!(wanted, [UserAction::Say("hello".into()), UserAction::Say("first \nsecond".into())]);
    assert_eq!(said, "> hello\n> first \\\nmore> second\n> \n· heard\n> ");
}

#[test]
fn plainly_a_question_is_said_once_and_answered_by_a_line() {
    let (said, wanted) = talk(vec![
        asked(1, "run: ls", About::Call { always: None }),
        Types("what?"),
        Types("y"),
        asked(2, "Which?", About::Checkpoint),
        Types(""),
    ]);
    let answer = |question, answer| UserAction::Answer { question, answer };
    assert_eq!(wanted, [answer(1, QuestionAnswer::Yes), answer(2, QuestionAnswer::Later)]);
    let expected = "> \n? tidy wants to run this command:\n  $ ls\nWhy you are asked: a rule\ny: yes, this \
        once · n: no (and Enter)\n\
        answer> what?\ny or n, and Enter\nanswer> y\n> \n? tidy asks you:\n  | Which?\nWhy you are asked: a \
        rule\n\
        one line is the answer; an empty one leaves it for later\nanswer> \n> ";
    assert_eq!(said, expected);
}

#[test]
fn plainly_commands_work_at_a_question_and_it_is_asked_on() {
    let (said, wanted) = talk(vec![
        asked(1, "run: ls", About::Call { always: None }),
        Types("/cost"),
        Types("/quit"),
        Tells(ScreenUpdate::Withdrawn(1)),
    ]);
    assert!(
        matches!(wanted.as_slice(), [UserAction::Command(given), UserAction::Leave] if given.name == "cost"),
        "{wanted:?}"
    );
    assert!(said.ends_with("answer> /cost\nanswer> /quit\nanswer> \n> "), "{said}");
    assert_eq!(said.matches("wants to run").count(), 1, "{said}");
}

#[test]
fn plainly_an_unknown_command_is_named_and_what_needs_a_drawing_is_said_not_to_be_there() {
    let (said, wanted) =
        talk(vec![Types("/tsaks"), Types("/agents"), Types("/plain"), Types("/editor"), Types("ok")]);
    assert_eq!(wanted, [UserAction::Say("ok".into())]);
    for expected in
        ["did you mean /tasks?", "nothing is drawn here", "nothing is drawn already", "the editor needs"]
    {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn plainly_a_line_that_looks_like_a_command_of_the_persons_own_runs_nothing_and_is_said_to_nobody() {
    let (said, wanted) = talk(vec![Types("!rm -rf x"), Types("! ls"), Types("ok")]);
    assert_eq!(wanted, [UserAction::Say("ok".into())]);
    assert_eq!(said.matches("runs in another terminal").count(), 2, "{said}");
}

#[test]
fn plainly_an_empty_line_goes_on_only_with_something_unfinished() {
    let can = Tells(ScreenUpdate::Facts(Box::new(Facts { can_go_on: true, ..Facts::default() })));
    let (_, wanted) = talk(vec![Types(""), can, Types("")]);
    assert_eq!(wanted, [UserAction::GoOn]);
}

#[test]
fn plainly_no_escape_sequence_is_written_whatever_is_said() {
    let wild = || "\u{1b}[2J\u{9b}1m\u{202e}\r\u{7}".to_owned();
    let (said, _) = talk(vec![
        Tells(ScreenUpdate::Text { title: wild(), text: wild() }),
        Tells(ScreenUpdate::Refused(wild())),
        asked(1, &wild(), About::Call { always: Some(wild()) }),
    ]);
    let raw = said.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert_eq!(raw, None, "{said:?}");
}
