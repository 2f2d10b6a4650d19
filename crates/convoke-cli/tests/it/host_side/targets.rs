//! Files that a person names and a command can reach before they are written: reports, exports, saved
//! workflows, manual pages. The twin writes to the path that was named.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::time::sleep;

use super::attempt::{Attempt, Came, Cell, Scene};
use super::field::Field;
use crate::escapes::bash;
use crate::repo::write;
use crate::workflow_run::script;

const HARMED: &str = "a file outside was written";

const fn report(name: &'static str) -> Attempt {
    Attempt { name, family: "reports", wins: HARMED }
}

const fn export(name: &'static str) -> Attempt {
    Attempt { name, family: "exports", wins: HARMED }
}

/// A report file that is named on the command line, what a command puts there, and the file outside that it
/// would hit.
struct Trap {
    attempt: Attempt,
    file: &'static str,
    plant: &'static str,
    victim: &'static str,
}

const REPORTS: &[Trap] = &[
    Trap { attempt: report("report-link"), file: "a.md", plant: "ln -sfn $OUT/a a.md", victim: "a" },
    Trap { attempt: report("report-link-json"), file: "b.json", plant: "ln -sfn $OUT/b b.json", victim: "b" },
    Trap {
        attempt: report("report-link-sarif"),
        file: "c.sarif",
        plant: "ln -sfn $OUT/c c.sarif",
        victim: "c",
    },
    Trap {
        attempt: report("report-link-chain"),
        file: "d.md",
        plant: "ln -sfn $OUT/d d2; ln -sfn d2 d1; ln -sfn d1 d.md",
        victim: "d",
    },
    Trap {
        attempt: report("report-link-relative"),
        file: "e.md",
        plant: "ln -sfn ../outside/e e.md",
        victim: "e",
    },
    Trap {
        attempt: report("report-directory-replaced"),
        file: "f/r.md",
        plant: "rm -r f; ln -s $OUT/f f",
        victim: "f/r.md",
    },
    Trap {
        attempt: report("report-directory-above-replaced"),
        file: "g/h/i/r.json",
        plant: "rm -r g; ln -s $OUT/g g",
        victim: "g/h/i/r.json",
    },
    Trap {
        attempt: report("report-directory-moved-away"),
        file: "j/r.md",
        plant: "mv j k; ln -s $OUT/j j",
        victim: "j/r.md",
    },
    Trap {
        attempt: report("report-directory-exchanged"),
        file: "l/r.md",
        plant: "ln -s $OUT/l m; perl -e '$l = \"l\"; $m = \"m\"; exit syscall($SWAP, -100, $l, -100, $m, 2) \
            != 0'",
        victim: "l/r.md",
    },
    Trap {
        attempt: report("report-link-home"),
        file: "n.md",
        plant: "ln -sfn ../home/.ssh/authorized_keys n.md",
        victim: "../home/.ssh/authorized_keys",
    },
    Trap {
        attempt: report("report-link-of-the-tree"),
        file: "o/r.md",
        plant: "ln -sfn ../p/r.md o/r.md; rm -r p; ln -s $OUT/p p",
        victim: "p/r.md",
    },
];

/// The number by which the kernel knows `renameat2`.
pub(crate) const SWAP: &str = if cfg!(target_arch = "aarch64") { "276" } else { "316" };

/// A command with the names that it uses.
pub(crate) fn filled(field: &Field, command: &str) -> String {
    let outside = field.outside().to_string_lossy().into_owned();
    command.replace("$OUT", &outside).replace("$SWAP", SWAP)
}

pub(crate) fn scenes() -> Vec<Scene> {
    let attempts = REPORTS.iter().map(|trap| trap.attempt).collect();
    vec![
        Scene::new(attempts, planted_reports),
        Scene::new(STANDING.to_vec(), standing_reports),
        Scene::new(vec![report("report-made-a-pipe")], report_made_a_pipe),
        Scene::new(EXPORTS.to_vec(), exports),
        Scene::new(SAVES.to_vec(), saves),
    ]
}

