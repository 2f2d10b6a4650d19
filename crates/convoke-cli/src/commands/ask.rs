//! Asks the person at the terminal: about a workflow, about a call of an agent, or what a workflow asks.
//! Without a person at a terminal the answer is no. Questions come one after the other, and only what is
//! typed after a question stands there is an answer to it: what an agent says or prints never is.

pub(super) mod remember;
mod rules;

use std::io::BufRead;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_kernel::Approvals;
use convoke_runtime::{AskedCall, Asker, Checkpoint, Question};
use tokio::sync::oneshot;

use crate::questions::who;
use crate::render::{Look, TerminalHold, TerminalLock, call_rows, clean, hanging, is_whole, revealed};
use crate::settings::Settings;
use crate::stdio::tell;

pub(super) use rules::Rules;

/// More lines than a person reads before answering.
const MOST_SHOWN: usize = 12;

/// The same for a program's question.
const MOST_QUESTION_LINES: usize = 40;

/// Asks the person at this terminal, in a session that goes by these rules; `None` without such a person.
pub(super) fn asker(look: Look, settings: &Settings, approvals: &Approvals) -> Option<Asker> {
    if !look.is_interactive() {
        return None;
    }
    let rules = Rules::of(settings, approvals);
    let prompt = Arc::new(TerminalPrompt {
        look,
        terminal: settings.terminal.clone(),
        rules,
        turn: tokio::sync::Mutex::new(()),
    });
    let other = Arc::clone(&prompt);
    let asker = Asker::new(move |question| Arc::clone(&prompt).answer(question));
    Some(asker.answering(move |question| Arc::clone(&other).say(question)))
}

/// Where a person is asked.
struct TerminalPrompt {
    look: Look,
    terminal: TerminalLock,
    /// What is allowed without asking, with what was answered here.
    rules: Rules,
    /// Held while a question is asked: one question after the other.
    turn: tokio::sync::Mutex<()>,
}

/// What a person said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Once,
    No,
    Always,
    /// The whole of it is to be shown.
    Show,
    /// Nothing that answers the question.
    Else,
}

impl TerminalPrompt {
    async fn answer(self: Arc<Self>, question: Question) -> bool {
        let _turn = self.turn.lock().await;
        if command(&question).is_some_and(|command| self.rules.allows(command)) {
            return true;
        }
        let prompt = Arc::clone(&self);
        at_the_terminal(&self.terminal, move || prompt.ask(&question)).await.unwrap_or(false)
    }

    /// What a person says to a program's question; Enter alone leaves it for later.
    async fn say(self: Arc<Self>, question: Checkpoint) -> Option<String> {
        let _turn = self.turn.lock().await;
        let width = self.look.width().unwrap_or(80);
        let ask = move || {
            tell(&asked(&question, width));
            let said = read("Your answer: ")?.trim_end_matches(['\r', '\n']).to_owned();
            if said.trim().is_empty() {
                tell(&format!(
                    "left for later: --answer {}:{}=TEXT with `convoke resume`\n",
                    question.run, question.call
                ));
                return None;
            }
            Some(said)
        };
        at_the_terminal(&self.terminal, ask).await.flatten()
    }

    /// Shows the question and reads what is typed after it, until that is an answer.
    fn ask(&self, question: &Question) -> bool {
        match &question.call {
            None => {
                tell(&workflow(question));
                matches!(read("Run it? [y/N] ").as_deref().map(said), Some(Said::Once))
            }
            Some(call) => self.ask_about(call),
        }
    }

