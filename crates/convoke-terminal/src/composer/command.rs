//! The commands of a session: how one is read, suggested and explained, all from one table. It does nothing
//! of what they say.

use unicode_segmentation::UnicodeSegmentation;

use crate::screen_update::Candidate;
use crate::text::{cut, shown};
use crate::user_action::UserAction;

use super::table::{COMMANDS, GROUPS, KEYS};
use super::tokens::pieces;

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandRow {
    /// Its name, without the slash.
    pub name: &'static str,
    /// What follows it, as help shows it: `[on|off]`.
    pub arguments: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// More about it, a few lines with an example.
    pub more: &'static str,
}

/// A command as it was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Its name, without the slash; one of [`COMMANDS`], or a workflow's.
    pub name: String,
    /// The words behind it; quotes keep words together.
    pub words: Vec<String>,
    /// Everything behind it, as it was typed.
    pub rest: String,
}

/// What `/help` says, or `/help NAME`.
pub fn command_help(name: Option<&str>) -> Result<String, String> {
    let Some(name) = name else { return Ok(all_commands()) };
    let bare = name.trim().trim_start_matches('/');
    let row = find(bare).ok_or_else(|| unknown(bare, &[]))?;
    let mut help = usage(row);
    for line in std::iter::once(row.about).chain(row.more.lines()) {
        help.push_str("\n  ");
        help.push_str(line);
    }
    help.push('\n');
    Ok(help)
}

/// The command that is nearest to this word, if one is near.
pub fn nearest_command(word: &str) -> Option<&'static CommandRow> {
    let word = word.trim_start_matches('/').to_lowercase();
    if word.is_empty() {
        return None;
    }
    let begun = COMMANDS.iter().find(|row| row.name.starts_with(&word));
    begun.or_else(|| {
        let distance = |row: &&CommandRow| strsim::damerau_levenshtein(row.name, &word);
        COMMANDS.iter().filter(|row| distance(row) <= 2).min_by_key(distance)
    })
}

/// What a text that is sent means: words for the lead, or a command. A text with a line break is never a
/// command; `typed` says whether its beginning was typed rather than pasted as a whole. The name of a
/// workflow is a command too.
pub(super) fn read(text: &str, typed: bool, workflows: &[Candidate]) -> Result<UserAction, String> {
    if typed && runs(text) {
        return match text.trim_start_matches('!').trim() {
            "" => Err(
                "no command stands behind the !: !ls lists the files here, as you and outside of the sandbox"
                    .into(),
            ),
            command => Ok(UserAction::Shell(command.to_owned())),
        };
    }
    if typed && text.starts_with("!!") {
        return Ok(UserAction::Say(text.chars().skip(1).collect()));
    }
    if !typed || !text.starts_with('/') || text.contains('\n') {
        return Ok(UserAction::Say(text.to_owned()));
    }
    if text.starts_with("//") {
        return Ok(UserAction::Say(text.chars().skip(1).collect()));
    }
    let line = text.trim_start_matches('/');
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if find(name).is_none() && workflows.iter().any(|one| one.text == name) {
        // What follows is its argument, as it was typed.
        let words = rest.split_whitespace().map(str::to_owned).collect();
        return Ok(UserAction::Command(Given { name: name.to_owned(), words, rest: rest.trim().to_owned() }));
    }
    let row = find(name).ok_or_else(|| unknown(name, workflows))?;
    let graphemes: Vec<&str> = text.graphemes(true).collect();
    // The name itself is the first word. Names are ASCII, so that a column of one is a column of the text.
    let found = pieces(&graphemes);
    if let Some(open) = found.iter().find_map(|piece| piece.open) {
        let mark = graphemes.get(open).copied().unwrap_or("\"");
        let column = open + 1;
        return Err(format!("the quote {mark} at column {column} is never closed; close it or take it out"));
    }
    let words = found.into_iter().skip(1).map(|piece| piece.text).collect();
    Ok(UserAction::Command(Given { name: row.name.to_owned(), words, rest: rest.trim().to_owned() }))
}

/// Whether a text is a command of the person's own: an exclamation mark first, not two, and no line break.
pub(super) fn runs(text: &str) -> bool {
    text.starts_with('!') && !text.starts_with("!!") && !text.contains('\n')
}

/// What `/sessions` was called once. It still works, and no text names it.
const OLD_SESSIONS: &str = "runs";

