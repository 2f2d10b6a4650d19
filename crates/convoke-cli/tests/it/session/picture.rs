//! The README shows a picture of a real terminal, `docs/images/session.svg`. It is drawn here from what tmux
//! captures, and has to be what the binary shows now; ids, times and money differ from one capture to the
//! next, and so does which agent ends first.
//!
//! `CONVOKE_PICTURE=write cargo test -p convoke-cli --test it session::picture` takes it anew.

use std::fmt::Write;
use std::path::PathBuf;

use super::IDLE;
use crate::pane::Pane;
use crate::repo::repository;
use crate::stage::Stage;

const SIZE: (u16, u16) = (100, 24);
/// The variable with which the picture is written and not compared.
const WRITE: &str = "CONVOKE_PICTURE";

/// Agents race, so one try may look different by chance; all of them only if something has changed.
const TRIES: usize = 3;

/// The size of a character, the distance of rows and the frame, in pixels.
const CELL: f64 = 8.4;
const ROW: f64 = 18.0;
const FRAME: f64 = 14.0;

const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d6d9e0";
/// The eight colours of a terminal.
const COLOURS: [&str; 8] =
    ["#3a3f4b", "#e06c75", "#8fc77b", "#e0b568", "#6ea8fe", "#c690e6", "#5cc5cf", "#d6d9e0"];

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    bold: bool,
    dim: bool,
    reverse: bool,
    /// One of the eight colours.
    colour: Option<usize>,
}

/// A piece of a row that looks the same from its beginning to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    /// The column in which it begins.
    at: usize,
    text: String,
    look: Look,
}

impl Look {
    /// What a sequence such as `0;2` makes of it.
    fn after(mut self, codes: &str) -> Self {
        for code in codes.split(';') {
            match code.parse().unwrap_or(0) {
                0 => self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                7 => self.reverse = true,
                code @ 30..=37 => self.colour = Some(code - 30),
                39 => self.colour = None,
                49 => {}
                // Drawn as what it is not, the picture would lie.
                code => panic!("the picture cannot draw the code {code}"),
            }
        }
        self
    }

    fn fill(self) -> &'static str {
        self.colour.map_or(FOREGROUND, |colour| COLOURS[colour])
    }
}

/// The rows of a capture, each in pieces. tmux lets a look go on in the next row.
fn rows(capture: &str) -> Vec<Vec<Piece>> {
    let mut look = Look::default();
    let mut rows = Vec::new();
    for line in capture.trim_end().lines() {
        let mut row = Vec::new();
        let mut column = 0;
        for (number, part) in line.split("\u{1b}[").enumerate() {
            let text = match part.split_once('m').filter(|_| number > 0) {
                Some((codes, text)) => {
                    look = look.after(codes);
                    text
                }
                None => part,
            };
            let at = column;
            let text = text.to_owned();
            column += text.chars().count();
            row.extend((!text.is_empty()).then_some(Piece { at, text, look }));
        }
        rows.push(row);
    }
    rows
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn pixels(cells: usize) -> f64 {
    f64::from(u32::try_from(cells).unwrap()) * CELL
}

/// The rows as a picture.
fn svg(rows: &[Vec<Piece>]) -> String {
    let width = pixels(usize::from(SIZE.0)) + 2.0 * FRAME;
    let height = ROW * f64::from(SIZE.1) + 2.0 * FRAME;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" font-size=\"14\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    let mut top = FRAME;
    for row in rows {
        for Piece { at, text, look } in row {
            let x = FRAME + pixels(*at);
            let length = pixels(text.chars().count());
            let mut fill = look.fill();
            if look.reverse {
                writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{ROW}\" \
                        fill=\"{fill}\"/>"
                )
                .unwrap();
                fill = BACKGROUND;
            }
            let bold = if look.bold { " font-weight=\"bold\"" } else { "" };
            let dim = if look.dim { " opacity=\"0.6\"" } else { "" };
            let text = escaped(text);
            writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
                 xml:space=\"preserve\" fill=\"{fill}\"{bold}{dim}>{text}</text>",
                top + ROW - 5.0
            )
            .unwrap();
        }
        top += ROW;
    }
    svg + "</svg>\n"
}

