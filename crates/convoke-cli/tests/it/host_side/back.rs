//! Putting files where they were or where they belong: undo, taking over a worktree, pruning. Between the
//! change and the putting back another run of the opponent's has put links, pipes and directories in the way.
//! The twin writes and removes by path.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::attempt::{Attempt, Came, Cell, Scene};
use super::field::{DriveOutcome, Field, SECRET, waits_at};
use super::targets::filled;
use crate::escapes::bash;
use crate::repo::write;

/// What a victim holds, and what the session leaves in the file that the victim stands in for: so that a
/// comparison by path finds what it expects.
const LEFT: &str = "as it was";

const fn undo(name: &'static str) -> Attempt {
    Attempt { name, family: "undo", wins: "something outside was changed, or the host hangs" }
}

const fn apply(name: &'static str) -> Attempt {
    Attempt { name, family: "apply", wins: "something outside was changed, or the host hangs" }
}

const fn prune(name: &'static str) -> Attempt {
    Attempt { name, family: "prune", wins: "something outside was removed" }
}

const UNDO: [Attempt; 9] = [
    undo("undo-directory-now-a-link"),
    undo("undo-deleted-file-below-a-link"),
    undo("undo-added-file-below-a-link"),
    undo("undo-file-now-a-link"),
    undo("undo-mode-through-a-link"),
    undo("undo-temporary-file-is-a-link"),
    undo("undo-directory-above-now-a-link"),
    undo("undo-into-the-hooks"),
    undo("undo-file-now-a-pipe"),
];

const APPLY: [Attempt; 9] = [
    apply("apply-directory-now-a-link"),
    apply("apply-new-file-below-a-link"),
    apply("apply-removed-file-below-a-link"),
    apply("apply-file-now-a-link"),
    apply("apply-mode-through-a-link"),
    apply("apply-temporary-file-is-a-link"),
    apply("apply-directory-above-now-a-link"),
    apply("apply-into-the-hooks"),
    apply("apply-file-now-a-pipe"),
];

/// What the first run of an undo does. Where a victim stands in, the file is left as the victim is.
const CHANGE: &str = "echo 'as it was' > d1/x; rm d2/x; echo 'as it was' > d3/new; echo 'as it was' > f4; \
    chmod +x f5; echo changed > f6; echo 'as it was' > d7/e/x; rm d8/pre-commit; echo changed > f9";

/// What the worktree of an apply does. The checkout still has what the victim has.
const CHANGE_APART: &str = "echo changed > d1/x; echo new > d2/new; rm d3/x; echo changed > f4; chmod +x \
    f5; echo changed > f6; echo changed > d7/e/x; printf '#!/bin/sh\\n' > d8/post-commit; chmod +x \
    d8/post-commit; echo changed > f9";

/// What the second run puts in the way.
const TRAPS: &str = "rm -rf d1 d2 d3 f4 f5 d7 d8 f9; ln -s $OUT/d1 d1; ln -s $OUT/d2 d2; ln -s $OUT/d3 d3; \
    ln -s $OUT/f4 f4; ln -s $OUT/f5 f5; ln -s $OUT/d7 d7; ln -s .git/hooks d8; mkfifo f9; for r in \
    .git/refs/convoke/* .git/refs/convoke/*/*; do n=$(basename $r); ln -sfn $OUT/temporary \
    .convoke-undo-$n; for m in $n-lead $n; do ln -sfn $OUT/temporary .convoke-apply-$m; done; done";

pub(crate) fn scenes() -> Vec<Scene> {
    vec![
        Scene::new(UNDO.to_vec(), undone),
        Scene::new(APPLY.to_vec(), applied),
        Scene::new(vec![WORKTREE_POINTER], worktree_pointer),
        Scene::new(PRUNE.to_vec(), pruned),
    ]
}