/// The command of exactly this name.
pub(super) fn find(name: &str) -> Option<&'static CommandRow> {
    let name = if name == OLD_SESSIONS { "sessions" } else { name };
    COMMANDS.iter().find(|row| row.name == name)
}

/// What is said of a command that does not exist.
fn unknown(name: &str, workflows: &[Candidate]) -> String {
    // The name may have been pasted, and what is pasted may hold anything.
    let said = cut(&shown(name).replace('\n', "␊"), 40);
    let lower = name.to_lowercase();
    let distance = |one: &&Candidate| strsim::damerau_levenshtein(&one.text.to_lowercase(), &lower);
    let begun = workflows.iter().find(|one| one.text.to_lowercase().starts_with(&lower));
    let workflow = begun.or_else(|| workflows.iter().filter(|one| distance(one) <= 2).min_by_key(distance));
    let near = nearest_command(name).map(|row| row.name).or(workflow.map(|one| one.text.as_str()));
    match near {
        _ if name.is_empty() => "no command stands behind the slash; /help lists them".to_owned(),
        Some(near) => format!("no command /{said}; did you mean /{}? /help lists them", shown(near)),
        None => format!("no command /{said}; /help lists them, and //{said} says it to the lead"),
    }
}

/// A command with what follows it.
fn usage(row: &CommandRow) -> String {
    match row.arguments {
        "" => format!("/{}", row.name),
        arguments => format!("/{} {arguments}", row.name),
    }
}

