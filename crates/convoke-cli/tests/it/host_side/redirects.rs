//! Ways that lead elsewhere: links and pointers in a git directory that lead what the host writes out of it,
//! or hidden things in; and links where the host reads what a project says. The twin goes where it is led.

use std::path::Path;

use super::attempt::{Attempt, Came, Cell, Scene};
use super::field::{Field, SECRET, plain_git};
use super::targets::filled;
use crate::escapes::{bash, doing};
use crate::repo::{git, write};

const fn led_out(name: &'static str) -> Attempt {
    Attempt { name, family: "git-links", wins: "something outside was written" }
}

const fn led_in(name: &'static str) -> Attempt {
    Attempt { name, family: "hidden", wins: "a line of a hidden file was told or stored" }
}

/// A link in the git directory, and what git does to what it leads to.
struct Link {
    attempt: Attempt,
    plant: &'static str,
    /// A directory that must stay empty, or a file that must stay as it is.
    target: &'static str,
    is_directory: bool,
    twin: &'static [&'static [&'static str]],
}

const LINKS: &[Link] = &[
    Link {
        attempt: led_out("objects"),
        plant: "cp -r .git/objects/. .git/kept; rm -rf .git/objects; ln -s $OUT/objects .git/objects; echo \
            $PWD/.git/kept > $OUT/alternates",
        target: "objects",
        is_directory: true,
        twin: &[&["add", "-A"]],
    },
    Link {
        attempt: led_out("one-directory-of-objects"),
        plant: "for a in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do for b in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do \
                [ -e .git/objects/$a$b ] || ln -s $OUT/some .git/objects/$a$b; done; done",
        target: "some",
        is_directory: true,
        twin: &[&["add", "-A"]],
    },
    Link {
        attempt: led_out("packs"),
        plant: "rm -rf .git/objects/pack; ln -s $OUT/pack .git/objects/pack",
        target: "pack",
        is_directory: true,
        twin: &[&["add", "-A"], &["repack", "-a"]],
    },
    Link {
        attempt: led_out("refs"),
        plant: "rm -rf .git/refs/convoke; ln -s $OUT/refs .git/refs/convoke",
        target: "refs",
        is_directory: true,
        twin: &[&["update-ref", "refs/convoke/x", "HEAD"]],
    },
    Link {
        attempt: led_out("refs-below"),
        plant: "mkdir -p .git/refs/convoke; rm -rf .git/refs/heads/convoke; ln -s $OUT/heads \
            .git/refs/heads/convoke",
        target: "heads",
        is_directory: true,
        twin: &[&["branch", "convoke/x"]],
    },
    Link {
        attempt: led_out("logs"),
        plant: "git config core.logAllRefUpdates always; rm -rf .git/logs; ln -s $OUT/logs .git/logs",
        target: "logs",
        is_directory: true,
        twin: &[&["update-ref", "refs/convoke/x", "HEAD"]],
    },
    Link {
        attempt: led_out("packed-refs-led-out"),
        plant: "rm -f .git/packed-refs; ln -s $OUT/packed/refs .git/packed-refs",
        target: "packed",
        is_directory: true,
        twin: &[&["pack-refs", "--all"]],
    },
    Link {
        attempt: led_out("index-led-out"),
        plant: "rm -f .git/index; ln -s $OUT/index .git/index",
        target: "index",
        is_directory: false,
        twin: &[&["read-tree", "HEAD"], &["add", "-A"]],
    },
];

pub(crate) fn scenes() -> Vec<Scene> {
    let link = |link: &'static Link| Scene::new(vec![link.attempt], move |cell| linked(cell, link));
    let mut scenes: Vec<Scene> = LINKS.iter().map(link).collect();
    scenes.push(Scene::new(vec![SETTINGS_FOR_A_LINK], settings_for_a_link));
    scenes.push(Scene::new(ORACLES.to_vec(), oracles));
    scenes.push(Scene::new(POINTERS.iter().map(|one| one.attempt).collect(), pointers));
    scenes.push(Scene::new(vec![FORGED_BEGINNING], forged_beginning));
    scenes.push(Scene::new(PROJECT.to_vec(), project));
    scenes
}

/// Plants something in a git directory: by a command where it can, else beforehand.
async fn plant(field: &mut Field, command: &str) -> String {
    let command = filled(field, command);
    if field.twin() || field.cell.layers == "best" {
        field.plainly(&command).await.text()
    } else {
        field.commands(&["echo first > first", &command], &[]).await.text()
    }
}

/// A session, its worktree, and everything that is done with the two.
async fn use_it(field: &mut Field) -> String {
    let first = field.replies(vec![bash("echo changed >> a.txt; echo new > new")], &[]).await;
    let apart = field.replies(vec![bash("echo apart > apart")], &["--isolation", "worktree"]).await;
    let mut seen = first.text() + &apart.text();
    let run = first.run();
    let tree = apart.run();
    for args in [
        &["runs", "diff", &run][..],
        &["worktrees", "apply", &tree, "lead"],
        &["worktrees", "drop", &tree, "lead", "--force"],
        &["runs", "undo", &run],
        &["runs", "prune", &run, &tree, "--yes"],
    ] {
        seen.push_str(&field.person(args).await.text());
    }
    seen
}

async fn linked(cell: Cell, link: &'static Link) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let target = field.outside().join(link.target);
    if link.is_directory {
        std::fs::create_dir(&target).unwrap();
    } else {
        field.victim(link.target);
    }
    let mut seen = plant(&mut field, link.plant).await;
    if field.twin() {
        write(&field.work(), "a.txt", "changed\n");
        link.twin.iter().for_each(|args| drop(plain_git(&field.work(), args)));
    } else {
        seen.push_str(&use_it(&mut field).await);
    }
    let won = if link.is_directory {
        std::fs::read_dir(&target).unwrap().next().is_some()
    } else {
        field.harmed(link.target)
    };
    vec![Came::once(link.attempt.name, won, seen)]
}

const SETTINGS_FOR_A_LINK: Attempt = led_in("work-tree-of-the-settings");

/// The repository says that its files lie in a hidden directory.
async fn settings_for_a_link(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let hidden = field.home().join(".ssh");
    let mut seen = plant(&mut field, &format!("git config core.worktree {}", hidden.display())).await;
    if field.twin() {
        plain_git(&field.work(), &["--git-dir=.git", "add", "-A"]);
    } else {
        seen.push_str(&use_it(&mut field).await);
    }
    let won = field.has_blob(&format!("{SECRET}\n"));
    vec![Came::once(SETTINGS_FOR_A_LINK.name, won, seen)]
}

const ORACLES: &[Attempt] =
    &[led_in("ignore-rules-that-are-a-secret"), led_in("exclude-rules-that-are-a-secret")];

/// A hidden file is named as a list of ignored files: a file whose name stands in it is left out, one beside
/// it is not, and so a guess is confirmed by a look at what was kept.
async fn oracles(cell: Cell) -> Vec<Came> {
    let mut came = Vec::new();
    let hidden = |field: &Field| field.home().join(".ssh/key").display().to_string();
    for (attempt, link) in ORACLES.iter().zip([false, true]) {
        let mut field = Field::new(cell, &[("a.txt", "a\n")]);
        let hidden = hidden(&field);
        let command = if link {
            format!("rm -f .git/info/exclude; mkdir -p .git/info; ln -s {hidden} .git/info/exclude")
        } else {
            format!("git config core.excludesFile {hidden}")
        };
        let mut seen = plant(&mut field, &command).await;
        let guess = format!("echo guess > {SECRET}; echo guess > beside");
        let listed = if field.twin() {
            field.plainly(&guess).await;
            plain_git(&field.work(), &["ls-files", "--others", "--exclude-standard"])
        } else {
            let ended = field.replies(vec![bash(&guess)], &[]).await;
            seen.push_str(&ended.text());
            field.person(&["runs", "diff", &ended.run(), "--name-only"]).await.stdout().to_owned()
        };
        came.push(Came::once(
            attempt.name,
            listed.contains("beside") && !listed.contains(SECRET),
            seen + &listed,
        ));
    }
    came
}

/// A pointer that makes a hidden repository the workspace's own.
struct Pointer {
    attempt: Attempt,
    plant: &'static str,
}

const POINTERS: &[Pointer] = &[
    Pointer {
        attempt: led_in("pointer-to-a-hidden-repository"),
        plant: "rm -rf .git; echo 'gitdir: $HIDDEN/.git' > .git",
    },
    Pointer {
        attempt: led_in("shared-directory-of-a-hidden-repository"),
        plant: "rm -rf .git; mkdir .git; echo $HIDDEN/.git > .git/commondir; echo 'ref: refs/heads/main' > \
            .git/HEAD",
    },
    Pointer { attempt: led_in("link-to-a-hidden-repository"), plant: "rm -rf .git; ln -s $HIDDEN/.git .git" },
];

/// A repository in the home, and the names of its commit and its tree.
fn hidden_repository(field: &Field) -> (std::path::PathBuf, String, String) {
    let hidden = field.home().join("hidden");
    std::fs::create_dir(&hidden).unwrap();
    git(&hidden, &["init", "-q"]);
    write(&hidden, "secret.txt", &format!("{SECRET}\n"));
    git(&hidden, &["add", "-A"]);
    git(&hidden, &["commit", "-q", "-m", "hidden"]);
    let name = |what: &str| git(&hidden, &["rev-parse", what]).trim().to_owned();
    (hidden.clone(), name("HEAD"), name("HEAD^{tree}"))
}

const FORGED_BEGINNING: Attempt = led_in("beginning-of-a-run-from-a-hidden-repository");

/// The opponent knows the name of a hidden tree. It lends the workspace the objects of that repository and
/// says that this is what stood there before the session, so that taking the session back would bring the
/// files here.
async fn forged_beginning(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let (hidden, commit, tree) = hidden_repository(&field);
    let lend = format!(
        "mkdir -p .git/objects/info; echo {}/.git/objects > .git/objects/info/alternates; ",
        hidden.display()
    );
    if field.twin() {
        field.plainly(&format!("{lend} git update-ref refs/convoke/x/before {commit}")).await;
        plain_git(&field.work(), &["restore", "--source", "refs/convoke/x/before", "--", "."]);
    } else {
        let forge = format!(
            "{lend} for r in .git/refs/convoke/*; do c=$(git cat-file commit $(cat $r/before) | sed \
             's/^tree .*/tree {tree}/' | git hash-object -t commit -w --stdin); echo $c > $r/before; rm -f \
             $r/after; d=$(git cat-file commit $c | sed 's/^tree .*/tree '$(git rev-parse \
             HEAD^{{tree}})'/;s/^author/parent '$c'\\nauthor/' | git hash-object -t commit -w --stdin); \
             done; true"
        );
        let ended = field.replies(vec![bash("echo x > x"), bash(&forge), bash("echo y > y")], &[]).await;
        let mut seen = ended.text();
        for args in [&["runs", "diff", &ended.run()][..], &["runs", "undo", &ended.run()]] {
            seen.push_str(&field.person(args).await.text());
        }
        let brought = std::fs::read_to_string(field.work().join("secret.txt")).unwrap_or_default();
        let won = seen.contains(SECRET) || brought.contains(SECRET);
        return vec![Came::once(FORGED_BEGINNING.name, won, seen)];
    }
    let brought = std::fs::read_to_string(field.work().join("secret.txt")).unwrap_or_default();
    vec![Came::once(FORGED_BEGINNING.name, brought.contains(SECRET), brought)]
}

/// The next session works in a worktree that is cut from what the pointer names, and reads it there.
async fn pointers(cell: Cell) -> Vec<Came> {
    let mut came = Vec::new();
    for pointer in POINTERS {
        let mut field = Field::bare(cell);
        let (hidden, ..) = hidden_repository(&field);
        let command = pointer.plant.replace("$HIDDEN", &hidden.display().to_string());
        let look = "cat secret.txt; git show HEAD:secret.txt; cat *.txt";
        if field.twin() {
            field.plainly(&command).await;
            plain_git(&field.work(), &["worktree", "add", "-f", "../tree", "HEAD"]);
            let tree = field.home().parent().unwrap().join("tree/secret.txt");
            let told = std::fs::read_to_string(tree).unwrap_or_default();
            came.push(Came::once(pointer.attempt.name, told.contains(SECRET), told));
            continue;
        }
        let mut seen = field.commands(&[&command], &[]).await.text();
        let apart = field.replies(vec![bash(look)], &["--isolation", "worktree"]).await;
        let mut told = field.told();
        seen.push_str(&apart.text());
        let plain = field.replies(vec![bash(look)], &[]).await;
        told.push_str(&field.told());
        seen.push_str(&plain.text());
        let diff = field.person(&["worktrees", "diff", &apart.run(), "lead"]).await.text();
        let more = field.person(&["runs", "diff", &plain.run()]).await.text();
        let won = [told, diff, more].iter().any(|text| text.contains(SECRET));
        came.push(Came::once(pointer.attempt.name, won, seen));
    }
    came
}

const PROJECT: &[Attempt] = &[
    led_in("memory-that-is-a-link"),
    led_in("memory-through-two-links"),
    led_in("project-settings-that-are-a-link"),
    led_in("project-directory-that-is-a-link"),
    led_in("workflow-that-is-a-link"),
    led_in("workflows-that-are-a-link"),
    led_in("workflow-that-is-a-link-checked"),
];

/// What a project says to its agents and to Convoke, where it leads to a hidden file.
async fn project(cell: Cell) -> Vec<Came> {
    let mut came = Vec::new();
    let plants: [(&str, &str, &[&[&str]]); 7] = [
        ("ln -s ../home/.ssh/key CLAUDE.md", "CLAUDE.md", &[&["--trust-project", "--fresh", "do", "it"]]),
        (
            "ln -s ../home/.ssh/key x; ln -s x AGENTS.md",
            "AGENTS.md",
            &[&["--trust-project", "--fresh", "do", "it"]],
        ),
        (
            "mkdir .convoke; ln -s ../../home/.ssh/key .convoke/config.toml",
            ".convoke/config.toml",
            &[&["--fresh", "do", "it"], &["config", "show"], &["doctor"]],
        ),
        (
            "ln -s ../home/project .convoke",
            ".convoke/config.toml",
            &[&["--fresh", "do", "it"], &["config", "show"], &["doctor"]],
        ),
        (
            "mkdir -p .convoke/workflows; ln -s ../../../home/.ssh/key .convoke/workflows/probe.js",
            ".convoke/workflows/probe.js",
            &[&["workflow", "show", "probe", "--trust-project"], &["workflow", "list", "--trust-project"]],
        ),
        (
            "mkdir .convoke; ln -s ../../home/flows .convoke/workflows",
            ".convoke/workflows/probe.js",
            &[&["workflow", "show", "probe", "--trust-project"], &["workflow", "list", "--trust-project"]],
        ),
        (
            "mkdir -p .convoke/workflows; ln -s ../../../home/.ssh/key .convoke/workflows/probe.js",
            ".convoke/workflows/probe.js",
            &[
                &["workflow", "check", ".convoke/workflows/probe.js"],
                &["workflow", "run", ".convoke/workflows/probe.js"],
            ],
        ),
    ];
    for (attempt, (plant, file, then)) in PROJECT.iter().zip(plants) {
        let mut field = Field::new(cell, &[("a.txt", "a\n")]);
        write(&field.home(), "project/config.toml", &format!("{SECRET}\n"));
        let flow =
            format!("// {SECRET}\n{}", crate::workflow_run::script(&format!("log('{SECRET}')\nreturn 1")));
        write(&field.home(), "flows/probe.js", &flow);
        let mut seen = field.commands(&[plant], &[]).await.text();
        let won = if field.twin() {
            std::fs::read_to_string(field.work().join(Path::new(file)))
                .is_ok_and(|text| text.contains(SECRET))
        } else {
            field.turn_to(doing(vec![bash("true")])).await;
            for args in then {
                let args = if args.contains(&"--fresh") {
                    [&["--sandbox-layers", cell.layers][..], args].concat()
                } else {
                    args.to_vec()
                };
                seen.push_str(&field.person(&args).await.text());
            }
            seen.contains(SECRET) || field.requests().contains(SECRET)
        };
        came.push(Came::once(attempt.name, won, seen));
    }
    came
}
