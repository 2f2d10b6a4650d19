//! Programs of the opponent's that the host's git would run: hooks, filters, drivers, watchers, helpers, and
//! programs on the path. A command writes them where it can, else they come with a stranger's repository.
//! Each leaves a mark of its own outside, which it can only do where nothing confines it. The twin is git as
//! a person runs it.

use std::path::Path;

use super::attempt::{Attempt, Came, Cell, Scene};
use super::field::{Field, plain_git};
use super::targets::filled;
use crate::escapes::{bash, doing};
use crate::repo::write;

const fn program(name: &'static str) -> Attempt {
    Attempt { name, family: "programs", wins: "a program of the opponent's ran where nothing confines it" }
}

/// A program and how git is brought to run it. `PROGRAM` is its path.
struct Planted {
    attempt: Attempt,
    how: &'static str,
}

/// These stand beside each other: hooks in their usual place, and drivers for files of one ending each.
const USUAL: &[Planted] = &[
    Planted {
        attempt: program("hook-reference-transaction"),
        how: "cp PROGRAM .git/hooks/reference-transaction",
    },
    Planted { attempt: program("hook-post-checkout"), how: "cp PROGRAM .git/hooks/post-checkout" },
    Planted { attempt: program("hook-post-index-change"), how: "cp PROGRAM .git/hooks/post-index-change" },
    Planted { attempt: program("hook-pre-commit"), how: "cp PROGRAM .git/hooks/pre-commit" },
    Planted { attempt: program("hook-post-commit"), how: "cp PROGRAM .git/hooks/post-commit" },
    Planted { attempt: program("file-watcher"), how: "git config core.fsmonitor PROGRAM" },
    Planted {
        attempt: program("filter-clean"),
        how: "echo '*.c1 filter=c1' >> .gitattributes; git config filter.c1.clean PROGRAM",
    },
    Planted {
        attempt: program("filter-process"),
        how: "echo '*.c2 filter=c2' >> .gitattributes; git config filter.c2.process PROGRAM",
    },
    Planted {
        attempt: program("filter-smudge"),
        how: "echo '*.c3 filter=c3' >> .gitattributes; git config filter.c3.smudge PROGRAM",
    },
    Planted {
        attempt: program("filter-by-attributes-of-the-repository"),
        how: "echo '*.c7 filter=c7' >> .git/info/attributes; git config filter.c7.clean PROGRAM",
    },
    Planted {
        attempt: program("text-for-a-diff"),
        how: "echo '*.c4 diff=c4' >> .gitattributes; git config diff.c4.textconv PROGRAM",
    },
    Planted {
        attempt: program("diff-driver"),
        how: "echo '*.c5 diff=c5' >> .gitattributes; git config diff.c5.command PROGRAM",
    },
    Planted {
        attempt: program("signature"),
        how: "git config commit.gpgSign true; git config gpg.program PROGRAM",
    },
    Planted {
        attempt: program("file-watcher-of-a-nested-repository"),
        how: "git init -q nested; echo x > nested/x; git -C nested config core.fsmonitor PROGRAM",
    },
];

/// These would stand in the way of the others.
const UNUSUAL: &[Planted] = &[
    Planted {
        attempt: program("hooks-path-in-the-tree"),
        how: "mkdir -p hooks; cp PROGRAM hooks/reference-transaction; cp PROGRAM hooks/post-index-change; \
              git config core.hooksPath hooks",
    },
    Planted { attempt: program("diff-program"), how: "git config diff.external PROGRAM" },
    Planted {
        attempt: program("file-watcher-included"),
        how: "printf '[core]\\n\\tfsmonitor = PROGRAM\\n' > inc; git config include.path ../inc",
    },
    Planted { attempt: program("editor"), how: "git config core.editor PROGRAM" },
    Planted {
        attempt: program("filter-of-every-file"),
        how: "echo '* filter=all' > .gitattributes; git config filter.all.clean PROGRAM",
    },
];

const APART: &[Planted] = &[Planted {
    attempt: program("file-watcher-of-one-worktree"),
    how: "git config core.repositoryformatversion 1; git config extensions.worktreeConfig true; \
          git config -f .git/config.worktree core.fsmonitor PROGRAM",
}];

const FETCHED: &[Planted] = &[Planted {
    attempt: program("fetch-of-a-missing-object"),
    how: "git config core.repositoryformatversion 1; git config extensions.partialClone origin; \
          git config remote.origin.promisor true; git config remote.origin.url ssh://nowhere/x; \
          git config core.sshCommand PROGRAM; b=$(git rev-parse HEAD:a.c1); rm -f \
          .git/objects/${b%${b#??}}/${b#??}",
}];