/// Everything that can be typed or pressed, in two columns.
fn all_commands() -> String {
    const COLUMN: usize = 24;
    let mut help = String::new();
    for row in COMMANDS {
        if let Some((heading, _)) = GROUPS.iter().find(|(_, first)| *first == row.name) {
            help.push_str(&format!("{heading}\n"));
        }
        let mut usage = usage(row);
        if usage.len() >= COLUMN {
            usage = format!("/{} […]", row.name);
        }
        help.push_str(&format!("  {usage:<COLUMN$}{}\n", row.about));
    }
    help.push_str("Keys\n");
    for (key, about) in KEYS {
        help.push_str(&format!("  {key:<COLUMN$}{about}\n"));
    }
    help.push_str("More about one: /help NAME\n");
    help
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(name: &str, words: &[&str], rest: &str) -> UserAction {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        UserAction::Command(Given { name: name.to_owned(), words, rest: rest.to_owned() })
    }

    #[test]
    fn a_command_is_read_with_its_words_and_its_rest() {
        let check =
            |text: &str, expected: UserAction| assert_eq!(read(text, true, &[]), Ok(expected), "{text}");
        check("/tasks", given("tasks", &[], ""));
        check("/mode  on ", given("mode", &["on"], "on"));
        check("/budget usd 5", given("budget", &["usd", "5"], "usd 5"));
        check(
            "/workflows review \"src and tests\" 'a b'",
            given("workflows", &["review", "src and tests", "a b"], "review \"src and tests\" 'a b'"),
        );
        check("/workflows x key=\"a b\"", given("workflows", &["x", "key=a b"], "x key=\"a b\""));
        check("/compact what's left", given("compact", &["what's", "left"], "what's left"));
    }

    #[test]
    fn the_name_of_a_workflow_is_a_command_with_the_words_as_they_were_typed() {
        let one = |text: &str| Candidate { text: text.into(), about: String::new() };
        let all = [one("review"), one("tidy-up"), one("model")];
        let check =
            |text: &str, expected: UserAction| assert_eq!(read(text, true, &all), Ok(expected), "{text}");
        check(
            "/review the parser's \"edges",
            given("review", &["the", "parser's", "\"edges"], "the parser's \"edges"),
        );
        check("/tidy-up", given("tidy-up", &[], ""));
        check("/model x", given("model", &["x"], "x"));
        assert!(read("/tidyup x", true, &all).unwrap_err().contains("did you mean /tidy-up?"));
        assert!(read("/review x", true, &[]).is_err());
        assert_eq!(
            read("/review x", false, &all),
            Ok(UserAction::Say("/review x".into())),
            "what was pasted runs nothing"
        );
    }

    #[test]
    fn a_text_is_no_command() {
        let check = |text: &str, typed: bool, said: &str| {
            assert_eq!(read(text, typed, &[]), Ok(UserAction::Say(said.to_owned())), "{text}")
        };
        check("hello /tasks", true, "hello /tasks");
        check(" /tasks", true, " /tasks");
        check("//usr/bin is full", true, "/usr/bin is full");
        check("/quit\nand more", true, "/quit\nand more");
        check("// a comment\nfn main() {}", true, "// a comment\nfn main() {}");
        check("/quit", false, "/quit");
    }

    #[test]
    fn an_exclamation_mark_runs_a_command_of_the_persons_own() {
        let check =
            |text: &str, expected: UserAction| assert_eq!(read(text, true, &[]), Ok(expected), "{text}");
        check("!git status", UserAction::Shell("git status".into()));
        check("! ls ", UserAction::Shell("ls".into()));
        check("!!important", UserAction::Say("!important".into()));
        check("!one\ntwo", UserAction::Say("!one\ntwo".into()));
        assert_eq!(
            read("!ls", false, &[]),
            Ok(UserAction::Say("!ls".into())),
            "what was pasted as a whole is words"
        );
        assert!(read("! ", true, &[]).unwrap_err().contains("outside of the sandbox"));
    }

    #[test]
    fn an_unknown_command_suggests_the_nearest() {
        let check = |text: &str, expected: &str| assert_eq!(read(text, true, &[]), Err(expected.to_owned()));
        check("/tsaks", "no command /tsaks; did you mean /tasks? /help lists them");
        check("/workflow a", "no command /workflow; did you mean /workflows? /help lists them");
        check("/exit", "no command /exit; did you mean /quit? /help lists them");
        check("/usr/bin", "no command /usr/bin; /help lists them, and //usr/bin says it to the lead");
        check("/ x", "no command stands behind the slash; /help lists them");
        let wild = read("/a\u{1b}[2Jbcdefg", true, &[]).unwrap_err();
        assert!(!wild.chars().any(char::is_control), "{wild:?}");
    }

    #[test]
    fn a_quote_that_is_never_closed_is_named_with_its_place() {
        let wrong = read("/export \"my dir", true, &[]).unwrap_err();
        assert_eq!(wrong, "the quote \" at column 9 is never closed; close it or take it out");
    }

    #[test]
    fn the_nearest_command_is_one_that_begins_so_or_is_two_slips_away() {
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(nearest_command(word).map(|row| row.name), expected, "{word}")
        };
        check("/hel", Some("help"));
        check("COST", Some("cost"));
        check("indox", Some("inbox"));
        check("bugdet", Some("budget"));
        check("frobnicate", None);
        check("", None);
    }

    #[test]
    fn every_command_is_explained_in_lines_that_fit() {
        for row in COMMANDS {
            let about = row.about.chars().count();
            assert!((1..=50).contains(&about), "/{}: about has {about} columns", row.name);
            let more: Vec<&str> = row.more.lines().collect();
            assert!((2..=5).contains(&more.len()), "/{}: {more:?}", row.name);
            assert!(more.iter().all(|line| line.chars().count() <= 78), "/{}: {more:?}", row.name);
            let example = more.last().and_then(|line| line.strip_prefix("Example: ")).unwrap();
            assert!(
                matches!(read(example, true, &[]), Ok(UserAction::Command(given)) if given.name == row.name),
                "{example}"
            );
            let help = command_help(Some(row.name)).unwrap();
            assert!(help.starts_with(&format!("/{}", row.name)) && help.contains(row.about), "{help}");
        }
        assert_eq!(command_help(Some("/mode")), command_help(Some("mode")));
        assert_eq!(command_help(Some("runs")), command_help(Some("sessions")), "the old name still works");
        let wrong = command_help(Some("tsaks")).unwrap_err();
        assert!(wrong.contains("did you mean /tasks?"), "{wrong}");
    }

    #[test]
    fn help_shows_every_command_and_key_within_76_columns() {
        let help = command_help(None).unwrap();
        assert!(help.lines().all(|line| line.chars().count() <= 76), "{help}");
        for row in COMMANDS {
            let begins = format!("  /{} ", row.name);
            assert_eq!(help.lines().filter(|line| line.starts_with(&begins)).count(), 1, "{begins}\n{help}");
        }
        for key in ["Esc", "Ctrl-O", "Alt-Enter", "Ctrl-Z", "Ctrl-D", "//text"] {
            assert!(help.contains(key), "{key}\n{help}");
        }
        assert_eq!(help.lines().filter(|line| !line.starts_with(' ')).count(), GROUPS.len() + 2, "{help}");
    }
}
