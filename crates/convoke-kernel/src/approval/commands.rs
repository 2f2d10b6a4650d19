//! Which programs a command could run, as far as its text tells: rules that forbid or ask are compared with
//! them. Generous, because a program that is missed is run: what could be a forbidden one counts as possible.
//! It is no wall; the sandbox is.

use super::lexer::{Piece, Word, commands, literal};

/// How surely a command runs what a rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It could: what it runs is known only when it runs.
    Possible,
    /// It seems to.
    Certain,
}

/// Programs that run another program given as an argument, and how many words of their own stand before it.
const RUNNERS: &[(&str, usize)] = &[
    ("builtin", 0),
    ("busybox", 0),
    ("bwrap", 0),
    ("catchsegv", 0),
    ("chpst", 0),
    ("chroot", 1),
    ("chrt", 1),
    ("command", 0),
    ("coproc", 0),
    ("dbus-run-session", 0),
    ("doas", 0),
    ("dumb-init", 0),
    ("entr", 0),
    ("env", 0),
    ("eval", 0),
    ("exec", 0),
    ("faketime", 1),
    ("fakeroot", 0),
    ("firejail", 0),
    ("flock", 1),
    ("gdb", 0),
    ("gosu", 1),
    ("ionice", 0),
    ("ld.so", 0),
    ("linux32", 0),
    ("linux64", 0),
    ("ltrace", 0),
    ("nice", 0),
    ("nohup", 0),
    ("nsenter", 0),
    ("numactl", 0),
    ("parallel", 0),
    ("perf", 1),
    ("pkexec", 0),
    ("prlimit", 0),
    ("proot", 0),
    ("rr", 0),
    ("runuser", 0),
    ("script", 0),
    ("sem", 0),
    ("setarch", 0),
    ("setpriv", 0),
    ("setsid", 0),
    ("softlimit", 0),
    ("start-stop-daemon", 0),
    ("stdbuf", 0),
    ("strace", 0),
    ("su", 0),
    ("su-exec", 1),
    ("sudo", 0),
    ("systemd-run", 0),
    ("taskset", 1),
    ("time", 0),
    ("timeout", 1),
    ("tini", 0),
    ("toybox", 0),
    ("trap", 0),
    ("unbuffer", 0),
    ("unshare", 0),
    ("valgrind", 0),
    ("watch", 0),
    ("xargs", 0),
    ("xvfb-run", 0),
];

/// Programs that run another one behind one of these words.
const RUN_AFTER: &[(&[&str], &[&str])] = &[
    (&["find"], &["-exec", "-execdir", "-ok", "-okdir"]),
    (&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
    (&["ash", "bash", "dash", "ksh", "sh", "zsh"], &["-c", "-ec", "-ic", "-lc", "-lic", "-xc"]),
];

/// Options with a command in the same word.
const OPTIONS: &[&str] = &["-c", "-S", "--command=", "--exec=", "--exec-batch=", "--split-string="];

/// Words of the shell after which a program begins.
const WORDS: &[&str] = &["!", "do", "elif", "else", "if", "then", "until", "while"];

/// Further behind a runner than this, every word could be its program.
const NEAR: usize = 256;

/// Commands are not written in commands more deeply than this.
const DEEPEST: usize = 8;

/// Whether a command runs something that begins with these words.
pub(super) fn fit(command: &str, prefix: &str) -> Option<Fit> {
    let wanted: Vec<&str> = prefix.split_whitespace().collect();
    let spelt = spelt(command).iter().filter_map(|words| found(words, &wanted, 0)).max();
    spelt.max(lexed(command, &wanted, 0))
}

/// Whether this is a word of the shell after which a program begins.
pub(super) fn is_shell_word(word: &Word) -> bool {
    WORDS.iter().any(|known| *word == literal(known))
}

fn lexed(command: &str, wanted: &[&str], depth: usize) -> Option<Fit> {
    commands(command).iter().filter_map(|words| found(words, wanted, depth)).max()
}

/// What stands where a program seems to begin, also in quotes and wherever a shell would see something else.
/// All of it is taken literally.
fn spelt(command: &str) -> Vec<Vec<Word>> {
    // These two are parts of a redirection and end nothing.
    let joined = command.replace("\\\n", " ").replace(">&", ">").replace(">|", ">");
    // Quotes and backslashes can stand in the middle of a word: `r\m`, `r''m`.
    let bare: String = joined.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let cut = |c: char| matches!(c, ';' | '|' | '&' | '(' | ')' | '`' | '\n' | '{' | '}' | '$');
    let quoted = |c: char| cut(c) || matches!(c, '"' | '\'');
    let parts = joined.split(quoted).chain(bare.split(cut));
    parts.map(|part| part.split_whitespace().map(literal).collect()).collect()
}

/// Where a program could begin in a list of words, and whether a word that is not literal could be one there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Begin {
    No,
    /// Somewhere behind a program that runs another one: which of its words that is depends on it.
    Behind,
    /// Here, if what stands here is several words.
    Perhaps,
    /// Here.
    Here,
}

