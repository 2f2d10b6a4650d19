//! Nothing that a model, a file name or a command says reaches the terminal raw: every byte that the real
//! binary writes is read by a strict reader, in the session, the fleet, an agent's page, a pager, a question
//! and plain mode; and what was refused is seen instead.

mod reader;

use std::cell::Cell;

use convoke_sim::{
    Brain, Context, Fault, FaultKind, Reply, Script, Scripted, SimConfig, calls, calls_many, says,
};
use serde_json::{Value, json};

use crate::repo::{repository, write};
use crate::session_ends::{Shell, note, squeezed};
use crate::stage::{Stage, patiently};
use crate::team::{looks_and_reports, role, workflow};

/// What a terminal would obey, each with a mark behind it: a title, a move, a colour by both introducers, a
/// device string, a turn of the text, a step back, the begin of the row, a mode of the mouse.
fn wild(tag: &str) -> String {
    format!(
        "{tag}0 \x1b]0;{tag}1\x07 \x1b[4141;4142H{tag}2 \x1b[2;4143m{tag}3 \u{9b}4144m{tag}4 \x1bP4145q\x1b\\{tag}5 \
         \u{202e}{tag}6 \x08{tag}7 a\r{tag}8 \x1b[?1000h{tag}9"
    )
}

/// The same as it is to be seen.
fn tamed(tag: &str) -> [String; 9] {
    [
        format!("␛]0;{tag}1␇"),
        format!("␛[4141;4142H{tag}2"),
        format!("␛[2;4143m{tag}3"),
        format!("\\u{{9b}}4144m{tag}4"),
        format!("␛P4145q␛\\{tag}5"),
        format!("\\u{{202e}}{tag}6"),
        format!("␈{tag}7"),
        format!("␛[?1000h{tag}9"),
        format!("a␍{tag}8"),
    ]
}

/// The title alone: for places where there is no room for more.
fn title(tag: &str) -> String {
    format!("\x1b]0;{tag}\x07")
}

/// A session in a terminal of which every byte is kept.
struct Scene {
    stage: Stage,
    shell: Shell,
    title: String,
    seen: Cell<usize>,
}

impl Scene {
    async fn new(brain: impl Brain + 'static) -> Self {
        let stage = Stage::with(SimConfig::new(brain)).await;
        repository(&stage, &[("a.txt", "first line\nsecond line\n")]);
        let path = stage.home().join(".config/convoke/config.toml");
        let config = std::fs::read_to_string(&path).unwrap();
        std::fs::write(path, format!("{config}\n[[rules]]\ncommand = \"touch\"\ndecision = \"ask\"\n"))
            .unwrap();
        let shell = Shell::open(&stage, (150, 50), &[]);
        shell.keeps();
        let title = shell.knows("#{pane_title}");
        Self { stage, shell, title, seen: Cell::new(0) }
    }

    /// Starts the binary; what it writes stands between two marks.
    fn starts(&self, args: &str) {
        self.shell
            .enter(&format!("clear; printf 'beg%s\\n' in-here; convoke {args}; printf 'end%s\\n' of-all"));
        self.shell.sees("/help");
    }

    fn session(&self) {
        self.starts("");
        self.shell.sees("what is to be done?");
    }

    /// Says something and waits for the end of the exchange.
    fn says(&self, text: &str, until: &str) {
        self.shell.enter(text);
        self.shell.sees(until);
        self.shell.until("the end of the exchange", || self.shell.screen().contains("› what is to be done?"));
    }

    /// All of this stands there, in the rows that were printed or are shown.
    #[track_caller]
    fn shows(&self, what: &str, expected: &[String]) {
        self.shell.until(&format!("{what} to show all of {expected:?}"), || {
            let all = squeezed(&self.shell.all());
            expected.iter().all(|part| all.contains(&squeezed(part)))
        });
        self.seen.set(self.seen.get() + expected.len());
    }

    fn quits(&self) {
        self.shell.enter("/quit");
        self.shell.sees("endof-all");
        self.shell.prompts();
    }

