//! Two agents write side by side, one takes a file over from the other, and a person edits beside them. The
//! process is stopped for good before every step of this. Whatever the step: each change is its agent's, each
//! version that was written over is in a step, both agents are told, and undo brings everything back.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use convoke_sandbox::{Sight, Unseen};

use crate::claims::Place;
use crate::keeper::Keeper;
use crate::places::HostPlaces;
use crate::stops::Steps;

const RUN: &str = "s_1";

struct Bed {
    _dir: tempfile::TempDir,
    top: PathBuf,
    places: HostPlaces,
    /// What was written by whom, in order: path, author, content.
    written: Mutex<Vec<(&'static str, &'static str, String)>>,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let top = root.join("repo");
        fs::create_dir(&top).unwrap();
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        let places =
            HostPlaces { path, state: root.join("state"), sight: Sight::LikeCommands(Unseen::default()) };
        let bed = Self { _dir: dir, top, places, written: Mutex::default() };
        bed.git(&["init", "-q", "-b", "main"]);
        for name in ["one", "two", "both", "mine"] {
            fs::write(bed.top.join(name), "0\n").unwrap();
        }
        bed.git(&["add", "."]);
        bed.git(&["-c", "user.name=p", "-c", "user.email=p@p", "commit", "-qm", "first"]);
        bed
    }

    fn git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        let output = git.args(args).current_dir(&self.top).env("GIT_CONFIG_GLOBAL", "/dev/null").output();
        let output = output.unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    async fn open(&self, steps: Steps) -> Keeper {
        let mut keeper =
            Keeper::open(&self.places, &self.top, RUN).await.unwrap().patient_for(Duration::ZERO);
        keeper.stops = steps;
        keeper
    }

    fn write(&self, path: &'static str, author: &'static str, text: &str) {
        let place = self.top.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        // No two files are alike, so that each is found by its content.
        let text = format!("{path} {text}");
        fs::write(place, &text).unwrap();
        self.written.lock().unwrap().push((path, author, text));
    }

    /// All that happens, up to where it is stopped.
    async fn work(&self, steps: Steps) {
        let keeper = self.open(steps).await;
        let begun = |_: &str| Keeper::begun(&self.places, &self.top, RUN);
        let (first, second) = (begun("a_1"), begun("a_2"));
        let ask = async |agent: &str, places: &[Place], begun| {
            keeper.before_write(agent, places, Some(begun)).await.unwrap();
        };
        ask("a_1", &[Place::file("one"), Place::file("both")], &first).await;
        self.write("one", "a_1", "of a_1\n");
        self.write("both", "a_1", "of a_1\n");
        self.write("mine", "person", "the person's\n");
        ask("a_2", &[Place::file("two"), Place::tree("new")], &second).await;
        self.write("two", "a_2", "of a_2\n");
        self.write("new/file", "a_2", "of a_2\n");
        // No patience: it is taken over at once.
        ask("a_2", &[Place::file("both")], &second).await;
        self.write("both", "a_2", "of a_2\n");
        keeper.leave_window("a_2", "a command", &[PathBuf::from("new/file")]).await.unwrap();
        self.write("new/file", "a_2", "of a job\n");
        ask("a_1", &[Place::file("third")], &first).await;
        self.write("third", "a_1", "of a_1\n");
        keeper.close_window("a_1", "a command").await.unwrap();
        keeper.close_window("a_2", "the end").await.unwrap();
    }

    /// The versions of files that steps hold, by path and content's name.
    fn kept(&self) -> String {
        self.git(&["rev-list", "--objects", &format!("--glob=refs/convoke/{RUN}")])
    }

    fn name_of(&self, text: &str) -> String {
        let file = self.places.state.join("text");
        fs::write(&file, text).unwrap();
        self.git(&["hash-object", "-t", "blob", file.to_str().unwrap()]).trim().to_owned()
    }
}

#[tokio::test]
async fn windows_side_by_side_stopped_at_every_step_blame_and_lose_nothing() {
    let mut at = 0;
    loop {
        let bed = Bed::new();
        let ended = Steps::stopped_at(at, async |steps| bed.work(steps).await).await;
        let keeper = bed.open(Steps::default()).await;
        // The next command of another agent closes what the process left open.
        keeper.open_window("a_3").await.unwrap();
        keeper.close_window("a_3", "").await.unwrap();

        let written = bed.written.lock().unwrap().clone();
        let mut authors: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (path, author, _) in written.iter().filter(|(_, author, _)| *author != "person") {
            let known = authors.entry(path).or_default();
            if !known.contains(author) {
                known.push(author);
            }
        }
        let changes = keeper.changes().await.unwrap();
        let found: BTreeMap<&str, Vec<&str>> = changes
            .iter()
            .map(|file| {
                assert!(!file.mixed, "step {at}: {file:?}");
                (file.path.to_str().unwrap(), file.agents.iter().map(String::as_str).collect())
            })
            .collect();
        assert_eq!(found, authors, "step {at}");

        // Every version that another agent wrote over is in a step, and so is what is there.
        let kept = bed.kept();
        let kept = |path: &str, text: &str| kept.contains(&format!("{} {path}\n", bed.name_of(text)));
        for (path, author, text) in &written {
            let over = written.iter().any(|(other, by, _)| other == path && by != author);
            let last = fs::read_to_string(bed.top.join(path)).unwrap() == *text;
            assert!(!over && !last || kept(path, text), "step {at}: {path} {text} is in no step");
        }
        if written.iter().any(|(path, author, _)| (*path, *author) == ("both", "a_2")) {
            for (agent, other) in [("a_1", "a_2"), ("a_2", "a_1")] {
                let told = Keeper::overlaps(&bed.places, &bed.top, RUN, agent).unwrap();
                let about = |overlap: &crate::Overlap| {
                    (overlap.path.as_str(), overlap.with.as_str()) == ("both", other)
                };
                assert!(told.iter().all(about) && !told.is_empty(), "step {at}: {agent} {told:?}");
            }
            let notes = keeper.notes().unwrap();
            assert!(notes.iter().any(|note| note.contains("both was written by")), "step {at}: {notes:?}");
        }

        let undone = keeper.undo(false).await.unwrap();
        assert_eq!(undone.kept, [], "step {at}");
        let read = |path: &str| fs::read_to_string(bed.top.join(path)).unwrap_or_default();
        let mine = written.iter().any(|(path, ..)| *path == "mine");
        assert_eq!(
            [read("one"), read("two"), read("both"), read("new/file"), read("third"), read("mine")],
            ["0\n", "0\n", "0\n", "", "", if mine { "mine the person's\n" } else { "0\n" }],
            "step {at}"
        );
        assert!(!Path::exists(&bed.top.join("new")), "step {at}");
        if ended.is_some() {
            break;
        }
        at += 1;
    }
    assert!(at > 40, "only {at} steps");
    println!("side by side: {at} steps");
}