pub(crate) fn scenes() -> Vec<Scene> {
    let one = |all: &'static [Planted]| {
        Scene::new(all.iter().map(|one| one.attempt).collect(), move |cell| planted(cell, all))
    };
    let path = vec![GIT_ON_PATH, SHELL_ON_PATH];
    vec![one(USUAL), one(UNUSUAL), one(APART), one(FETCHED), Scene::new(path, on_the_path)]
}

/// Endings of files that have a driver each.
const ENDINGS: [&str; 7] = ["c1", "c2", "c3", "c4", "c5", "c6", "c7"];

/// What is in each of those files at first.
const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

async fn planted(cell: Cell, all: &'static [Planted]) -> Vec<Came> {
    let names = ENDINGS.map(|ending| format!("a.{ending}"));
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), LINES)).collect();
    let mut field = Field::new(cell, &files);
    // Each program is a file of its own that passes on what it is given, so that what runs it goes on.
    let plant: Vec<String> = all
        .iter()
        .map(|one| {
            let path = field.work().join("programs").join(one.attempt.name);
            let text = format!(
                "#!/bin/sh\\n: > $OUT/{}\\ncase $0 in *fetch*|*process*) exit 1;; esac\\ncat\\nexit 0\\n",
                one.attempt.name
            );
            let path = path.display();
            let make = format!("mkdir -p programs; printf '{text}' > {path}; chmod +x {path}; ");
            filled(&field, &(make + &one.how.replace("PROGRAM", &path.to_string())))
        })
        .collect();
    let plant: Vec<&str> = plant.iter().map(String::as_str).collect();
    let mut seen = String::new();
    if field.twin() || cell.layers == "best" {
        for command in &plant {
            seen.push_str(&field.plainly(command).await.text());
        }
    } else {
        seen.push_str(&field.commands(&plant, &[]).await.text());
    }
    if field.twin() {
        as_a_person(&field);
    } else {
        seen.push_str(&through_everything(&mut field).await);
    }
    all.iter().map(|one| Came::once(one.attempt.name, field.marked(one.attempt.name), seen.clone())).collect()
}

/// What a person does with git in a day.
fn as_a_person(field: &Field) {
    let dir = field.work();
    let git = |args: &[&str]| plain_git(&dir, args);
    let edit = |line: &str, text: &str| {
        for ending in ENDINGS {
            let name = format!("a.{ending}");
            // A filter that hangs up on git while it checks out can leave a file missing.
            let old = std::fs::read_to_string(dir.join(&name)).unwrap_or_else(|_| LINES.to_owned());
            write(&dir, &name, &old.replace(line, text));
        }
    };
    git(&["status"]);
    git(&["-C", "nested", "status"]);
    edit("1\n", "one\n");
    git(&["diff"]);
    git(&["add", "-A"]);
    git(&["commit", "-m", "by me"]);
    git(&["commit", "--amend"]);
    git(&["update-ref", "refs/x", "HEAD"]);
    git(&["checkout", "-b", "side", "HEAD"]);
    edit("9\n", "nine\n");
    git(&["-c", "commit.gpgSign=false", "commit", "-am", "by me"]);
    git(&["checkout", "-"]);
    edit("5\n", "five\n");
    git(&["-c", "commit.gpgSign=false", "commit", "-am", "by me"]);
    git(&["-c", "commit.gpgSign=false", "merge", "side", "-m", "both"]);
    git(&["worktree", "add", "../tree"]);
    git(&["cat-file", "-p", "HEAD~9:a.c1"]);
    git(&["fsck"]);
    git(&["log", "-p", "--ext-diff", "--all"]);
    git(&["log", "-p", "--all"]);
    git(&["archive", "HEAD"]);
    // Without the watcher, which hides from git that anything was changed, and without the filter that hangs
    // up on git at a moment of its own: every other filter and every hook is due for certain.
    let alone = |args: &[&str]| {
        let without =
            ["-c", "core.fsmonitor=false", "-c", "commit.gpgSign=false", "-c", "filter.c2.process="];
        git(&[&without, args].concat())
    };
    alone(&["add", "--renormalize", "."]);
    alone(&["commit", "--allow-empty", "-m", "by me"]);
    for ending in ENDINGS {
        let _ = std::fs::remove_file(dir.join(format!("a.{ending}")));
    }
    alone(&["checkout", "HEAD", "--", "."]);
    for line in git(&["rev-list", "--all", "--objects", "--missing=print"]).lines() {
        git(&["cat-file", "-p", line.trim_start_matches('?')]);
    }
}

