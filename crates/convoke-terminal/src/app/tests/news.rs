//! What news lead to.

use crossterm::event::KeyCode;

use convoke_kernel::{Piece, Role};
use convoke_view::SessionEvent;

use super::play::{LEAD, Player, call, facts, id};
use crate::app::{App, Picture};
use crate::screen_update::{Facts, ScreenUpdate};
use crate::text::Theme;

const SIZE: (u16, u16) = (80, 24);

fn queue(player: &mut Player, text: &str) {
    player.app.paste(text);
    player.key(KeyCode::Enter);
}

#[test]
fn what_waits_is_seen_until_it_is_recorded_and_twice_the_same_twice() {
    let mut player = Player::at_work(SIZE, "go");
    for text in ["again", "other", "again"] {
        queue(&mut player, text);
    }
    let waiting = |player: &mut Player, expected: &[&str]| {
        let (rows, _) = player.look();
        let seen: Vec<&str> = rows.iter().filter_map(|row| row.strip_prefix("next: ")).collect();
        assert_eq!(seen, expected);
    };
    waiting(&mut player, &["again", "other", "again"]);
    player.says("again");
    waiting(&mut player, &["other", "again"]);
    player.says("other");
    waiting(&mut player, &["again"]);
    player.says("something that came from elsewhere");
    waiting(&mut player, &["again"]);
    player.says("again\n");
    waiting(&mut player, &[]);
}

#[test]
fn what_everything_stands_still_for_is_seen_with_its_reason_until_it_is_over() {
    for working in [false, true] {
        let mut player = if working { Player::at_work(SIZE, "go") } else { Player::at(SIZE) };
        let held = |seconds: u64| {
            let why = format!(
                "the journal is held by process 7 (\u{1b}[31mvi), which is stopped; waiting since {seconds} s"
            );
            ScreenUpdate::HeldUp(Some(why))
        };
        let stands = |player: &mut Player| {
            player.look().0.iter().filter(|row| row.contains("held by process 7")).count()
        };
        assert_eq!(stands(&mut player), 0);
        for seconds in [2, 3] {
            player.told(held(seconds));
            assert_eq!(stands(&mut player), 1, "told again it stands once");
            let seen = player.look().0.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(seen.contains(&format!("which is stopped; waiting since {seconds} s")), "{seen}");
            assert!(
                player.app.doing(player.now).unwrap().contains("held by process 7"),
                "also where nothing is drawn"
            );
            assert!(!player.app.doing(player.now).unwrap().contains('\u{1b}'));
        }
        player.told(ScreenUpdate::HeldUp(None));
        assert_eq!(stands(&mut player), 0);
        assert_eq!(player.app.moves(), working, "an idle screen has no timer");
    }
}

#[test]
fn what_was_said_is_seen_until_it_is_recorded_or_refused() {
    let mut player = Player::at(SIZE);
    player.starts(LEAD, Role::Lead, "lead");
    queue(&mut player, "hello there");
    let on_its_way = |player: &mut Player| player.look().0.iter().any(|row| row == "› hello there");
    assert!(on_its_way(&mut player));
    player.told(ScreenUpdate::Working(true));
    assert!(on_its_way(&mut player));
    player.says("hello there");
    assert!(!on_its_way(&mut player));
    assert!(player.printed.contains(&"› hello there".to_owned()));
    player.told(ScreenUpdate::Working(false));
    queue(&mut player, "hello there");
    player.told(ScreenUpdate::Refused("no key".into()));
    assert!(!on_its_way(&mut player));
    player.sees("✗ no key");
}

#[test]
fn a_session_taken_up_shows_its_last_two_exchanges_and_says_what_is_left_out() {
    for (exchanges, left_out) in
        [(0, None), (2, None), (3, Some("… 1 earlier exchange not")), (9, Some("… 7 earlier exchanges not"))]
    {
        let mut player = Player::at(SIZE);
        player.told(ScreenUpdate::Note("the greeting".into()));
        player.told(ScreenUpdate::Afresh);
        player.starts(LEAD, Role::Lead, "lead");
        for number in 0..exchanges {
            player.says(&format!("question {number}"));
            player.replies(LEAD, &format!("answer {number}"), &[]);
            player.closes(LEAD, "");
        }
        player.look();
        assert_eq!(player.printed, ["· the greeting"], "nothing of it is said before all of it is known");
        player.told(ScreenUpdate::CaughtUp);
        player.look();
        let printed = player.printed.join("\n");
        assert_eq!(printed.matches("question").count(), exchanges.min(2), "{printed}");
        assert_eq!(printed.matches("answer").count(), exchanges.min(2), "{printed}");
        assert_eq!(printed.contains("earlier exchange"), left_out.is_some(), "{printed}");
        assert!(printed.contains(left_out.unwrap_or_default()), "{printed}");
        assert!(printed.starts_with("· the greeting\n") || exchanges == 0, "{printed}");
        player.says("and now");
        player.look();
        assert_eq!(player.printed.last().unwrap(), "› and now");
    }
}

