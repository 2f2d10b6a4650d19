//! Where the objects and refs of a directory are: in the repository whose work tree it lies in, else in a
//! private one below the state directory. It never touches a repository's index, its branches or its files.
//!
//! Content goes through a git dir of our own whose `objects` are the repository's: so the configuration,
//! hooks and attributes of a repository that a model may have written do not count, and files are stored as
//! they lie on disk.

mod find;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_beneath::{Dir, Links};
use convoke_sandbox::Sight;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::git::{Call, Git, failed};
use crate::links::{LONGEST, refuse_links, refuse_links_of_ref, refuse_pipes, refuse_pipes_of_rules};
use crate::places::HostPlaces;
use crate::record::digest;
use find::{can_be_written, common_of, discover, is_ignored, is_plain, may_name, real_directory};

/// Goes before every `.gitattributes`: no conversion of line ends, keywords or encodings, no driver.
const ATTRIBUTES: &str = "* -text !eol -ident -filter !working-tree-encoding !diff !merge !export-subst\n";

/// Refs that only Convoke records.
const OUR_REFS: &str = "refs/convoke/";

/// How often, and how long each time, a ref is waited for that another process has locked.
const LOCK_WAITS: u32 = 10;
const LOCK_WAIT: Duration = Duration::from_millis(100);

/// The name of an object in hexadecimal digits.
pub(crate) type ObjectId = String;

/// Which repository keeps the trees of a directory. It can be written down, so that a run finds its trees
/// again even if a repository is made or removed meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Location {
    /// The directory, without links.
    pub(crate) dir: OsString,
    /// The top of the work tree: the directory itself, or one above it.
    pub(crate) top: OsString,
    /// The git dir of this work tree; none where there is no repository.
    pub(crate) git_dir: Option<OsString>,
    /// The git dir that all work trees share, with objects and refs.
    pub(crate) common: Option<OsString>,
    /// Whether objects are named by SHA-256.
    pub(crate) sha256: bool,
    /// Whether the repository cannot be written by this user, so that objects and refs go to our own git dir.
    #[serde(default)]
    pub(crate) apart: bool,
}

impl Location {
    /// Of a directory without a repository.
    fn alone(dir: &Path) -> Self {
        let dir = OsString::from(dir);
        Self { top: dir.clone(), dir, git_dir: None, common: None, sha256: false, apart: false }
    }

    /// Shows a command the directory and the repository's metadata.
    fn look(&self, call: Call) -> Call {
        let own: Vec<&Path> = [&self.git_dir, &self.common].into_iter().flatten().map(Path::new).collect();
        let call = call.looks_below(Path::new(&self.top), Path::new(&self.dir)).reads(&own);
        own.into_iter().fold(call, |call, git_dir| call.includes_of(git_dir, Path::new(&self.top)))
    }
}

/// A directory with the place where its trees are kept.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    git: Git,
    sight: Sight,
    location: Location,
    private: PathBuf,
}

impl Store {
    /// Finds out where the trees of `dir` are to be kept. Writes nothing.
    pub(crate) async fn find(places: &HostPlaces, dir: &Path) -> Result<Self, Error> {
        let dir = real_directory(dir)?;
        if places.state.canonicalize().unwrap_or_else(|_| places.state.clone()).starts_with(&dir) {
            return Err(Error::StateInside { state: places.state.clone(), dir });
        }
        let alone = Location::alone(&dir);
        let Some((top, git_dir)) = discover(&dir)? else {
            let store = Self::at(places, alone);
            // Nothing has been asked of git yet, and whether it is there must be known before anything is
            // written.
            if store.git.is_missing() {
                return Err(Error::NoGit);
            }
            return Ok(store);
        };
        refuse_pipes(&git_dir)?;
        let common = common_of(&git_dir)?;
        refuse_pipes(&common)?;
        refuse_pipes_of_rules(&top, &dir)?;
        refuse_links(&common)?;
        let apart = !can_be_written(&common);
        let mut location = Location {
            dir: dir.clone().into(),
            top: top.clone().into(),
            git_dir: Some(git_dir.clone().into()),
            common: Some(common.into()),
            sha256: false,
            apart,
        };
        let git = Git::new(&places.path, &untrusted(places, &location), &places.sight);
        if git.is_missing() {
            return Err(Error::NoGit);
        }
        let is_plain = location.common == location.git_dir && is_plain(&top, &git_dir);
        let sha256 = !is_plain && Self::object_format(&git, &location, &git_dir).await? == "sha256";
        if dir != top && is_ignored(&git, &location).await? {
            // A repository does not look into what it ignores, but agents work there.
            return Ok(Self::at(places, alone));
        }
        location.sha256 = sha256;
        Ok(Self::at(places, location))
    }

