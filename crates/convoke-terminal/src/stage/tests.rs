//! What a stage writes, seen on a small terminal: what is above the region stays, what is in it is right, and
//! nothing is written in vain.

use std::collections::VecDeque;

use ratatui::style::Stylize;

use super::*;

/// Rows of characters.
type Rows = Vec<Vec<char>>;

/// A terminal as far as a stage needs one: it keeps every row, those that have left the screen too.
struct Paper {
    columns: usize,
    height: usize,
    rows: Rows,
    at: (usize, usize),
    kept: (usize, usize),
    wraps: bool,
    is_pending: bool,
    aside: Option<(Rows, (usize, usize))>,
    shows_cursor: bool,
    writes: usize,
    bytes: Vec<u8>,
}

impl Paper {
    fn new(columns: usize, height: usize) -> Self {
        let rows = vec![vec![' '; columns]; height];
        let at = (0, 0);
        let kept = (0, 0);
        let aside = None;
        let wraps = true;
        let is_pending = false;
        let shows_cursor = true;
        Self {
            columns,
            height,
            rows,
            at,
            kept,
            wraps,
            is_pending,
            aside,
            shows_cursor,
            writes: 0,
            bytes: Vec::new(),
        }
    }

    fn top(&self) -> usize {
        self.rows.len() - self.height
    }

    /// Everything from the first row ever to the last one with something on it.
    fn text(&self) -> Vec<String> {
        let mut text: Vec<String> = self.rows.iter().map(|row| plain(row)).collect();
        while text.last().is_some_and(String::is_empty) {
            text.pop();
        }
        text
    }

    fn line_break(&mut self) {
        self.at.1 += 1;
        if self.at.1 == self.rows.len() {
            self.rows.push(vec![' '; self.columns]);
        }
    }

    fn put(&mut self, c: char) {
        let width = unicode_width::UnicodeWidthChar::width(c).unwrap();
        if self.is_pending && self.wraps {
            self.at.0 = 0;
            self.line_break();
        }
        self.is_pending = false;
        let (x, y) = self.at;
        assert!(x + width <= self.columns, "{c} is written past the last column");
        self.rows[y][x] = c;
        (1..width).for_each(|n| self.rows[y][x + n] = '\0');
        self.is_pending = x + width == self.columns;
        self.at.0 = (x + width).min(self.columns - 1);
    }

    fn obey(&mut self, letter: char, given: &str) {
        let number = given.split(';').next().and_then(|n| n.parse().ok());
        let n: usize = number.unwrap_or(1);
        let (x, y) = self.at;
        self.is_pending = self.is_pending && matches!(letter, 'm' | 'K' | 'h' | 'l');
        match letter {
            'A' => self.at.1 = y.saturating_sub(n).max(self.top()),
            'B' => self.at.1 = (y + n).min(self.rows.len() - 1),
            'C' => self.at.0 = (x + n).min(self.columns - 1),
            'H' => {
                let column: usize = given.split(';').nth(1).unwrap().parse().unwrap();
                self.at = (column - 1, self.top() + n - 1);
            }
            'K' => self.rows[y][x..].fill(' '),
            'J' if given == "2" => {
                let top = self.top();
                self.rows[top..].iter_mut().for_each(|row| row.fill(' '));
            }
            'J' => {
                assert!(
                    self.at != (0, self.top()) || self.height == 1,
                    "this clears the first row, and may be kept"
                );
                self.rows[y][x..].fill(' ');
                self.rows[y + 1..].iter_mut().for_each(|row| row.fill(' '));
            }
            'h' | 'l' => self.set(given, letter == 'h'),
            'm' => {}
            other => panic!("nobody knows {other}"),
        }
    }

