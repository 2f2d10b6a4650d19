//! Hooks that a repository's configuration names, which git 2.54 and newer run whatever `core.hooksPath`
//! says. In CI the git is a stand-in that does so; `CONVOKE_NEW_GIT` names a real one (`scripts/soak`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use convoke_sandbox::Sight;

use crate::world::{World, like_commands};

/// A directory of its own for this git, and nothing else.
fn only(world: &World, git: &Path) -> String {
    let bin = world.beside("bin");
    fs::create_dir_all(&bin).unwrap();
    // Copied by another process: a child of another test could inherit our handle, and then the copy could
    // not be run.
    assert!(Command::new("cp").arg(git).arg(bin.join("git")).status().unwrap().success());
    bin.to_str().unwrap().to_owned()
}

/// A repository whose configuration names a hook for what we do, and the file that the hook leaves behind.
fn planted() -> (World, PathBuf) {
    let world = World::repository(&[("a", "1\n")]);
    let ran = world.beside("ran");
    for event in ["reference-transaction", "post-index-change", "post-checkout"] {
        let name = format!("hook.{event}-x");
        let command = format!("echo {event} >> '{}'", ran.display());
        world.git(["config", &format!("{name}.command"), &command]);
        world.git(["config", &format!("{name}.event"), event]);
    }
    (world, ran)
}

/// Whether the run's tree was kept, and whether a hook ran meanwhile.
async fn keep(git: &Path, sight: Sight) -> (Result<(), String>, bool) {
    let (mut world, ran) = planted();
    world.places.path = only(&world, git);
    world.places.sight = sight;
    let keeper = world.keeper("s_1").await;
    let kept = keeper.before().await.map(drop).map_err(|error| error.to_string());
    (kept, ran.exists())
}

#[tokio::test]
async fn a_hook_that_the_configuration_names_is_not_run_by_a_git_that_would() {
    let git = Path::new(env!("CARGO_BIN_EXE_convoke-trees-hooking-git"));
    // The stand-in has no switch for events, as git 2.54: without walls it runs the hook, and with them it
    // cannot start it.
    let (kept, ran) = keep(git, Sight::Everything).await;
    assert!(kept.is_ok() && ran, "the stand-in runs hooks: {kept:?}");
    let (kept, ran) = keep(git, like_commands()).await;
    assert!(!ran, "{kept:?}");
    assert!(kept.is_err_and(|said| said.contains("hook")), "what cannot be recorded is told");
}

#[tokio::test]
async fn a_git_that_runs_hooks_of_the_configuration_keeps_trees_and_runs_none() {
    let Some(git) = std::env::var_os("CONVOKE_NEW_GIT").map(PathBuf::from) else { return };
    let (world, ran) = planted();
    let said =
        Command::new(&git).args(["update-ref", "refs/x", "HEAD"]).current_dir(&world.dir).output().unwrap();
    assert!(said.status.success() && ran.exists(), "{} runs such hooks: {said:?}", git.display());
    for sight in [like_commands(), Sight::Everything] {
        let (kept, ran) = keep(&git, sight.clone()).await;
        assert_eq!((kept, ran), (Ok(()), false), "{sight:?}");
    }
    println!("a real git that runs hooks of the configuration: {}", git.display());
}
