//! Nothing that a model, a file name or a command says reaches the terminal raw: every byte that the real binary writes is read by a strict
//! reader, in the session, the fleet, an agent's page, a pager, a question and plain mode; and what was refused is seen instead.

mod reader;

use std::cell::Cell;

use convoke_sim::{Brain, Context, Fault, FaultKind, Reply, Script, Scripted, SimConfig, calls, calls_many, says};
use serde_json::{Value, json};

use crate::repo::{repository, write};
use crate::session_ends::{Shell, squeezed};
use crate::stage::{Stage, patiently};
use crate::team::{looks_and_reports, role, workflow};

/// What a terminal would obey, each with a mark behind it: a title, a move, a colour by both introducers, a device string, a turn of the text,
/// a step back, the begin of the row, a mode of the mouse.
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
        std::fs::write(path, format!("{config}\n[[rules]]\ncommand = \"touch\"\ndecision = \"ask\"\n")).unwrap();
        let shell = Shell::open(&stage, (150, 50), &[]);
        shell.keeps();
        let title = shell.knows("#{pane_title}");
        Self { stage, shell, title, seen: Cell::new(0) }
    }

    /// Starts the binary; what it writes stands between two marks.
    fn starts(&self, args: &str) {
        self.shell.enter(&format!("clear; printf 'beg%s\\n' in-here; convoke {args}; printf 'end%s\\n' of-all"));
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
        let missing = |all: &str| expected.iter().find(|part| !all.contains(&squeezed(part))).cloned();
        self.shell.until(&format!("{what} to show {:?}", missing(&squeezed(&self.shell.all()))), || {
            missing(&squeezed(&(self.shell.all() + &self.shell.screen()))).is_none()
        });
        self.seen.set(self.seen.get() + expected.len());
    }

    fn quits(&self) {
        self.shell.enter("/quit");
        self.shell.sees("endof-all");
        self.shell.prompts();
    }

    /// Every byte of every session was our own, and the terminal is as it was.
    fn is_clean(self) {
        assert_eq!(self.shell.knows("#{pane_title} #{alternate_on} #{mouse_any_flag}"), format!("{} 0 0", self.title));
        let written = self.shell.kept();
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
        println!("{} bytes of {sessions} sessions were read; {} marks were seen", written.len(), self.seen.get());
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// Whoever leads has these replies; nobody else is asked.
struct Lead(Vec<Reply>);

impl Brain for Lead {
    fn reply(&self, request: &Value, context: &Context) -> Scripted {
        Script::new().conversation("*", self.0.clone()).reply(request, context)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_model_says_is_shown_and_never_obeyed() {
    let tags = ["Head", "Para", "Item", "Quote", "Code", "Link", "Block", "Strong"];
    let [head, para, item, quote, code, link, block, strong] = tags.map(wild);
    let url = title("Url").replace(' ', "");
    let cell = title("Cell");
    let all = format!(
        "# {head}\n\n{para}\n\n- {item}\n\n> {quote}\n\n`{code}`\n\n[{link}](http://example.com/{url})\n\n**{strong}**\n\n\
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
    let more = ["␛]0;Cell␇", "a␍Block8"].map(str::to_owned);
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
    scene.is_clean();
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
            let replies = match role(request) {
                "lead" => vec![look, workflow(&["Look into the file"]), says("All looked at."), says("Heard of it.")],
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
    shell.types("read f");
    shell.keys(&["Tab"]);
    shell.sees("f-other.txt");
    scene.shows("what is offered", &expected("f-other"));
    shell.keys(&["Tab", "Enter"]);
    shell.until("the name to be taken", || !shell.screen().contains("f-other.txt  ") && shell.screen().contains("read"));
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
    shell.enter("look at files");
    shell.sees("All looked at.");
    scene.shows("lines", &expected("view"));
    scene.quits();
    scene.is_clean();
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
        shell.enter("print it");
        shell.sees("Printed.");
        scene.shows("what is printed", &["␛]0;Typed1␇".to_owned()]);
        if args.is_empty() {
            shell.keys(&["C-o"]);
            shell.sees("Agents 1");
            shell.keys(&["Enter"]);
            shell.sees("turn 3");
            scene.shows("the agent's page", &["␛]0;Typed1␇".to_owned()]);
            shell.keys(&["Home", "Down", "Down", "Enter"]);
            scene.shows("the pager", &[&tamed("Out")[..], &["␛[4148mlast".to_owned()]].concat());
            shell.keys(&["C-o"]);
            shell.sees("what is to be done?");
        }
        scene.quits();
    }
    scene.is_clean();
}
