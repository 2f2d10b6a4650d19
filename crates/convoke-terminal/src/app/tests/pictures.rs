//! The session as it looks at three sizes.

use crossterm::event::{KeyCode, KeyModifiers};
use serde_json::json;

use convoke_kernel::{BudgetGranted, Caps, Ledger, LedgerEvent, Piece, Role};
use convoke_view::SessionEvent;

use super::play::{LEAD, Player, SIZES, asking, call, facts};
use crate::screen_update::{About, Candidate, Facts, ScreenUpdate};

/// Plays `lead` to a session at each size, and keeps what is then seen.
#[track_caller]
fn picture(name: &str, lead: impl Fn(&mut Player)) {
    let mut seen = String::new();
    for size in SIZES {
        let mut player = Player::at(size);
        lead(&mut player);
        seen.push_str(&format!("==== {}x{}\n{}", size.0, size.1, player.picture()));
    }
    insta::assert_snapshot!(name, seen);
}

fn works(player: &mut Player, said: &str) {
    player.told(ScreenUpdate::Working(true));
    player.starts(LEAD, Role::Lead, "lead");
    player.says(said);
}

const ANSWER: &str = "## What I found\n\nThe ledger rounds **twice**: once in `settle`, once when it is \
    shown. A cap of `$1.00` can be passed by a fraction of a cent.\n\n```rust\nfn settle(&mut self, spent: \
    Nano) {\n    // 丸めは一度だけ\n    self.spent += spent;\n}\n```\n\n1. Round once, where it is shown 🙂\n2. \
    Test it with 0.5 cents";

#[test]
fn the_first_start() {
    picture("first_start", |player| {
        let lines = [
            "answers  claude-opus-4-8, with the key of ANTHROPIC_API_KEY",
            "touches  files in /home/someone/支払い; no network",
            "spends   at most $5.00 and 50 agents",
            "stops    Esc safely, Esc again at once; Ctrl-D leaves, and nothing is lost",
            "help     /help, or ? in the fleet",
        ];
        crate::screen::greet(&mut player.app, &lines.map(str::to_owned));
    });
}

#[test]
fn a_session_in_which_nothing_happens() {
    picture("idle", |player| {
        works(player, "What is wrong with the ledger?");
        player.replies(LEAD, ANSWER, &[]);
        player.closes(LEAD, ANSWER);
        player.told(ScreenUpdate::Working(false));
    });
}

#[test]
fn several_lines_being_written() {
    picture("writing", |player| {
        player.types("Look at three things:");
        player.press(KeyCode::Enter, KeyModifiers::ALT);
        player.types("- the ledger, 台帳の丸め方, and whether it can pass its cap by a fraction of a cent");
        player.press(KeyCode::Enter, KeyModifiers::ALT);
        player.types("- 👩‍👩‍👧 names");
        player.key(KeyCode::Up);
    });
}

#[test]
fn candidates_to_choose_from() {
    picture("candidates", |player| {
        player.types("look at @src");
        player.key(KeyCode::Tab);
        let one = |text: &str, about: &str| Candidate { text: text.into(), about: about.into() };
        let candidates = vec![
            one("@src/ledger.rs", "12 KB"),
            one("@src/ledger/", "directory"),
            one("@src/帳簿.rs", "3 KB, changed today by somebody who left a very long note about it"),
            one("@src/main.rs", "1 KB"),
        ];
        player.told(ScreenUpdate::Offers { word: "@src".into(), candidates });
        player.key(KeyCode::Down);
    });
}

#[test]
fn the_lead_answers() {
    picture("answering", |player| {
        works(player, "What is wrong with the ledger?");
        player.replies(LEAD, "Let me look.", &[("bash", json!({"command": "rg -n round src"}))]);
        player.finishes(LEAD, "t0", "src/ledger.rs:3: round", 0);
        player.live(Piece::Began);
        player.live(Piece::Text(ANSWER[..ANSWER.len() - 20].into()));
    });
}