/// Whether words run something that begins with these, behind assignments, redirections, words of the shell
/// and runners of others.
fn found(words: &[Word], wanted: &[&str], depth: usize) -> Option<Fit> {
    let skip = skipping(words);
    let mut begins = vec![Begin::No; words.len() + 1];
    let mark = |begins: &mut Vec<Begin>, at: usize, begin: Begin| {
        if let Some(at) = skip.get(at) {
            begins[*at] = begins[*at].max(begin);
        }
    };
    mark(&mut begins, 0, Begin::Here);
    let mut best = None;
    let mut behind = false;
    for (at, word) in words.iter().enumerate() {
        let begin = begins[at].max(if behind { Begin::Behind } else { Begin::No });
        if begin == Begin::No {
            continue;
        }
        let counts = |fit: &Fit| match begin {
            Begin::Here => true,
            Begin::Perhaps => *fit == Fit::Certain || word.contains(&Piece::Open),
            Begin::No | Begin::Behind => *fit == Fit::Certain,
        };
        let rest = words.get(at + 1..).unwrap_or_default();
        best = best.max(begins_with(word, rest, wanted).filter(counts));
        let option = OPTIONS.iter().filter_map(|option| behind_option(word, option));
        best = best.max(option.filter_map(|command| given(command, rest, wanted, depth)).max());
        if behind {
            best = best.max(nested(word, wanted, depth));
        }
        if begin == Begin::Behind && !is_literal(word) {
            continue;
        }
        if let Some(operands) = runner(base(word)) {
            behind = true;
            for (near, begin) in reached(rest, operands) {
                mark(&mut begins, at + 1 + near, begin);
            }
        }
        for (_, after) in
            RUN_AFTER.iter().filter(|(names, _)| names.iter().any(|name| could_be(base(word), name)))
        {
            for near in (0..rest.len()).filter(|near| after.iter().any(|flag| rest[*near] == literal(flag))) {
                mark(&mut begins, at + 2 + near, Begin::Here);
                best = best.max(rest.get(near + 1).and_then(|word| nested(word, wanted, depth)));
            }
        }
        if best == Some(Fit::Certain) {
            break;
        }
    }
    best
}

/// For every place in a list the next word that could be a program: behind assignments, redirections and
/// words of the shell.
fn skipping(words: &[Word]) -> Vec<usize> {
    let end = words.len();
    let mut skip = vec![end; end + 2];
    for at in (0..end).rev() {
        let word = &words[at];
        skip[at] = match word.last() {
            Some(Piece::Char('<' | '>')) => skip[at + 2],
            _ if is_passed(word) => skip[at + 1],
            _ => at,
        };
    }
    skip
}

fn is_passed(word: &Word) -> bool {
    let name = |piece: &Piece| match piece {
        Piece::Char(c) => c.is_alphanumeric() || matches!(c, '_' | '[' | ']' | '+'),
        Piece::One => true,
        Piece::Any | Piece::Open => false,
    };
    let assigns = word
        .iter()
        .position(|piece| *piece == Piece::Char('='))
        .is_some_and(|at| word[..at].iter().all(name));
    let redirects = word.iter().any(|piece| matches!(piece, Piece::Char('<' | '>')));
    assigns || redirects || is_shell_word(word)
}

/// The words behind a runner that could be the program it runs: so many words of its own come first, and each
/// option may have one.
fn reached(rest: &[Word], operands: usize) -> Vec<(usize, Begin)> {
    let mut own = 0;
    let mut options = 0;
    let mut reached = Vec::new();
    for (at, word) in rest.iter().enumerate() {
        if own > operands + options {
            return reached;
        }
        let begin = if own >= operands { Begin::Here } else { Begin::Perhaps };
        reached.push((at, if at < NEAR { begin } else { Begin::Here }));
        if at >= NEAR {
            return reached;
        }
        match word.first() {
            Some(Piece::Char('-')) => options += 1,
            _ if is_passed(word) => {}
            _ => own += 1,
        }
    }
    reached
}

fn runner(base: &[Piece]) -> Option<usize> {
    let known = RUNNERS.iter().find(|(name, _)| could_be(base, name)).map(|(_, operands)| *operands);
    known.or_else(|| is_loader(base).then_some(0))
}

/// The loader of programs has the machine's name in its own: `ld-linux-x86-64.so.2`.
fn is_loader(base: &[Piece]) -> bool {
    let name: String = base.iter().map(|piece| if let Piece::Char(c) = piece { *c } else { '?' }).collect();
    name.starts_with("ld-") && name.contains(".so") || name.starts_with("ld64.so")
}

