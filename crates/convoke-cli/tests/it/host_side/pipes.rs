//! Pipes where the host expects a file: a process that opens one waits for ever. A command or a stranger's
//! repository puts one there, and then a person runs, looks, takes back and goes on. The twin is what opens
//! the same file plainly.

use std::path::Path;
use std::time::Duration;

use super::attempt::{Attempt, Came, Cell, Scene};
use super::field::{Field, waits_at};
use crate::escapes::bash;
use crate::repo::write;

/// A pipe, how it comes about, and what reads it.
struct Pipe {
    attempt: Attempt,
    /// Where it stands.
    at: &'static str,
    /// What else is to be done for it to be read.
    besides: &'static str,
    /// What a person does once it is there; `RUN` is the first run.
    then: &'static [&'static [&'static str]],
    /// What waits at it where nothing is held.
    twin: &'static [&'static str],
}

const fn pipe(name: &'static str) -> Attempt {
    Attempt { name, family: "pipes", wins: "the host hangs" }
}

const LOOK_AND_UNDO: &[&[&str]] = &[&["runs", "diff", "RUN"], &["runs", "undo", "RUN"], &["resume", "RUN"]];
const APART: &[&[&str]] = &[&["--isolation", "worktree", "--fresh", "do", "it"], &["worktrees", "list"]];
const AGAIN: &[&[&str]] = &[&["--fresh", "do", "it"], &["runs", "prune", "RUN", "--yes"]];
const TRUSTED: &[&[&str]] = &[&["--trust-project", "--fresh", "do", "it"]];
const ADD: &[&str] = &["git", "add", "-A"];
const STATUS: &[&str] = &["git", "status"];

