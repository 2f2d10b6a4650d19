//! The keeper of one run in one directory: it records the tree before the run, and which agent changes what.
//!
//! What changes between `open_window` and `close_window` is the agent's; what changes between two windows
//! comes from outside of the run. The keeper writes objects, refs below `refs/convoke/` and its own record;
//! of the files only undo writes any.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::error::Error;
use crate::places::{HostPlaces, checked_name};
use crate::record::{Mark, Record, digest};
use crate::size::{LIMIT, Limit, beyond};
use crate::steps::{ChangedFile, LOG_FORMAT, NetChange, StepCause, how, net, parse_log};
use crate::store::{ObjectId, Store};
use crate::tree::{LeftOut, Snapshot, TreeChange, copy_index, remove_if_there};
use crate::turn::{Actor, Fence, Holder, Turn, Wait};

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
    /// Knows which processes may go on; `None` if that is not known.
    fence: Option<Arc<dyn Fence>>,
}

/// What a keeper remembers from one call to the next.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Whether the tree before the run is known to be kept.
    ready: bool,
    /// The window that this keeper has open, and its mark, which is locked as long as the file is here.
    pub(crate) window: Option<(StepCause, File)>,
}

/// What [`Keeper::before`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Whether the tree was kept now; else it had been kept earlier.
    pub first: bool,
    /// What is below the directory and is not in the tree.
    pub left_out: Vec<LeftOut>,
}