    fn set(&mut self, mode: &str, is_on: bool) {
        match mode {
            "?7" => self.wraps = is_on,
            "?25" => self.shows_cursor = is_on,
            "?2026" | "?2004" => {}
            "?1049" if is_on => {
                let blank = vec![vec![' '; self.columns]; self.height];
                self.aside = Some((std::mem::replace(&mut self.rows, blank), self.at));
                self.at.1 = self.at.1.min(self.height - 1);
            }
            "?1049" => (self.rows, self.at) = self.aside.take().unwrap(),
            other => panic!("nobody knows {other}"),
        }
    }
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        self.bytes = bytes.to_vec();
        let mut chars: VecDeque<char> = std::str::from_utf8(bytes).unwrap().chars().collect();
        while let Some(c) = chars.pop_front() {
            match c {
                '\r' => (self.at.0, self.is_pending) = (0, false),
                '\n' => self.line_break(),
                '\x1b' => match chars.pop_front() {
                    Some('7') => self.kept = self.at,
                    Some('8') => self.at = self.kept,
                    _ => {
                        let end = chars.iter().position(char::is_ascii_alphabetic).unwrap();
                        let given: String = chars.drain(..end).collect();
                        let letter = chars.pop_front().unwrap();
                        self.obey(letter, &given);
                    }
                },
                c => self.put(c),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn plain(row: &[char]) -> String {
    row.iter().filter(|c| **c != '\0').collect::<String>().trim_end().to_owned()
}

fn stage(columns: u16, height: u16) -> Stage<Paper> {
    let mut stage = Stage::on(Paper::new(columns.into(), height.into()), (columns, height));
    let bytes = stage.begin();
    stage.write(&bytes).unwrap();
    stage.out.writes = 0;
    stage
}

fn region(rows: &[&str], cursor: (u16, u16)) -> Region {
    Region { lines: rows.iter().map(|row| Line::raw((*row).to_owned())).collect(), cursor }
}

fn lines(rows: &[&str]) -> Vec<Line<'static>> {
    region(rows, (0, 0)).lines
}

/// A small generator: the same numbers every time.
fn numbers(mut seed: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    }
}

#[test]
fn what_is_printed_stays_above_a_region_that_moves() {
    for seed in 0..60 {
        let mut number = numbers(seed);
        let columns = number(30) + 4;
        let height = number(12) + 4;
        let mut stage = stage(columns.try_into().unwrap(), height.try_into().unwrap());
        let mut printed = Vec::<String>::new();
        let mut shown = Vec::<String>::new();
        let mut count = 0;
        for step in 0..80 {
            let rows = |count: u64, name: char, number: &mut dyn FnMut(u64) -> u64| -> Vec<String> {
                let row = |n| format!("{name}{}", "漢x".repeat(20)).chars().take(n).collect::<String>();
                let fits =
                    |row: &String| unicode_width::UnicodeWidthStr::width(row.as_str()) <= columns as usize;
                (0..count).map(|_| (0..=number(12) as usize).rev().map(row).find(fits).unwrap()).collect()
            };
            let what = number(3);
            if what != 1 {
                let new = rows(number(6), 'p', &mut number);
                printed.extend(new.iter().cloned());
                count = new.len();
            }
            if what != 0 {
                shown = rows(number(height), 'r', &mut number);
            }
            let cursor = (number(columns) as u16, number(shown.len().max(1) as u64) as u16);
            let refs: Vec<&str> = shown.iter().map(String::as_str).collect();
            let new: Vec<&str> =
                printed[printed.len() - count.min(printed.len())..].iter().map(String::as_str).collect();
            match what {
                0 => stage.print(&lines(&new)).unwrap(),
                1 => stage.region(region(&refs, cursor)).unwrap(),
                _ => stage.show(&lines(&new), region(&refs, cursor)).unwrap(),
            }
            let mut expected: Vec<String> = printed.iter().chain(&shown).cloned().collect();
            while expected.last().is_some_and(String::is_empty) {
                expected.pop();
            }
            assert_eq!(stage.out.text(), expected, "seed {seed}, step {step}");
            assert!(stage.out.writes <= step + 1 && stage.out.shows_cursor && stage.out.wraps);
            if what != 0 {
                let at = (usize::from(cursor.0), printed.len() + usize::from(cursor.1));
                assert_eq!(stage.out.at, at, "seed {seed}, step {step}");
            }
        }
        stage.give_back().unwrap();
        while printed.last().is_some_and(String::is_empty) {
            printed.pop();
        }
        assert_eq!(stage.out.text(), printed, "seed {seed}: only what was printed is left");
        assert_eq!(stage.out.at.0, 0);
    }
}

#[test]
fn only_what_changed_is_written_in_one_write() {
    let mut stage = stage(20, 6);
    stage.region(region(&["one", "two", "three"], (1, 1))).unwrap();
    stage.region(region(&["one", "two", "three"], (1, 1))).unwrap();
    assert_eq!(stage.out.writes, 1, "nothing changed");
    stage.region(region(&["one", "TWO", "three"], (2, 1))).unwrap();
    let written = String::from_utf8(stage.out.bytes.clone()).unwrap();
    assert_eq!(written, "\x1b[?2026h\x1b[?25l\x1b[?7l\rTWO\x1b[?7h\r\x1b[2C\x1b[?25h\x1b[?2026l");
    stage.print(&lines(&["a", "b"])).unwrap();
    assert_eq!(stage.out.writes, 3);
    assert_eq!(stage.out.text(), ["a", "b", "one", "TWO", "three"]);
}

#[test]
fn a_row_as_wide_as_the_terminal_keeps_its_last_column() {
    let mut stage = stage(6, 5);
    stage.print(&lines(&["abcdef", "漢字漢"])).unwrap();
    stage.region(region(&["uvwxyz", "12345678"], (5, 1))).unwrap();
    assert_eq!(stage.out.text(), ["abcdef", "漢字漢", "uvwxyz", "123456"]);
    stage.print(&lines(&["ghijklmn"])).unwrap();
    assert_eq!(stage.out.text(), ["abcdef", "漢字漢", "ghijkl", "mn", "uvwxyz", "123456"]);
}

#[test]
fn a_region_that_is_too_high_shows_its_end_and_the_row_of_the_cursor() {
    let check = |cursor, expected: &[&str], at| {
        let mut stage = stage(10, 3);
        stage.region(region(&["0", "1", "2", "3", "4"], (1, cursor))).unwrap();
        assert_eq!(stage.out.text(), expected, "the cursor is in row {cursor}");
        assert_eq!(stage.out.at, (1, at));
    };
    check(4, &["2", "3", "4"], 2);
    check(2, &["2", "3", "4"], 0);
    check(1, &["1", "2", "3"], 0);
    check(99, &["2", "3", "4"], 2);
}

#[test]
fn the_whole_screen_comes_and_goes_and_what_was_printed_meanwhile_is_there_afterwards() {
    let mut stage = stage(12, 4);
    stage.print(&lines(&["before"])).unwrap();
    stage.region(region(&["box"], (2, 0))).unwrap();
    let draw = |text: &'static str, cursor| {
        move |area: Rect, buffer: &mut Buffer| {
            buffer.set_string(0, area.height - 1, text, ratatui::style::Style::new().bold());
            cursor
        }
    };
    stage.whole(draw("fleet 1", None)).unwrap();
    assert_eq!(stage.out.text(), ["", "", "", "fleet 1"]);
    assert!(!stage.out.shows_cursor);
    stage.whole(draw("fleet 2", Some((3, 2)))).unwrap();
    let written = String::from_utf8(stage.out.bytes.clone()).unwrap();
    assert!(written.contains("\x1b[4;7H\x1b[0;1m2\x1b[0m") && !written.contains("fleet"), "{written:?}");
    assert_eq!((stage.out.at, stage.out.shows_cursor), ((3, 2), true));
    let writes = stage.out.writes;
    stage.whole(draw("fleet 2", Some((3, 2)))).unwrap();
    stage.print(&lines(&["meanwhile"])).unwrap();
    stage.region(region(&["new box", "status"], (0, 1))).unwrap();
    assert_eq!(stage.out.writes, writes, "nothing changed that can be seen");
    stage.leave_whole().unwrap();
    assert_eq!(stage.out.writes, writes + 1);
    assert_eq!(stage.out.text(), ["before", "meanwhile", "new box", "status"]);
    assert!(stage.out.shows_cursor);
    stage.leave_whole().unwrap();
    assert_eq!(stage.out.writes, writes + 1);
}

