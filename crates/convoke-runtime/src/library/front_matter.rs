//! The few lines between `---` and `---` at the beginning of a file. What is understood is what people write
//! there and a small part of YAML: `key: value` at the left margin, values that are plain, in single or
//! double quotes, or blocks begun with `|` or `>`, plain values that go on in indented lines, comments, and
//! lists: with commas, in brackets, or one `- item` a line. Values of keys that are not asked for are never
//! looked at, whatever they hold. Anchors, tags and tables inside values are not understood and are told.

/// What a file says before its text, and that text.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) fields: Vec<Field<'a>>,
    pub(super) body: &'a str,
}

/// Something that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The line, from 1.
    pub(super) line: usize,
    /// What is wrong, and what to write instead.
    pub(super) why: String,
}

/// A key with what stands behind and below it, not yet understood.
#[derive(Debug)]
pub(super) struct Field<'a> {
    pub(super) key: &'a str,
    line: usize,
    rest: &'a str,
    below: Vec<&'a str>,
}

const FENCE: &str = "---";

/// Whether a text begins with such lines.
pub(super) fn begins(text: &str) -> bool {
    without_mark(text).lines().next().is_some_and(|line| line.trim_end() == FENCE)
}

/// Takes a file apart.
pub(super) fn page(text: &str) -> Result<Page<'_>, Fault> {
    let text = without_mark(text);
    let fault = |line: usize, why: String| Err(Fault { line, why });
    if !begins(text) {
        return fault(
            1,
            "begin the file with --- on a line of its own, then name, description and ---".to_owned(),
        );
    }
    let mut fields: Vec<Field<'_>> = Vec::new();
    let mut offset = 0;
    for (index, whole) in text.split_inclusive('\n').enumerate() {
        let number = index + 1;
        let line = whole.trim_end();
        offset += whole.len();
        if index == 0 {
            continue;
        }
        if line == FENCE {
            return Ok(Page { fields, body: &text[offset..] });
        }
        let below = line.starts_with([' ', '\t']) || line.is_empty() || line == "-" || line.starts_with("- ");
        match (fields.last_mut(), below) {
            (Some(field), true) => field.below.push(line),
            (None, true) if line.is_empty() => {}
            (None, true) => return fault(number, "there is no key above that this belongs to".to_owned()),
            (_, false) if line.starts_with('#') => {}
            (_, false) => {
                let Some((key, rest)) = key(line) else {
                    let why = "write `key: value`, and indent what goes on in the next line".to_owned();
                    return fault(number, why);
                };
                if let Some(twice) = fields.iter().find(|field| field.key == key) {
                    return fault(number, format!("'{key}' stands in line {} already: keep one", twice.line));
                }
                fields.push(Field { key, line: number, rest, below: Vec::new() });
            }
        }
    }
    fault(1, "what begins here is never closed: write --- on a line of its own behind it".to_owned())
}

/// Some editors put a mark before the first line.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn key(line: &str) -> Option<(&str, &str)> {
    let (key, rest) = line.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let fits =
        !key.is_empty() && key.chars().all(plain) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    fits.then(|| (key, rest.trim()))
}

