//! Whatever happens to a session, in whichever view, a person has a terminal that can be used afterwards, and
//! what was recorded can be gone on with. The real binary in a real terminal, with a shell around it as
//! people have one.

mod shell;

use convoke_sim::{Brain, Context, Reply, ReplyHold, Script, Scripted, SimConfig, calls, says};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use self::shell::Whom;
pub(crate) use self::shell::{Shell, note, squeezed};
use crate::stage::{Stage, patiently};

/// Answers by what was said first.
struct Talker;

impl Brain for Talker {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let said = request["messages"][0].to_string();
        let first = if said.contains("ask me") {
            "touch asked"
        } else {
            "echo ran >> count.txt; echo what it printed"
        };
        let replies: Vec<Reply> = match said.contains("stream to me") {
            true => vec![says(&format!(
                "Streaming words. {}The stream is over.",
                "And more of them. ".repeat(40)
            ))],
            false => {
                vec![calls("bash", json!({"command": first})).saying("Let me look."), says("That was all.")]
            }
        };
        Script::new().conversation("*", replies).reply(request, context)
    }
}

async fn stage() -> Stage {
    let stage = Stage::with(SimConfig::new(Talker)).await;
    let path = stage.home().join(".config/convoke/config.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    std::fs::write(path, format!("{before}\n[[rules]]\ncommand = \"touch\"\ndecision = \"ask\"\n")).unwrap();
    let editor = stage.home().join("editor");
    std::fs::write(&editor, "#!/bin/sh\necho the editor is open\nread words\necho \"$words\" > \"$1\"\n")
        .unwrap();
    assert!(std::process::Command::new("chmod").arg("+x").arg(editor).status().unwrap().success());
    stage
}

fn shell(stage: &Stage) -> Shell {
    let editor = stage.home().join("editor");
    Shell::open(stage, (80, 24), &[("EDITOR", editor.to_str().unwrap())])
}

/// What a person looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    /// Nothing is under way.
    Idle,
    /// An answer is being written.
    Streaming,
    /// A question stands above the input.
    Question,
    /// The list of agents.
    List,
    /// An agent's turns.
    Page,
    /// All of what a command printed.
    Pager,
    /// The keys.
    Help,
    /// A message to an agent is being written.
    Prompt,
    /// The questions, in the fleet.
    Questions,
    /// The editor has the terminal.
    Editor,
    /// Lines, nothing is under way.
    Plain,
    /// Lines, while an answer is being written.
    PlainStreaming,
    /// Lines, and a question.
    PlainQuestion,
}

/// What happens in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Killed,
    Terminated,
    HungUp,
    /// Ctrl-Z, `fg`, on it goes; and killed after that.
    Back,
    /// Ctrl-Z, and killed while it stands still.
    KilledStopped,
    /// The shell around it is gone.
    BrokenOff,
}

const ENDINGS: [Ending; 6] = [
    Ending::Killed,
    Ending::Terminated,
    Ending::HungUp,
    Ending::Back,
    Ending::KilledStopped,
    Ending::BrokenOff,
];

impl View {
    fn is_plain(self) -> bool {
        matches!(self, Self::Plain | Self::PlainStreaming | Self::PlainQuestion)
    }

    fn is_whole(self) -> bool {
        matches!(self, Self::List | Self::Page | Self::Pager | Self::Help | Self::Prompt | Self::Questions)
    }

