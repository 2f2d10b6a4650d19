//! Words in a line: where each begins, and what it says once its quotes are gone. Quotes keep blanks; a
//! doubled quote within them is one.

/// One word of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The grapheme it begins with, its quote included.
    pub(super) start: usize,
    /// The grapheme behind it.
    pub(super) end: usize,
    /// What it says.
    pub(super) text: String,
    /// The grapheme of a quote that is never closed.
    pub(super) open: Option<usize>,
}

/// The words of a line of graphemes. A quote opens where a word begins or behind `=`; elsewhere it is an
/// apostrophe.
pub(super) fn pieces(line: &[&str]) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(grapheme) = line.get(at) {
        if is_blank(grapheme) {
            at += 1;
            continue;
        }
        let mut piece = Piece { start: at, end: at, text: String::new(), open: None };
        while let Some(grapheme) = line.get(at).filter(|grapheme| !is_blank(grapheme)) {
            let begins = at == piece.start || line.get(at.wrapping_sub(1)) == Some(&"=");
            if begins && is_quote(grapheme) {
                at = quoted(line, at, &mut piece);
            } else {
                piece.text.push_str(grapheme);
                at += 1;
            }
        }
        piece.end = at;
        found.push(piece);
    }
    found
}

/// A word as it has to be written so that it stays one word.
pub(super) fn quoted_if_needed(text: &str) -> Option<(char, String)> {
    let begins = text.starts_with(['"', '\'']) || text.contains("=\"") || text.contains("='");
    if !begins && !text.contains(char::is_whitespace) {
        return None;
    }
    let quote = if text.contains('"') && !text.contains('\'') { '\'' } else { '"' };
    Some((quote, text.replace(quote, &format!("{quote}{quote}"))))
}

/// Whether a grapheme is white space.
pub(super) fn is_blank(grapheme: &str) -> bool {
    grapheme.chars().all(char::is_whitespace)
}

/// Whether a grapheme is a quote.
pub(super) fn is_quote(grapheme: &str) -> bool {
    matches!(grapheme, "\"" | "'")
}

/// Reads what stands in quotes into the piece; returns what follows.
fn quoted(line: &[&str], open: usize, piece: &mut Piece) -> usize {
    let quote = line.get(open);
    let mut at = open + 1;
    piece.open = Some(open);
    while let Some(grapheme) = line.get(at) {
        at += 1;
        if Some(grapheme) == quote {
            if line.get(at) != quote {
                piece.open = None;
                break;
            }
            at += 1;
        }
        piece.text.push_str(grapheme);
    }
    at
}

#[cfg(test)]
mod tests {
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;

    fn read(line: &str) -> Vec<Piece> {
        pieces(&line.graphemes(true).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_kept_together_by_quotes() {
        let check = |line: &str, expected: &[&str]| {
            let words: Vec<String> = read(line).into_iter().map(|piece| piece.text).collect();
            assert_eq!(words, expected, "{line}");
        };
        check("", &[]);
        check("  a  b ", &["a", "b"]);
        check("'a b' \"c d\"", &["a b", "c d"]);
        check("\"\" x", &["", "x"]);
        check("\"a \"\"b\"\" c\"", &["a \"b\" c"]);
        check("it's key='a b'", &["it's", "key=a b"]);
    }

    #[test]
    fn a_word_that_was_quoted_reads_as_it_was() {
        for text in ["my dir/a", "\"odd", "it's a \"b\"", "'", "a='b c'", "漢 字"] {
            let (quote, inner) = quoted_if_needed(text).unwrap();
            let found = read(&format!("{quote}{inner}{quote}"));
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!((found[0].text.as_str(), found[0].open), (text, None));
        }
        assert_eq!(quoted_if_needed("it's"), None);
        assert_eq!(quoted_if_needed("src/main.rs"), None);
    }

    #[test]
    fn an_open_quote_is_remembered_by_its_place() {
        assert_eq!(read("a 'b c").last().and_then(|piece| piece.open), Some(2));
    }
}
