//! A command taken apart as bash does it: simple commands, their words, and in each word what is literal and
//! what is known only when it runs. It expands nothing, runs nothing and refuses nothing: what bash would not
//! take is taken apart somehow.

/// A part of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// This very character.
    Char(char),
    /// Some character.
    One,
    /// Any text, which stays in the word.
    Any,
    /// Anything at all, also no word or several.
    Open,
}

/// A word of a command.
pub(super) type Word = Vec<Piece>;

/// Real commands are not nested more deeply than this.
const DEEPEST: usize = 16;

/// A word without anything to expand in it.
pub(super) fn literal(text: &str) -> Word {
    text.chars().map(Piece::Char).collect()
}

/// The simple commands of a text, each as its words without redirections. What is nested too
/// deep becomes a command of unknown words.
pub(super) fn commands(text: &str) -> Vec<Vec<Word>> {
    let mut lexer = Lexer::new(text, Kind::Commands, 0);
    lexer.run();
    lexer.done
}

/// What stands between two brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Commands.
    Commands,
    /// Commands between back quotes.
    BackQuotes,
    /// Arithmetic, an array, the text of a here-document: no commands, unless in something that is expanded.
    Data,
}

struct Frame {
    kind: Kind,
    words: Vec<Word>,
    /// The word that has begun.
    word: Option<Word>,
    /// Whether a part of it is quoted.
    quoted: bool,
    /// Whether this is between double quotes.
    double: bool,
    /// Open braces in the word, and whether something in them makes several words of it.
    braces: (usize, bool),
    /// Whether the next word is where a redirection leads.
    target: bool,
    /// `case` without its `esac`.
    cases: usize,
    /// Whether this is between `[[` and `]]`.
    test: bool,
}

impl Frame {
    fn new(kind: Kind) -> Self {
        let words = Vec::new();
        let word = None;
        Self {
            kind,
            words,
            word,
            quoted: false,
            double: false,
            braces: (0, false),
            target: false,
            cases: 0,
            test: false,
        }
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
    frames: Vec<Frame>,
    done: Vec<Vec<Word>>,
    /// Here-documents that begin behind this line: what ends them, whether
    /// tabs before it count, whether it was quoted.
    documents: Vec<(String, bool, bool)>,
    depth: usize,
}

impl Lexer {
    fn new(text: &str, kind: Kind, depth: usize) -> Self {
        let frames = vec![Frame::new(kind)];
        Self { chars: text.chars().collect(), at: 0, frames, done: Vec::new(), documents: Vec::new(), depth }
    }

    fn run(&mut self) {
        while let Some(c) = self.peek(0) {
            self.at += 1;
            if self.frame().double { self.quoted(c) } else { self.bare(c) }
        }
        while self.frames.len() > 1 {
            self.leave();
        }
        self.end_command();
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// The innermost frame; the first one is never left.
    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::new(Kind::Commands));
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn push(&mut self, piece: Piece) {
        self.frame().word().push(piece);
    }

    /// A character between double quotes.
    fn quoted(&mut self, c: char) {
        match c {
            // In the text of a here-document a quote is an ordinary character.
            '"' if self.frames.len() > 1 || self.frame().kind != Kind::Data => self.frame().double = false,
            '\\' => match self.peek(0) {
                Some('\n') => self.at += 1,
                Some(next @ ('$' | '`' | '"' | '\\')) => {
                    self.at += 1;
                    self.push(Piece::Char(next));
                }
                _ => self.push(Piece::Char(c)),
            },
            '$' => self.expansion(true),
            '`' => self.back_quote(true),
            c => self.push(Piece::Char(c)),
        }
    }

