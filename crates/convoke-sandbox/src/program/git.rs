//! How git is run by us: which of its commands, with an environment of our own, and with nothing in it that a
//! repository could use to have a program started. It knows commands and what they need, never what they are
//! for.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_beneath::{Dir, Links};

use super::{Program, ProgramOutput, Sight};
use crate::error::Error;

/// The longest that one command may take: hashing a large tree for the first time is the slowest of them.
const DEADLINE: Duration = Duration::from_secs(1_800);

/// The most that is kept of one command's output.
const OUTPUT: usize = 1 << 30;

/// The most that is read of a file that names others.
const SMALL: u64 = 1 << 20;

/// The most places that a command is shown; stores that name each other come to an end by it.
const MOST_PLACES: usize = 64;

/// Settings that hold whatever the repository's own configuration says. Programs that it names by `filter`,
/// `diff` and `merge` drivers are not in this list, since their names are free: git may start nothing at all,
/// whatever it is told.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.autocrlf=false",
    "core.eol=lf",
    "core.commitGraph=false",
    "core.logAllRefUpdates=false",
    // Less than the patience with a program that stands still.
    "core.filesRefLockTimeout=5000",
    "core.packedRefsTimeout=5000",
    "core.quotePath=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "protocol.allow=never",
    "safe.directory=*",
    "submodule.recurse=false",
    "advice.detachedHead=false",
];

/// Every event at which git runs a hook. Since 2.54 hooks can also be named by configuration, where
/// `core.hooksPath` does not switch them off; since 2.55 an event can be switched off by its name. (2.54
/// itself has no such switch: there the hook is looked for and cannot be started.)
const EVENTS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// What one of git's commands needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// It looks, and writes nothing.
    Look,
    /// It writes where it is told to.
    Write,
    /// It does its work by starting itself again.
    Children,
}

/// Every command that is ever run.
const COMMANDS: &[(&str, Need)] = &[
    ("cat-file", Need::Look),
    ("check-ignore", Need::Look),
    ("checkout-index", Need::Write),
    ("commit-tree", Need::Write),
    ("config", Need::Look),
    ("diff-tree", Need::Look),
    ("for-each-ref", Need::Look),
    ("gc", Need::Children),
    ("hash-object", Need::Write),
    ("log", Need::Look),
    ("ls-files", Need::Look),
    ("ls-tree", Need::Look),
    ("merge-base", Need::Look),
    ("merge-file", Need::Look),
    ("read-tree", Need::Write),
    ("rev-parse", Need::Look),
    ("update-index", Need::Write),
    ("update-ref", Need::Write),
    ("write-tree", Need::Write),
];

/// Always the same, and all there is.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_AUTHOR_NAME", "convoke"),
    ("GIT_AUTHOR_EMAIL", "convoke@localhost"),
    ("GIT_COMMITTER_NAME", "convoke"),
    ("GIT_COMMITTER_EMAIL", "convoke@localhost"),
];

/// The program git as we run it, and how much it sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Git {
    program: PathBuf,
    sight: Sight,
}

impl Git {
    /// A git that was found where no command writes (see [`crate::trusted_program`]), by its path without
    /// links.
    pub fn new(program: PathBuf, sight: Sight) -> Self {
        Self { program, sight }
    }

    /// How much it sees.
    pub fn sight(&self) -> &Sight {
        &self.sight
    }

    /// One command of git's: the name first, and then its arguments.
    pub fn call(&self) -> GitCall {
        let mut program = Program::new(&self.program);
        program.sight = self.sight.clone();
        program.deadline = DEADLINE;
        program.cap = OUTPUT;
        program.env = ENVIRONMENT.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let own = self.program.parent().unwrap_or(Path::new("/"));
        if self.sight == Sight::Everything {
            // A git that is a script needs programs of the machine.
            let path = [own.as_os_str(), OsStr::new("/usr/bin:/bin")].join(OsStr::new(":"));
            program.env.insert("PATH".into(), path);
        } else {
            // What it starts is itself, and nothing else can be found.
            program.env.extend(["PATH", "GIT_EXEC_PATH"].map(|name| (name.into(), own.into())));
        }
        let settings = SETTINGS.iter().map(OsString::from);
        let settings =
            settings.chain(EVENTS.iter().map(|event| format!("hook.{event}.enabled=false").into()));
        GitCall { program, settings: settings.collect(), options: Vec::new(), args: Vec::new() }
    }
}