impl Field<'_> {
    /// A fault of this value.
    pub(super) fn fault(&self, why: impl Into<String>) -> Fault {
        Fault { line: self.line, why: format!("'{}': {}", self.key, why.into()) }
    }

    /// The value as one text; `None` if there is none.
    pub(super) fn text(&self) -> Result<Option<String>, Fault> {
        let text = match self.rest.chars().next() {
            Some('|' | '>') => self.block()?,
            Some('"' | '\'') => self.quoted(&self.joined())?,
            Some('[' | '{' | '&' | '*' | '!' | '%' | '@' | '`') => {
                return Err(
                    self.fault("a value that begins like this means something else: write it in quotes")
                );
            }
            None if self.below.iter().any(|line| is_item(line)) => {
                return Err(self.fault("this must be one text and not a list"));
            }
            _ => self.joined(),
        };
        let nothing = text.is_empty() || (self.rest == text && matches!(self.rest, "~" | "null"));
        Ok((!nothing).then_some(text))
    }

    /// The value as a list; `None` if there is none.
    pub(super) fn list(&self) -> Result<Option<Vec<String>>, Fault> {
        let items = self
            .below
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        if self.rest.is_empty() || self.rest.starts_with('#') {
            let items: Vec<&str> = items.collect();
            if items.is_empty() {
                return Err(self.fault("leave it out to have all of them, or write [] for none"));
            }
            let item = |line: &&str| match line.strip_prefix('-') {
                Some(item) => self.item(without_comment(item.trim())),
                None => Err(self.fault("write every item on a line of its own that begins with `- `")),
            };
            return items.iter().map(item).collect::<Result<_, _>>().map(Some);
        }
        if self.rest.starts_with('[') {
            let joined = self.joined();
            let inner = joined.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            let inner = inner.ok_or_else(|| self.fault("the list is not closed: end it with ]"))?;
            return split(inner).into_iter().map(|item| self.item(item)).collect::<Result<_, _>>().map(Some);
        }
        Ok(self.text()?.map(|text| split(&text).into_iter().map(str::to_owned).collect()))
    }

    fn item(&self, item: &str) -> Result<String, Fault> {
        if item.starts_with(['"', '\'']) { self.quoted(item) } else { Ok(item.to_owned()) }
    }

    /// The lines of a value that is no block, as one.
    fn joined(&self) -> String {
        let quoted = self.rest.starts_with(['"', '\'']);
        let lines = [self.rest].into_iter().chain(self.below.iter().map(|line| line.trim()));
        let lines = lines
            .map(|line| if quoted { line } else { without_comment(line) })
            .filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    }

    /// A block: `|` keeps its lines, `>` makes one of those that no empty line parts.
    fn block(&self) -> Result<String, Fault> {
        let head = without_comment(self.rest);
        let mut marks = head.chars().skip(1);
        if !marks.all(|c| matches!(c, '-' | '+') || c.is_ascii_digit()) {
            return Err(
                self.fault("a block begins on the next line, indented; a text that begins so needs quotes")
            );
        }
        let margin = |line: &&str| line.len() - line.trim_start().len();
        let indent = self.below.iter().filter(|line| !line.is_empty()).map(margin).min().unwrap_or(0);
        let lines = self.below.iter().map(|line| line.get(indent..).unwrap_or_default());
        if head.starts_with('|') {
            return Ok(lines.collect::<Vec<_>>().join("\n").trim_end().to_owned());
        }
        let mut text = String::new();
        for line in lines {
            match (line.is_empty(), text.is_empty() || text.ends_with('\n')) {
                (true, _) => text.push('\n'),
                (false, true) => text.push_str(line),
                (false, false) => text.extend([" ", line]),
            }
        }
        Ok(text.trim().to_owned())
    }

    /// A text in quotes.
    fn quoted(&self, text: &str) -> Result<String, Fault> {
        let mut chars = text.chars().peekable();
        let quote = chars.next().unwrap_or('"');
        let mut value = String::new();
        loop {
            match chars.next() {
                None => return Err(self.fault(format!("the quotes are not closed: end it with {quote}"))),
                Some(c) if c == quote && quote == '\'' && chars.next_if_eq(&'\'').is_some() => {
                    value.push('\'')
                }
                Some(c) if c == quote => break,
                Some('\\') if quote == '"' => value.push(self.escaped(&mut chars)?),
                Some(c) => value.push(c),
            }
        }
        let rest: String = chars.collect();
        match rest.trim() {
            "" => Ok(value),
            rest if rest.starts_with('#') => Ok(value),
            _ => {
                Err(self
                    .fault("something stands behind the closing quotes: put all of it in quotes or nothing"))
            }
        }
    }

    fn escaped(&self, chars: &mut impl Iterator<Item = char>) -> Result<char, Fault> {
        let unknown =
            || self.fault("in double quotes only \\n, \\t, \\\", \\\\, \\/ and \\uXXXX have a meaning");
        match chars.next() {
            Some('n') => Ok('\n'),
            Some('t') => Ok('\t'),
            Some(c @ ('"' | '\\' | '/')) => Ok(c),
            Some('u') => {
                let digits: String = chars.take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4);
                code.and_then(char::from_u32).ok_or_else(unknown)
            }
            _ => Err(unknown()),
        }
    }
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    line == "-" || line.starts_with("- ")
}