    /// A character outside of quotes.
    fn bare(&mut self, c: char) {
        let data = self.frame().kind == Kind::Data;
        match c {
            '\\' => match self.peek(0) {
                Some('\n') => self.at += 1,
                Some(next) => {
                    self.at += 1;
                    self.frame().quoted = true;
                    self.push(Piece::Char(next));
                }
                None => {}
            },
            '\'' => {
                self.frame().quoted = true;
                self.frame().word();
                while let Some(next) = self.peek(0) {
                    self.at += 1;
                    if next == '\'' {
                        break;
                    }
                    self.push(Piece::Char(next));
                }
            }
            '"' => {
                self.frame().word();
                self.frame().quoted = true;
                self.frame().double = true;
            }
            '$' => self.expansion(false),
            '`' => self.back_quote(false),
            '#' if !data && self.frame().word.is_none() => {
                while self.peek(0).is_some_and(|next| next != '\n') {
                    self.at += 1;
                }
            }
            '\n' => {
                self.end_command();
                self.skip_documents();
            }
            c if c.is_whitespace() => self.end_word(),
            '(' => self.open(),
            ')' => self.close(),
            ';' | '|' | '&' | '<' | '>' if data || self.frame().test => self.end_word(),
            '&' if self.peek(0) == Some('>') => self.end_word(),
            ';' | '|' | '&' => self.end_command(),
            '<' | '>' => self.redirection(c),
            '*' => self.push(Piece::Any),
            '?' => self.push(Piece::One),
            '[' => self.bracket(),
            c => self.plain(c),
        }
    }

    /// A character that is itself, unless braces make several words of it.
    fn plain(&mut self, c: char) {
        let dots = c == '.' && self.at > 1 && self.chars[self.at - 2] == '.';
        self.push(Piece::Char(c));
        let frame = self.frame();
        match (c, frame.braces) {
            ('{', (depth, several)) => frame.braces = (depth + 1, several && depth > 0),
            ('}', (depth @ 1.., several)) => {
                frame.braces = (depth - 1, several);
                if several {
                    self.push(Piece::Open);
                }
            }
            (',', (depth @ 1.., _)) => frame.braces = (depth, true),
            (_, (depth @ 1.., _)) if dots => frame.braces = (depth, true),
            _ => {}
        }
    }

    /// `[` is a pattern if it ends in the same word.
    fn bracket(&mut self) {
        let rest = &self.chars[self.at..];
        let end = rest.iter().take_while(|c| !c.is_whitespace()).skip(1).position(|c| *c == ']');
        match end {
            Some(end) => {
                self.at += end + 2;
                self.push(Piece::One);
            }
            None => self.push(Piece::Char('[')),
        }
    }

    /// What stands behind a `$`.
    fn expansion(&mut self, quoted: bool) {
        let inside = if quoted { Piece::Any } else { Piece::Open };
        match self.peek(0) {
            Some('(') => {
                self.push(inside);
                self.at += 1;
                let arithmetic = self.peek(0) == Some('(');
                self.enter(if arithmetic { Kind::Data } else { Kind::Commands });
            }
            Some('{') => {
                let mut depth = 0usize;
                let begin = self.at;
                while let Some(c) = self.peek(0) {
                    self.at += 1;
                    match c {
                        '{' => depth += 1,
                        '}' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                }
                let all = self.chars[begin..self.at].contains(&'@');
                self.push(if all { Piece::Open } else { inside });
            }
            Some('\'') if !quoted => {
                self.at += 1;
                self.frame().quoted = true;
                self.frame().word();
                let begin = self.at;
                while let Some(c) = self.peek(0).filter(|c| *c != '\'') {
                    self.at += if c == '\\' { 2 } else { 1 };
                }
                self.at = self.at.min(self.chars.len());
                let text = self.chars[begin..self.at].to_vec();
                self.at += 1;
                // Escapes are not worked out.
                match text.contains(&'\\') {
                    true => self.push(Piece::Any),
                    false => text.into_iter().for_each(|c| self.push(Piece::Char(c))),
                }
            }
            Some('"') if !quoted => {}
            Some(c) if c.is_alphabetic() || c == '_' => {
                while self.peek(0).is_some_and(|c| c.is_alphanumeric() || c == '_') {
                    self.at += 1;
                }
                self.push(inside);
            }
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.at += 1;
                self.push(if c == '@' { Piece::Open } else { inside });
            }
            _ => self.push(Piece::Char('$')),
        }
    }

    fn back_quote(&mut self, quoted: bool) {
        if self.frame().kind == Kind::BackQuotes {
            return self.leave();
        }
        self.push(if quoted { Piece::Any } else { Piece::Open });
        self.enter(Kind::BackQuotes);
    }

    fn open(&mut self) {
        let frame = self.frame();
        if frame.test {
            return self.end_word();
        }
        let array = frame.word.as_ref().is_some_and(|word| word.last() == Some(&Piece::Char('=')));
        let begins = frame.word.is_none() && frame.words.is_empty();
        let data = frame.kind == Kind::Data || array || begins && self.peek(0) == Some('(');
        if !data {
            self.end_command();
        }
        self.enter(if data { Kind::Data } else { Kind::Commands });
    }