/// One command of git's, put together piece by piece.
#[derive(Debug, Clone)]
pub struct GitCall {
    program: Program,
    settings: Vec<OsString>,
    options: Vec<OsString>,
    args: Vec<OsString>,
}

impl GitCall {
    /// The git dir, which is read; the command is run there unless it is told otherwise.
    pub fn git_dir(mut self, path: &Path) -> Self {
        self.options.push(joined("--git-dir=", path));
        path.clone_into(&mut self.program.cwd);
        self.reads([path])
    }

    /// The top of the files that the command is about; the command is run there. What of it may be read is
    /// said apart.
    pub fn work_tree(mut self, top: &Path) -> Self {
        self.options.push(joined("--work-tree=", top));
        self.run_in(top)
    }

    /// A directory of a work tree, both without links: it is read, and so are the rules above it of what git
    /// ignores.
    pub fn looks_below(self, top: &Path, dir: &Path) -> Self {
        self.reads(rules_above(top, dir)).reads([dir])
    }

    /// The repository whose `.git` stands at `top`, for a command about what lies below `dir`, both without
    /// links: git dir, work tree, and what of them may be read. Metadata outside of `dir` are seen where
    /// commands see them: what a `.git` file says is not believed.
    pub fn repository(self, top: &Path, dir: &Path) -> Self {
        let git = top.join(".git");
        let led = pointer(&git).map(|text| top.join(text)).and_then(|own| own.canonicalize().ok());
        let shared =
            led.iter().filter_map(|own| own.join(text_of(&own.join("commondir"))?).canonicalize().ok());
        let places: Vec<PathBuf> = shared.chain(led.clone()).chain([git.clone()]).collect();
        let sight = self.program.sight.clone();
        let seen = places.into_iter().filter(|place| place.starts_with(dir) || sight.shows(place));
        let seen: Vec<PathBuf> = seen.collect();
        let mut call = self.reads(seen).looks_below(top, dir).includes_of(&git, top);
        call.options.push(joined("--git-dir=", &git));
        call.work_tree(top).run_in(dir)
    }

    /// Where the command is run.
    pub fn run_in(mut self, dir: &Path) -> Self {
        dir.clone_into(&mut self.program.cwd);
        self
    }

    /// What it may read, by paths without links.
    pub fn reads<I: IntoIterator<Item: AsRef<Path>>>(mut self, paths: I) -> Self {
        self.program.reads.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// What it may write if it is a command that writes, and read in any case.
    pub fn writes<I: IntoIterator<Item: AsRef<Path>>>(mut self, paths: I) -> Self {
        self.program.writes.extend(paths.into_iter().map(|path| path.as_ref().to_owned()));
        self
    }

    /// A setting for this one time.
    pub fn setting(mut self, setting: &str) -> Self {
        self.settings.push(setting.into());
        self
    }

    /// A variable for this one time.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.program.env.insert(name.into(), value.as_ref().to_owned());
        self
    }

    /// Objects in other stores that this one names (`objects/info/alternates`), where commands see them too:
    /// a command may have written the name.
    pub fn alternates_of(mut self, objects: &Path) -> Self {
        let mut stores = vec![objects.to_owned()];
        while let Some(store) = stores.pop().filter(|_| self.program.reads.len() < MOST_PLACES) {
            let Some(text) = text_of(&store.join("info/alternates")) else { continue };
            let lines = text.as_bytes().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let named = lines.filter_map(|line| store.join(OsStr::from_bytes(line)).canonicalize().ok());
            let seen: Vec<PathBuf> = named.filter(|place| self.program.sight.shows(place)).collect();
            self.program.reads.extend(seen.iter().cloned());
            stores.extend(seen);
        }
        self
    }