#[test]
fn another_session_begins_with_nothing_of_the_one_before() {
    let mut player = Player::at_work(SIZE, "go");
    queue(&mut player, "waits");
    player.types("a draft");
    player.asks(call(1, "ls"));
    player.told(ScreenUpdate::Working(false));
    player.told(ScreenUpdate::Afresh);
    // Another agent is its lead, and what that says is heard although no `Facts` have named it yet.
    player.starts(9, Role::Lead, "lead");
    player.opens(9, "of the other session");
    player.told(ScreenUpdate::CaughtUp);
    player.sees("› of the other session");
    player.sees_not("next: waits");
    player.sees_not("$ ls");
    player.sees("› a draft");
}

#[test]
fn whoever_was_at_work_when_a_session_was_left_is_not_when_it_is_taken_up() {
    let mut player = Player::at(SIZE);
    player.told(ScreenUpdate::Afresh);
    player.starts(LEAD, Role::Lead, "lead");
    player.says("go");
    player.starts(2, Role::Worker, "part");
    player.opens(2, "part");
    assert!(player.app.moves());
    player.told(ScreenUpdate::CaughtUp);
    assert!(!player.app.moves(), "no time runs for those who do not work");
}

#[test]
fn what_is_printed_while_the_fleet_is_shown_comes_out_when_it_is_left() {
    let mut player = Player::at_work(SIZE, "go");
    player.look();
    let before = player.printed.len();
    player.press(KeyCode::Char('o'), crossterm::event::KeyModifiers::CONTROL);
    player.replies(LEAD, "an answer", &[]);
    player.told(ScreenUpdate::Note("a note".into()));
    player.fleet();
    assert_eq!(player.app.picture(), Picture::Fleet);
    assert_eq!(player.printed.len(), before);
    player.ctrl('o');
    assert_eq!(player.printed[before..], ["", "an answer", "", "· a note"]);
}

#[test]
fn two_blank_rows_never_stand_together() {
    let mut player = Player::at_work(SIZE, "go");
    player.replies(LEAD, "one", &[]);
    player.replies(LEAD, "two", &[]);
    player.look();
    player.says("three");
    player.look();
    assert_eq!(player.printed, ["", "› go", "", "one", "", "two", "", "› three"]);
}

#[test]
fn a_stop_says_how_to_go_on_whichever_is_told_first() {
    let told = |working_first: bool, can_go_on: bool| {
        let mut player = Player::at_work(SIZE, "go");
        player.key(KeyCode::Esc);
        let facts = ScreenUpdate::Facts(Box::new(Facts { can_go_on, ..facts() }));
        let both = if working_first {
            [ScreenUpdate::Working(false), facts]
        } else {
            [facts, ScreenUpdate::Working(false)]
        };
        both.into_iter().for_each(|told| player.told(told));
        player.look();
        player.printed.iter().filter(|row| row.contains("stopped; Enter alone goes on")).count()
    };
    assert_eq!((told(true, true), told(false, true), told(true, false), told(false, false)), (1, 1, 0, 0));
}

#[test]
fn nothing_is_drawn_for_nothing() {
    let mut player = Player::at_work(SIZE, "go");
    player.look();
    let dirty = |player: &mut Player, expected: bool, told: ScreenUpdate| {
        player.app.take_dirty();
        player.told(told);
        assert_eq!(player.app.take_dirty(), expected);
    };
    dirty(&mut player, false, ScreenUpdate::Facts(Box::new(facts())));
    dirty(&mut player, true, ScreenUpdate::Facts(Box::new(Facts { mode: false, ..facts() })));
    dirty(&mut player, false, ScreenUpdate::Working(true));
    dirty(&mut player, true, ScreenUpdate::Working(false));
    // What another agent writes is not seen in the session.
    player.app.hear(&SessionEvent::Live { agent: id(9), piece: Piece::Text("x".into()) });
    assert!(!player.app.take_dirty());
    player.live(Piece::Text("x".into()));
    assert!(player.app.take_dirty());
}

#[test]
fn time_runs_only_while_somebody_works() {
    let mut app = App::new(Theme { colour: false }, Vec::new());
    assert!(!app.moves());
    app.told(ScreenUpdate::Working(true));
    assert!(app.moves());
    app.told(ScreenUpdate::Working(false));
    assert!(!app.moves());
}

#[test]
fn every_size_has_a_place_to_write_and_a_status() {
    for columns in 1..30 {
        for rows in 1..14 {
            let mut app = App::new(Theme { colour: true }, Vec::new());
            app.told(ScreenUpdate::Facts(Box::new(facts())));
            app.told(ScreenUpdate::Working(true));
            app.hear(&SessionEvent::Live { agent: id(LEAD), piece: Piece::Text("漢字 ".repeat(200)) });
            for ask in [false, true] {
                if ask {
                    app.told(ScreenUpdate::Asked(Box::new(call(1, "rm -rf 漢字\nand more"))));
                }
                let region = app.region((columns, rows), 0);
                assert!(
                    region.lines.len() >= 2 && region.lines.len() <= usize::from(rows).max(2),
                    "{columns}x{rows}"
                );
                assert!(usize::from(region.cursor.1) < region.lines.len(), "{columns}x{rows}");
            }
        }
    }
}