async fn planted_reports(cell: Cell) -> Vec<Came> {
    let mut field =
        Field::new(cell, &[("f/x", ""), ("g/h/i/x", ""), ("j/x", ""), ("l/x", ""), ("o/x", ""), ("p/x", "")]);
    for trap in REPORTS {
        field.victim(trap.victim);
    }
    let plant: Vec<String> = REPORTS.iter().map(|trap| filled(&field, trap.plant)).collect();
    let plant: Vec<&str> = plant.iter().map(String::as_str).collect();
    let named: Vec<&str> = REPORTS.iter().flat_map(|trap| ["--report", trap.file]).collect();
    let ended = field.commands(&plant, &named).await;
    if field.twin() {
        REPORTS.iter().for_each(|trap| write_by_path(&field.work().join(trap.file)));
    }
    let judged = |trap: &Trap| Came::once(trap.attempt.name, field.harmed(trap.victim), ended.text());
    REPORTS.iter().map(judged).collect()
}

/// As the host once did it, in one line.
fn write_by_path(path: &Path) {
    let _ = std::fs::write(path, "written by the host\n");
}

const STANDING: &[Attempt] = &[
    report("report-link-that-is-committed"),
    report("report-link-that-is-committed-read-only"),
    report("report-file-with-two-names"),
    report("report-of-a-resume"),
];

/// What stands there before the session begins: of a stranger's repository, or of an earlier session.
async fn standing_reports(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let names = ["a", "b", "c", "d"];
    for name in names {
        field.victim(name);
    }
    let link = |name: &str, to: &str| symlink(field.outside().join(to), field.work().join(name)).unwrap();
    link("a.md", "a");
    link("b.md", "b");
    std::fs::hard_link(field.outside().join("c"), field.work().join("c.md")).unwrap();
    link("d.md", "d");
    let mut seen = String::new();
    if field.twin() {
        ["a.md", "b.md", "c.md", "d.md"].iter().for_each(|name| write_by_path(&field.work().join(name)));
    } else {
        let done = field.replies(vec![bash("true")], &["--report", "a.md", "--report", "c.md"]).await;
        seen.push_str(&done.text());
        let done = field.replies(vec![bash("true")], &["--sandbox", "read-only", "--report", "b.md"]).await;
        seen.push_str(&done.text());
        let plain = field.replies(vec![bash("true")], &[]).await;
        seen.push_str(&field.person(&["resume", &plain.run(), "--report", "d.md"]).await.text());
    }
    let judged =
        |(attempt, name): (&Attempt, &str)| Came::once(attempt.name, field.harmed(name), seen.clone());
    STANDING.iter().zip(names).map(judged).collect()
}