#[test]
fn a_command_that_takes_its_time() {
    picture("command", |player| {
        works(player, "Do the tests pass?");
        let command = "cargo test --workspace --all-targets -- --include-ignored 台帳";
        player.replies(LEAD, "I run them.", &[("bash", json!({"command": command}))]);
        player.now += 83_000;
    });
}

#[test]
fn workers_at_work() {
    picture("workers", |player| {
        works(player, "Review everything.");
        player.replies(LEAD, "I ask eleven others.", &[("Workflow", json!({"subtasks": ["a", "b"]}))]);
        let labels = [
            "Unresolved merge conflicts in every crate",
            "検索: 未処理のエラーと例外を全部さがす",
            "🔒 Secrets",
        ];
        for number in 0..11_u8 {
            let label = labels
                .get(usize::from(number))
                .map_or_else(|| format!("part {number}"), |label| (*label).to_owned());
            player.starts(10 + number, Role::Worker, &label);
            player.opens(10 + number, &label);
            if number < 2 {
                player.replies(
                    10 + number,
                    "",
                    &[("bash", json!({"command": "rg -n '<<<<<<<' crates | head -50"}))],
                );
            }
        }
        player.told(ScreenUpdate::Note("a worker was asked to hurry".into()));
    });
}

#[test]
fn words_that_wait() {
    picture("queued", |player| {
        works(player, "Review everything.");
        player.live(Piece::Thinking("hm".into()));
        for text in ["and the tests", "also: 結果をまとめて\nand more", "a third", "a fourth"] {
            player.app.paste(text);
            player.key(KeyCode::Enter);
        }
    });
}

#[test]
fn words_that_are_on_their_way() {
    picture("sent", |player| {
        player.app.paste("What is wrong with the ledger?");
        player.key(KeyCode::Enter);
    });
}

#[test]
fn a_question_to_the_person() {
    picture("question", |player| {
        works(player, "Push it.");
        player.replies(LEAD, "I push it.", &[]);
        let about = About::Call { always: Some("allow `git push` in this directory from now on".into()) };
        player.asks(asking(1, "run: git push --force\torigin main\u{1b}[2J", about));
        player.look();
        player.types("y");
    });
}

#[test]
fn a_question_that_comes_while_something_is_being_written() {
    picture("question_meanwhile", |player| {
        works(player, "Push it.");
        player.types("please tr");
        player.asks(call(1, "git push"));
        player.look();
        player.types("y");
    });
}

#[test]
fn a_question_that_is_too_long_to_show() {
    picture("long_question", |player| {
        works(player, "Clean up.");
        let command: String = (1..70).map(|number| format!("rm -rf target/part-{number}/部品\n")).collect();
        player.asks(call(1, command.trim_end()));
        player.look();
        player.types("y");
        player.key(KeyCode::Enter);
    });
}

#[test]
fn a_program_that_asks_in_words() {
    picture("checkpoint", |player| {
        works(player, "Run the migration.");
        player.asks(asking(1, "Which of them is to be kept?\n1. 青い\n2. red", About::Checkpoint));
        player.look();
        player.types(
            "青い one, please; and everything else that looks like it, if that is not too much to ask for",
        );
    });
}

#[test]
fn a_workflow_that_wants_to_run() {
    picture("workflow_question", |player| {
        works(player, "Review it.");
        let mut question = asking(1, "Run the workflow review on src?", About::Workflow);
        question.details =
            vec!["8 agents, at most 40 turns each".into(), "at most $2.00 of the $5.00 that are left".into()];
        player.asks(question);
    });
}

#[test]
fn stopping() {
    picture("stopping", |player| {
        works(player, "Do the tests pass?");
        player.replies(LEAD, "I run them.", &[("bash", json!({"command": "cargo test"}))]);
        player.key(KeyCode::Esc);
        player.app.hear(&SessionEvent::Draining);
    });
}