/// What of a picture has to be the same: its rows, each with its words and how they look, in any order.
fn masked(svg: &str) -> Vec<String> {
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for line in svg.lines().filter(|line| line.starts_with("<text ")) {
        let (attributes, text) = line.split_once('>').unwrap();
        let text = text.strip_suffix("</text>").unwrap();
        let of = |name: &str| {
            attributes.split_once(name).map(|(_, rest)| rest.split('"').next().unwrap_or_default())
        };
        let top = of(" y=\"").unwrap().to_owned();
        let look = format!("{:?} {:?} {:?}", of("fill=\""), of("weight=\""), of("opacity=\""));
        let words = words(text);
        // Blanks look the same in any colour.
        let piece = (!words.is_empty()).then(|| format!("{look} {words}"));
        match rows.last_mut() {
            Some((row, pieces)) if *row == top => pieces.extend(piece),
            _ => rows.push((top, piece.into_iter().collect())),
        }
    }
    let mut rows: Vec<String> = rows.into_iter().map(|(_, pieces)| pieces.join(" | ")).collect();
    rows.sort();
    rows
}

/// The words of a text without ids, times and money.
fn words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let mask = |(number, word): (usize, &&str)| match words.get(number + 1) {
        _ if word.starts_with("s_") => "ID".to_owned(),
        _ if word.strip_prefix('$').is_some_and(is_number) => "$".to_owned(),
        Some(&"s" | &"min") if is_number(word) => "TIME".to_owned(),
        _ => (*word).to_owned(),
    };
    words.iter().enumerate().map(mask).collect::<Vec<_>>().join(" ")
}

/// A review of a small repository by the offline model, in the fleet once all of it has ended.
async fn captured() -> String {
    let stage = Stage::bare();
    let files = [
        ("src/main.rs", "fn main() {\n    // TODO: greet by name\n    println!(\"hi\");\n}\n"),
        ("add.py", "def add(a, b):\n    try:\n        return a + b\n    except:\n        pass\n"),
        ("README.md", "# Sample\n\nSee [the guide](guide.md).\n"),
    ];
    repository(&stage, &files);
    let pane = Pane::with(&stage, SIZE, &[]).await;
    pane.enter("convoke --offline").await;
    pane.shows(IDLE).await;
    pane.enter("Review this repository").await;
    pane.shows_all(&["· done · ", IDLE]).await;
    pane.press("C-o").await;
    pane.shows_all(&["[1 Agents 15]", "10 of 10 done", "4 of 4 done", "confirmed", "q session"]).await;
    pane.coloured().await
}

#[tokio::test]
async fn the_picture_of_the_readme_is_what_is_shown_now() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/session.svg");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, svg(&rows(&captured().await))).unwrap();
    }
    let shown = masked(&std::fs::read_to_string(&path).unwrap());
    assert!(shown.len() > 15, "{shown:#?}");
    let mut now = Vec::new();
    for _ in 0..TRIES {
        now = masked(&svg(&rows(&captured().await)));
        if now == shown {
            return;
        }
        eprintln!("once more");
    }
    let of = |rows: &[String], others: &[String]| -> Vec<String> {
        rows.iter().filter(|row| !others.contains(row)).cloned().collect()
    };
    let gone = of(&shown, &now);
    let new = of(&now, &shown);
    panic!("not shown any more: {gone:#?}\nnot in the picture: {new:#?}\n{WRITE}=write takes it anew");
}

#[test]
fn ids_times_and_money_make_no_difference_and_another_word_or_colour_does() {
    let check = |a: &str, b: &str, same: bool| {
        assert_eq!(masked(&svg(&rows(a))) == masked(&svg(&rows(b))), same, "{a:?} {b:?}");
    };
    check("s_aaaa · work  $0.00 of $10.00 · 2 s", "s_bbbb · work   $0.20 of $10.00 · 12 s", true);
    check("10 of 10 done", "9 of 10 done", false);
    check("\u{1b}[32mdone\u{1b}[39m\nwaits", "waits\n\u{1b}[32mdone", true);
    check("\u{1b}[32mdone", "\u{1b}[31mdone", false);
    check("\u{1b}[2mdone", "done", false);
    check("done", "gone", false);
}

#[test]
fn a_capture_is_drawn_with_its_colours_and_nothing_in_it_is_markup() {
    let rows = rows("a\u{1b}[1;32mb <c>\nd\u{1b}[0;7m e");
    let look = Look { bold: true, colour: Some(2), ..Look::default() };
    assert_eq!(rows[0][1], Piece { at: 1, text: "b <c>".to_owned(), look });
    assert_eq!(rows[1][0], Piece { at: 0, text: "d".to_owned(), look });
    let svg = svg(&rows);
    assert!(svg.contains("fill=\"#8fc77b\" font-weight=\"bold\">b &lt;c&gt;</text>"), "{svg}");
    assert!(svg.contains("fill=\"#16181d\"> e</text>"), "{svg}");
}
