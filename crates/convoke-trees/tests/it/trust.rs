//! A repository is not trusted: no program that it names is ever run.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use convoke_trees::DiffForm;

use crate::world::{World, command, undo};

/// Everything by which a repository can name a program, each of which would leave a file behind.
fn plant(world: &World, in_dir: &std::path::Path) -> std::path::PathBuf {
    let ran = world.beside("ran");
    let program = world.beside("program");
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexec cat\n", ran.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let program = program.to_str().unwrap();
    let keys = [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
        "core.askPass",
        "core.alternateRefsCommand",
        "credential.helper",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "filter.x.clean",
        "filter.x.smudge",
        "filter.y=z.process",
        "merge.x.driver",
        "gpg.program",
        "pager.log",
        "sequence.editor",
        "interactive.diffFilter",
        "uploadpack.packObjectsHook",
        "hook.h.command",
    ];
    for key in keys {
        world.git_in(in_dir, ["config", key, program]);
    }
    for (key, value) in [
        ("filter.x.required", "true"),
        ("filter.y=z.required", "true"),
        ("commit.gpgSign", "true"),
        ("log.showSignature", "true"),
        ("hook.h.event", "reference-transaction"),
        ("gc.auto", "1"),
        ("alias.log", &format!("!{program}")),
        ("alias.ls-files", &format!("!{program}")),
    ] {
        world.git_in(in_dir, ["config", key, value]);
    }
    let git_dir = in_dir.join(".git");
    let hooks = git_dir.join("hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "reference-transaction",
        "post-index-change",
        "post-checkout",
        "pre-commit",
        "pre-auto-gc",
        "fsmonitor-watchman",
    ] {
        fs::copy(program, hooks.join(hook)).unwrap();
    }
    fs::create_dir_all(git_dir.join("info")).unwrap();
    fs::write(git_dir.join("info/attributes"), "* filter=x diff=x merge=x\n").unwrap();
    ran
}

#[tokio::test]
async fn no_program_that_a_repository_names_is_run() {
    let world = World::repository(&[("a", "1\n"), ("b", "1\n")]);
    let inner = World::repository(&[("x", "1\n")]);
    world.git(["submodule", "--quiet", "add", inner.dir.to_str().unwrap(), "module"]);
    world.git(["clone", "-q", inner.dir.to_str().unwrap(), "nested"]);
    world.commit("with others");
    let ran = plant(&world, &world.dir);
    plant(&world, &world.path("nested"));
    world.write(".gitattributes", "* filter=x diff=x merge=x\nb filter=y=z\n");
    // The person's own git does run them: the trap works.
    world.write("a", "2\n");
    let _ = std::process::Command::new("git").args(["add", "a"]).current_dir(&world.dir).output().unwrap();
    assert!(ran.exists());
    fs::remove_file(&ran).unwrap();

    let keeper = world.keeper("s_1").await;
    keeper.before().await.unwrap();
    command(&keeper, "a_1", || {
        world.write("a", "3\n");
        world.write("b", "3\n");
        world.write("module/x", "3\n");
        world.write("nested/x", "3\n");
        world.write("new", "3\n");
        world.write(".gitignore", "x\n");
    })
    .await;
    command(&keeper, "a_1", || world.write(".gitignore", "")).await;
    for form in [DiffForm::Patch, DiffForm::Stat, DiffForm::Names] {
        assert!(!keeper.diff(form).await.unwrap().is_empty());
    }
    assert_eq!(undo(&keeper).await.0.len(), 4);
    drop(keeper);
    convoke_trees::forget(&world.places, &world.dir, "s_1").await.unwrap();
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap());
    assert_eq!((world.read("a"), world.read("b")), (b"2\n".to_vec(), b"1\n".to_vec()));
}

/// A program that says that it was run, and then is git all the same.
fn plant_git(world: &World, place: &std::path::Path) -> std::path::PathBuf {
    let ran = world.beside("ran");
    fs::create_dir_all(place).unwrap();
    let program = place.join("git");
    fs::write(&program, format!("#!/bin/sh\necho ran >> {}\nexec /usr/bin/git \"$@\"\n", ran.display()))
        .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    ran
}

#[tokio::test]
async fn a_git_that_an_agent_wrote_is_never_run() {
    for (mut world, plain) in [(World::repository(&[("a", "1\n")]), false), (World::plain(), true)] {
        let places = [world.path(".venv/bin"), world.places.state.join("worktrees/s_1/a_1/tree/bin")];
        let first = std::env::join_paths(&places).unwrap().into_string().unwrap();
        world.places.path = format!("{first}:.:{}", world.places.path);
        let keeper = world.keeper("s_1").await;
        keeper.open_window("a_1").await.unwrap();
        let ran = plant_git(&world, &places[0]);
        plant_git(&world, &places[1]);
        // The same by another name: a link from elsewhere leads into the directory.
        let linked = world.beside("linked");
        std::os::unix::fs::symlink(&places[0], &linked).unwrap();
        world.places.path = format!("{}:{}", linked.display(), world.places.path);
        world.write("a", "2\n");
        keeper.close_window("a_1", "writes git").await.unwrap();
        drop(keeper);
        let keeper = world.keeper("s_1").await;
        command(&keeper, "a_1", || world.write("b", "2\n")).await;
        undo(&keeper).await;
        if !plain {
            let worktrees = convoke_trees::Worktrees::open(world.places.clone(), &world.dir).await.unwrap();
            worktrees.create("s_2", "a_1").await.unwrap();
            worktrees.finish("s_2", "a_1").await.unwrap();
        }
        assert!(!ran.exists());
    }
}

/// Where agents may write the git dir, a link there must not lead what we write to another place.
#[tokio::test]
async fn a_link_in_the_git_dir_is_refused_and_nothing_is_written_behind_it() {
    for name in [
        "refs/convoke/s_1",
        "refs/convoke",
        "objects",
        "objects/pack",
        "objects/ab",
        "packed-refs",
        "logs/refs/convoke/s_1/after",
        "",
    ] {
        let world = World::repository(&[("a", "1\n")]);
        let keeper = world.keeper("s_1").await;
        command(&keeper, "a_1", || world.write("a", "2\n")).await;
        let outside = world.beside("outside");
        let planted = if name.is_empty() { world.path(".git") } else { world.path(".git").join(name) };
        keeper.open_window("a_1").await.unwrap();
        if planted.is_dir() {
            fs::rename(&planted, &outside).unwrap();
        } else {
            fs::create_dir_all(planted.parent().unwrap()).unwrap();
            if name.ends_with("ab") {
                fs::create_dir(&outside).unwrap();
            } else {
                fs::write(&outside, "").unwrap();
            }
        }
        std::os::unix::fs::symlink(&outside, &planted).unwrap();
        let behind = || listed(&outside);
        let before = behind();
        world.write("a", "3\n");
        let error = keeper.close_window("a_1", "").await.unwrap_err();
        assert!(matches!(error, convoke_trees::Error::BadRepository { .. }), "{name}: {error}");
        assert_eq!(behind(), before, "{name}");
    }
}

/// Everything below a place, with its content.
fn listed(place: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    if !place.is_dir() {
        return vec![(place.to_owned(), fs::read(place).unwrap())];
    }
    let mut all: Vec<_> =
        fs::read_dir(place).unwrap().flat_map(|entry| listed(&entry.unwrap().path())).collect();
    all.sort();
    all
}
