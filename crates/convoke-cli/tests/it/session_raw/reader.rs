//! A strict reader of what is written to a terminal: it knows the few sequences that a session may use and
//! refuses everything else a terminal would obey. It draws nothing.

/// The numbers that stand in sequences of others and in none of ours.
const MARKED: std::ops::RangeInclusive<u32> = 4_100..=4_199;

/// Modes that a session sets and takes back: bracketed paste, the other screen, the cursor, updates at once,
/// wrapping.
const MODES: [&str; 5] = ["?2004", "?1049", "?25", "?2026", "?7"];

/// The text without our own sequences, or what is wrong with it and where.
pub(crate) fn text(bytes: &[u8]) -> Result<String, String> {
    let all =
        std::str::from_utf8(bytes).map_err(|error| format!("no text at byte {}", error.valid_up_to()))?;
    let mut text = String::new();
    let mut rest = all;
    while let Some(c) = rest.chars().next() {
        let refused = |what: &str| {
            let at = all.len() - rest.len();
            let begin = all.floor_char_boundary(at.saturating_sub(60));
            Err(format!("{what} {c:?} at byte {at}: {:?}", &all[begin..all.ceil_char_boundary(at + 40)]))
        };
        rest = match c {
            '\u{1b}' => match sequence(&rest[1..]) {
                Some(after) => after,
                None => return refused("a foreign sequence"),
            },
            '\r' | '\n' => {
                text.push(c);
                &rest[1..]
            }
            c if c.is_control() => return refused("a control character"),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                return refused("a mark that turns the text around");
            }
            c => {
                text.push(c);
                &rest[c.len_utf8()..]
            }
        };
    }
    Ok(text)
}

/// What follows a sequence of our own.
fn sequence(after: &str) -> Option<&str> {
    // The cursor is kept and brought back.
    if let Some(rest) = after.strip_prefix(['7', '8']) {
        return Some(rest);
    }
    let body = after.strip_prefix('[')?;
    let end = body.find(|c: char| !"0123456789;?".contains(c))?;
    let numbers = &body[..end];
    let last = body[end..].chars().next()?;
    let is_marked = |number: &str| number.parse().is_ok_and(|number: u32| MARKED.contains(&number));
    let is_ours = match last {
        'h' | 'l' => MODES.contains(&numbers),
        // Nothing of the scrollback is ever cleared.
        'J' => numbers.is_empty() || numbers == "2",
        'm' | 'H' | 'A' | 'B' | 'C' | 'D' | 'G' | 'K' => {
            !numbers.contains('?') && !numbers.split(';').any(is_marked)
        }
        _ => false,
    };
    is_ours.then(|| &body[end + 1..])
}

#[test]
fn a_strict_reader_knows_its_own_and_refuses_the_rest() {
    let check = |written: &str, expected: Option<&str>| {
        assert_eq!(text(written.as_bytes()).ok().as_deref(), expected, "{written:?}");
    };
    check("a\x1b[31;1mb\x1b[0m\r\n\x1b[?2026h\x1b[2J\x1b[3;4H\x1b7c\x1b8\x1b[K", Some("ab\r\nc"));
    check("␛[2J and ␇ are letters", Some("␛[2J and ␇ are letters"));
    for wild in [
        "\x1b]0;t\x07",
        "\x1bP1q\x1b\\",
        "\x1b[6n",
        "\x1b[?1000h",
        "\x1b[3J",
        "\x1b[4141m",
        "\x1b[1;4142H",
        "\x1bc",
        "\x1b",
        "\x1b[",
        "\x07",
        "\x08",
        "\t",
        "\0",
        "\x7f",
        "\u{9b}2J",
        "\u{202e}",
        "\u{2066}",
        "\x1b[>4;1m",
        "\x1b[ q",
    ] {
        check(wild, None);
    }
    assert!(text(b"\x9b2J").is_err());
}
