//! The keeper of one run in one directory: it records the tree before the run, and which agent changes what.
//!
//! An agent claims the places that it is about to write (`windows.rs`); what changes there is the agent's,
//! and what changes elsewhere comes from outside of the run (`parts.rs`). The keeper writes objects, refs
//! below `refs/convoke/` and its own record; of the files only undo writes any.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::error::Error;
use crate::places::{HostPlaces, checked_name};
use crate::record::{Record, digest};
use crate::size::{LIMIT, Limit, beyond};
use crate::steps::{ChangedFile, LOG_FORMAT, NetChange, Step, net, parse_log};
use crate::stops::Steps;
use crate::store::{ObjectId, Store};
use crate::tree::{LeftOut, Snapshot, copy_index, remove_if_there};
use crate::turn::{Actor, Fence, Turn};
use crate::window_files::WindowFiles;
use crate::windows::{OwnWindows, PATIENCE};

/// A worker on a record that is no agent, such as a person's command.
pub(crate) const PERSON: Actor<'static> = Actor { agent: "a command of a person", token: "" };

/// Keeps what one run changes below one directory. Its methods can be called from many tasks and work one at
/// a time; so do those of other processes that work on the same run.
#[derive(Debug)]
pub struct Keeper {
    store: Store,
    record: Record,
    run: String,
    state: Mutex<State>,
    /// What is known of all windows, here and in other processes.
    pub(crate) files: Mutex<WindowFiles>,
    pub(crate) own: OwnWindows,
    /// Knows which processes may go on; `None` if that is not known.
    pub(crate) fence: Option<Arc<dyn Fence>>,
    /// How long a place is waited for that another agent's command is writing.
    pub(crate) patience: Duration,
    pub(crate) stops: Steps,
}

/// What a keeper remembers from one call to the next.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Whether the tree before the run is known to be kept.
    ready: bool,
}

/// What [`Keeper::before`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Whether the tree was kept now; else it had been kept earlier.
    pub first: bool,
    /// What is below the directory and is not in the tree.
    pub left_out: Vec<LeftOut>,
}

/// The run's two refs: the commit before it, and its latest step with the tree that it left.
pub(crate) struct Chain {
    pub(crate) before: ObjectId,
    pub(crate) tip: ObjectId,
    pub(crate) tree: ObjectId,
}

impl Keeper {
    /// Finds out where the trees of this run are kept, or would be. Writes nothing.
    pub async fn open(places: &HostPlaces, dir: &Path, run: &str) -> Result<Self, Error> {
        checked_name(run)?;
        let real =
            dir.canonicalize().map_err(|source| Error::NoDirectory { path: dir.to_owned(), source })?;
        let record = Record::new(places, run, &real)?;
        // A repository may have been made or removed since the run began; its trees are where they were put.
        let store = match record.location()? {
            Some(location) => Store::at(places, location),
            None => Store::find(places, dir).await?,
        };
        Ok(Self {
            store,
            files: Mutex::new(record.windows()),
            record,
            run: run.to_owned(),
            state: Mutex::default(),
            own: OwnWindows::default(),
            fence: None,
            patience: PATIENCE,
            stops: Steps::default(),
        })
    }

    /// The same with another patience: how long a place is waited for that another agent's command is
    /// writing, before it is taken over. Ten seconds unless it is said.
    #[must_use]
    pub fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Whether a run may have anything kept for a directory: the state before it, steps, or worktrees. It
    /// goes by files and starts no git; what it cannot tell it takes for kept.
    pub fn may_have_kept(places: &HostPlaces, dir: &Path, run: &str) -> bool {
        let recorded = dir
            .canonicalize()
            .map_err(drop)
            .and_then(|dir| Record::new(places, run, &dir).map(|record| record.is_there()).map_err(drop));
        recorded != Ok(false) || Store::may_know(places, dir, run)
    }

    /// The same with a fence, which knows which other processes may go on: what a fenced one has open is
    /// closed, and what a living one has open is waited for.
    #[must_use]
    pub fn fenced(self, fence: Arc<dyn Fence>) -> Self {
        Self { fence: Some(fence), ..self }
    }

    /// Keeps the tree as it is before the first write of the run; one that was kept earlier stays what it is.
    pub async fn before(&self) -> Result<Kept, Error> {
        let mut state = self.state.lock().await;
        let turn = self.turn(PERSON).await?;
        self.keep_before(&mut state, &turn).await
    }

