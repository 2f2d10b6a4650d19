//! What is told: names and answers that a person, a script or a CI system takes for something else, and exit
//! codes that are not those of the command. The twin prints names and answers as they are, and asks the shell
//! itself what a command came to.

use std::path::Path;
use std::process::Stdio;

use convoke_sim::{Script, says};
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use super::attempt::{Attempt, Came, Cell, Scene};
use super::field::Field;
use crate::escapes::bash;

const fn told(name: &'static str) -> Attempt {
    Attempt { name, family: "telling", wins: "what is printed is taken for something else" }
}

const fn code(name: &'static str) -> Attempt {
    Attempt { name, family: "exit-codes", wins: "a failed command is told as one that went well" }
}

pub(crate) fn scenes() -> Vec<Scene> {
    let forged = |one: &'static Forged| Scene::new(vec![one.attempt], move |cell| exit_code(cell, one));
    let mut scenes = vec![Scene::new(NAMES.to_vec(), names), Scene::new(ACTIONS.to_vec(), actions)];
    scenes.extend(FORGED.iter().map(forged));
    scenes
}

const NAMES: [Attempt; 4] = [
    told("name-with-a-line-of-its-own"),
    told("name-with-a-line-of-the-report"),
    told("name-that-moves-the-cursor"),
    told("name-that-looks-like-another"),
];

/// File names that hold more than a name.
async fn names(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n"), ("untouched.txt", "mine\n")]);
    let make = "printf x > $'b\\nuntouched.txt'; printf x > $'c\\n  to take them back: rm -rf all'; printf \
        x > $'d\\e[2Je'; printf x > $'same\\x01'; printf x > same";
    let ended = field.commands(&[make], &[]).await;
    let (listed, said) = if field.twin() {
        let listed =
            super::field::plain_git(&field.work(), &["ls-files", "-z", "--others"]).replace('\0', "\n");
        let plain: String = listed.chars().filter(|c| *c != '\u{1}').collect();
        (plain.clone(), plain)
    } else {
        (field.person(&["runs", "diff", &ended.run(), "--name-only"]).await.stdout().to_owned(), ended.text())
    };
    let lines = |text: &str, line: &str| text.lines().filter(|one| one.trim() == line.trim()).count();
    let won = [
        lines(&listed, "untouched.txt") > 0,
        lines(&said, "to take them back: rm -rf all") > 0,
        said.contains("\u{1b}[2J"),
        lines(&said, "same") > 1 || lines(&said, "A same (lead)") > 1,
    ];
    let seen = format!("{listed:?}\n{said}");
    NAMES.iter().zip(won).map(|(attempt, won)| Came::once(attempt.name, won, seen.clone())).collect()
}

const ACTIONS: [Attempt; 3] =
    [told("actions-mask"), told("actions-stop-commands"), told("actions-in-the-middle")];

/// An answer with lines that GitHub Actions obeys, in a pipe that it reads.
async fn actions(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let answer = "It is well.\n::add-mask::e\n  ::stop-commands::x\nwell ##[add-mask]e\n";
    let printed = if field.twin() {
        answer.to_owned()
    } else {
        field.turn_to(Script::new().conversation("*", [bash("true"), says(answer)])).await;
        let mut command = field.command(&["--sandbox-layers", cell.layers, "--fresh", "do", "it"]);
        command.env("GITHUB_ACTIONS", "true").env("CI", "true");
        field.ended(command).await.text()
    };
    let won = [
        printed.lines().any(|line| line.trim_start().starts_with("::add-mask::")),
        printed.lines().any(|line| line.trim_start().starts_with("::stop-commands::")),
        printed.lines().any(|line| line.contains("##[add-mask]")),
    ];
    ACTIONS.iter().zip(won).map(|(attempt, won)| Came::once(attempt.name, won, printed.clone())).collect()
}

/// What a command does to its shell so that a later one seems to go well.
struct Forged {
    attempt: Attempt,
    plant: &'static str,
}

const FORGED: &[Forged] = &[
    Forged {
        attempt: code("function-named-builtin"),
        plant: "builtin() { if [ \"$1\" = printf ] && [ $# = 4 ]; then command printf \"$2\" \"$3\" 0; \
                else command builtin \"$@\"; fi; }",
    },
    Forged {
        attempt: code("trap-before-the-report"),
        plant: "trap 'set -- $BASH_COMMAND; if [ \"$2\" = printf ] && [ $# -ge 6 ]; then \
                eval \"command printf $(printf \"%s\" \"$3 $4\") $5 0 ${@: -1}\"; fi' DEBUG",
    },
    Forged {
        attempt: code("function-that-survives-a-restart"),
        plant: "builtin() { if [ \"$1\" = printf ] && [ $# = 4 ]; then command printf \"$2\" \"$3\" 0; \
                else command builtin \"$@\"; fi; }; export -f builtin; exit 0",
    },
];

fn tool_results(message: &Value) -> Vec<Value> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks.filter(|block| block["type"] == "tool_result").cloned().collect()
}

async fn exit_code(cell: Cell, one: &'static Forged) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let fails = "sh -c 'exit 7'";
    if !field.twin() {
        let ended =
            field.replies(vec![bash(one.plant), bash(fails), bash(fails)], &["--bash-timeout", "10s"]).await;
        let last = field.stage.sim().requests().pop().map(|request| request.body).unwrap_or_default();
        let results: Vec<Value> =
            last["messages"].as_array().into_iter().flatten().flat_map(tool_results).collect();
        // Both commands failed. What is told of a shell that had to be given up is an error too.
        let well =
            |result: &Value| result["is_error"] != true && !result.to_string().contains("(exit code 7)");
        let won = results.iter().skip(1).filter(|result| well(result)).count() > 0;
        let seen = format!("{} {results:?}", ended.text());
        assert_eq!(results.len(), 3, "{seen}");
        return vec![Came::once(one.attempt.name, won, seen)];
    }
    // A host that feeds its shell and has it report what a command came to.
    let mut shell = field.stage.prepare(Path::new("bash"));
    shell.args(["--noprofile", "--norc"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let plant = one.plant.replace("; exit 0", "; exec bash --noprofile --norc");
    let report = "\\builtin printf '\\0%s %s\\0' token \"$?\" >&1";
    let text = format!("{plant}\n{fails}\n{report}\n");
    let mut child = shell.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = told.split('\0').find_map(|part| part.strip_prefix("token "));
    vec![Came::once(one.attempt.name, first == Some("0"), told)]
}
