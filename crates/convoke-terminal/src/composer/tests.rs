//! The composer by its keys and its rows.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::*;
use crate::text::{Theme, text_columns};

const KEY: &str = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz";

fn theme() -> Theme {
    Theme { colour: false }
}

fn ctrl(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL)
}

fn alt(c: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(c), KeyModifiers::ALT)
}

fn press(composer: &mut Composer, code: KeyCode) -> KeyOutcome {
    composer.key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn typed(text: &str) -> Composer {
    let mut composer = Composer::new(Vec::new());
    write(&mut composer, text);
    composer
}

fn write(composer: &mut Composer, text: &str) {
    for c in text.chars() {
        composer.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    }
}

fn with_history(texts: &[&str]) -> Composer {
    Composer::new(texts.iter().map(|text| (*text).to_owned()).collect())
}

/// What is written, with `|` where the cursor stands.
fn seen(composer: &Composer) -> String {
    let cells = composer.buffer.cells();
    let (before, after) = cells.split_at(composer.buffer.cursor());
    let text = |cells: &[Cell]| cells.iter().map(Cell::text).collect::<String>();
    format!("{}|{}", text(before), text(after))
}

fn rows(composed: &Composed) -> Vec<String> {
    composed.lines.iter().map(|line| line.spans.iter().map(|span| span.content.as_ref()).collect()).collect()
}

fn candidates(texts: &[&str]) -> Vec<Candidate> {
    texts.iter().map(|text| Candidate { text: (*text).to_owned(), about: "a file".to_owned() }).collect()
}

#[test]
fn keys_move_and_delete_by_graphemes_words_and_lines() {
    let check = |text: &str, keys: &[KeyEvent], expected: &str| {
        let mut composer = typed("");
        composer.buffer = Buffer::of(text);
        for key in keys {
            composer.key(*key);
        }
        assert_eq!(seen(&composer), expected, "{text:?} {keys:?}");
    };
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    let left = plain(KeyCode::Left);
    let right = plain(KeyCode::Right);
    let home = plain(KeyCode::Home);
    let end = plain(KeyCode::End);
    let back = plain(KeyCode::Backspace);
    let delete = plain(KeyCode::Delete);
    check("a👩\u{200d}👧b", &[left, left], "a|👩\u{200d}👧b");
    check("a👩\u{200d}👧", &[back], "a|");
    check("漢字", &[left, delete], "漢|");
    check("e\u{301}", &[back], "|");
    check("🇩🇪🇫🇷", &[left, back], "|🇫🇷");
    check("ab\ncd", &[home], "ab\n|cd");
    check("ab\ncd", &[home, left, ctrl('a')], "|ab\ncd");
    check("ab\ncd", &[ctrl('a'), left, home, ctrl('e')], "ab|\ncd");
    check("ab", &[home, right, end], "ab|");
    check("one two.three", &[alt('b')], "one two.|three");
    check("one two", &[KeyEvent::new(KeyCode::Left, KeyModifiers::CONTROL); 2], "|one two");
    check("one two", &[home, alt('f')], "one| two");
    check("one two", &[home, KeyEvent::new(KeyCode::Right, KeyModifiers::CONTROL), alt('f')], "one two|");
    check("one two.three", &[ctrl('w')], "one |");
    check("one two", &[left, ctrl('u')], "|o");
    check("one two", &[home, right, ctrl('k')], "o|");
    check("ab\ncd", &[ctrl('u'), ctrl('u'), ctrl('u')], "|");
    check("one two", &[ctrl('w'), home, ctrl('y'), ctrl('y')], "twotwo|one ");
    check("ab", &[home, ctrl('d')], "|b");
}

#[test]
fn a_key_that_changes_nothing_says_so_and_others_belong_to_the_app() {
    let check = |text: &str, key: KeyEvent, expected: KeyOutcome| {
        assert_eq!(typed(text).key(key), expected, "{text} {key:?}")
    };
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    check("", ctrl('d'), KeyOutcome::NotMine);
    check("a", ctrl('d'), KeyOutcome::Nothing);
    check("a", ctrl('c'), KeyOutcome::NotMine);
    check("a", ctrl('l'), KeyOutcome::NotMine);
    check("a", ctrl('o'), KeyOutcome::NotMine);
    check("a", ctrl('z'), KeyOutcome::NotMine);
    check("a", plain(KeyCode::Esc), KeyOutcome::NotMine);
    check("", plain(KeyCode::Enter), KeyOutcome::NotMine);
    check("", plain(KeyCode::Tab), KeyOutcome::NotMine);
    check("  ", plain(KeyCode::Enter), KeyOutcome::Nothing);
    check("a", plain(KeyCode::Right), KeyOutcome::Nothing);
    check("a", plain(KeyCode::Left), KeyOutcome::Changed);
    check("", plain(KeyCode::Up), KeyOutcome::Nothing);
}

#[test]
fn enter_sends_and_four_ways_make_a_new_line() {
    let ways = [
        KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT),
        KeyEvent::new(KeyCode::Enter, KeyModifiers::SHIFT),
        ctrl('j'),
    ];
    for way in ways {
        let mut composer = typed("a");
        assert_eq!(composer.key(way), KeyOutcome::Changed);
        write(&mut composer, "b");
        assert_eq!(
            press(&mut composer, KeyCode::Enter),
            KeyOutcome::Done(UserAction::Say("a\nb".to_owned()))
        );
        assert!(composer.is_empty());
    }
    let mut composer = typed("a\\");
    assert_eq!(press(&mut composer, KeyCode::Enter), KeyOutcome::Changed);
    assert_eq!(seen(&composer), "a\n|");
}