/// A line up to its comment.
fn without_comment(line: &str) -> &str {
    let end = if line.starts_with('#') { 0 } else { line.find(" #").unwrap_or(line.len()) };
    line[..end].trim_end()
}

/// What stands between commas, where brackets and quotes hold theirs together.
fn split(text: &str) -> Vec<&str> {
    let mut items = Vec::new();
    let mut begin = 0;
    let mut depth = 0u32;
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(', None) => depth += 1,
            (')', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                items.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    items.push(&text[begin..]);
    items.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Option<String>, Fault> {
        let text = format!("---\nkey:{text}\n---\nbody");
        let page = page(&text)?;
        assert_eq!(page.body, "body");
        page.fields[0].text()
    }

    #[test]
    fn every_way_to_write_a_text_is_read() {
        let check = |text: &str, expected: &str| {
            assert_eq!(value(text).unwrap().as_deref(), Some(expected), "{text:?}")
        };
        check(" plain text", "plain text");
        check(" with: a colon", "with: a colon");
        check(" cut here # a comment", "cut here");
        check(" issue#12 stays", "issue#12 stays");
        check(" goes on\n  in the next\n\n  line", "goes on in the next line");
        check("\n  begins below", "begins below");
        check(" \"in \\\"quotes\\\": a\\nb \\u00e9\"", "in \"quotes\": a\nb é");
        check(" \"over\n  two lines\"", "over two lines");
        check(" 'it''s' # one", "it's");
        check(" |\n  one\n    two\n\n  three", "one\n  two\n\nthree");
        check(" >-\n  one\n  two\n\n  three", "one two\nthree");
        assert_eq!(value(""), Ok(None));
        assert_eq!(value(" ~"), Ok(None));
        assert_eq!(value(" \"\""), Ok(None));
    }

    #[test]
    fn what_is_not_understood_is_told_with_its_line() {
        let check = |text: &str, line: usize, says: &str| {
            let text = format!("---\n{text}");
            let told =
                page(&text).and_then(|page| page.fields.iter().try_for_each(|field| field.text().map(drop)));
            let fault = told.unwrap_err();
            assert_eq!(fault.line, line, "{text:?}: {}", fault.why);
            assert!(fault.why.contains(says), "{text:?}: {}", fault.why);
        };
        check("name: a\n", 1, "never closed");
        check("name: a\nnonsense\n---\n", 3, "write `key: value`");
        check("name:a\n---\n", 2, "write `key: value`");
        check("  indented: a\n---\n", 2, "no key above");
        check("name: a\n# fine\nname: b\n---\n", 4, "stands in line 2 already");
        check("name: \"a\n---\n", 2, "not closed");
        check("name: \"a\" b\n---\n", 2, "behind the closing quotes");
        check("name: \"a\\q\"\n---\n", 2, "have a meaning");
        check("name: &anchor a\n---\n", 2, "write it in quotes");
        check("name: |oops\n---\n", 2, "begins on the next line");
        check("a: b\nname:\n  - a\n---\n", 3, "not a list");
    }

    #[test]
    fn a_list_that_cannot_be_read_is_told() {
        let check = |text: &str, says: &str| {
            let text = format!("---\ntools:{text}\n---\n");
            let fault = page(&text).unwrap().fields[0].list().unwrap_err();
            assert!(fault.line == 2 && fault.why.contains(says), "{text:?}: {fault:?}");
        };
        check("", "write [] for none");
        check(" [a, b", "end it with ]");
        check("\n  a\n  b", "begins with `- `");
        check(" [\"a]", "not closed");
    }

    #[test]
    fn a_thematic_line_in_the_body_stays_there() {
        let page = page("---\nname: a\n---\none\n---\ntwo\n").unwrap();
        assert_eq!(page.body, "one\n---\ntwo\n");
    }
}