    /// What git says of a repository that is not known to be sound.
    async fn object_format(git: &Git, location: &Location, git_dir: &Path) -> Result<String, Error> {
        let format = location.look(git.own(git_dir, "opening the repository"));
        let format = format.args(["rev-parse", "--show-object-format"]);
        format.line().await.map_err(|error| match error {
            Error::Git { said, .. } => {
                Error::BadRepository { path: Path::new(&location.top).join(".git"), why: said }
            }
            error => error,
        })
    }

    /// Whether refs of a run may be kept for this directory, by the files of the repositories in which they
    /// would be: its own, and those of ours. Nothing is asked of git; what cannot be told is yes.
    pub(crate) fn may_know(places: &HostPlaces, dir: &Path, run: &str) -> bool {
        let Ok(dir) = real_directory(dir) else { return true };
        let alone = Location::alone(&dir);
        let mut stores = vec![alone.clone()];
        match discover(&dir).and_then(|found| found.map(|(top, own)| Ok((top, common_of(&own)?))).transpose())
        {
            Ok(None) => {}
            Ok(Some((top, common))) => {
                let common = Some(OsString::from(common));
                let shared = Location { top: top.into(), git_dir: common.clone(), common, ..alone };
                stores.push(Location { apart: true, ..shared.clone() });
                stores.push(shared);
            }
            Err(_) => return true,
        }
        stores.into_iter().any(|location| may_name(Self::at(places, location).common(), run))
    }

    /// The store at a location that was found before.
    pub(crate) fn at(places: &HostPlaces, location: Location) -> Self {
        let common = location.common.as_deref().unwrap_or_default();
        let apart: &[u8] = if location.apart { b"\0apart" } else { b"" };
        let name = digest(&[&[location.top.as_bytes(), common.as_bytes()].join(&0), apart].concat());
        let private = places.state.join("trees").join(format!("{name}.git"));
        let git = Git::new(&places.path, &untrusted(places, &location), &places.sight);
        Self { git, sight: places.sight.clone(), location, private }
    }

    /// The same store for the whole work tree.
    pub(crate) fn whole(&self) -> Self {
        let location = Location { dir: self.location.top.clone(), ..self.location.clone() };
        Self { location, ..self.clone() }
    }

    /// The same store, in the repository itself and not apart from it.
    pub(crate) fn in_repository(&self, places: &HostPlaces) -> Self {
        Self::at(places, Location { apart: false, ..self.location.clone() })
    }

    /// Whether trees are kept apart from the repository, because this user cannot write there.
    pub(crate) fn is_apart(&self) -> bool {
        self.location.apart
    }