#[test]
fn what_is_pasted_stands_there_and_is_not_executed() {
    let mut composer = typed("");
    composer.paste("/quit\r\n/undo\r");
    assert_eq!(seen(&composer), "/quit\n/undo\n|");
    assert_eq!(
        press(&mut composer, KeyCode::Enter),
        KeyOutcome::Done(UserAction::Say("/quit\n/undo\n".to_owned()))
    );
    composer.paste("a\u{1b}[2J\u{7}");
    assert!(rows(&composer.lines(40, 5, "", theme())).iter().all(|row| !row.chars().any(char::is_control)));
    assert_eq!(
        press(&mut composer, KeyCode::Enter),
        KeyOutcome::Done(UserAction::Say("a\u{1b}[2J\u{7}".to_owned()))
    );
}

#[test]
fn a_large_paste_is_one_token_that_expands_when_it_is_sent() {
    let text = "line\n".repeat(120);
    let mut composer = typed("see ");
    composer.paste(&text);
    write(&mut composer, "!");
    assert_eq!(rows(&composer.lines(60, 5, "", theme())), ["› see [pasted 120 lines]!"]);
    press(&mut composer, KeyCode::Left);
    assert_eq!(composer.lines(60, 5, "", theme()).cursor, (24, 0));
    assert_eq!(
        press(&mut composer, KeyCode::Enter),
        KeyOutcome::Done(UserAction::Say(format!("see {text}!")))
    );
    composer.paste(&text);
    press(&mut composer, KeyCode::Backspace);
    assert!(composer.is_empty());
    composer.paste(&format!("/{}", "x".repeat(3_000)));
    let wrote = press(&mut composer, KeyCode::Enter);
    assert!(matches!(wrote, KeyOutcome::Done(UserAction::Say(said)) if said.len() == 3_001));
}