    /// Every byte of every session was our own, and the terminal is as it was.
    fn ends_clean(self) {
        assert_eq!(
            self.shell.knows("#{pane_title} #{alternate_on} #{mouse_any_flag}"),
            format!("{} 0 0", self.title)
        );
        let written = self.shell.kept();
        assert!(find(&written, b"\x1b[?2026h").is_some(), "sequences of our own are among it");
        let mut rest = written.as_slice();
        let mut sessions = 0;
        while let Some(begin) = find(rest, b"begin-here") {
            let end = find(&rest[begin..], b"endof-all").unwrap() + begin;
            if let Err(why) = reader::text(&rest[begin..end]) {
                panic!("{why}");
            }
            (rest, sessions) = (&rest[end..], sessions + 1);
        }
        assert!(sessions > 0 && self.seen.get() > 0);
        let bytes = written.len();
        let marks = self.seen.get();
        note(&format!("{bytes} bytes of {sessions} sessions were read; {marks} marks were seen"));
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// The lead has these replies; no other agent is asked.
struct Lead(Vec<Reply>);

impl Brain for Lead {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        Script::new().conversation("*", self.0.clone()).reply(request, context)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_says_is_shown_and_never_obeyed() {
    let tags = ["Head", "Para", "Item", "Quote", "Code", "Block", "Strong"];
    let [head, para, item, quote, code, block, strong] = tags.map(wild);
    // Brackets would end the link.
    let link = "\x1bP4145q\x1b\\Link1 \u{9b}4144mLink2 \u{202e}Link3";
    let url = title("Url");
    let cell = title("Cell");
    let all = format!(
        "# {head}\n\n{para}\n\n- {item}\n\n> \
            {quote}\n\n`{code}`\n\n[{link}](http://example.com/{url})\n\n**{strong}**\n\n\
         | a | b |\n|---|---|\n| {cell} | x |\n\n```sh\n{block}\n```\n\nThe end."
    );
    // Pieces have sixteen bytes: the first one ends in the middle of a sequence.
    let streamed = says("Streamed so far\x1b[4146m cut in two. And on.");
    let scene = Scene::new(Lead(vec![streamed, says(&all).thinking(&wild("Think"))])).await;
    let hold = scene.stage.sim().hold("stream it", 0, 4);
    scene.session();
    scene.shell.enter("stream it");
    patiently("the reply to be held", hold.entered()).await;
    scene.shell.sees("Streamed so far␛");
    drop(hold);
    scene.shows("a reply in pieces", &["Streamed so far␛[4146m cut in two.".to_owned()]);
    scene.says("say it all", "The end.");
    // A lone return ends a row in Markdown, but in code.
    let expected = tags.iter().flat_map(|tag| tamed(tag).into_iter().take(8)).collect::<Vec<_>>();
    let more =
        ["␛]0;Cell␇", "a␍Block8", "␛P4145q␛\\Link1", "\\u{9b}4144mLink2", "\\u{202e}Link3", "␛]0;Url␇"]
            .map(str::to_owned);
    scene.shows("the session", &[expected.as_slice(), &more].concat());
    scene.shell.keys(&["C-o"]);
    scene.shell.sees("Agents 1");
    scene.shell.keys(&["Enter"]);
    scene.shell.sees("turn 2");
    scene.shows("the agent's page", &["␛]0;Head1".to_owned()]);
    scene.shell.keys(&["Up", "Enter"]);
    scene.shell.sees("The end.");
    scene.shows("the pager", &["␛]0;Block1␇", "a␍Block8"].map(str::to_owned));
    scene.shell.keys(&["q", "q", "q"]);
    scene.shell.sees("what is to be done?");
    scene.quits();
    let runs = scene.stage.run(&["runs", "list", "--output", "json"]).await.exits(0).json();
    scene.starts(&format!("session --plain {}", runs["runs"][0]["run"].as_str().unwrap()));
    scene.shell.sees("The end.");
    scene.shows("lines", &expected);
    scene.quits();
    scene.ends_clean();
}

/// A name that a terminal would obey.
fn name() -> String {
    format!("f{}\u{9b}4141m\u{202e}\r\x08.txt", title("Name"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_name_of_a_file_is_shown_and_never_obeyed() {
    struct Looks;
    impl Brain for Looks {
        fn reply(&self, request: &Value, context: &Context) -> Scripted {
            let citation = json!({"path": name(), "first": 1, "last": 1, "quote": "in it"});
            let finding = json!({"claim": format!("low {} is odd", name()), "evidence": format!("{}:1: in it", name()),
                "severity": "low", "citations": [citation]});
            let look = calls_many([
                ("bash", json!({"command": "ls; for f in f*; do echo more >> \"$f\"; done"})),
                ("str_replace_based_edit_tool", json!({"command": "view", "path": name()})),
                ("grep", json!({"pattern": "in it", "path": "."})),
            ]);
            let said = request["messages"][0].to_string();
            let replies = match role(request) {
                "lead" if said.contains("once more") => vec![look, says("All looked at.")],
                "lead" => vec![
                    look,
                    workflow(&["Look into the file"]),
                    says("All looked at."),
                    says("Heard of it."),
                ],
                "worker" => looks_and_reports("looked", vec![finding]),
                _ => {
                    let verdict = json!({"finding": 1, "verdict": "confirmed", "evidence": name()});
                    let ballot = json!({"summary": "looked", "verdicts": [verdict]});
                    vec![calls("bash", json!({"command": "ls"})), calls("report_verdicts", ballot)]
                }
            };
            Script::new().conversation("*", replies).reply(request, context)
        }
    }
    let scene = Scene::new(Looks).await;
    write(&scene.stage.work(), &name(), "in it\n");
    write(&scene.stage.work(), "f-other.txt", "other\n");
    let expected = |more: &str| ["␛]0;Name␇\\u{9b}4141m\\u{202e}␍␈".to_owned(), more.to_owned()];
    let shell = &scene.shell;
    scene.session();
    scene.says("look at files", "All looked at.");
    scene.shows("the session", &expected("view"));
    shell.enter("/diff");
    scene.shows("the difference", &expected("+more"));
    write(&scene.stage.work(), "f-new.txt", "new\n");
    shell.types("read f");
    shell.keys(&["Tab"]);
    // It was nowhere before: what is seen is what is offered.
    shell.sees("f-new.txt");
    scene.shows("what is offered", &expected("f-new"));
    shell.keys(&["Tab", "Enter"]);
    let offers = |row: &str| row.contains("f-new.txt") && !row.contains("› read");
    shell.until("one to be taken", || !shell.screen().lines().any(offers));
    scene.says(" please", "Heard of it.");
    scene.shows("what was said", &expected("please"));
    shell.keys(&["C-o"]);
    shell.sees("Agents");
    shell.keys(&["4"]);
    scene.shows("the findings", &["[4 Findings 1]".to_owned(), "␛]0;Name␇".to_owned()]);
    shell.keys(&["Enter"]);
    scene.shows("the finding", &expected("confirmed"));
    shell.keys(&["q", "1", "Enter"]);
    shell.sees("turn 1");
    scene.shows("the agent's page", &["␛]0;Name␇".to_owned()]);
    shell.keys(&["Home", "Down", "Down", "Down", "Enter"]);
    scene.shows("the pager", &expected("f-other.txt"));
    shell.keys(&["C-o"]);
    shell.sees("what is to be done?");
    scene.quits();
    scene.starts("session --plain");
    shell.enter("look at files once more");
    shell.sees("All looked at.");
    scene.shows("lines", &expected("view"));
    scene.quits();
    scene.ends_clean();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_prints_is_shown_and_never_obeyed() {
    let scene = Scene::new(Lead(vec![
        calls("bash", json!({"command": "cat wild.bin; false"})),
        calls("bash", json!({"command": format!("echo '{}' >&2; cat wild.bin", wild("Typed"))})),
        says("Printed."),
    ]))
    .await;
    let bytes = [wild("Out").as_bytes(), b"\n\x9b4147m raw \xff\n\x1b[4148mlast"].concat();
    std::fs::write(scene.stage.work().join("wild.bin"), bytes).unwrap();
    let shell = &scene.shell;
    for args in ["", "session --plain"] {
        scene.starts(args);
        shell.enter(&format!("print it {args}"));
        shell.sees("Printed.");
        scene.shows("what is printed", &["␛]0;Typed1␇".to_owned()]);
        if args.is_empty() {
            shell.keys(&["C-o"]);
            shell.sees("Agents 1");
            shell.keys(&["Enter"]);
            shell.sees("turn 3");
            scene.shows("the agent's page", &["␛]0;Typed1␇".to_owned()]);
            shell.keys(&["Home", "Down", "Down", "Down", "Enter"]);
            scene.shows("the pager", &[&tamed("Out")[..], &["␛[4148mlast".to_owned()]].concat());
            shell.keys(&["C-o"]);
            shell.sees("what is to be done?");
        }
        scene.quits();
    }
    scene.ends_clean();
}

/// A lead that does what it is told last, and a teammate that writes to it.
struct Everything;

impl Brain for Everything {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        let mut messages = request["messages"].as_array().unwrap().iter();
        let last = messages.rfind(|message| message["role"] == "user").unwrap().to_string();
        let is_done = last.contains("tool_result");
        let reply = match role(request) {
            "lead" if is_done => says("Everything is done."),
            // Roles and subjects like these are refused, and the refusal is shown.
            "lead" if last.contains("make a team") => calls_many([
                ("spawn_teammate", json!({"name": "eve", "role": title("Role"), "prompt": "p"})),
                ("task_create", json!({"subject": title("Subject")})),
                ("spawn_teammate", json!({"name": "bob", "role": "clerk", "prompt": wild("Prompt")})),
                (
                    "task_create",
                    json!({"subject": "A task", "description": wild("About"), "role": "painter"}),
                ),
            ]),
            "lead" if last.contains("run a program") => calls("Workflow", json!({"script": program()})),
            "lead" if last.contains("fan it out") => workflow(&[&title("Label")]),
            "lead" if last.contains("ask me") => {
                calls("bash", json!({"command": format!("touch '{}'", wild("Asked"))}))
            }
            "lead" => says("That is read."),
            "worker" if is_done => {
                calls("report_findings", json!({"summary": wild("Summary"), "findings": []}))
            }
            "worker" => calls("bash", json!({"command": "cat a.txt"})),
            _ if last.contains("Prompt0") && !is_done => {
                calls("send_message", json!({"to": "lead", "text": wild("Letter")}))
            }
            _ if request["tools"].to_string().contains("\"idle\"") => calls("idle", json!({})),
            _ => says(&wild("Agent")),
        };
        Script::new().conversation("*", vec![reply; 100]).reply(request, context)
    }
}

fn program() -> String {
    let wild = |tag: &str| title(tag).replace('\x1b', "\\u001b").replace('\x07', "\\u0007");
    format!(
        "export const meta = {{ name: 'probe', description: 'Tries something.', phases: [{{ title: 'Look' \
            }}] }}\n\
         phase('{phase}')\nlog('{log}')\nreturn await agent('say something', {{ label: '{label}' }})\n",
        phase = wild("Phase"),
        log = wild("Log"),
        label = wild("Called"),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_else_that_others_write_is_obeyed() {
    let scene = Scene::new(Everything).await;
    let fault = Fault::new(FaultKind::BadRequest400(wild("Api"))).on("fail for me");
    scene.stage.sim().push_fault(fault);
    let dir = scene.stage.work().join(format!("d{}", title("Dir")));
    std::fs::create_dir(&dir).unwrap();
    write(&dir, "a.txt", "first line\n");
    let shell = &scene.shell;
    let title = |tag: &str| [format!("␛]0;{tag}␇")];
    shell.enter("cd d*; clear");
    scene.session();
    scene.shows("the directory", &["d\\u{1b}]0;Dir\\u{7}".to_owned()]);
    shell.pastes(&format!("make a team {}", wild("Task")));
    shell.sees("make a team");
    // The letter may come before the answer to the calls, or after it.
    scene.says("", "That is read.");
    scene.shows("what was said", &tamed("Task")[..8]);
    scene.shows("what was refused", &[title("Role"), title("Subject")].concat());
    scene.says("run a program", "Everything is done.");
    // What a program says of itself is cleaned before it is recorded.
    scene.shows("the log of a program", &["0;Log".to_owned()]);
    scene.says("fan it out", "Everything is done.");
    scene.says("fan it out", "Everything is done.");
    for command in ["/team", "/tasks", "/inbox", "/runs", "/workflows"] {
        shell.enter(command);
        shell.until(command, || shell.screen().contains("› what is to be done?"));
    }
    shell.enter("/model x\x1b]0;Model\x07");
    shell.sees("Model");
    shell.enter("ask me");
    scene.shows(
        "a question",
        &["\\u{1b}]0;Asked1\\u{7}", "\\u{9b}4144mAsked4", "\\u{202e}Asked6"].map(str::to_owned),
    );
    shell.keys(&["C-o"]);
    for (key, tags) in
        [("1", &["␛]0;Phase␇", "\\u{1b}]0;Label\\u{7}", "␛]0;Called␇"][..]), ("3", &["␛]0;Letter1␇"])]
    {
        shell.keys(&[key]);
        scene.shows(&format!("list {key}"), &tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>());
    }
    shell.keys(&["2", "Down", "Enter"]);
    scene.shows("the task", &tamed("About")[..8]);
    shell.keys(&["q", "5", "Down"]);
    scene.shows("the question in the fleet", &["Asked1".to_owned()]);
    shell.keys(&["Enter"]);
    scene.shows("the question in the pager", &["\\u{1b}]0;Asked1\\u{7}".to_owned()]);
    shell.keys(&["n"]);
    shell.sees("Questions 0");
    shell.keys(&["3", "Down", "Enter"]);
    scene.shows("the letter", &tamed("Letter")[..8]);
    shell.keys(&["C-o"]);
    shell.sees("› what is to be done?");
    scene.quits();
    shell.enter("clear");
    scene.session();
    shell.enter("fail for me");
    // The client has taken its control characters out; the marks that turn text around are still there.
    scene.shows("an error of the API", &["]0;Api1", "Api7", "\\u{202e}Api6"].map(str::to_owned));
    scene.quits();
    scene.starts("session --plain");
    shell.enter("ask me");
    scene.shows("a question in lines", &["\\u{1b}]0;Asked1\\u{7}".to_owned()]);
    shell.enter("n");
    shell.sees("Everything is done.");
    scene.quits();
    scene.ends_clean();
}