#[test]
fn a_new_size_draws_the_whole_screen_anew() {
    let mut stage = stage(12, 4);
    let draw = |area: Rect, buffer: &mut Buffer| {
        buffer.set_string(0, 0, format!("{}x{}", area.width, area.height), ratatui::style::Style::new());
        None
    };
    stage.whole(draw).unwrap();
    stage.resized(10, 3).unwrap();
    assert_eq!(stage.size(), (10, 3));
    stage.whole(draw).unwrap();
    let written = String::from_utf8(stage.out.bytes.clone()).unwrap();
    assert!(written.contains("\x1b[2J\x1b[1;1H10x3") && !written.contains("1049"), "{written:?}");
}

#[test]
fn lending_leaves_nothing_behind_and_comes_back_as_it_was() {
    let mut stage = stage(12, 6);
    stage.print(&lines(&["before"])).unwrap();
    stage.region(region(&["box", "status"], (2, 0))).unwrap();
    assert_eq!(stage.lend(|| 42).unwrap(), 42);
    assert_eq!(stage.out.text(), ["before", "box", "status"]);
    let draw = |_: Rect, buffer: &mut Buffer| {
        buffer.set_string(0, 0, "fleet", ratatui::style::Style::new());
        None
    };
    stage.whole(draw).unwrap();
    stage.lend(|| ()).unwrap();
    assert_eq!(stage.out.text(), ["fleet"]);
    stage.leave_whole().unwrap();
    assert_eq!(stage.out.text(), ["before", "box", "status"]);
    stage.whole(draw).unwrap();
    stage.give_back().unwrap();
    assert_eq!(stage.out.text(), ["before"]);
    assert!(stage.out.shows_cursor);
    let writes = stage.out.writes;
    stage.print(&lines(&["late"])).unwrap();
    stage.give_back().unwrap();
    assert_eq!(stage.out.writes, writes, "what was given back is not touched any more");
}