    /// Files that a repository's configuration includes, where commands see them too: a command may have
    /// written the name. Those of the project that are meant for git are seen even if the command is about a
    /// directory further down.
    pub fn includes_of(self, git_dir: &Path, top: &Path) -> Self {
        let text = text_of(&git_dir.join("config")).unwrap_or_default();
        let value = |line: &[u8]| {
            let line = std::str::from_utf8(line).ok()?.trim();
            let (_, value) =
                line.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("path"))?;
            git_dir.join(value.trim().trim_matches('"')).canonicalize().ok()
        };
        let named = text.as_bytes().split(|byte| *byte == b'\n').filter_map(value).take(MOST_PLACES);
        let meant = |file: &Path| {
            let name = file.file_name().unwrap_or_default().as_bytes();
            file.starts_with(top) && name.starts_with(b".git") && name != b".git"
        };
        let seen = named.filter(|file| file.is_file() && (meant(file) || self.program.sight.shows(file)));
        let seen: Vec<PathBuf> = seen.collect();
        self.reads(seen)
    }

    /// Adds to the command.
    pub fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// The longest that it may take, and the most that is kept of its output.
    pub fn at_most(mut self, deadline: Duration, output: usize) -> Self {
        self.program.deadline = deadline;
        self.program.cap = output;
        self
    }

    /// What is run, from the command's name on.
    pub fn command(&self) -> &[OsString] {
        &self.args
    }

    /// Runs it to its end, however that is; only what kept it from running, or from ending, is an error. When
    /// it stands still, or when the future is dropped, it is killed.
    pub async fn run(self) -> Result<ProgramOutput, Error> {
        self.ready()?.run().await
    }

    /// The same for a process that has one thread and no runtime.
    pub(crate) fn run_blocking(self) -> Result<ProgramOutput, Error> {
        self.ready()?.run_blocking()
    }

    fn ready(self) -> Result<Program, Error> {
        let Self { mut program, settings, options, args } = self;
        let name = args.first().and_then(|name| name.to_str()).unwrap_or_default();
        let listed = COMMANDS.iter().find(|(command, _)| *command == name);
        let Some((_, need)) = listed else { return Err(Error::NotListed { command: name.to_owned() }) };
        if *need == Need::Look {
            let looked_at = std::mem::take(&mut program.writes);
            program.reads.extend(looked_at);
        }
        program.children = *need == Need::Children;
        let settings = settings.iter().flat_map(|setting| [OsStr::new("-c"), setting]);
        program.args = settings.map(OsStr::to_owned).chain(options).chain(args).collect();
        Ok(program)
    }
}

/// The files above a directory, up to the top, that say what git ignores below it, as far as they are files.
fn rules_above(top: &Path, dir: &Path) -> Vec<PathBuf> {
    let above = dir.ancestors().skip(1).take_while(|above| above.starts_with(top));
    let files = above.flat_map(|above| [".gitignore", ".gitattributes"].map(|name| above.join(name)));
    files.filter(|file| file.symlink_metadata().is_ok_and(|found| found.is_file())).collect()
}

/// What a `.git` file leads to.
fn pointer(git: &Path) -> Option<OsString> {
    let text = text_of(git)?;
    let target = text.as_encoded_bytes().strip_prefix(b"gitdir:")?.trim_ascii();
    Some(OsStr::from_bytes(target).to_owned())
}

/// The text of a small file without spaces around it. What is no file is not waited for.
fn text_of(path: &Path) -> Option<OsString> {
    let text =
        Dir::open(path.parent()?).ok()?.read(Path::new(path.file_name()?), Links::Refused, SMALL).ok()?;
    Some(OsStr::from_bytes(text.trim_ascii()).to_owned())
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut arg = OsString::from(option);
    arg.push(path);
    arg
}