#[test]
fn history_is_walked_from_the_first_and_last_row_and_the_draft_comes_back() {
    let mut composer = with_history(&["one", "two\nrows"]);
    write(&mut composer, "dra");
    press(&mut composer, KeyCode::Left);
    press(&mut composer, KeyCode::Up);
    assert_eq!(seen(&composer), "two\nrows|");
    press(&mut composer, KeyCode::Up);
    assert_eq!(seen(&composer), "two|\nrows");
    press(&mut composer, KeyCode::Up);
    assert_eq!(seen(&composer), "one|");
    assert_eq!(press(&mut composer, KeyCode::Up), KeyOutcome::Nothing);
    write(&mut composer, "!");
    press(&mut composer, KeyCode::Down);
    press(&mut composer, KeyCode::Down);
    assert_eq!(seen(&composer), "dr|a");
    assert_eq!(press(&mut composer, KeyCode::Down), KeyOutcome::Nothing);
    for _ in 0..3 {
        press(&mut composer, KeyCode::Up);
    }
    assert_eq!(seen(&composer), "one!|", "what was changed on the way is not lost");
    assert_eq!(press(&mut composer, KeyCode::Enter), KeyOutcome::Done(UserAction::Say("one!".to_owned())));
    press(&mut composer, KeyCode::Up);
    assert_eq!(seen(&composer), "one!|");
}

#[test]
fn up_and_down_move_between_the_rows_that_are_seen() {
    let mut composer = with_history(&["old"]);
    write(&mut composer, "abcdefghij");
    assert_eq!(rows(&composer.lines(10, 5, "", theme())), ["› abcdefg", "  hij"]);
    press(&mut composer, KeyCode::Up);
    assert_eq!(seen(&composer), "abc|defghij");
    press(&mut composer, KeyCode::Down);
    assert_eq!(seen(&composer), "abcdefghij|");
}

#[test]
fn what_was_sent_or_cleared_is_remembered_and_handed_out_once() {
    let mut composer = typed("//etc is full");
    assert_eq!(
        press(&mut composer, KeyCode::Enter),
        KeyOutcome::Done(UserAction::Say("/etc is full".to_owned()))
    );
    write(&mut composer, " private");
    press(&mut composer, KeyCode::Enter);
    write(&mut composer, "thrown away");
    composer.clear();
    assert!(composer.is_empty());
    assert_eq!(composer.remembered(), ["//etc is full", "thrown away"]);
    assert_eq!(composer.remembered(), Vec::<String>::new());
    press(&mut composer, KeyCode::Up);
    assert_eq!(seen(&composer), "thrown away|");
}

#[test]
fn the_history_is_searched_backwards_as_one_types() {
    let mut composer = with_history(&["cargo test", "ls", "cargo fmt"]);
    write(&mut composer, "draft");
    composer.key(ctrl('r'));
    write(&mut composer, "CAR");
    let composed = composer.lines(60, 5, "", theme());
    assert_eq!(rows(&composed), ["› cargo fmt", "  search back: CAR"]);
    assert_eq!(composed.cursor, (18, 1));
    composer.key(ctrl('r'));
    assert_eq!(seen(&composer), "cargo test|");
    composer.key(ctrl('r'));
    assert!(rows(&composer.lines(60, 5, "", theme()))[1].ends_with("(nothing found)"));
    assert_eq!(press(&mut composer, KeyCode::Esc), KeyOutcome::Changed);
    assert_eq!(seen(&composer), "draft|");
    composer.key(ctrl('r'));
    write(&mut composer, "lx");
    press(&mut composer, KeyCode::Backspace);
    write(&mut composer, "s");
    assert_eq!(press(&mut composer, KeyCode::Enter), KeyOutcome::Changed);
    assert_eq!(seen(&composer), "ls|");
    press(&mut composer, KeyCode::Down);
    press(&mut composer, KeyCode::Down);
    assert_eq!(seen(&composer), "draft|");
    composer.key(ctrl('r'));
    write(&mut composer, "ls");
    assert_eq!(composer.key(ctrl('c')), KeyOutcome::NotMine);
    assert_eq!(seen(&composer), "draft|");
}