#[test]
fn a_region_that_a_narrow_terminal_has_broken_is_taken_away_as_a_whole() {
    let check = |widths: &[usize], cursor, columns, up: &str| {
        let mut stage = stage(80, 24);
        let rows: Vec<String> = widths.iter().map(|width| "x".repeat(*width)).collect();
        stage.region(region(&rows.iter().map(String::as_str).collect::<Vec<_>>(), cursor)).unwrap();
        let mut bytes = Vec::new();
        stage.drawn.erase_at(columns, &mut bytes);
        let written = String::from_utf8(bytes).unwrap();
        assert_eq!(
            written.strip_suffix(std::str::from_utf8(CLEAR_FROM_HERE).unwrap()),
            Some(up),
            "{widths:?}"
        );
    };
    check(&[80, 80, 80], (0, 2), 120, "\x1b[2A");
    check(&[80, 80, 80], (0, 2), 80, "\x1b[2A");
    check(&[80, 80, 80], (0, 2), 40, "\x1b[4A");
    check(&[80, 81, 0], (0, 2), 79, "\x1b[4A");
    check(&[10, 60, 80], (50, 1), 40, "\x1b[2A");
    check(&[10, 40, 80], (40, 1), 40, "\x1b[1A");
    check(&[10], (0, 0), 40, "");
}

#[test]
fn nothing_raw_reaches_the_terminal_from_what_is_printed_shown_or_drawn() {
    let evil = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{202e}";
    let mut stage = stage(40, 6);
    stage.print(&[Line::from(evil.red())]).unwrap();
    stage.region(region(&[evil], (0, 0))).unwrap();
    assert_eq!(stage.out.text(), vec!["␛]0;owned␇␛[2J\u{fffd}31m\u{fffd}"; 2]);
    stage
        .whole(|_, buffer| {
            buffer[(0, 0)].set_symbol(evil);
            buffer.set_string(0, 1, evil, ratatui::style::Style::new());
            None
        })
        .unwrap();
    let text = stage.out.text();
    assert!(text[0].starts_with('␛') && text[1].contains("owned"), "{text:?}");
}