    /// What is seen in it and nowhere else.
    fn sign(self) -> &'static str {
        match self {
            Self::Idle => "what is to be done?",
            Self::Streaming | Self::PlainStreaming => "Streaming words",
            Self::Question | Self::PlainQuestion => "wants to run this command",
            Self::List => "[1 Agents 1]",
            Self::Page => "turn 1",
            Self::Pager => "what it printed",
            Self::Help => "one step deeper",
            Self::Prompt => "half a letter",
            Self::Questions => "[5 Questions 1]",
            Self::Editor => "the editor is open",
            Self::Plain => "That was all.",
        }
    }

    /// Starts a session and goes there.
    async fn open(self, shell: &Shell, stage: &Stage, number: usize) -> Option<ReplyHold> {
        shell.enter(if self.is_plain() { "clear; convoke session --plain" } else { "clear; convoke" });
        // The one line of the greeting, or the last of its five.
        shell.sees("/help");
        let say = |what: &str| {
            shell.sees(if self.is_plain() { "\n>" } else { "what is to be done?" });
            shell.enter(&format!("{what} {number}"));
        };
        let mut hold = None;
        match self {
            Self::Idle => {}
            Self::Streaming | Self::PlainStreaming => {
                let held = stage.sim().hold(&format!("stream to me {number}"), 0, 12);
                say("stream to me");
                patiently("the reply to be held", held.entered()).await;
                hold = Some(held);
            }
            Self::Question | Self::Questions | Self::PlainQuestion => say("ask me"),
            Self::Editor => shell.enter("/editor"),
            Self::List | Self::Page | Self::Pager | Self::Help | Self::Prompt | Self::Plain => {
                say("talk to me");
                shell.sees("That was all.");
            }
        }
        for (keys, then) in self.way() {
            shell.keys(keys);
            shell.sees(then);
        }
        if self == Self::Prompt {
            shell.types("half a letter");
        }
        self.is_shown(shell);
        // Where nothing is drawn, nothing of an answer is said before it is there.
        if self != Self::PlainStreaming {
            shell.sees(self.sign());
        }
        hold
    }

    /// The keys that lead there from the session, and what is seen on the way.
    fn way(self) -> &'static [(&'static [&'static str], &'static str)] {
        match self {
            Self::List => &[(&["C-o"], "Agents 1")],
            Self::Page => &[(&["C-o"], "Agents 1"), (&["Enter"], "turn 2")],
            Self::Pager => &[
                (&["C-o"], "Agents 1"),
                (&["Enter"], "turn 2"),
                (&["Home", "Down", "Down", "Down", "Enter"], "what it printed"),
            ],
            Self::Help => &[(&["C-o"], "Agents 1"), (&["?"], "one step deeper")],
            Self::Prompt => &[(&["C-o"], "Agents 1"), (&["m"], "to lead:")],
            Self::Questions => &[(&["C-o"], "Agents 1"), (&["5"], "[5 Questions 1]")],
            _ => &[],
        }
    }

    fn is_shown(self, shell: &Shell) {
        let expected = if self.is_whole() { "1" } else { "0" };
        shell.until("the right screen", || shell.knows("#{alternate_on}") == expected);
    }

    /// After a pause the picture is there again, and it goes on.
    fn goes_on(self, shell: &Shell, hold: Option<ReplyHold>) {
        if !self.is_plain() && self != Self::Editor {
            shell.sees(self.sign());
            self.is_shown(shell);
        }
        drop(hold);
        match self {
            Self::Idle => {
                shell.types("more words");
                shell.sees("› more words");
            }
            Self::Streaming | Self::PlainStreaming => shell.sees("The stream is over."),
            Self::Question | Self::Questions | Self::PlainQuestion => {
                shell.keys(if self == Self::Questions { &["Down", "n"] } else { &["n", "Enter"] });
                if self == Self::Questions {
                    shell.until("no question", || shell.screen().contains("[5 Questions 0]"));
                    shell.keys(&["C-o"]);
                }
                shell.sees("That was all.");
            }
            Self::List => {
                shell.keys(&["Enter"]);
                shell.sees("turn 1");
            }
            Self::Page | Self::Pager | Self::Help => {
                shell.keys(&["q"]);
                shell.until("one step back", || !shell.screen().contains(self.sign()));
            }
            Self::Prompt => {
                shell.types(" and the other half");
                shell.sees("half a letter and the other half");
            }
            Self::Editor => {
                shell.enter("what was edited");
                shell.sees("› what was edited");
            }
            Self::Plain => {
                shell.enter("/cost");
                shell.sees("DOLLARS");
            }
        }
    }
}

/// One view, one ending.
async fn check(stage: &Stage, shell: &Shell, view: View, ending: Ending, number: usize) {
    let hold = view.open(shell, stage, number).await;
    let guards = if view.is_plain() { 0 } else { 1 };
    assert_eq!(shell.processes(Whom::Guard).len(), guards, "{view:?} {ending:?}: guards");
    let code = match ending {
        Ending::Killed => {
            shell.signal(Signal::SIGKILL);
            137
        }
        Ending::Terminated | Ending::HungUp => {
            let is_hang_up = ending == Ending::HungUp;
            let signal = if is_hang_up { Signal::SIGHUP } else { Signal::SIGTERM };
            shell.signal(signal);
            drop(hold);
            // The editor has the terminal and may hold a text that is not saved: it is waited for, unless
            // signals go on.
            match (view, ending) {
                (View::Editor, Ending::HungUp) => shell.until("the end of the session", || {
                    let left = shell.processes(Whom::Session);
                    left.iter().for_each(|process| kill(Pid::from_raw(*process), signal).unwrap_or_default());
                    left.is_empty()
                }),
                (View::Editor, _) => shell.enter("saved"),
                _ => {}
            }
            if is_hang_up { 129 } else { 143 }
        }
        Ending::Back => {
            stops(shell, view);
            shell.enter("clear; fg");
            shell.until("it to go on", || shell.knows("#{pane_current_command}") != "bash");
            view.goes_on(shell, hold);
            shell.signal(Signal::SIGKILL);
            137
        }
        Ending::KilledStopped => {
            stops(shell, view);
            shell.signal(Signal::SIGKILL);
            shell.until("the end of it", || shell.processes(Whom::Session).is_empty());
            // A shell says at its next prompt that a job has ended.
            shell.enter("clear");
            0
        }
        Ending::BrokenOff => {
            let all = [shell.processes(Whom::Session), shell.processes(Whom::Guard)].concat();
            assert_eq!(all.len(), guards + 1, "{view:?}");
            shell.breaks_off(&all, || drop(hold));
            0
        }
    };
    shell.until("the end of the session", || shell.processes(Whom::Session).is_empty());
    assert_eq!(shell.prompts(), code, "{view:?} {ending:?}:\n{}", shell.screen());
    shell.is_usable();
}