#[test]
fn secrets_are_neither_shown_nor_sent_nor_remembered() {
    let check = |composer: &mut Composer| {
        let drawn = rows(&composer.lines(80, 5, "", theme())).concat();
        assert_eq!(drawn, format!("› sk-ant-{}", "•".repeat(KEY.len() - 7)));
        let KeyOutcome::Wrong(wrong) = press(composer, KeyCode::Enter) else { panic!("it was sent") };
        assert!(
            wrong.starts_with("this looks like an API key: ")
                && wrong.ends_with("set ANTHROPIC_API_KEY instead")
        );
        assert!(!matches!(press(composer, KeyCode::Tab), KeyOutcome::Wants(_)));
        composer.clear();
        assert_eq!(composer.remembered(), Vec::<String>::new());
        press(composer, KeyCode::Up);
        assert!(composer.is_empty());
    };
    check(&mut typed(KEY));
    let mut pasted = typed("");
    pasted.paste(KEY);
    check(&mut pasted);
    let mut buried = typed("");
    buried.paste(&format!("{}{KEY}", "x\n".repeat(20)));
    assert!(matches!(press(&mut buried, KeyCode::Enter), KeyOutcome::Wrong(_)));
    let mut searched = typed("");
    searched.key(ctrl('r'));
    write(&mut searched, KEY);
    assert!(!rows(&searched.lines(80, 5, "", theme())).concat().contains("api03"));
    let mut command = typed(&format!("/{KEY}"));
    assert!(
        matches!(press(&mut command, KeyCode::Enter), KeyOutcome::Wrong(wrong) if !wrong.contains("api03"))
    );
}

#[test]
fn a_wrong_command_stays_where_it_is() {
    let mut composer = typed("/tsaks");
    let KeyOutcome::Wrong(wrong) = press(&mut composer, KeyCode::Enter) else { panic!("it was sent") };
    assert_eq!(wrong, "no command /tsaks; did you mean /tasks? /help lists them");
    assert_eq!(seen(&composer), "/tsaks|");
    assert_eq!(composer.remembered(), Vec::<String>::new());
}

#[test]
fn names_of_commands_are_completed_here() {
    let mut composer = typed("/bu");
    assert_eq!(press(&mut composer, KeyCode::Tab), KeyOutcome::Changed);
    assert_eq!(seen(&composer), "/budget |");
    let mut composer = typed("/mo");
    assert_eq!(
        rows(&composer.lines(60, 8, "", theme())),
        [
            "› /mo",
            "▸ /mode   show or switch orchestration mode",
            "  /model  show or change the model of the lead",
        ]
    );
    press(&mut composer, KeyCode::Down);
    let picks =
        KeyOutcome::Wants(UserAction::Complete { word: String::new(), command: Some("model".to_owned()) });
    assert_eq!(press(&mut composer, KeyCode::Enter), picks, "what it takes is picked next");
    assert_eq!(seen(&composer), "/model |");
    let mut composer = typed("/t");
    write(&mut composer, "e");
    press(&mut composer, KeyCode::Right);
    assert_eq!(seen(&composer), "/team|");
    let mut composer = typed("/mode");
    assert!(
        matches!(press(&mut composer, KeyCode::Enter), KeyOutcome::Done(UserAction::Command(given)) if given.name == "mode")
    );
    assert_eq!(press(&mut typed("/zzz"), KeyCode::Tab), KeyOutcome::Nothing);
}