/// What is behind this option in the same word.
fn behind_option<'a>(word: &'a Word, option: &str) -> Option<&'a [Piece]> {
    let rest = word.strip_prefix(literal(option).as_slice())?;
    (!rest.is_empty()).then_some(rest)
}

/// Whether a command in one word, and the words behind it, run something that begins with these.
fn given(command: &[Piece], rest: &[Word], wanted: &[&str], depth: usize) -> Option<Fit> {
    let command = command.to_vec();
    begins_with(&command, rest, wanted).max(nested(&command, wanted, depth))
}

/// Whether a word that is itself a command runs something that begins with these words.
fn nested(word: &Word, wanted: &[&str], depth: usize) -> Option<Fit> {
    if !word
        .iter()
        .any(|piece| matches!(piece, Piece::Char(c) if c.is_whitespace() || "$`;|&(*?[{<>".contains(*c)))
    {
        return None;
    }
    if depth == DEEPEST {
        return Some(Fit::Possible);
    }
    let mut text = String::new();
    for piece in word {
        match piece {
            Piece::Char(c) => text.push(*c),
            Piece::One => text.push('?'),
            Piece::Any | Piece::Open => text.push_str("${_}"),
        }
    }
    lexed(&text, wanted, depth + 1)
}

/// Whether a program and its arguments begin with these words.
fn begins_with(program: &Word, arguments: &[Word], wanted: &[&str]) -> Option<Fit> {
    let mut fit = Fit::Certain;
    let mut words =
        std::iter::once((program, base(program))).chain(arguments.iter().map(|word| (word, word.as_slice())));
    for wanted in wanted {
        let (whole, word) = words.next()?;
        // What follows could be in there as well.
        if whole.contains(&Piece::Open) {
            return Some(Fit::Possible);
        }
        if !could_be(word, wanted) {
            return None;
        }
        if !is_literal(word) {
            fit = Fit::Possible;
        }
    }
    Some(fit)
}

fn is_literal(word: &[Piece]) -> bool {
    word.iter().all(|piece| matches!(piece, Piece::Char(_)))
}

/// A program without its directory.
fn base(word: &Word) -> &[Piece] {
    let slash = word.iter().rposition(|piece| *piece == Piece::Char('/'));
    &word[slash.map_or(0, |slash| slash + 1)..]
}

/// Whether a part of a word could be this text.
fn could_be(word: &[Piece], text: &str) -> bool {
    if is_literal(word) {
        return text.chars().map(Piece::Char).eq(word.iter().copied());
    }
    // The places in the text up to which the pieces so far can go.
    let text: Vec<char> = text.chars().collect();
    let mut ends = vec![false; text.len() + 1];
    ends[0] = true;
    for piece in word {
        let mut next = vec![false; text.len() + 1];
        for at in (0..ends.len()).filter(|at| ends[*at]) {
            match piece {
                Piece::Char(c) if text.get(at) == Some(c) => next[at + 1] = true,
                Piece::One if at < text.len() => next[at + 1] = true,
                Piece::Any | Piece::Open => next[at..].fill(true),
                Piece::Char(_) | Piece::One => {}
            }
        }
        ends = next;
    }
    ends[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_stands_behind_it_a_command_is_taken_apart_to_its_end() {
        const SIGNS: [&str; 18] = [
            "\"", "'", "\\", "$", "(", ")", "{", "}", "`", "<", ">", "&", "|", "[", "#", "\n", ",a", " case ",
        ];
        let mut texts = vec![String::new()];
        for _ in 0..3 {
            texts = texts.iter().flat_map(|text| SIGNS.map(|sign| format!("{text}{sign}"))).collect();
        }
        for text in texts {
            assert_eq!(fit(&format!("rm x\n{text}"), "rm"), Some(Fit::Certain), "{text:?}");
            assert_eq!(fit(&format!("$x y\n{text}"), "rm"), Some(Fit::Possible), "{text:?}");
        }
    }

    #[test]
    fn commands_in_the_words_of_others_are_looked_at_too() {
        for text in [
            "bash -c '$x y'",
            "sh -c \"$x\"",
            "bash -lc \"cd $dir && $x\"",
            "eval 'a; $x y'",
            "trap '$x' EXIT",
            "flock lock -c '/bin/r? x'",
            "env -S'$x y'",
            "bash -c 'bash -c \"\\$x y\"'",
            "cat <<EOF\n$($x y)\nEOF",
            "function f { $x; }",
            "echo \"a $(case b in b) $x;; esac)\"",
        ] {
            assert_eq!(fit(text, "rm"), Some(Fit::Possible), "{text}");
        }
        for text in
            ["bash -c \"cd $dir && make\"", "sh -c 'echo $1' _ x", "[[ -n $x && $y == z ]]", "a=(\"$@\" $x)"]
        {
            assert_eq!(fit(text, "rm"), None, "{text}");
        }
    }
}