    fn close(&mut self) {
        let frame = self.frame();
        if frame.test {
            self.end_word();
        } else if frame.cases > 0 {
            // The end of a pattern: it names no program.
            frame.word = None;
            frame.braces = (0, false);
            frame.words.clear();
        } else if self.frames.len() > 1 && self.frame().kind != Kind::BackQuotes {
            self.leave();
        } else {
            self.end_command();
        }
    }

    fn enter(&mut self, kind: Kind) {
        self.frames.push(Frame::new(kind));
    }

    fn leave(&mut self) {
        self.end_command();
        self.frames.pop();
    }

    /// `<`, `>` and what belongs to them; the word before is a number or none of it.
    fn redirection(&mut self, first: char) {
        let number = |word: &Word| word.iter().all(|piece| matches!(piece, Piece::Char('0'..='9')));
        if self.frame().word.as_ref().is_some_and(number) {
            self.frame().word = None;
        }
        self.end_word();
        if self.peek(0) == Some('(') {
            self.at += 1;
            self.push(Piece::Any);
            return self.enter(Kind::Commands);
        }
        let mut operator = String::from(first);
        while let Some(c) = self.peek(0).filter(|c| "<>&|".contains(*c)) {
            operator.push(c);
            self.at += 1;
        }
        if operator == "<<" { self.document() } else { self.frame().target = true }
    }

    /// What ends a here-document.
    fn document(&mut self) {
        let tabs = self.peek(0) == Some('-');
        self.at += usize::from(tabs);
        while self.peek(0).is_some_and(|c| c == ' ' || c == '\t') {
            self.at += 1;
        }
        let mut end = String::new();
        let mut quoted = false;
        let mut quote = None;
        while let Some(c) = self.peek(0) {
            match (quote, c) {
                (None, c) if c.is_whitespace() || ";|&<>()".contains(c) => break,
                (None, '\'' | '"') => {
                    quote = Some(c);
                    quoted = true;
                }
                (None, '\\') => quoted = true,
                (Some(open), c) if c == open => quote = None,
                (_, c) => end.push(c),
            }
            self.at += 1;
        }
        self.documents.push((end, tabs, quoted));
    }

    /// Here-documents are text. Only what is expanded in one whose end was not quoted can hold commands.
    fn skip_documents(&mut self) {
        for (end, tabs, quoted) in std::mem::take(&mut self.documents) {
            let mut text = String::new();
            while self.at < self.chars.len() {
                let line: String = self.chars[self.at..].iter().take_while(|c| **c != '\n').collect();
                self.at += line.chars().count() + 1;
                let bare = if tabs { line.trim_start_matches('\t') } else { &line };
                if bare == end {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            match quoted {
                true => {}
                false if self.depth < DEEPEST => {
                    let mut inner = Lexer::new(&text, Kind::Data, self.depth + 1);
                    inner.frame().double = true;
                    inner.run();
                    self.done.append(&mut inner.done);
                }
                false => self.done.push(vec![vec![Piece::Open]]),
            }
        }
        self.at = self.at.min(self.chars.len());
    }

    fn end_word(&mut self) {
        let frame = self.frame();
        let target = std::mem::take(&mut frame.target);
        let quoted = std::mem::take(&mut frame.quoted);
        frame.braces = (0, false);
        let Some(word) = frame.word.take() else {
            frame.target = target;
            return;
        };
        if target {
            return;
        }
        let is = |text: &str| !quoted && word == literal(text);
        let first = frame.words.iter().all(super::commands::is_shell_word);
        match frame.kind {
            Kind::Data => {}
            _ if frame.test => frame.test = !is("]]"),
            // What stands between braces is a list of commands.
            _ if is("{") || is("}") => self.end_command(),
            _ => {
                frame.test = first && is("[[");
                frame.cases += usize::from(first && is("case"));
                frame.cases -= usize::from(first && is("esac") && frame.cases > 0);
                frame.words.push(word);
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let frame = self.frame();
        frame.target = false;
        frame.test = false;
        let words = std::mem::take(&mut frame.words);
        if !words.is_empty() {
            self.done.push(words);
        }
    }
}