#[test]
fn cutting_off() {
    picture("cutting", |player| {
        works(player, "Do the tests pass?");
        player.replies(LEAD, "I run them.", &[("bash", json!({"command": "cargo test"}))]);
        player.key(KeyCode::Esc);
        player.key(KeyCode::Esc);
    });
}

#[test]
fn stopped_and_able_to_go_on() {
    picture("stopped", |player| {
        works(player, "Do the tests pass?");
        player.key(KeyCode::Esc);
        player.told(ScreenUpdate::Working(false));
        player.told(ScreenUpdate::Facts(Box::new(Facts { can_go_on: true, ..facts() })));
    });
}

#[test]
fn a_remark_about_a_command_that_does_not_exist() {
    picture("remark", |player| {
        player.types("/tsaks");
        player.key(KeyCode::Enter);
    });
}

#[test]
fn a_remark_that_is_longer_than_a_row() {
    picture("long_remark", |player| {
        player.types("sk-ant-api03-abcdefghijklmnopqrstuvwxyz");
        player.key(KeyCode::Enter);
    });
}

#[test]
fn leaving_while_work_is_under_way() {
    picture("leaving", |player| {
        works(player, "Do the tests pass?");
        player.ctrl('d');
    });
}

#[test]
fn the_offline_model_answers() {
    picture("offline", |player| {
        let offline = Facts { offline: true, mode: false, effort: None, model: "offline".into(), ..facts() };
        player.told(ScreenUpdate::Facts(Box::new(offline)));
    });
}

#[test]
fn a_session_that_is_only_watched() {
    picture("watched", |player| {
        player.told(ScreenUpdate::Facts(Box::new(Facts { watched: true, ..facts() })));
        player.starts(LEAD, Role::Lead, "lead");
        player.says("Do the tests pass?");
        player.replies(LEAD, "I run them.", &[("bash", json!({"command": "cargo test"}))]);
    });
}

#[test]
fn a_status_with_more_than_there_is_room_for() {
    picture("long_status", |player| {
        let long = Facts { model: "claude-opus-4-8-with-a-very-long-name-漢字".into(), ..facts() };
        player.told(ScreenUpdate::Facts(Box::new(long)));
        let mut ledger = Ledger::default();
        let caps = Caps { agents: Some(50), tokens: None, nano: Some(5_000_000_000), ms: None };
        ledger.apply(&LedgerEvent::BudgetGranted(BudgetGranted { caps, by: "person".into() }), 0);
        player.app.hear(&SessionEvent::Ledger(Box::new(ledger)));
        works(player, "Do the tests pass?");
        let command =
            "cargo test --workspace --all-targets -- --include-ignored --nocapture --test-threads 1 台帳";
        player.replies(LEAD, "", &[("bash", json!({"command": command}))]);
    });
}

#[test]
fn what_a_command_printed_and_what_was_refused() {
    picture("printed", |player| {
        let text = "id          task                      cost\ns_4k2q      台帳を調べる              $0.42\n  run \
            wf_1  6 subtasks: 5 done, 1 failed";
        player.told(ScreenUpdate::Text { title: "/runs".into(), text: text.into() });
        player.told(ScreenUpdate::Refused(
            "the model \"clude\" is not known\n/model lists those that are".into(),
        ));
    });
}

#[test]
fn a_session_that_is_taken_up_again() {
    picture("taken_up", |player| {
        player.told(ScreenUpdate::Note("session s_4k2q goes on".into()));
        player.told(ScreenUpdate::Afresh);
        player.starts(LEAD, Role::Lead, "lead");
        for number in 1..=4 {
            player.says(&format!("question {number}"));
            player.replies(LEAD, &format!("answer {number}"), &[]);
            player.closes(LEAD, &format!("answer {number}"));
        }
        player.told(ScreenUpdate::CaughtUp);
        player.told(ScreenUpdate::Facts(Box::new(facts())));
    });
}
