//! What is picked, and what a person's own commands are made of.

use crossterm::event::{KeyCode, KeyModifiers};

use super::*;
use crate::text::Theme;

fn press(composer: &mut Composer, code: KeyCode) -> KeyOutcome {
    composer.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn write(composer: &mut Composer, text: &str) {
    text.chars().for_each(|c| drop(press(composer, KeyCode::Char(c))));
}

fn rows(composer: &Composer) -> Vec<String> {
    composer.lines(60, 8, "", Theme { colour: false }).lines.iter().map(Line::to_string).collect()
}

#[test]
fn what_is_picked_is_done_with_one_enter_and_found_by_what_it_is_about() {
    let one = |text: &str, about: &str| Candidate { text: text.into(), about: about.into() };
    let mut composer = Composer::default();
    assert!(matches!(composer.pick("resume"), KeyOutcome::Wants(_)) && composer.is_picking());
    composer.offer("", vec![one("s_aaaa", "done · review the parser"), one("s_bbbb", "done · count lines")]);
    write(&mut composer, "lines");
    assert_eq!(rows(&composer)[1], "▸ s_bbbb  done · count lines");
    let done = press(&mut composer, KeyCode::Enter);
    assert!(
        matches!(&done, KeyOutcome::Done(UserAction::Command(given)) if given.words == ["s_bbbb"]),
        "{done:?}"
    );
    // A single one is shown and not taken by itself.
    composer.pick("model");
    composer.offer("", vec![one("claude", "")]);
    assert_eq!(rows(&composer), ["› /model ", "▸ claude"]);
    press(&mut composer, KeyCode::Esc);
    assert!(!composer.is_picking());
    composer.pick("model");
    composer.offer("", Vec::new());
    assert!(!composer.is_picking());
}

#[test]
fn what_is_pasted_runs_no_command_of_the_persons() {
    let mut composer = Composer::default();
    composer.paste("!rm -rf x");
    let KeyOutcome::Wrong(why) = press(&mut composer, KeyCode::Enter) else { panic!("it was done") };
    assert!(why.contains("runs nothing"), "{why}");
    composer.clear();
    write(&mut composer, "!ls");
    assert_eq!(press(&mut composer, KeyCode::Enter), KeyOutcome::Done(UserAction::Shell("ls".to_owned())));
    press(&mut composer, KeyCode::Up);
    assert_eq!(
        press(&mut composer, KeyCode::Enter),
        KeyOutcome::Done(UserAction::Shell("ls".to_owned())),
        "said before by the person"
    );
}
