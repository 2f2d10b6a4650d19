//! No size breaks the picture, and no wide character is torn.

use crossterm::event::KeyCode;
use ratatui::buffer::{Buffer, CellWidth};

use super::sample::Person;

type Way = fn(&mut Person);

const VIEWS: [(&str, Way); 9] = [
    ("agents", |_| {}),
    ("tasks", |person| drop(person.types("2"))),
    ("mail", |person| drop(person.types("3"))),
    ("findings", |person| drop(person.types("4"))),
    ("questions", |person| drop(person.types("5"))),
    ("page", |person| {
        person.press(KeyCode::Enter);
        person.reads();
    }),
    ("output", |person| {
        person.press(KeyCode::Enter);
        person.reads();
        person.types("kkkk");
        person.press(KeyCode::Enter);
        person.types("/失敗");
        person.press(KeyCode::Enter);
    }),
    ("help", |person| drop(person.types("?"))),
    ("prompt", |person| drop(person.types("mお願いお願い"))),
];

/// Every wide character has its second cell for itself, and none hangs over the edge.
#[track_caller]
fn check(buffer: &Buffer, name: &str) {
    for y in 0..buffer.area.height {
        let mut x = 0;
        while x < buffer.area.width {
            let width = buffer[(x, y)].symbol().cell_width().max(1);
            assert!(x + width <= buffer.area.width, "{name} at {:?}: over the edge in row {y}", buffer.area);
            for second in x + 1..x + width {
                assert_eq!(buffer[(second, y)].symbol(), " ", "{name} at {:?}: torn in row {y}", buffer.area);
            }
            x += width;
        }
    }
}

#[test]
fn every_view_is_drawn_at_every_size() {
    let widths: Vec<u16> = (1..=12).chain((13..=220).step_by(23)).chain([139, 140, 220]).collect();
    let heights: Vec<u16> = (1..=6).chain([9, 10, 13, 14, 24, 33, 34, 70]).collect();
    for (name, lead) in VIEWS {
        let mut person = Person::at(80, 24);
        lead(&mut person);
        for width in &widths {
            for height in &heights {
                person.size = (*width, *height);
                check(&person.look(), name);
                if let Some((x, y)) = person.cursor {
                    assert!(x < *width && y < *height, "{name}: the cursor is outside at {width}x{height}");
                }
            }
        }
    }
}

#[test]
fn keys_work_at_every_size() {
    let keys = ["j", "k", "/x", "f", "g", "F", "?", "q"];
    for (width, height) in [(1, 1), (2, 2), (9, 3), (40, 4), (140, 33), (220, 70)] {
        let mut person = Person::at(width, height);
        for key in keys {
            person.types(key);
            person.press(KeyCode::Enter);
            person.press(KeyCode::PageDown);
            check(&person.look(), key);
            person.press(KeyCode::Esc);
        }
    }
}