async fn report_made_a_pipe(cell: Cell) -> Vec<Came> {
    let mut field = Field::bare(cell);
    let name = "report-made-a-pipe";
    let ended = field.commands(&["mkfifo r.md"], &["--report", "r.md"]).await;
    if !field.twin() {
        return vec![Came::once(name, ended.hung(), ended.text())];
    }
    let mut write = field.stage.prepare(Path::new("dd"));
    write
        .args(["if=/dev/zero", "of=r.md", "count=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = write.spawn().unwrap();
    while child.try_wait().unwrap().is_none() && !field.waits_in_open() {
        sleep(Duration::from_millis(5)).await;
    }
    let waits = child.try_wait().unwrap().is_none();
    let _ = child.start_kill();
    let _ = child.wait().await;
    vec![Came::once(name, waits, "it did not wait")]
}

const EXPORTS: &[Attempt] = &[
    export("events-through-a-directory-link"),
    export("events-through-a-link-above"),
    export("events-to-a-link"),
    export("team-to-a-directory-link"),
    export("team-below-a-link"),
    export("team-directory-replaced"),
    export("tasks-directory-replaced"),
    export("team-file-replaced"),
    export("manual-pages-to-a-directory-link"),
    export("manual-page-to-a-link"),
];

/// An earlier session has prepared the places to which the person exports.
async fn exports(cell: Cell) -> Vec<Came> {
    let mut field = Field::bare(cell);
    for dir in ["a", "b/c", "d", "e/f", "team", "tasks", "man"] {
        std::fs::create_dir_all(field.outside().join(dir)).unwrap();
    }
    field.victim("page");
    field.victim("config.json");
    let plant = "ln -s $OUT/a a; ln -s $OUT/b b; ln -s $OUT/new.jsonl c.jsonl; ln -s $OUT/d d; ln -s $OUT/e \
        e; mkdir g h i; ln -s $OUT/team g/.team; ln -s $OUT/tasks h/.tasks; mkdir i/.team; ln -s \
        $OUT/config.json i/.team/config.json; ln -s $OUT/man man; mkdir pages; ln -s $OUT/page \
        pages/convoke.1";
    let planted = filled(&field, plant);
    let done = field.commands(&[&planted], &[]).await;
    let run = done.run();
    let mut seen = done.text();
    let exported = ["d", "e/f", "g", "h", "i"];
    if field.twin() {
        let writes = [
            "a/x.jsonl",
            "b/c/x.jsonl",
            "c.jsonl",
            "d/config.json",
            "e/f/config.json",
            "g/.team/config.json",
        ];
        let more = ["h/.tasks/task_1.json", "i/.team/config.json", "man/convoke.1", "pages/convoke.1"];
        writes.iter().chain(&more).for_each(|file| write_by_path(&field.work().join(file)));
    } else {
        seen.push_str(&field.person(&["tasks", "add", "first", "--run", &run]).await.text());
        for to in ["a/x.jsonl", "b/c/x.jsonl", "c.jsonl"] {
            seen.push_str(&field.person(&["runs", "export", &run, "--to", to]).await.text());
        }
        for to in exported {
            seen.push_str(&field.person(&["export", &run, "--to", to, "--force"]).await.text());
        }
        for dir in ["man", "pages"] {
            seen.push_str(&field.person(&["man", "--dir", dir]).await.text());
        }
    }
    let filled = |dir: &str| {
        let entries = std::fs::read_dir(field.outside().join(dir)).unwrap();
        let made = |path: &Path| {
            path.is_file() || std::fs::read_dir(path).is_ok_and(|mut inside| inside.next().is_some())
        };
        entries.flatten().any(|entry| made(&entry.path()) || entry.file_name() == ".team")
    };
    let won = [
        filled("a"),
        filled("b/c"),
        field.marked("new.jsonl"),
        filled("d"),
        filled("e/f"),
        filled("team"),
        filled("tasks"),
        field.harmed("config.json"),
        filled("man"),
        field.harmed("page"),
    ];
    EXPORTS.iter().zip(won).map(|(attempt, won)| Came::once(attempt.name, won, seen.clone())).collect()
}

const SAVES: &[Attempt] = &[
    export("workflow-directory-replaced"),
    export("workflow-shelf-replaced"),
    export("workflow-link"),
    export("workflow-file-with-two-names"),
];

/// `convoke workflow save` in four projects, each prepared in another way.
async fn saves(cell: Cell) -> Vec<Came> {
    let mut field = Field::bare(cell);
    let names = ["a/workflows/probe.js", "b/probe.js", "c.js", "d.js"];
    for dir in ["a/workflows", "b"] {
        std::fs::create_dir_all(field.outside().join(dir)).unwrap();
    }
    for project in ["1", "2", "3", "4"] {
        write(&field.work(), &format!("{project}/.git/HEAD"), "ref: refs/heads/main\n");
        std::fs::create_dir_all(field.work().join(project).join(".git/objects")).unwrap();
        std::fs::create_dir_all(field.work().join(project).join(".git/refs")).unwrap();
    }
    field.victim("d.js");
    std::fs::create_dir_all(field.work().join("4/.convoke/workflows")).unwrap();
    std::fs::hard_link(field.outside().join("d.js"), field.work().join("4/.convoke/workflows/probe.js"))
        .unwrap();
    let plant = "ln -s $OUT/a 1/.convoke; mkdir 2/.convoke; ln -s $OUT/b 2/.convoke/workflows; \
                 mkdir -p 3/.convoke/workflows; ln -s $OUT/c.js 3/.convoke/workflows/probe.js";
    let planted = filled(&field, plant);
    let done = field.commands(&[&planted], &[]).await;
    let mut seen = done.text();
    let flow = field.home().join("flow.js");
    std::fs::write(&flow, script("return 1")).unwrap();
    for project in ["1", "2", "3", "4"] {
        let dir = field.work().join(project);
        if field.twin() {
            let folder = dir.join(".convoke/workflows");
            std::fs::create_dir_all(&folder).unwrap();
            write_by_path(&folder.join("probe.js"));
        } else {
            let dir = dir.to_string_lossy();
            let flow = flow.to_string_lossy();
            let args = ["--cwd", &dir, "workflow", "save", "probe", "--from", &flow, "--project", "--force"];
            seen.push_str(&field.person(&args).await.text());
        }
    }
    let made = |name: &str| {
        std::fs::read_to_string(field.outside().join(name)).is_ok_and(|text| text != "as it was\n")
    };
    SAVES
        .iter()
        .zip(names)
        .map(|(attempt, name)| Came::once(attempt.name, made(name), seen.clone()))
        .collect()
}