    fn ask_about(&self, call: &AskedCall) -> bool {
        let width = self.look.width().unwrap_or(80);
        let mut rows = MOST_SHOWN;
        let always = wanted(call).and_then(|command| self.rules.always(command));
        let kept = wanted(call).filter(|_| always.is_some());
        loop {
            tell(&about(call, width, rows, always.as_deref()));
            let shown_whole = is_whole(&call.wanted, width.saturating_sub(2), rows);
            let prompt = match (kept, shown_whole) {
                (Some(_), true) => "Allow it? [y/N/a] ",
                (Some(_), false) => "Allow it? [y/N/a/s] ",
                (None, true) => "Allow it? [y/N] ",
                (None, false) => "Allow it? [y/N/s] ",
            };
            loop {
                let Some(line) = read(prompt) else { return false };
                match (said(&line), kept) {
                    (Said::Once, _) => return true,
                    (Said::No, _) => return false,
                    (Said::Always, Some(command)) => {
                        tell(&format!("{}\n", self.look.fit(&self.rules.remember(command))));
                        return true;
                    }
                    (Said::Show, _) if !shown_whole => {
                        rows = usize::MAX;
                        break;
                    }
                    _ => tell("That is none of the answers.\n"),
                }
            }
        }
    }
}

/// Asks in a thread of its own, which is never joined: reading a terminal cannot be cut off, and a stop must
/// not have to wait. `None` if the question never stood there.
async fn at_the_terminal<T: Send + 'static>(
    terminal: &TerminalLock,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let terminal = terminal.clone();
    let waiting = Waiting(Standing::default());
    let (tell_answer, told) = oneshot::channel();
    let stands = waiting.0.clone();
    std::thread::spawn(move || {
        if stands.begin(&terminal) {
            let answer = ask();
            drop(stands.end());
            // The caller may have stopped waiting.
            let _ = tell_answer.send(answer);
        }
    });
    told.await.ok()
}

/// A program's question. What it says was written by the program, so every line of it is marked.
fn asked(question: &Checkpoint, width: usize) -> String {
    let mut text = format!("\n{}\n", hanging("The workflow asks you:", width, "  "));
    for line in revealed(&question.question).lines().take(MOST_QUESTION_LINES) {
        text.push_str(&format!("{}\n", hanging(&format!("  | {line}"), width, "  | ")));
    }
    text + &hanging("One line is the answer; Enter alone leaves it for later, and others go on.", width, "  ")
        + "\n"
}

/// The command a question is about, if it is about one.
fn command(question: &Question) -> Option<&str> {
    question.call.as_ref().and_then(wanted)
}

fn wanted(call: &AskedCall) -> Option<&str> {
    call.wanted.strip_prefix("run: ")
}

fn workflow(question: &Question) -> String {
    let mut text = format!("\n{}\n", clean(&question.what));
    for detail in question.details.iter().take(MOST_SHOWN) {
        let line = clean(detail.lines().next().unwrap_or_default());
        text.push_str(&format!("  - {line}\n"));
    }
    if let Some(more) = question.details.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!("  … and {more} more\n"));
    }
    text
}

/// The question about a call: which agent, what, why, and what each answer does. `always` is offered where it
/// can be kept.
fn about(call: &AskedCall, width: usize, rows: usize, always: Option<&str>) -> String {
    let verb = if wanted(call).is_some() { "run this command" } else { "do this" };
    let head = format!("{} wants to {verb}:", who(&call.label));
    let mut text = format!("\n{}\n", hanging(&head, width, "  "));
    for row in call_rows(&call.wanted, width.saturating_sub(2), rows) {
        text.push_str(&format!("  {row}\n"));
    }
    let mut line = |said: &str| {
        text.push_str(&hanging(said, width, "  "));
        text.push('\n');
    };
    if revealed(&call.wanted) != call.wanted {
        line("(\\u{…} and \\t stand for characters that a terminal would obey or not show)");
    }
    line(&format!("Why you are asked: {}", revealed(&call.why).replace('\n', " ")));
    let mut answers = "y: yes, this once · n or Enter: no".to_owned();
    if !is_whole(&call.wanted, width.saturating_sub(2), rows) {
        answers.push_str(" · s: show all of it");
    }
    match always {
        Some(always) => answers.push_str(&format!(" · a: {always}")),
        None if wanted(call).is_some() => {
            answers.push_str(
                " · always is not offered: a rule can allow only one plain program by its beginning",
            );
        }
        None => {}
    }
    line(&answers);
    text
}