/// Everything of Convoke's that looks at, keeps, shows or changes a tree.
async fn through_everything(field: &mut Field) -> String {
    let edit =
        "for f in a.c?; do sed -i 's/^1$/one/' $f; done; echo new > new.c1; mv a.c2 b.c2; chmod +x a.c3";
    let mut seen = String::new();
    let ended = field.replies(vec![bash(edit), bash("echo more >> a.c1")], &[]).await;
    let run = ended.run();
    seen.push_str(&ended.text());
    let apart = field
        .replies(
            vec![bash("for f in *.c?; do sed -i 's/^9$/nine/' $f; done; echo x > x.c1")],
            &["--isolation", "worktree"],
        )
        .await;
    let tree = apart.run();
    seen.push_str(&apart.text());
    for name in ENDINGS {
        let file = field.work().join(format!("a.{name}"));
        if let Ok(old) = std::fs::read_to_string(&file) {
            std::fs::write(&file, old.replace("5\n", "five\n")).unwrap();
        }
    }
    field.turn_to(doing(vec![bash("true")])).await;
    let layers = field.cell.layers;
    for args in [
        &["worktrees", "list"][..],
        &["worktrees", "diff", &tree, "lead"],
        &["worktrees", "apply", &tree, "lead"],
        &["worktrees", "drop", &tree, "lead", "--force"],
        &["runs", "diff", &run],
        &["runs", "diff", &run, "--stat"],
        &["--offline", "--sandbox-layers", layers, "--fresh", "Review this repository"],
        &["--sandbox", "read-only", "--sandbox-layers", layers, "--fresh", "look", "at", "it"],
        &["runs", "undo", &run],
        &["resume", &run],
        &["doctor"],
        &["runs", "prune", &run, &tree, "--yes"],
    ] {
        let ended = field.person(args).await;
        seen.push_str(&format!("{args:?}: {}", ended.text()));
    }
    seen
}

const GIT_ON_PATH: Attempt = program("git-on-the-path");
const SHELL_ON_PATH: Attempt = program("shell-on-the-path");

/// The workspace has a directory that stands first on the person's path.
async fn on_the_path(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let bin = field.work().join(".venv/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let plant = |name: &str, mark: &str| {
        filled(
            &field,
            &format!(
                "printf '#!/bin/sh\\n: > $OUT/{mark}\\nexec /usr/bin/{name} \"$@\"\\n' > .venv/bin/{name}; \
                    chmod +x .venv/bin/{name}"
            ),
        )
    };
    let mut plant: Vec<String> = vec![plant("git", GIT_ON_PATH.name)];
    plant.extend(["bash", "bwrap", "env", "sh"].map(|name| {
        filled(
            &field,
            &format!(
                "printf '#!/bin/dash\\n: > $OUT/{}\\nexec /usr/bin/{name} \"$@\"\\n' > \
            .venv/bin/{name}; chmod +x .venv/bin/{name}",
                SHELL_ON_PATH.name
            ),
        )
    }));
    #[expect(clippy::disallowed_methods, reason = "the path that the test itself has, with one more place")]
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let with_path = |mut command: tokio::process::Command| {
        command.env("PATH", &path);
        command
    };
    let mut seen = String::new();
    if field.twin() {
        for command in &plant {
            field.plainly(command).await;
        }
        let mut host = with_path(field.stage.prepare(Path::new("/bin/sh")));
        host.args(["-c", "git status; bash -c true"]);
        seen.push_str(&field.ended(host).await.text());
    } else {
        let replies = plant.iter().map(|command| bash(command)).chain([bash("echo x > x")]).collect();
        field.turn_to(doing(replies)).await;
        let layers = ["--sandbox-layers", cell.layers];
        let mut run = String::new();
        for args in [
            &["--fresh", "do", "it"][..],
            &["--fresh", "--isolation", "worktree", "do", "it", "apart"],
            &["worktrees", "list"],
        ] {
            let args = if args[0] == "--fresh" { [&layers[..], args].concat() } else { args.to_vec() };
            let ended = field.ended(with_path(field.command(&args))).await;
            run = if run.is_empty() { ended.run() } else { run };
            seen.push_str(&ended.text());
        }
        for args in [
            &["runs", "diff", &run][..],
            &["doctor"],
            &["runs", "undo", &run],
            &["runs", "prune", &run, "--yes"],
        ] {
            seen.push_str(&field.ended(with_path(field.command(args))).await.text());
        }
    }
    let came = |attempt: Attempt| Came::once(attempt.name, field.marked(attempt.name), seen.clone());
    vec![came(GIT_ON_PATH), came(SHELL_ON_PATH)]
}