#[test]
fn other_words_are_asked_for_and_offered() {
    let wants = |word: &str, command: Option<&str>| {
        KeyOutcome::Wants(UserAction::Complete { word: word.to_owned(), command: command.map(str::to_owned) })
    };
    let mut composer = typed("look at @s");
    assert_eq!(press(&mut composer, KeyCode::Tab), wants("@s", None));
    composer.offer("@s", candidates(&["@src/", "@shared/", "@sam"]));
    assert_eq!(press(&mut composer, KeyCode::Up), KeyOutcome::Changed);
    assert_eq!(press(&mut composer, KeyCode::Down), KeyOutcome::Changed);
    assert_eq!(press(&mut composer, KeyCode::Enter), wants("@src/", None), "a directory keeps completing");
    composer.offer("@src/", candidates(&["@src/main.rs"]));
    assert_eq!(
        seen(&composer),
        "look at @src/|",
        "what is in a directory is shown, and taken only if it is wanted"
    );
    press(&mut composer, KeyCode::Enter);
    assert_eq!(seen(&composer), "look at @src/main.rs |");
    let mut single = typed("look at @m");
    press(&mut single, KeyCode::Tab);
    single.offer("@m", candidates(&["@main.rs"]));
    assert_eq!(seen(&single), "look at @main.rs |", "a single candidate is taken at once");

    let mut command = typed("/model ");
    assert_eq!(press(&mut command, KeyCode::Tab), wants("", Some("model")));
    command.offer("", candidates(&["a b", "ab", "c"]));
    write(&mut command, "a");
    assert_eq!(rows(&command.lines(40, 9, "", theme())).len(), 3, "typing narrows");
    press(&mut command, KeyCode::Tab);
    press(&mut command, KeyCode::Tab);
    press(&mut command, KeyCode::Enter);
    assert_eq!(seen(&command), "/model \"a b\" |");
}

#[test]
fn offers_that_come_too_late_are_passed_over() {
    let mut composer = typed("/model ");
    press(&mut composer, KeyCode::Tab);
    write(&mut composer, "x");
    composer.offer("", candidates(&["one"]));
    assert_eq!(seen(&composer), "/model x|");
    let mut sent = typed("ad");
    press(&mut sent, KeyCode::Tab);
    assert_eq!(press(&mut sent, KeyCode::Enter), KeyOutcome::Nothing, "what is half written is not sent");
    assert!(matches!(press(&mut sent, KeyCode::Enter), KeyOutcome::Done(_)));
    write(&mut sent, "ad");
    sent.offer("ad", candidates(&["ada"]));
    assert_eq!(seen(&sent), "ad|");
}

#[test]
fn escape_closes_the_candidates_first() {
    let mut composer = typed("/t");
    assert_eq!(press(&mut composer, KeyCode::Esc), KeyOutcome::Changed);
    assert_eq!(rows(&composer.lines(40, 9, "", theme())), ["› /t"]);
    assert_eq!(press(&mut composer, KeyCode::Esc), KeyOutcome::NotMine);
    press(&mut composer, KeyCode::Tab);
    press(&mut composer, KeyCode::Home);
    assert_eq!(rows(&composer.lines(40, 9, "", theme())), ["› /t"], "moving away closes them too");
}

#[test]
fn the_cursor_is_exact_for_wide_characters() {
    let check = |text: &str, width: usize, expected: &[&str], cursor: (u16, u16)| {
        let composed = typed(text).lines(width, 9, "", theme());
        assert_eq!(rows(&composed), expected, "{text}");
        assert_eq!(composed.cursor, cursor, "{text}");
    };
    check("", 10, &["› "], (2, 0));
    check("漢字", 10, &["› 漢字"], (6, 0));
    check("漢字漢字", 10, &["› 漢字漢", "  字"], (4, 1));
    check("a漢字漢字", 10, &["› a漢字漢", "  字"], (4, 1));
    check("e\u{301}👩\u{200d}👧", 10, &["› e\u{301}👩\u{200d}👧"], (5, 0));
    check("abcdefg", 10, &["› abcdefg"], (9, 0));
    check("abcdefgh", 10, &["› abcdefg", "  h"], (3, 1));
}

#[test]
fn the_row_of_the_cursor_is_always_among_the_rows() {
    let mut composer = typed("");
    composer.buffer = Buffer::of("0\n1\n2\n3\n4\n5\n6\n7\n8\n9");
    for at in (0..10).rev() {
        let composed = composer.lines(20, 3, "", theme());
        assert_eq!(composed.lines.len(), 3);
        assert!(
            rows(&composed)[usize::from(composed.cursor.1)].ends_with(&at.to_string()),
            "{at}: {composed:?}"
        );
        press(&mut composer, KeyCode::Up);
    }
    let composed = composer.lines(20, 1, "", theme());
    assert_eq!((rows(&composed), composed.cursor.1), (vec!["› 0".to_owned()], 0));
}

