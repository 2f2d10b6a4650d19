//! What a probe found is remembered: the next start tries nothing, and a shell that holds less is refused.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use convoke_sandbox::{
    Access, Error, HelperPath, HoldChoice, LayerSet, Layers, Network, ProbeMemory, Promise, Shell, hold,
    probe,
};
use tempfile::TempDir;

use crate::helper;

/// A helper that notes each of its starts.
struct Counted {
    dir: TempDir,
    memory: ProbeMemory,
}

impl Counted {
    fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let memory = ProbeMemory::below(&dir.path().join("state"));
        let counted = Self { dir, memory };
        counted.make();
        counted
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("helper")
    }

    fn make(&self) {
        let (starts, own) = (self.dir.path().join("starts"), helper().program);
        let text = format!("#!/bin/sh\necho start >> {}\nexec {} \"$@\"\n", starts.display(), own.display());
        let aside = self.dir.path().join("aside");
        std::fs::write(&aside, text).unwrap();
        std::fs::set_permissions(&aside, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::rename(&aside, self.program()).unwrap();
    }

    fn starts(&self) -> usize {
        std::fs::read_to_string(self.dir.path().join("starts")).unwrap_or_default().lines().count()
    }

    async fn layers(&self) -> Layers {
        let path = Some(OsStr::new("/usr/bin:/bin"));
        self.memory.layers(&HelperPath::new(self.program()), path, Path::new("/nowhere")).await.unwrap()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("state/sandbox.json")
    }
}

#[tokio::test]
async fn the_layers_are_tried_once_and_again_for_another_helper() {
    let counted = Counted::new();
    let first = counted.layers().await;
    assert!(!counted.file().exists(), "looking makes no state directory");
    counted.memory.settle();
    if !first.landlock.works || !first.seccomp.works {
        eprintln!("skipped: nothing can be held here, which is never remembered");
        return;
    }
    assert_eq!(counted.starts(), 2, "both sets are tried");
    assert_eq!((counted.layers().await, counted.starts()), (first.clone(), 2), "and then remembered");
    counted.make();
    assert_eq!((counted.layers().await, counted.starts()), (first.clone(), 4), "a new file under its name");
    counted.memory.forget();
    assert_eq!((counted.layers().await, counted.starts()), (first.clone(), 6), "nothing is remembered");
    std::fs::write(counted.file(), "{").unwrap();
    assert_eq!((counted.layers().await, counted.starts()), (first.clone(), 8), "a damaged file");
    let path = Some(OsStr::new("/usr/bin:/bin"));
    let program = HelperPath::new(counted.program());
    let anew = counted.memory.anew(&program, path, Path::new("/nowhere")).await.unwrap();
    assert_eq!((anew, counted.starts()), (first, 10), "the doctor tries in any case");
}

#[tokio::test]
async fn a_shell_that_holds_less_than_was_remembered_is_refused_and_forgotten() {
    let counted = Counted::new();
    let layers = probe(&helper(), None, Path::new("/nowhere")).await.unwrap();
    let Ok(held) = hold(&layers, Access::Workspace, &Network::Off, Some(LayerSet::Landlock)) else {
        eprintln!("skipped: nothing can be held here");
        return;
    };
    counted.layers().await;
    counted.memory.settle();
    assert!(counted.file().exists());
    let world = crate::confine::World::new();
    let mut config = world.config(LayerSet::Landlock, world.policy(Access::Workspace, "a"), None);
    config.promise = Promise { own_processes: held.own_processes, memory: Some(counted.memory.clone()) };
    Shell::start(config.clone()).await.unwrap().stop().await.unwrap();
    assert!(counted.file().exists(), "a promise that was kept stays remembered");
    // As if the machine had allowed a pid namespace when it was asked, and does not now.
    config.promise.own_processes = true;
    config.hold = HoldChoice::Subreaper;
    let error = Shell::start(config.clone()).await.unwrap_err();
    assert!(matches!(error, Error::NotAsTried { .. }), "{error}");
    assert!(error.to_string().contains("start again"), "{error}");
    assert!(!counted.file().exists());
    config.promise.own_processes = false;
    Shell::start(config).await.unwrap().stop().await.unwrap();
}
