//! A text that fits a regular expression, for the part of them that schemas use: literals, classes, groups,
//! alternatives and counts. What it does not know it gives up on; it never tries.

/// The shortest plain text that fits, with at least so many characters where a count is open; none if the
/// pattern is beyond it.
pub(super) fn sample(pattern: &str, least: usize) -> Option<String> {
    let mut reader = Reader { rest: pattern, least, depth: 0 };
    let text = reader.alternatives()?;
    reader.rest.is_empty().then_some(text)
}

struct Reader<'a> {
    rest: &'a str,
    least: usize,
    depth: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn eats(&mut self, sign: &str) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// The first of some alternatives; the others are read over.
    fn alternatives(&mut self) -> Option<String> {
        let first = self.sequence()?;
        while self.eats("|") {
            self.sequence()?;
        }
        Some(first)
    }

    fn sequence(&mut self) -> Option<String> {
        let mut text = String::new();
        while let Some(c) = self.peek() {
            if c == '|' || c == ')' {
                break;
            }
            let atom = self.atom()?;
            let times = self.count()?;
            text.extend(std::iter::repeat_n(atom.as_str(), times));
        }
        Some(text)
    }

    fn atom(&mut self) -> Option<String> {
        match self.next()? {
            '^' | '$' => Some(String::new()),
            '.' => Some("a".to_owned()),
            '[' => self.class().map(String::from),
            '(' => self.group(),
            '\\' => self.escaped(),
            '*' | '+' | '?' => None,
            c => Some(c.to_string()),
        }
    }

    fn group(&mut self) -> Option<String> {
        self.depth += 1;
        if self.depth > 20 {
            return None;
        }
        if self.eats("?<") {
            // A look behind is beyond it, a name is not.
            let name = self.rest.split_once('>').filter(|(name, _)| !name.starts_with(['=', '!']))?;
            self.rest = name.1;
        } else if !self.eats("?:") && self.peek() == Some('?') {
            return None;
        }
        let text = self.alternatives()?;
        self.depth -= 1;
        self.eats(")").then_some(text)
    }

    fn escaped(&mut self) -> Option<String> {
        match self.next()? {
            'd' => Some("0".to_owned()),
            'w' | 'D' | 'S' => Some("a".to_owned()),
            's' | 'W' => Some(" ".to_owned()),
            'b' => Some(String::new()),
            c if c.is_alphanumeric() => None,
            c => Some(c.to_string()),
        }
    }

    /// One member of a class.
    fn class(&mut self) -> Option<char> {
        let negated = self.eats("^");
        let mut members: Vec<(char, char)> = Vec::new();
        loop {
            let c = match self.next()? {
                ']' => break,
                '\\' => match self.next()? {
                    'd' => {
                        members.push(('0', '9'));
                        continue;
                    }
                    'w' => {
                        members.extend([('a', 'z'), ('A', 'Z'), ('0', '9'), ('_', '_')]);
                        continue;
                    }
                    's' => ' ',
                    c => c,
                },
                c => c,
            };
            let mut last = c;
            if self.peek() == Some('-') && !self.rest.starts_with("-]") {
                self.next();
                last = self.next()?;
            }
            members.push((c, last));
        }
        let holds = |c: char| members.iter().any(|(first, last)| (*first..=*last).contains(&c));
        if negated {
            ['a', '0', '_', '-', ' '].into_iter().find(|c| !holds(*c))
        } else {
            members.first().map(|m| m.0)
        }
    }

    /// How often the atom before is to stand.
    fn count(&mut self) -> Option<usize> {
        let times = match self.peek() {
            Some('*') => (self.next(), self.least).1,
            Some('+') => (self.next(), self.least.max(1)).1,
            Some('?') => (self.next(), 0).1,
            Some('{') => {
                let (inside, rest) = self.rest[1..].split_once('}')?;
                self.rest = rest;
                inside.split(',').next()?.trim().parse().ok()?
            }
            _ => return Some(1),
        };
        // A lazy count is one all the same.
        self.eats("?");
        (times <= 1_000).then_some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_made_that_fits() {
        for (pattern, least, expected) in [
            ("^[a-z][a-z0-9-]*$", 0, Some("a")),
            ("^[a-z]+$", 3, Some("aaa")),
            (r"^\d{4}-\d{2}-\d{2}$", 0, Some("0000-00-00")),
            ("^(high|low)$", 0, Some("high")),
            (r"^CVE-\d{4}-\d{4,}$", 0, Some("CVE-0000-0000")),
            (r"^(?:v)?(?<n>[0-9]+)\.x$", 0, Some("0.x")),
            ("[^a-z]", 0, Some("0")),
            ("^(?=x)y", 0, None),
            ("(", 0, None),
            ("a{2000}", 0, None),
        ] {
            assert_eq!(sample(pattern, least).as_deref(), expected, "{pattern}");
        }
    }
}