const PIPES: &[Pipe] = &[
    Pipe { attempt: pipe("ignore-rules"), at: ".gitignore", besides: "", then: LOOK_AND_UNDO, twin: ADD },
    Pipe { attempt: pipe("ignore-rules-below"), at: "sub/.gitignore", besides: "", then: AGAIN, twin: ADD },
    Pipe { attempt: pipe("attributes"), at: ".gitattributes", besides: "", then: LOOK_AND_UNDO, twin: ADD },
    Pipe {
        attempt: pipe("tracked-file"),
        at: "a.txt",
        besides: "",
        then: LOOK_AND_UNDO,
        twin: &["cat", "a.txt"],
    },
    Pipe {
        attempt: pipe("new-file"),
        at: "new.txt",
        besides: "",
        then: LOOK_AND_UNDO,
        twin: &["cat", "new.txt"],
    },
    Pipe {
        attempt: pipe("file-to-copy"),
        at: "b.txt",
        besides: "",
        then: &[
            &["--sandbox", "read-only", "--fresh", "do", "it"],
            &["--sandbox-layers", "landlock", "--sandbox", "read-only", "--fresh", "x"],
        ],
        twin: &["cp", "b.txt", "copy"],
    },
    Pipe {
        attempt: pipe("file-to-review"),
        at: "src/main.rs",
        besides: "",
        then: &[&["--offline", "--fresh", "Review this repository"]],
        twin: &["cat", "src/main.rs"],
    },
    Pipe { attempt: pipe("head"), at: ".git/HEAD", besides: "", then: LOOK_AND_UNDO, twin: STATUS },
    Pipe { attempt: pipe("settings"), at: ".git/config", besides: "", then: AGAIN, twin: STATUS },
    Pipe {
        attempt: pipe("included-settings"),
        at: "inc",
        besides: "printf '[include]\\n\\tpath = ../inc\\n' >> .git/config",
        then: LOOK_AND_UNDO,
        twin: STATUS,
    },
    Pipe {
        attempt: pipe("settings-of-a-worktree"),
        at: ".git/config.worktree",
        besides: "git config core.repositoryformatversion 1; git config extensions.worktreeConfig true",
        then: APART,
        twin: STATUS,
    },
    Pipe { attempt: pipe("exclude-rules"), at: ".git/info/exclude", besides: "", then: AGAIN, twin: ADD },
    Pipe {
        attempt: pipe("exclude-rules-named"),
        at: "rules",
        besides: "git config core.excludesFile $PWD/rules",
        then: AGAIN,
        twin: ADD,
    },
    Pipe {
        attempt: pipe("attributes-of-the-repository"),
        at: ".git/info/attributes",
        besides: "",
        then: AGAIN,
        twin: ADD,
    },
    Pipe { attempt: pipe("index"), at: ".git/index", besides: "", then: LOOK_AND_UNDO, twin: STATUS },
    Pipe {
        attempt: pipe("packed-refs"),
        at: ".git/packed-refs",
        besides: "",
        then: LOOK_AND_UNDO,
        twin: &["git", "for-each-ref"],
    },
    Pipe {
        attempt: pipe("alternates"),
        at: ".git/objects/info/alternates",
        besides: "",
        then: LOOK_AND_UNDO,
        twin: &["git", "log"],
    },
    Pipe {
        attempt: pipe("branch"),
        at: ".git/refs/heads/main",
        besides: "",
        then: APART,
        twin: &["git", "log"],
    },
    Pipe {
        attempt: pipe("ref-of-a-run"),
        at: ".git/refs/convoke/made-up/before",
        besides: "for r in .git/refs/convoke/*/; do rm -f $r/before; mkfifo $r/before; done",
        then: LOOK_AND_UNDO,
        twin: &["git", "rev-parse", "refs/convoke/made-up/before"],
    },
    Pipe { attempt: pipe("shared-directory"), at: ".git/commondir", besides: "", then: AGAIN, twin: STATUS },
    Pipe {
        attempt: pipe("graph-of-commits"),
        at: ".git/objects/info/commit-graph",
        besides: "",
        then: LOOK_AND_UNDO,
        twin: &["git", "log"],
    },
    Pipe {
        attempt: pipe("worktree-pointer"),
        at: ".git/worktrees/w/gitdir",
        besides: "cp .git/HEAD .git/worktrees/w/HEAD; echo ../.. > .git/worktrees/w/commondir",
        then: APART,
        twin: &["git", "worktree", "list"],
    },
    Pipe {
        attempt: pipe("nested-head"),
        at: "nested/.git/HEAD",
        besides: "mkdir nested/.git/objects nested/.git/refs; echo x > nested/x",
        then: LOOK_AND_UNDO,
        twin: &["git", "-C", "nested", "status"],
    },
    Pipe {
        attempt: pipe("nested-settings"),
        at: "nested/.git/config",
        besides: "mkdir -p nested/.git/objects nested/.git/refs; cp .git/HEAD nested/.git/HEAD; echo x > \
            nested/x",
        then: &[&["--offline", "--fresh", "Review this repository"]],
        twin: &["git", "-C", "nested", "status"],
    },
    Pipe {
        attempt: pipe("project-settings"),
        at: ".convoke/config.toml",
        besides: "",
        then: &[&["--fresh", "do", "it"], &["doctor"], &["config", "show"]],
        twin: &["cat", ".convoke/config.toml"],
    },
    Pipe {
        attempt: pipe("saved-workflow"),
        at: ".convoke/workflows/probe.js",
        besides: "",
        then: &[&["workflow", "list", "--trust-project"], &["workflow", "show", "probe", "--trust-project"]],
        twin: &["cat", ".convoke/workflows/probe.js"],
    },
    Pipe {
        attempt: pipe("saved-agent"),
        at: ".convoke/agents/probe.md",
        besides: "",
        then: TRUSTED,
        twin: &["cat", ".convoke/agents/probe.md"],
    },
    Pipe {
        attempt: pipe("memory"),
        at: "CLAUDE.md",
        besides: "",
        then: TRUSTED,
        twin: &["cat", "CLAUDE.md"],
    },
    Pipe {
        attempt: pipe("memory-by-a-link"),
        at: "notes",
        besides: "ln -s notes AGENTS.md",
        then: TRUSTED,
        twin: &["cat", "AGENTS.md"],
    },
];

const ORPHAN: Attempt = Attempt {
    name: "orphan-at-a-pipe",
    family: "pipes",
    wins: "a program of the host's outlives a kill -9 of the host",
};