fn prepared(cell: Cell) -> Field {
    let text = format!("{LEFT}\n");
    let before = [
        ("d1/x", "before\n"),
        ("d2/x", "before\n"),
        ("d3/x", "before\n"),
        ("f4", "before\n"),
        ("f5", text.as_str()),
        ("f6", "before\n"),
        ("d7/e/x", "before\n"),
        ("d8/pre-commit", "#!/bin/sh\n"),
        ("f9", "before\n"),
    ];
    let same = before.map(|(name, text)| (name, if text == "before\n" { "as it was\n" } else { text }));
    let field = Field::new(cell, if cell.tries == u32::MAX { &same } else { &before });
    for victim in ["d1/x", "d3/x", "d3/new", "f4", "f5", "temporary", "d7/e/x"] {
        field.victim(victim);
    }
    std::fs::create_dir(field.outside().join("d2")).unwrap();
    let mode = if cell.tries == u32::MAX { 0o644 } else { 0o755 };
    std::fs::set_permissions(field.outside().join("f5"), PermissionsExt::from_mode(mode)).unwrap();
    field
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

async fn undone(cell: Cell) -> Vec<Came> {
    let mut field = prepared(cell);
    let first = field.commands(&[CHANGE], &[]).await;
    let traps = filled(&field, TRAPS);
    let second = field.commands(&[&traps], &[]).await;
    let mut seen = first.text() + &second.text();
    let dir = field.work();
    let ended = if field.twin() {
        let put = |name: &str| drop(std::fs::write(dir.join(name), "before\n"));
        ["d1/x", "d2/x", "f4", "d7/e/x", "d8/pre-commit"].iter().for_each(|name| put(name));
        let _ = std::fs::remove_file(dir.join("d3/new"));
        let _ = std::fs::set_permissions(dir.join("f5"), PermissionsExt::from_mode(0o644));
        let beside = dir.join(".convoke-undo-x");
        let _ = std::os::unix::fs::symlink(field.outside().join("temporary"), &beside);
        let _ = std::fs::write(&beside, "before\n");
        let mut look = field.stage.prepare(Path::new("cat"));
        look.arg("f9");
        let waits = waits_at(look, &[dir.join("f9")]).await;
        if waits { DriveOutcome::Hung { left: 0 } } else { second }
    } else {
        field.person(&["runs", "undo", &first.run()]).await
    };
    seen.push_str(&ended.text());
    let hook = dir.join(".git/hooks/pre-commit");
    let won = [
        field.harmed("d1/x"),
        field.marked("d2/x"),
        field.harmed("d3/new"),
        field.harmed("f4"),
        field.harmed("f5") || mode(&field.outside().join("f5")) != 0o755,
        field.harmed("temporary"),
        field.harmed("d7/e/x"),
        hook.exists(),
        ended.hung(),
    ];
    UNDO.iter().zip(won).map(|(attempt, won)| Came::once(attempt.name, won, seen.clone())).collect()
}

async fn applied(cell: Cell) -> Vec<Came> {
    // The marker for the other half: the checkout has what the victims have.
    let mut field = prepared(Cell { tries: u32::MAX, ..cell });
    let apart = field.commands(&[CHANGE_APART], &["--isolation", "worktree"]).await;
    if field.twin() {
        // The twin has no worktree; its changes are known, and the checkout is as it was.
        field.plainly("git checkout -q . ; git clean -qfd").await;
    }
    let traps = filled(&field, TRAPS);
    let second = field.commands(&[&traps], &[]).await;
    let mut seen = apart.text() + &second.text();
    let dir = field.work();
    let ended = if field.twin() {
        let put = |name: &str| drop(std::fs::write(dir.join(name), "changed\n"));
        ["d1/x", "d2/new", "f4", "d7/e/x", "d8/post-commit"].iter().for_each(|name| put(name));
        let _ = std::fs::remove_file(dir.join("d3/x"));
        let _ = std::fs::set_permissions(dir.join("f5"), PermissionsExt::from_mode(0o755));
        let beside = dir.join(".convoke-apply-x");
        let _ = std::os::unix::fs::symlink(field.outside().join("temporary"), &beside);
        let _ = std::fs::write(&beside, "changed\n");
        let mut look = field.stage.prepare(Path::new("cat"));
        look.arg("f9");
        let waits = waits_at(look, &[dir.join("f9")]).await;
        if waits { DriveOutcome::Hung { left: 0 } } else { second }
    } else {
        let tree = apart.run();
        let mut ended = field.person(&["worktrees", "apply", &tree, "lead"]).await;
        // What conflicts goes first; the rest is tried again without it, one file after the other.
        for path in ["f9", "d1", "d2", "d3", "f4", "f5", "d7"] {
            if ended.hung() {
                break;
            }
            seen.push_str(&ended.text());
            field.plainly(&format!("rm -rf {path}; git checkout -q -- {path}")).await;
            ended = field.person(&["worktrees", "apply", &tree, "lead"]).await;
        }
        ended
    };
    seen.push_str(&ended.text());
    let hook = dir.join(".git/hooks/post-commit");
    let won = [
        field.harmed("d1/x"),
        field.marked("d2/new"),
        field.harmed("d3/x"),
        field.harmed("f4"),
        field.harmed("f5") || mode(&field.outside().join("f5")) != 0o644,
        field.harmed("temporary"),
        field.harmed("d7/e/x"),
        hook.exists(),
        ended.hung(),
    ];
    APPLY.iter().zip(won).map(|(attempt, won)| Came::once(attempt.name, won, seen.clone())).collect()
}

const WORKTREE_POINTER: Attempt = Attempt {
    name: "worktree-that-points-to-a-hidden-repository",
    family: "apply",
    wins: "a line of a hidden file was told or stored",
};

/// In its worktree the opponent makes a hidden repository its own, and the person looks at the work.
async fn worktree_pointer(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let hidden = field.home().join("hidden");
    std::fs::create_dir(&hidden).unwrap();
    crate::repo::git(&hidden, &["init", "-q"]);
    write(&hidden, "secret.txt", &format!("{SECRET}\n"));
    crate::repo::git(&hidden, &["add", "-A"]);
    crate::repo::git(&hidden, &["commit", "-q", "-m", "hidden"]);
    let command = format!("rm -rf .git; echo 'gitdir: {}/.git' > .git; echo x > x", hidden.display());
    if field.twin() {
        crate::repo::git(&field.work(), &["worktree", "add", "-q", "../tree"]);
        field.plainly(&format!("cd ../tree; {command}")).await;
        let tree = field.home().parent().unwrap().join("tree");
        let told = super::field::plain_git(&tree, &["diff"]);
        return vec![Came::once(WORKTREE_POINTER.name, told.contains(SECRET), told)];
    }
    let apart = field.commands(&[&command], &["--isolation", "worktree"]).await;
    let tree = apart.run();
    let mut seen = apart.text();
    for args in [
        &["worktrees", "list"][..],
        &["worktrees", "diff", &tree, "lead"],
        &["worktrees", "apply", &tree, "lead"],
        &["resume", &tree],
        &["worktrees", "drop", &tree, "lead", "--force"],
    ] {
        seen.push_str(&field.person(args).await.text());
    }
    let won = seen.contains(SECRET) || field.has_blob(&format!("{SECRET}\n"));
    vec![Came::once(WORKTREE_POINTER.name, won, seen)]
}

const PRUNE: [Attempt; 3] = [
    prune("prune-link-to-a-directory"),
    prune("prune-link-in-a-closed-directory"),
    prune("prune-worktree-with-a-link"),
];

/// The opponent leaves links in what is removed with its session.
async fn pruned(cell: Cell) -> Vec<Came> {
    let mut field = Field::new(cell, &[("a.txt", "a\n")]);
    let names = ["a/precious", "b/precious", "c/precious"];
    for name in names {
        field.victim(name);
    }
    let plant = "ln -s $OUT/a $TMPDIR/link; mkdir -p $TMPDIR/closed; ln -s $OUT/b $TMPDIR/closed/link; chmod \
        500 $TMPDIR/closed";
    let plant = filled(&field, plant);
    let link = filled(&field, "ln -s $OUT/c link; echo ignored > .gitignore; echo x > ignored");
    let mut seen = String::new();
    if field.twin() {
        let private = field.home().join("private");
        std::fs::create_dir(&private).unwrap();
        field
            .plainly(&format!(
                "export TMPDIR={}; {plant}; cd $TMPDIR; {}",
                private.display(),
                link.replace(" link", " tree-link")
            ))
            .await;
        remove_through_links(&private);
    } else {
        let first = field.replies(vec![bash(&plant)], &[]).await;
        let apart = field.replies(vec![bash(&link)], &["--isolation", "worktree"]).await;
        seen.push_str(&(first.text() + &apart.text()));
        for args in [
            &["worktrees", "drop", &apart.run(), "lead", "--force"][..],
            &["runs", "prune", &first.run(), &apart.run(), "--yes"],
        ] {
            seen.push_str(&field.person(args).await.text());
        }
    }
    PRUNE
        .iter()
        .zip(names)
        .map(|(attempt, name)| Came::once(attempt.name, field.harmed(name), seen.clone()))
        .collect()
}

/// Removes a directory without a thought of links.
fn remove_through_links(path: &Path) {
    let Ok(found) = std::fs::metadata(path) else { return };
    if !found.is_dir() {
        let _ = std::fs::remove_file(path);
        return;
    }
    let _ = std::fs::set_permissions(path, PermissionsExt::from_mode(0o700));
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        remove_through_links(&entry.path());
    }
    let _ = std::fs::remove_dir(path);
}