/// Stops it by Ctrl-Z; the shell has a terminal of the usual kind.
fn stops(shell: &Shell, view: View) {
    shell.keys(&["C-z"]);
    shell.until("the shell", || shell.screen().contains("Stopped"));
    shell.prompts();
    assert_eq!(shell.knows("#{alternate_on} #{cursor_flag}"), "0 1", "{view:?}");
    shell.enter("clear; stty -a | grep -ow '[-]*icanon'; echo shell$((40+2))");
    shell.until("lines", || {
        shell.screen().lines().map(str::trim_end).collect::<Vec<_>>().starts_with(&["icanon", "shell42"])
    });
}

#[tokio::test]
async fn a_terminal_that_is_not_as_it_was_is_noticed() {
    let stage = Stage::bare();
    for left in ["?2004h", "?1049h", "?25l", "?1000h", "?7l", "2;9r"] {
        let shell = shell(&stage);
        shell.enter(&format!("printf '\\033[{left}'"));
        shell.enter("");
        let is_usable = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| shell.is_usable()));
        assert!(is_usable.is_err(), "{left} is taken for a usable terminal");
    }
}

/// Every ending in these views, one after the other in one terminal.
async fn every_ending(views: &[View]) {
    let stage = stage().await;
    let shell = shell(&stage);
    let mut number = 0;
    for view in views {
        for ending in ENDINGS {
            number += 1;
            shell.tries(format!("{view:?} {ending:?}"));
            check(&stage, &shell, *view, ending, number).await;
        }
    }
    note(&format!("{number} cases: {views:?} x {ENDINGS:?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_anyhow_leaves_a_usable_terminal() {
    every_ending(&[View::Idle, View::Streaming, View::Question]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fleet_that_ends_anyhow_leaves_a_usable_terminal() {
    every_ending(&[View::List, View::Page, View::Pager]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn help_a_letter_and_a_question_that_end_anyhow_leave_a_usable_terminal() {
    every_ending(&[View::Help, View::Prompt, View::Questions]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_and_lines_that_end_anyhow_leave_a_usable_terminal() {
    every_ending(&[View::Editor, View::Plain, View::PlainStreaming, View::PlainQuestion]).await;
}

/// A session is ended while its first reply is under way; afterwards it is gone on with. Returns how often
/// each reply was asked for.
async fn gone_on_with(stage: &Stage, shell: &Shell, ending: Ending, number: usize) -> Vec<usize> {
    let said = format!("count for me {number}");
    let hold = stage.sim().hold(&said, 0, 2);
    shell.enter("clear; convoke");
    shell.sees("what is to be done?");
    shell.enter(&said);
    patiently("the reply to be held", hold.entered()).await;
    let all = [shell.processes(Whom::Session), shell.processes(Whom::Guard)].concat();
    let code = match ending {
        Ending::Terminated | Ending::HungUp => {
            let is_hang_up = ending == Ending::HungUp;
            shell.signal(if is_hang_up { Signal::SIGHUP } else { Signal::SIGTERM });
            shell.sees("stopping");
            drop(hold);
            shell.sees("to go on: convoke session s_");
            if is_hang_up { 129 } else { 143 }
        }
        Ending::BrokenOff => {
            shell.breaks_off(&all, || drop(hold));
            0
        }
        _ => {
            shell.signal(Signal::SIGKILL);
            137
        }
    };
    shell.until("the end of the session", || shell.processes(Whom::Session).is_empty());
    assert_eq!(shell.prompts(), code, "{ending:?}:\n{}", shell.screen());
    shell.is_usable();
    assert_eq!(counted(stage), number - 1, "{ending:?}: nothing new was begun");
    let runs = stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json();
    let session = runs["runs"][0]["run"].as_str().unwrap().to_owned();
    shell.enter(&format!("clear; convoke session {session}"));
    shell.reads("this session was left unfinished: Enter alone goes on with it");
    shell.keys(&["Enter"]);
    shell.sees("That was all.");
    shell.sees("what is to be done?");
    shell.enter("/quit");
    assert_eq!(shell.prompts(), 0);
    assert_eq!(counted(stage), number, "{ending:?}: the command ran once");
    let asked = stage.sim().requests();
    let own = asked.iter().filter(|request| request.body["messages"][0].to_string().contains(&said));
    own.map(|request| request.position).collect()
}

fn counted(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.work().join("count.txt")).map_or(0, |text| text.lines().count())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_was_ended_at_work_goes_on_and_pays_nothing_twice() {
    let stage = stage().await;
    let shell = shell(&stage);
    let cases = [
        (Ending::Terminated, vec![0, 1]),
        (Ending::HungUp, vec![0, 1]),
        (Ending::BrokenOff, vec![0, 1]),
        // A killed process cannot wait for its end: only the reply that was under way is asked for again.
        (Ending::Killed, vec![0, 0, 1]),
    ];
    for (number, (ending, expected)) in cases.into_iter().enumerate() {
        shell.tries(format!("{ending:?}"));
        assert_eq!(gone_on_with(&stage, &shell, ending, number + 1).await, expected, "{ending:?}");
    }
}