    /// Whether trees are kept in a repository, where commands can read them.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared().is_some()
    }

    /// The repository's shared git dir, if trees are kept there.
    fn shared(&self) -> Option<&Path> {
        self.location.common.as_deref().filter(|_| !self.location.apart).map(Path::new)
    }

    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// What git does not see below the directory, because commands do not.
    pub(crate) fn hidden(&self) -> Vec<PathBuf> {
        self.sight.hidden_below(self.dir())
    }

    /// The directory itself.
    pub(crate) fn dir(&self) -> &Path {
        Path::new(&self.location.dir)
    }

    /// The top of the work tree.
    pub(crate) fn top(&self) -> &Path {
        Path::new(&self.location.top)
    }

    /// The directory as seen from the top; empty at the top.
    pub(crate) fn prefix(&self) -> &Path {
        self.dir().strip_prefix(self.top()).unwrap_or(Path::new(""))
    }

    /// The git dir of this work tree, where there is a repository.
    pub(crate) fn git_dir(&self) -> Option<&Path> {
        self.location.git_dir.as_deref().map(Path::new)
    }

    /// The git dir that holds the refs: the repository's shared one, or ours.
    pub(crate) fn common(&self) -> &Path {
        self.shared().unwrap_or(&self.private)
    }

    /// Our own git dir.
    pub(crate) fn private(&self) -> &Path {
        &self.private
    }

    /// Makes our own git dir if it is not there yet, and brings its list of ignored files up to date.
    pub(crate) async fn prepare(&self) -> Result<(), Error> {
        self.check_links()?;
        if !self.private.join("HEAD").exists() {
            self.make_private().map_err(Error::file("making the private git dir", &self.private))?;
        }
        let excludes = self.excludes().await?;
        let path = self.private.join("info/exclude");
        if fs::read(&path).ok().as_ref() != Some(&excludes) {
            replace_file(&path, &excludes)?;
        }
        Ok(())
    }

    /// Refuses a repository in which a link could lead what we write out of it. Agents may have put one there
    /// since the last time, so this is asked before each writing.
    pub(crate) fn check_links(&self) -> Result<(), Error> {
        self.check_kinds()?;
        // No other program writes our own git dir.
        self.shared().map_or(Ok(()), refuse_links)
    }

    /// Refuses a repository in which git would wait for a pipe or a device where it expects a file.
    fn check_kinds(&self) -> Result<(), Error> {
        let own = [&self.location.git_dir, &self.location.common].into_iter().flatten();
        own.map(Path::new).try_for_each(refuse_pipes)?;
        refuse_pipes_of_rules(self.top(), self.dir())
    }

    fn check_ref(&self, name: &str) -> Result<(), Error> {
        self.check_links()?;
        self.shared().map_or(Ok(()), |common| refuse_links_of_ref(common, name))
    }

    /// Refuses a ref that cannot be read as it was written: git does not see what lies behind a link, and
    /// would say that there is none.
    pub(crate) fn check_reading(&self, name: &str) -> Result<(), Error> {
        self.check_kinds()?;
        self.shared().map_or(Ok(()), |common| refuse_links_of_ref(common, name))
    }

    /// A call that may carry content: on our own git dir, whose objects are the repository's. Needs
    /// [`Self::prepare`].
    pub(crate) fn content(&self, doing: &'static str) -> Call {
        self.with_sight(self.git.ours(&self.private, doing))
    }

    /// A call about refs.
    pub(crate) fn refs(&self, doing: &'static str) -> Call {
        match self.shared() {
            Some(common) => self.with_sight(self.git.own(common, doing)),
            None => self.with_sight(self.git.ours(&self.private, doing)),
        }
    }

    /// A call that looks at a repository's own git dir.
    pub(crate) fn own(&self, git_dir: &Path, doing: &'static str) -> Call {
        self.with_sight(self.git.own(git_dir, doing))
    }

    /// What every command is shown: the directory, the repository's metadata, and ours.
    fn with_sight(&self, call: Call) -> Call {
        let private = self.private.canonicalize().unwrap_or_else(|_| self.private.clone());
        let call = self.location.look(call).alternates_of(&self.common().join("objects"));
        call.writes([private]).writes(self.shared())
    }

    /// What a ref names; `None` if there is no such ref.
    pub(crate) async fn read_ref(&self, name: &str) -> Result<Option<ObjectId>, Error> {
        if !self.common().join("HEAD").exists() {
            return Ok(None);
        }
        self.check_reading(name)?;
        let doing = "reading a ref";
        let output = self
            .refs(doing)
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options", name])
            .outcome()
            .await?;
        match output.code {
            0 => Ok(Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())),
            1 => Ok(None),
            _ => Err(failed(doing, &output)),
        }
    }

    /// Moves a ref, if it still is what it was: `None` for a ref that must not exist yet.
    pub(crate) async fn update_ref(&self, name: &str, new: &str, old: Option<&str>) -> Result<(), Error> {
        let doing = "recording a ref";
        self.check_ref(name)?;
        let old = old.map_or_else(|| "0".repeat(if self.location.sha256 { 64 } else { 40 }), str::to_owned);
        self.outlast_lock(name).await;
        let output = self.refs(doing).args(["update-ref", "--no-deref", name, new, &old]).outcome().await?;
        if output.code == 0 {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("but expected") || said.contains("reference already exists") {
            return Err(Error::Moved { name: name.to_owned() });
        }
        Err(failed(doing, &output))
    }

    /// Recording a ref takes a moment: a process that has held one of ours for longer was killed, and its
    /// lock would stay for ever.
    async fn outlast_lock(&self, name: &str) {
        if !name.starts_with(OUR_REFS) {
            return;
        }
        let lock = self.common().join(format!("{name}.lock"));
        for _ in 0..LOCK_WAITS {
            if !lock.exists() {
                return;
            }
            tokio::time::sleep(LOCK_WAIT).await;
        }
        // One that cannot be removed is told of by git.
        let _ = fs::remove_file(lock);
    }

    /// Removes a ref; one that is not there is no error.
    pub(crate) async fn delete_ref(&self, name: &str) -> Result<(), Error> {
        if self.read_ref(name).await?.is_none() {
            return Ok(());
        }
        self.check_ref(name)?;
        self.refs("removing a ref").args(["update-ref", "--no-deref", "-d", name]).run().await.map(drop)
    }

    /// Makes a commit, which nothing names yet.
    pub(crate) async fn commit_tree(
        &self,
        tree: &str,
        parents: &[&str],
        message: &str,
    ) -> Result<ObjectId, Error> {
        let call = self.content("recording a tree").args(["commit-tree", tree, "-m", message]);
        call.args(parents.iter().flat_map(|parent| ["-p", parent])).line().await
    }

    /// The patterns of the repository that stand in no `.gitignore`.
    async fn excludes(&self) -> Result<Vec<u8>, Error> {
        let mut patterns = Vec::new();
        let Some(git_dir) = self.git_dir() else { return Ok(patterns) };
        let doing = "reading which files are ignored";
        let named =
            self.own(git_dir, doing).args(["config", "--local", "--path", "--get", "core.excludesFile"]);
        let named = named.outcome().await?;
        let named = (named.code == 0).then(|| named.stdout.strip_suffix(b"\n").map(<[u8]>::to_vec)).flatten();
        let named = named.map(|name| self.top().join(OsString::from_vec(name)));
        let common = self.location.common.as_deref().map_or(git_dir, Path::new);
        for file in named.into_iter().chain([common.join("info/exclude")]) {
            patterns.extend(self.read_seen(&file).unwrap_or_default());
            patterns.push(b'\n');
        }
        Ok(patterns)
    }

    /// Reads a file that a repository names, if commands see it too: which files are ignored tells what
    /// stands in the rules.
    fn read_seen(&self, file: &Path) -> Option<Vec<u8>> {
        let real = file.canonicalize().ok()?;
        let places = [Some(self.top()), self.git_dir(), self.location.common.as_deref().map(Path::new)];
        let is_own = places.into_iter().flatten().any(|place| real.starts_with(place));
        let is_hidden = self.hidden().iter().any(|hidden| real.starts_with(hidden));
        if is_hidden || !is_own && !self.sight.shows(&real) {
            return None;
        }
        // Opened without links, so that it is the file that was judged.
        Dir::open_real(real.parent()?).ok()?.read(Path::new(real.file_name()?), Links::Refused, LONGEST).ok()
    }

    /// Everything is put together beside its place and then renamed, so that two processes can do it at once.
    fn make_private(&self) -> io::Result<()> {
        let parent = self.private.parent().unwrap_or(&self.private);
        fs::create_dir_all(parent)?;
        let beside = unused(&self.private);
        fs::create_dir(&beside)?;
        fs::create_dir_all(beside.join("refs"))?;
        fs::create_dir_all(beside.join("info"))?;
        match self.shared() {
            Some(common) => symlink(common.join("objects"), beside.join("objects"))?,
            None => fs::create_dir(beside.join("objects"))?,
        }
        let (version, extension) =
            if self.location.sha256 { ("1", "[extensions]\n\tobjectFormat = sha256\n") } else { ("0", "") };
        // Names that only other systems read as `.git` are ordinary files here.
        let config = format!(
            "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\tfileMode = true\n\tsymlinks = \
                true\n\
             \tprotectNTFS = false\n\tprotectHFS = false\n{extension}"
        );
        fs::write(beside.join("config"), config)?;
        fs::write(beside.join("info/attributes"), ATTRIBUTES)?;
        fs::write(beside.join("HEAD"), "ref: refs/heads/none\n")?;
        let renamed = fs::rename(&beside, &self.private);
        if renamed.is_err() {
            fs::remove_dir_all(&beside)?;
        }
        if self.private.join("HEAD").exists() { Ok(()) } else { renamed }
    }
}

/// Writes a file of ours whole or not at all.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> Result<(), Error> {
    let beside = unused(path);
    let written = fs::write(&beside, content).and_then(|()| fs::rename(&beside, path));
    written.map_err(Error::file("writing", path))
}

/// A name beside `path` that no other thread or process uses.
pub(crate) fn unused(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    PathBuf::from(name)
}

/// Where agents may have written, so that no program there is ever run by us.
fn untrusted(places: &HostPlaces, location: &Location) -> Vec<PathBuf> {
    let state = places.state.canonicalize().unwrap_or_else(|_| places.state.clone());
    let mut all =
        vec![places.state.clone(), state, PathBuf::from(&location.dir), PathBuf::from(&location.top)];
    for git_dir in [&location.git_dir, &location.common].into_iter().flatten() {
        let git_dir = PathBuf::from(git_dir);
        // From a linked work tree it is the way to the main one.
        if git_dir.file_name().is_some_and(|name| name == ".git") {
            all.extend(git_dir.parent().map(Path::to_owned));
        }
        all.push(git_dir);
    }
    all
}