pub(crate) fn scenes() -> Vec<Scene> {
    let one = |pipe: &'static Pipe| Scene::new(vec![pipe.attempt], move |cell| waiting(cell, pipe));
    PIPES.iter().map(one).chain([Scene::new(vec![ORPHAN], orphan)]).collect()
}

/// A command that puts the pipe there.
fn plant(pipe: &Pipe) -> String {
    let parent = Path::new(pipe.at).parent().unwrap().display().to_string();
    let parent = if parent.is_empty() { ".".to_owned() } else { parent };
    format!("mkdir -p {parent}; rm -f {at}; mkfifo {at}; {besides}", at = pipe.at, besides = pipe.besides)
}

async fn waiting(cell: Cell, pipe: &'static Pipe) -> Vec<Came> {
    let mut field =
        Field::new(cell, &[("a.txt", "a\n"), ("b.txt", "b\n"), ("src/main.rs", "fn main() {}\n")]);
    let plant = plant(pipe);
    // What lies in a repository's own directory comes with a stranger's repository where commands cannot
    // write there.
    let beforehand = field.twin() || (cell.layers == "best" && plant.contains(".git/"));
    if beforehand {
        field.plainly(&plant).await;
    }
    if field.twin() {
        // Git looks at a repository's own attributes only for a file that it has to read.
        write(&field.work(), "unknown-to-git.txt", "new\n");
        let mut command = field.stage.prepare(Path::new(pipe.twin[0]));
        command.args(&pipe.twin[1..]);
        let waits = waits_at(command, &[field.work().join(pipe.at)]).await;
        return vec![Came::once(pipe.attempt.name, waits, format!("{:?} does not wait", pipe.twin))];
    }
    let change = bash("echo changed >> other.txt");
    let replies =
        if beforehand { vec![change.clone()] } else { vec![change.clone(), bash(&plant), change.clone()] };
    let ended = field.replies(replies, &[]).await;
    if ended.hung() {
        return vec![Came::once(pipe.attempt.name, true, format!("the run: {}", ended.text()))];
    }
    let run = ended.run();
    field.turn_to(crate::escapes::doing(vec![change])).await;
    let mut seen = ended.text();
    for args in pipe.then {
        let args: Vec<&str> = args.iter().map(|arg| if *arg == "RUN" { run.as_str() } else { arg }).collect();
        let args = if args.contains(&"--fresh") && !args.contains(&"--sandbox-layers") {
            [&["--sandbox-layers", cell.layers][..], &args].concat()
        } else {
            args
        };
        let ended = field.person(&args).await;
        if ended.hung() {
            return vec![Came::once(pipe.attempt.name, true, format!("{args:?}: {}", ended.text()))];
        }
        seen.push_str(&ended.text());
    }
    vec![Came::once(pipe.attempt.name, false, seen)]
}

/// The host is killed while git waits at a pipe, or would.
async fn orphan(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    if field.twin() {
        field.plainly("mkfifo .gitignore").await;
        // A host that has git run in a session of its own and is killed.
        let mut host = field.stage.prepare(Path::new("bash"));
        host.args(["-c", "setsid git add -A > /dev/null 2>&1 & kill -9 $$"]);
        field.ended(host).await;
        let left = field.left_after(Duration::from_secs(1)).await;
        field.kill_all();
        return vec![Came::once(ORPHAN.name, !left.is_empty(), "git did not stay")];
    }
    field.turn_to(crate::escapes::doing(vec![bash("echo x > x; mkfifo .gitignore"), bash("true")])).await;
    let mut child = field.command(&["--sandbox-layers", cell.layers, "--fresh", "do", "it"]);
    child.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = child.spawn().unwrap();
    let hangs = tokio::time::timeout(Duration::from_secs(20), async {
        // Until git waits at the pipe, or the session has ended without one. Opening the pipe would set git
        // free.
        while child.try_wait().unwrap().is_none() && !field.waits_in_open() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let _ = hangs.await;
    let _ = child.start_kill();
    let _ = child.wait().await;
    let left = field.left_after(Duration::from_secs(10)).await;
    field.kill_all();
    vec![Came::once(ORPHAN.name, !left.is_empty(), left.join("\n"))]
}