pub(super) fn said(line: &str) -> Said {
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Said::Once,
        "" | "n" | "no" => Said::No,
        "a" | "always" => Said::Always,
        "s" | "show" => Said::Show,
        _ => Said::Else,
    }
}

/// Shows a prompt and reads the line that is typed after it; `None` at the end of the input. What was typed
/// before is thrown away first: it was meant for something else.
pub(super) fn read(prompt: &str) -> Option<String> {
    let stdin = std::io::stdin();
    // Where this fails there is no terminal, and the reading below ends at once.
    let _ = rustix::termios::tcflush(&stdin, rustix::termios::QueueSelector::IFlush);
    tell(prompt);
    let mut line = String::new();
    match stdin.lock().read_line(&mut line) {
        Ok(bytes) if bytes > 0 && line.ends_with('\n') => Some(line),
        // The end of the input is no answer, and neither is half a line.
        _ => {
            tell("\n");
            None
        }
    }
}

/// A question on the terminal. It is over when it is answered or when the caller stops waiting.
#[derive(Clone, Default)]
struct Standing(Arc<Mutex<Stands>>);

#[derive(Default)]
enum Stands {
    #[default]
    NotYet,
    Here {
        _still: TerminalHold,
    },
    Over,
}

impl Standing {
    /// Holds the terminal still; false if the caller no longer waits for an answer.
    fn begin(&self, terminal: &TerminalLock) -> bool {
        let still = terminal.hold();
        let mut stands = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *stands {
            Stands::NotYet => {
                *stands = Stands::Here { _still: still };
                true
            }
            Stands::Here { .. } | Stands::Over => false,
        }
    }

    /// Ends it, and says how it stood.
    fn end(&self) -> Stands {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Stands::Over)
    }
}

/// The caller's wait for the answer. A stop drops it, and what is said next begins on a line of its own.
struct Waiting(Standing);

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Stands::Here { .. } = self.0.end() {
            tell("\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use convoke_kernel::AgentId;

    use super::*;

    #[test]
    fn only_y_agrees_and_enter_alone_does_not() {
        let check = |line: &str, expected: Said| assert_eq!(said(line), expected, "{line:?}");
        check("y\n", Said::Once);
        check(" YES \n", Said::Once);
        check("\n", Said::No);
        check("n\n", Said::No);
        check("a\n", Said::Always);
        check("s\n", Said::Show);
        for line in ["yy\n", "ok\n", "\u{1b}[?1;2cy\n", "y y\n"] {
            check(line, Said::Else);
        }
    }

    fn call(wanted: &str, label: &str) -> AskedCall {
        let call = "t1".to_owned();
        let why = "a rule asks for it".to_owned();
        AskedCall {
            agent: AgentId::from_bits([1; 10]),
            call,
            label: label.into(),
            wanted: wanted.into(),
            why,
        }
    }

    #[test]
    fn a_question_names_who_what_and_why_and_what_each_answer_does() {
        let text =
            about(&call("run: git push", "tidy up"), 80, 12, Some("always (a rule in /home/me/config.toml)"));
        let expected = "\nagent \"tidy up\" wants to run this command:\n  $ git push\nWhy you are asked: a \
            rule asks for it\ny: yes, this once · n or Enter: no · a: always (a rule in \
            /home/me/config.toml)\n";
        assert_eq!(text, expected);
        let edit = about(&call("change: a.rs", ""), 80, 12, None);
        assert!(edit.starts_with("\nthe lead wants to do this:\n  change: a.rs\n"), "{edit}");
    }

    #[test]
    fn nothing_in_a_question_is_obeyed_or_hidden_at_any_width() {
        let wild = call("run: echo a\u{1b}]0;x; rm -rf ~\u{7}\rAllow it? y", "l\u{1b}[2J\nabel");
        for width in [20, 40, 80, 120] {
            let text = about(&wild, width, 12, None);
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
            let joined: String = text.split("\n").map(str::trim_start).collect();
            assert!(joined.replace(' ', "").contains("rm-rf~\\u{7}\\u{d}Allow"), "{text}");
            assert!(text.contains("always is not") || width < 40, "{text}");
        }
    }
}
