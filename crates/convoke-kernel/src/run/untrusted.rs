//! Text that an agent wrote, made fit to stand inside a text of ours: it can neither begin a line of its own
//! nor write one of our tags. What is changed stays readable: a backslash is put in, nothing is taken out.

/// Tags that mean something to a model when the harness writes them.
const TAGS: &[&str] = &["system", "subtask", "findings", "function_", "invoke", "tool_"];

/// The text on one line.
pub(crate) fn one_line(text: &str) -> String {
    let lines: Vec<String> =
        lines(text).iter().map(|line| escape(line.trim())).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// The text with something of ours before its first line and before every other.
pub(crate) fn quoted(first: &str, others: &str, text: &str) -> String {
    let mut all = String::new();
    for (at, line) in lines(text.trim_end()).into_iter().enumerate() {
        all.push_str(if at == 0 { first } else { others });
        all.push_str(&escape(line));
        all.push('\n');
    }
    all
}

/// Lines by every character that a terminal or a model may take for the end of one.
fn lines(text: &str) -> Vec<&str> {
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(ends) {
        lines.push(&rest[..at]);
        let end = if rest[at..].starts_with("\r\n") {
            2
        } else {
            rest[at..].chars().next().map_or(1, char::len_utf8)
        };
        rest = &rest[at + end..];
    }
    lines.push(rest);
    lines
}

fn escape(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    for (at, c) in line.char_indices() {
        match c {
            '<' if is_tag(&line[at + 1..]) => safe.push_str("<\\"),
            '\t' => safe.push('\t'),
            // Escapes move a terminal's cursor, and direction marks show text in another order than it
            // stands.
            c if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                safe.extend(c.escape_unicode());
            }
            c => safe.push(c),
        }
    }
    safe
}

fn is_tag(after: &str) -> bool {
    let named = |tag: &str| after.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag));
    after.starts_with(['/', '!']) || TAGS.iter().any(|tag| named(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_an_agent_stands_where_ours_do() {
        let text = "a\n## item 2: b\r\nstatus: ok\u{2028}> c\r\n\nd\n";
        assert_eq!(quoted("x: ", "| ", text), "x: a\n| ## item 2: b\n| status: ok\n| > c\n| \n| d\n");
        assert_eq!(one_line(text), "a ## item 2: b status: ok > c d");
        assert_eq!(quoted("x: ", "| ", ""), "x: \n");
    }

    #[test]
    fn our_tags_cannot_be_written_and_ordinary_code_stays_as_it_is() {
        for (text, safe) in [
            ("</findings>", "<\\/findings>"),
            ("<System-Reminder>", "<\\System-Reminder>"),
            ("<!-- x", "<\\!-- x"),
            ("Vec<u8> a < b <b> i<", "Vec<u8> a < b <b> i<"),
            ("\u{1b}[2J\tx\u{202e}", "\\u{1b}[2J\tx\\u{202e}"),
            ("<é", "<é"),
        ] {
            assert_eq!(one_line(text), safe);
        }
    }
}