/// What [`Keeper::close_window`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    /// The files that were changed since the window was opened.
    pub changed: Vec<ChangedFile>,
    /// What is below the directory and cannot be kept, whether it was changed or not.
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
        Ok(Self { store, record, run: run.to_owned(), state: Mutex::default(), fence: None })
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

    /// To be called before a command of `actor` that may write. What changed since the last window was
    /// changed from outside of the run, or by a command that a crash cut off. A window that a living process
    /// has open is waited for where there is a fence, and closed for a process that is fenced.
    pub async fn open_window(&self, actor: impl Into<Actor<'_>>) -> Result<(), Error> {
        let actor = actor.into();
        let by = StepCause::Agent { name: checked_name(actor.agent)?.to_owned(), interrupted: false };
        let mut wait = Wait::new(self.fence.as_deref());
        loop {
            match self.try_open(&by, actor).await {
                Err(Error::Busy { .. }) if self.fence.is_some() => {}
                other => return other,
            }
            let (holder, mark) = self.record.holder()?;
            if wait.for_holder(&holder).await?
                && let Some(mark) = mark
            {
                self.close_for(&holder, &mark, actor).await?;
            }
        }
    }

    async fn try_open(&self, by: &StepCause, actor: Actor<'_>) -> Result<(), Error> {
        let mut state = self.state.lock().await;
        let turn = self.turn(actor).await?;
        self.keep_before(&mut state, &turn).await?;
        self.settle(&mut state.window, &turn).await?;
        self.forget_after()?;
        turn.check()?;
        state.window = Some((by.clone(), self.record.mark(by, actor.token)?));
        Ok(())
    }

    /// Closes the window of a fenced holder: what changed since it was opened was changed by its command,
    /// which was cut off or may go on for a while. Its own end of the window is refused when it comes.
    async fn close_for(&self, holder: &Holder, mark: &File, actor: Actor<'_>) -> Result<(), Error> {
        let turn = self.turn(actor).await?;
        if !self.record.is_marked_by(mark)? {
            return Ok(());
        }
        let unknown = StepCause::Agent { name: "unknown".to_owned(), interrupted: true };
        self.step(&StepCause::parse(&holder.name).unwrap_or(unknown).interrupted(), "", &turn).await?;
        turn.check()?;
        self.record.clear_mark()
    }

    /// To be called before [`Self::open_window`], and when the agent's shell is closed, if background jobs of
    /// that shell were alive since the agent's last window: what changed since then is this agent's, and does
    /// not come from outside. Within a window, or after a crash, it is known which agent made the changes,
    /// and this does nothing.
    pub async fn claim(&self, actor: impl Into<Actor<'_>>) -> Result<(), Error> {
        let actor = actor.into();
        let by = StepCause::Agent { name: checked_name(actor.agent)?.to_owned(), interrupted: false };
        let mut state = self.state.lock().await;
        let turn = self.turn(actor).await?;
        self.keep_before(&mut state, &turn).await?;
        if state.window.is_none() && matches!(self.record.read_mark()?, Mark::None) {
            self.step(&by, "background jobs", &turn).await?;
            self.forget_after()?;
        }
        Ok(())
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

    /// To be called after it, with a note for the record such as the command. Returns what changed meanwhile.
    /// A window that was closed for this process, because it was fenced, cannot be closed by it: what changed
    /// since is not its doing, or not alone.
    pub async fn close_window(&self, actor: impl Into<Actor<'_>>, note: &str) -> Result<Closed, Error> {
        let actor = actor.into();
        let agent = actor.agent;
        let by = StepCause::Agent { name: checked_name(agent)?.to_owned(), interrupted: false };
        let mut state = self.state.lock().await;
        let turn = self.turn(actor).await?;
        self.keep_before(&mut state, &turn).await?;
        if let Some((_, mark)) = &state.window
            && !self.record.is_marked_by(mark)?
        {
            state.window = None;
            return Err(Error::Fenced);
        }
        let (changes, left_out) = self.step(&by, note, &turn).await?;
        self.forget_after()?;
        turn.check()?;
        self.record.clear_mark()?;
        state.window = None;
        let changed = |change: TreeChange| ChangedFile {
            how: how(change.old.as_ref(), change.new.as_ref()),
            path: change.path,
            agents: vec![agent.to_owned()],
            mixed: false,
        };
        Ok(Closed { changed: changes.into_iter().map(changed).collect(), left_out })
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
        if let Mark::CutOff(by) = self.record.read_mark()? {
            self.step(&by, "", &turn).await?;
            self.record.clear_mark()?;
        }
        Ok(turn)
    }

    /// Waits for the turn to write the record.
    pub(crate) async fn turn(&self, actor: Actor<'_>) -> Result<Turn, Error> {
        self.record.turn(actor, self.fence.as_deref()).await
    }

    /// Whether a window of this run is open, here or in another process.
    pub(crate) fn is_open(&self) -> Result<bool, Error> {
        Ok(matches!(self.record.read_mark()?, Mark::Open))
    }

    /// What all steps so far come to.
    pub(crate) async fn net(&self) -> Result<Vec<NetChange>, Error> {
        let Some(chain) = self.chain().await? else { return Ok(Vec::new()) };
        let call = self.store.content("reading the steps of the run").args([
            "log",
            "-z",
            "--raw",
            "-r",
            "--reverse",
        ]);
        let call = call.args(["--first-parent", "--no-renames", "--no-abbrev", LOG_FORMAT]);
        let output = call.arg(format!("{}..{}", chain.before, chain.tip)).arg("--").run().await?;
        let steps = parse_log(&output).ok_or_else(|| Error::Unreadable { what: self.name("after") })?;
        Ok(net(&steps))
    }

    /// Records what changed since the last step as a step by `by`; no change is no step.
    pub(crate) async fn step(
        &self,
        by: &StepCause,
        note: &str,
        turn: &Turn,
    ) -> Result<(Vec<TreeChange>, Vec<LeftOut>), Error> {
        turn.check()?;
        let hidden = self.record.hidden()?;
        let snapshot = self.snapshot(&hidden).await?;
        let Some(chain) = self.chain().await? else {
            return Err(Error::NotKept { run: self.run.clone(), dir: self.store.dir().to_owned() });
        };
        let mut tree = snapshot.tree;
        let mut changes = self.store.diff_trees(&chain.tree, &tree).await?;
        if *by == StepCause::Outside {
            self.remember_modes(changes.iter().map(|change| change.path.as_path()))?;
        } else {
            let seen = self.ignored_before(&chain.tree, &changes).await?;
            if !seen.is_empty() {
                // They may have been there all along, so they are not the agent's: undo must never remove
                // them.
                tree = self.store.forget_paths(&self.record.index(), &seen).await?;
                self.record.set_hidden(&[hidden, seen].concat())?;
                changes = self.store.diff_trees(&chain.tree, &tree).await?;
            }
        }
        if tree != chain.tree {
            let commit = self.store.commit_tree(&tree, &[&chain.tip], &by.message(note)).await?;
            let old = (chain.tip != chain.before).then_some(chain.tip.as_str());
            // A process that stood still since it looked has nothing to record any more.
            turn.check()?;
            self.store.update_ref(&self.name("after"), &commit, old).await?;
        }
        Ok((changes, snapshot.left_out))
    }

    /// Records what changed since the last window, by an agent or from outside of the run.
    pub(crate) async fn settle(
        &self,
        window: &mut Option<(StepCause, File)>,
        turn: &Turn,
    ) -> Result<(), Error> {
        // One that was closed for this process is not its own any more.
        if let Some((_, mark)) = &*window
            && !self.record.is_marked_by(mark)?
        {
            *window = None;
        }
        // Letting go of our own mark first: two windows of one keeper may overlap, and what changed so far is
        // the first's.
        let by = match (window.take(), self.record.read_mark()?) {
            (Some((by, _locked)), _) => by,
            (None, Mark::CutOff(by)) => by,
            (None, Mark::None) => StepCause::Outside,
            (None, Mark::Open) => return Err(Error::Busy { run: self.run.clone() }),
        };
        self.step(&by, "", turn).await.map(drop)
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
            return Ok(Kept { first: false, left_out: Vec::new() });
        }
        self.refuse_too_large().await?;
        self.record.set_location(self.store.location())?;
        self.begin_index(&index).await?;
        let snapshot = self.snapshot(&[]).await?;
        copy_index(&index, &self.seed())?;
        self.remember_modes_of(&snapshot.tree).await?;
        self.look_before(&snapshot.tree).await?;
        let message = format!("before {}\n\nthe tree before run {}", self.directory_mark(), self.run);
        let commit = self.store.commit_tree(&snapshot.tree, &[], &message).await?;
        turn.check()?;
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

    async fn snapshot(&self, hidden: &[PathBuf]) -> Result<Snapshot, Error> {
        // We alone use this index, so a lock on it is what a killed git left behind.
        remove_if_there(&self.record.index().with_extension("lock"))?;
        let hidden: BTreeSet<&Path> = hidden.iter().map(PathBuf::as_path).collect();
        let temporary = self.temporary();
        let is_hidden =
            |path: &Path| hidden.contains(path) || path.file_name() == Some(OsStr::new(&temporary));
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

    fn name(&self, end: &str) -> String {
        ref_name(&self.run, end)
    }
}

/// Forgets what was kept for a run: its refs and its record. The files stay as they are. Their objects go
/// when git cleans up.
pub async fn forget(places: &HostPlaces, dir: &Path, run: &str) -> Result<(), Error> {
    let keeper = Keeper::open(places, dir, run).await?;
    if keeper.is_open()? {
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