    /// What could not be kept at any time of the run, so that its changes cannot be shown or taken back.
    pub fn left_out(&self) -> Result<Vec<LeftOut>, Error> {
        Ok(self.record.left_out()?.into_iter().collect())
    }

    /// Where trees are kept if it is not where one would look for them: apart from a repository that this
    /// user cannot write.
    pub fn apart(&self) -> Option<&Path> {
        self.store.is_apart().then(|| self.store.private())
    }

    /// What the run changed so far, all in all: a path that was changed and changed back is not in it.
    pub async fn changes(&self) -> Result<Vec<ChangedFile>, Error> {
        let _one_at_a_time = self.state.lock().await;
        let _lock = self.lock_kept().await?;
        Ok(self.net().await?.iter().map(NetChange::changed).collect())
    }

    /// Where the trees are.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    pub(crate) fn state(&self) -> &Mutex<State> {
        &self.state
    }

    /// Locks the record of a run of which something was kept, and records what a crash cut off.
    pub(crate) async fn lock_kept(&self) -> Result<Turn, Error> {
        if self.chain().await?.is_none() {
            return Err(Error::NotKept { run: self.run.clone(), dir: self.store.dir().to_owned() });
        }
        let turn = self.turn(PERSON).await?;
        self.store.prepare().await?;
        self.close_gone(&turn).await?;
        Ok(turn)
    }

    /// Waits for the turn to write the record.
    pub(crate) async fn turn(&self, actor: Actor<'_>) -> Result<Turn, Error> {
        self.record.turn(actor, self.fence.as_deref()).await
    }

    /// What all steps so far come to.
    pub(crate) async fn net(&self) -> Result<Vec<NetChange>, Error> {
        let Some(chain) = self.chain().await? else { return Ok(Vec::new()) };
        Ok(net(&self.steps_between(&chain.before, &chain.tip).await?))
    }

    /// The steps that came after one and up to another, oldest first.
    pub(crate) async fn steps_between(&self, from: &str, to: &str) -> Result<Vec<Step>, Error> {
        let call = self.store.content("reading the steps of the run").args([
            "log",
            "-z",
            "--raw",
            "-r",
            "--reverse",
        ]);
        let call = call.args(["--first-parent", "--no-renames", "--no-abbrev", LOG_FORMAT]);
        let output = call.arg(format!("{from}..{to}")).arg("--").run().await?;
        parse_log(&output).ok_or_else(|| Error::Unreadable { what: self.name("after") })
    }

    pub(crate) async fn keep_before(&self, state: &mut State, turn: &Turn) -> Result<Kept, Error> {
        if state.ready {
            return Ok(Kept { first: false, left_out: Vec::new() });
        }
        let kept = self.keep_before_once(turn).await?;
        state.ready = true;
        Ok(kept)
    }

    async fn keep_before_once(&self, turn: &Turn) -> Result<Kept, Error> {
        self.store.prepare().await?;
        let index = self.record.index();
        if let Some(chain) = self.chain().await? {
            self.check_directory(&chain.before).await?;
            if !index.exists() {
                self.begin_index(&index).await?;
            }
            if self.record.tip()?.is_none() {
                self.record.set_tip(&chain.tip)?;
            }
            return Ok(Kept { first: false, left_out: Vec::new() });
        }
        self.refuse_too_large().await?;
        self.record.set_location(self.store.location())?;
        self.stops.step().await;
        self.begin_index(&index).await?;
        self.stops.step().await;
        let snapshot = self.snapshot(&[], |_| false).await?;
        copy_index(&index, &self.seed())?;
        self.remember_modes_of(&snapshot.tree).await?;
        self.look_before(&snapshot.tree).await?;
        let message = format!("before {}\n\nthe tree before run {}", self.directory_mark(), self.run);
        let commit = self.store.commit_tree(&snapshot.tree, &[], &message).await?;
        turn.check()?;
        self.stops.step().await;
        self.record.set_tip(&commit)?;
        self.stops.step().await;
        self.store.update_ref(&self.name("before"), &commit, None).await?;
        Ok(Kept { first: true, left_out: snapshot.left_out })
    }

    /// A copy of everything in the state directory is made only of what is not large.
    async fn refuse_too_large(&self) -> Result<(), Error> {
        if self.store.git_dir().is_some() && !self.store.is_apart() {
            return Ok(());
        }
        let dir = self.store.dir().to_owned();
        let counted = tokio::task::spawn_blocking(move || beyond(&dir, LIMIT)).await;
        match counted.map_err(std::io::Error::other).map_err(Error::file("looking over", self.store.dir()))? {
            None => Ok(()),
            Some(Limit { files, bytes }) => {
                Err(Error::TooLarge { dir: self.store.dir().to_owned(), files, bytes })
            }
        }
    }

    /// Begins with what an earlier run remembered of the files, so that only changed ones are read.
    async fn begin_index(&self, index: &Path) -> Result<(), Error> {
        copy_index(&self.seed(), index)?;
        self.store.prime(index).await?;
        // What was touched and not changed is remembered anew; files that differ make this end with another
        // exit code.
        let call = self.store.content("remembering the files").work_tree(self.store.top()).index(index)?;
        call.args(["update-index", "-q", "--ignore-submodules", "--refresh"]).outcome().await.map(drop)
    }

    /// Keeps the files as they lie there now, but for those that are hidden or passed over, of which the
    /// index has what it had.
    pub(crate) async fn snapshot(
        &self,
        hidden: &[PathBuf],
        passed_over: impl Fn(&Path) -> bool,
    ) -> Result<Snapshot, Error> {
        // We alone use this index, so a lock on it is what a killed git left behind.
        remove_if_there(&self.record.index().with_extension("lock"))?;
        let hidden: BTreeSet<&Path> = hidden.iter().map(PathBuf::as_path).collect();
        let temporary = self.temporary();
        let is_hidden = |path: &Path| {
            hidden.contains(path) || path.file_name() == Some(OsStr::new(&temporary)) || passed_over(path)
        };
        let snapshot = self.store.snapshot(&self.record.index(), is_hidden).await?;
        self.record.add_left_out(&snapshot.left_out)?;
        Ok(snapshot)
    }

    /// The name under which undo writes a file beside its place; no tree holds one that a crash left there.
    pub(crate) fn temporary(&self) -> String {
        format!(".convoke-undo-{}", self.run)
    }

    /// The run's refs; `None` before the first write.
    pub(crate) async fn chain(&self) -> Result<Option<Chain>, Error> {
        if !self.store.common().join("HEAD").exists() {
            return Ok(None);
        }
        let before = self.name("before");
        let after = self.name("after");
        self.store.check_reading(&before)?;
        let call = self.store.refs("reading the run's refs").arg("for-each-ref");
        let lines =
            call.arg("--format=%(refname) %(objectname) %(tree)").args([&before, &after]).line().await?;
        let find = |name: &str| {
            let line = lines.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|line| line.split_once(' '))
        };
        let Some((first, first_tree)) = find(&before) else { return Ok(None) };
        let (tip, tree) = find(&after).unwrap_or((first, first_tree));
        Ok(Some(Chain { before: first.to_owned(), tip: tip.to_owned(), tree: tree.to_owned() }))
    }

    /// A run has one record in a repository, so it must be of this directory.
    async fn check_directory(&self, before: &str) -> Result<(), Error> {
        let call = self.store.content("reading the run's record").args(["log", "-1", "--format=%s", before]);
        if call.line().await? == format!("before {}", self.directory_mark()) {
            return Ok(());
        }
        Err(Error::OtherDirectory { run: self.run.clone(), dir: self.store.dir().to_owned() })
    }

    fn directory_mark(&self) -> String {
        digest(self.store.prefix().as_os_str().as_bytes())
    }

    fn seed(&self) -> PathBuf {
        self.store.private().join(format!("index-{}", self.directory_mark()))
    }

    pub(crate) fn name(&self, end: &str) -> String {
        ref_name(&self.run, end)
    }
}

/// Forgets what was kept for a run: its refs and its record. The files stay as they are. Their objects go
/// when git cleans up.
pub async fn forget(places: &HostPlaces, dir: &Path, run: &str) -> Result<(), Error> {
    let keeper = Keeper::open(places, dir, run).await?;
    if keeper.is_open().await? {
        return Err(Error::Busy { run: run.to_owned() });
    }
    if keeper.store.common().join("HEAD").exists() {
        for end in ["after", "before"] {
            keeper.store.delete_ref(&ref_name(run, end)).await?;
        }
        if keeper.store.git_dir().is_none() || keeper.store.is_apart() {
            // Only Convoke cleans up there. Objects of today may belong to a run that has not named them yet.
            let call = keeper.store.content("cleaning up").args(["gc", "--quiet", "--prune=1.day.ago"]);
            call.outcome().await?;
        }
    }
    keeper.record.remove()
}

fn ref_name(run: &str, end: &str) -> String {
    format!("refs/convoke/{run}/{end}")
}
