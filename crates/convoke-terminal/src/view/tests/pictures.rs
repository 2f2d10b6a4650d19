//! Every view as it looks at three sizes.

use crossterm::event::KeyCode;

use convoke_view::Fleet;

use super::sample::{Person, text};

const SIZES: [(u16, u16); 3] = [(80, 24), (200, 60), (40, 10)];

/// Plays `lead` to a person at each size, and keeps what is then seen.
#[track_caller]
fn picture(name: &str, lead: impl Fn(&mut Person)) {
    for (width, height) in SIZES {
        let mut person = Person::at(width, height);
        lead(&mut person);
        insta::assert_snapshot!(format!("{name}_at_{width}x{height}"), person.text());
    }
}

#[test]
fn the_agents_by_phase() {
    picture("agents", |_| {});
}

#[test]
fn the_tasks_of_the_board() {
    picture("tasks", |person| drop(person.types("2")));
}

#[test]
fn the_letters() {
    picture("mail", |person| drop(person.types("3")));
}

#[test]
fn the_findings() {
    picture("findings", |person| drop(person.types("4")));
}

#[test]
fn the_questions() {
    picture("questions", |person| drop(person.types("5")));
}

#[test]
fn an_agent_by_its_turns() {
    picture("page", |person| {
        person.types("j");
        person.press(KeyCode::Enter);
        person.reads();
    });
}

#[test]
fn an_agent_that_is_still_being_read() {
    picture("reading", |person| drop(person.press(KeyCode::Enter)));
}

#[test]
fn a_command_and_its_output() {
    picture("output", |person| {
        person.press(KeyCode::Enter);
        person.reads();
        person.press(KeyCode::Home);
        person.types("jjj");
        person.press(KeyCode::Enter);
        person.types("/failed");
        person.press(KeyCode::Enter);
    });
}

#[test]
fn a_finding_in_full() {
    picture("finding", |person| {
        person.types("4");
        person.press(KeyCode::Enter);
    });
}

#[test]
fn a_question_in_full() {
    picture("question", |person| {
        person.types("5");
        person.press(KeyCode::Enter);
    });
}

#[test]
fn what_the_keys_do() {
    picture("help", |person| drop(person.types("?")));
}

#[test]
fn a_message_being_written() {
    picture("prompt", |person| drop(person.types("mお願い: look at the ledger")));
}

#[test]
fn a_filter_that_lets_little_pass() {
    picture("filter", |person| {
        person.types("/merge");
        person.press(KeyCode::Enter);
        person.types("ff");
    });
}

#[test]
fn a_remark_that_is_longer_than_a_row() {
    picture("remark", |person| {
        person.types("j");
        person.types("m");
    });
}

#[test]
fn a_fleet_in_which_nothing_has_happened() {
    for (width, height) in SIZES {
        let mut person = Person::before(Fleet::new(), Vec::new(), width, height);
        insta::assert_snapshot!(format!("nothing_at_{width}x{height}"), person.text());
    }
}

#[test]
fn colours_go_with_words() {
    let mut person = Person::at(80, 24);
    person.colour = true;
    let buffer = person.look();
    let mut styles = String::new();
    for y in 0..buffer.area.height {
        // One letter for each cell: what colour it has, in capitals if it is more than plain.
        let row: String = (0..buffer.area.width).map(|x| letter(&buffer[(x, y)])).collect();
        styles.push_str(&format!("{}\n", row.trim_end()));
    }
    insta::assert_snapshot!("styles_at_80x24", format!("{}\n\n{styles}", text(&buffer)));
}

fn letter(cell: &ratatui::buffer::Cell) -> char {
    use ratatui::style::{Color, Modifier};
    let letter = match cell.fg {
        Color::Reset if cell.modifier.is_empty() => ' ',
        Color::Reset if cell.modifier.contains(Modifier::REVERSED) => '#',
        Color::Reset if cell.modifier.contains(Modifier::DIM) => '.',
        Color::Red => 'r',
        Color::Green => 'g',
        Color::Yellow => 'y',
        Color::Cyan => 'c',
        _ => 'o',
    };
    if cell.modifier.contains(Modifier::BOLD) { letter.to_ascii_uppercase() } else { letter }
}