#[test]
fn an_empty_composer_shows_the_hint() {
    let composed = typed("").lines(10, 3, "ask me anything", theme());
    let row = rows(&composed).concat();
    assert!(row.starts_with("› ask") && text_columns(&row) <= 10, "{row}");
    assert_eq!(composed.cursor, (2, 0));
    assert_eq!(composed.lines[0].spans[1].style, theme().style(crate::text::Tone::Dim));
}

#[test]
fn everything_fits_any_width_from_ten_columns_on() {
    for width in [10, 11, 40, 80, 200] {
        for most in [1, 2, 4, 10] {
            let mut composer = typed("/");
            check_fits(&composer, width, most);
            composer.clear();
            write(&mut composer, "@");
            press(&mut composer, KeyCode::Tab);
            composer.offer("@", candidates(&["@漢字漢字漢字/a\u{1b}b", "@\n", &"@x".repeat(200)]));
            check_fits(&composer, width, most);
            composer.clear();
            composer.paste(&"x\n".repeat(30));
            composer.key(ctrl('r'));
            write(&mut composer, "漢字漢字漢字漢字漢字漢字");
            check_fits(&composer, width, most);
        }
    }
}

fn check_fits(composer: &Composer, width: usize, most: usize) {
    let composed = composer.lines(width, most, "a hint", theme());
    let (column, row) = composed.cursor;
    assert!((1..=most).contains(&composed.lines.len()), "{width}x{most}: {composed:?}");
    assert!(composed.lines.iter().all(|line| line.width() <= width), "{width}x{most}: {composed:?}");
    assert!(
        usize::from(column) < width && usize::from(row) < composed.lines.len(),
        "{width}x{most}: {composed:?}"
    );
    assert!(!rows(&composed).concat().chars().any(char::is_control), "{composed:?}");
}

#[test]
fn of_many_candidates_six_rows_are_shown_around_the_chosen_one() {
    let mut composer = typed("/");
    let first = rows(&composer.lines(80, 20, "", theme()));
    assert_eq!(first.len(), 7);
    assert!(
        first[1].starts_with("▸ /help") && first[6] == format!("  1 of {}", COMMANDS.len()),
        "{first:#?}"
    );
    press(&mut composer, KeyCode::Up);
    let last = rows(&composer.lines(80, 20, "", theme()));
    assert!(last[5].starts_with("▸ /quit"), "{last:#?}");
}

#[test]
fn no_sequence_of_keys_breaks_the_picture() {
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    let mut keys: Vec<KeyEvent> =
        "a/@\"' \\漢é\u{301}\u{200d}👩🇩".chars().map(|c| plain(KeyCode::Char(c))).collect();
    keys.extend("abdefjkpnruwy".chars().map(ctrl));
    keys.extend("bdf".chars().map(alt));
    keys.extend(
        [KeyCode::Tab, KeyCode::BackTab, KeyCode::Enter, KeyCode::Esc, KeyCode::Backspace].map(plain),
    );
    keys.extend(
        [KeyCode::Delete, KeyCode::Up, KeyCode::Down, KeyCode::Left, KeyCode::Right, KeyCode::Home]
            .map(plain),
    );
    let mut composer = with_history(&["one", "two\nrows", "/mode on", "漢字"]);
    let mut random: u64 = 7;
    for step in 0..20_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pick = usize::try_from(random >> 33).unwrap();
        match composer.key(keys[pick % keys.len()]) {
            KeyOutcome::Wants(UserAction::Complete { word, .. }) => {
                composer.offer(&word, candidates(&["my dir/", "@it's \"odd\"", "x"][..pick % 4]));
            }
            KeyOutcome::Done(UserAction::Say(text)) => assert!(!text.trim().is_empty()),
            _ => {}
        }
        if step % 97 == 0 {
            composer.paste(&"p\n".repeat(pick % 14));
        }
        if step % 7 == 0 {
            check_fits(&composer, 10 + pick % 40, 1 + pick % 9);
        }
    }
}
