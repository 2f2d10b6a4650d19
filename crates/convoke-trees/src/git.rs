//! How git is run: with an explicit git dir, an environment of our own, and nothing in it that a repository could use to
//! have a program started. It knows commands and their outcomes, never what they are for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use convoke_sandbox::{ProgramOutput, capture};

use crate::error::Error;

/// The longest that one command of git's may take: hashing a large tree for the first time is the slowest of them.
const PATIENCE: Duration = Duration::from_secs(1_800);
/// The most that is kept of one command's output.
const OUTPUT: usize = 1 << 30;

/// Settings that hold whatever the repository's own configuration says. Programs that it names by `filter`, `diff` and
/// `merge` drivers are not in this list, since their names are free: commands that could run those are refused on a
/// repository's own git dir altogether (see [`Git::own`]).
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
    "core.filesRefLockTimeout=20000",
    "core.packedRefsTimeout=20000",
    "core.quotePath=true",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "protocol.allow=never",
    "safe.directory=*",
    "submodule.recurse=false",
    "advice.detachedHead=false",
];

/// Commands that may be run on a repository's own git dir: they look at names, refs and objects, and never carry a
/// file's content through an attribute's driver.
const OWN: &[&str] = &[
    "branch",
    "cat-file",
    "check-ignore",
    "config",
    "for-each-ref",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "symbolic-ref",
    "update-ref",
    "worktree",
];

/// Where git finds the programs that it starts, beside its own.
const PROGRAMS: [&str; 2] = ["/usr/bin", "/bin"];

/// The program git as we run it: one file, found once, never in a place that agents write.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    program: Option<String>,
    env: BTreeMap<String, String>,
}

impl Git {
    /// Looks for git on a `PATH`, but not below any of `never_below`: what lies there may be what an agent wrote.
    pub(crate) fn new(path: &str, never_below: &[PathBuf]) -> Self {
        let program = find(path, never_below);
        let own = program.as_deref().and_then(Path::parent);
        let programs = own.into_iter().chain(PROGRAMS.iter().map(Path::new));
        let programs = programs.filter(|place| is_trusted(place, never_below));
        let programs: Vec<&str> = programs.filter_map(Path::to_str).collect();
        let programs = programs.join(":");
        let env = [
            ("PATH", programs.as_str()),
            ("HOME", "/nonexistent"),
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
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
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Self { program: program.and_then(|program| program.into_os_string().into_string().ok()), env }
    }

    /// A call on a git dir that we made and that nobody else writes: every command may be used. Its configuration and
    /// its `info/attributes`, which go before any `.gitattributes`, are ours, so no driver has a program.
    pub(crate) fn ours(&self, git_dir: &Path, doing: &'static str) -> Call<'_> {
        Call::new(self, git_dir, doing, false)
    }

    /// A call on a repository's own git dir, for refs and names. Commands that carry content are refused.
    pub(crate) fn own(&self, git_dir: &Path, doing: &'static str) -> Call<'_> {
        Call::new(self, git_dir, doing, true)
    }
}

/// One command of git's, put together piece by piece.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    git: &'a Git,
    git_dir: PathBuf,
    work_tree: Option<PathBuf>,
    cwd: PathBuf,
    env: Vec<(&'static str, String)>,
    args: Vec<OsString>,
    doing: &'static str,
    own: bool,
}

impl<'a> Call<'a> {
    fn new(git: &'a Git, git_dir: &Path, doing: &'static str, own: bool) -> Self {
        let (git_dir, cwd) = (git_dir.to_owned(), git_dir.to_owned());
        Self { git, git_dir, work_tree: None, cwd, env: Vec::new(), args: Vec::new(), doing, own }
    }

    /// The top of the files that the command is about; the command is run there.
    pub(crate) fn work_tree(mut self, top: &Path) -> Self {
        self.work_tree = Some(top.to_owned());
        self.cwd = top.to_owned();
        self
    }

    /// The index to use instead of the git dir's own.
    pub(crate) fn index(self, path: &Path) -> Result<Self, Error> {
        let path = path.to_str().ok_or_else(|| Error::NotText { path: path.to_owned() })?;
        Ok(self.env("GIT_INDEX_FILE", path))
    }

    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    /// Paths for `check-ignore`, which does not take them literally: they must not look like patterns.
    pub(crate) fn looked_up<I: IntoIterator<Item: AsRef<Path>>>(self, paths: I) -> Self {
        self.env("GIT_LITERAL_PATHSPECS", "0").args(paths.into_iter().map(|path| Path::new(".").join(path)))
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<I: IntoIterator<Item: AsRef<OsStr>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Runs it to its end, however that is; only what kept it from running is an error.
    pub(crate) async fn outcome(self) -> Result<ProgramOutput, Error> {
        let doing = self.doing;
        let command = self.args.first().and_then(|first| first.to_str()).unwrap_or_default();
        if self.own && !may_run_on_own(command, &self.args) {
            let said = format!(
                "`{command}` is not run on a repository's own git dir, since its settings could start programs"
            );
            return Err(Error::Git { doing, said });
        }
        let mut args: Vec<OsString> = Vec::with_capacity(self.args.len() + 2 * SETTINGS.len() + 2);
        for setting in SETTINGS {
            args.extend(["-c".into(), setting.into()]);
        }
        args.push(joined("--git-dir=", &self.git_dir));
        if let Some(top) = &self.work_tree {
            args.push(joined("--work-tree=", top));
        }
        args.extend(self.args);
        let mut env = self.git.env.clone();
        env.extend(self.env.into_iter().map(|(name, value)| (name.to_owned(), value)));
        let Some(program) = &self.git.program else { return Err(Error::NoGit) };
        let output =
            capture(program, &args, &self.cwd, &env, PATIENCE, OUTPUT).await.map_err(|source| match source {
                convoke_sandbox::Error::ProgramStart { source, .. }
                    if source.kind() == std::io::ErrorKind::NotFound && self.cwd.is_dir() =>
                {
                    Error::NoGit
                }
                source => Error::Run { doing, source },
            })?;
        if output.truncated { Err(Error::TooMuch { doing }) } else { Ok(output) }
    }

    /// Runs it and returns its output; any exit code but 0 is an error with git's own words.
    pub(crate) async fn run(self) -> Result<Vec<u8>, Error> {
        let doing = self.doing;
        let output = self.outcome().await?;
        if output.code == 0 { Ok(output.stdout) } else { Err(failed(doing, &output)) }
    }

    /// Runs it and returns its output without the newline at its end.
    pub(crate) async fn line(self) -> Result<String, Error> {
        let doing = self.doing;
        let output = String::from_utf8(self.run().await?);
        let line = output.map_err(|_| Error::Unreadable { what: format!("git's answer while {doing}") })?;
        Ok(line.trim_end_matches('\n').to_owned())
    }
}

/// The error of a command that ended with another exit code than 0.
pub(crate) fn failed(doing: &'static str, output: &ProgramOutput) -> Error {
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    let said = if said.is_empty() { format!("exit code {}", output.code) } else { said.replace('\n', "; ") };
    Error::Git { doing, said }
}

/// Whether a command leaves file content alone. Git looks at a work tree's files when it checks one out or asks whether
/// it is clean before it is removed, and then it would run the repository's filters.
fn may_run_on_own(command: &str, args: &[OsString]) -> bool {
    let has = |option: &str| args.iter().any(|arg| arg == option);
    match (command, args.get(1).and_then(|arg| arg.to_str())) {
        ("worktree", Some("add")) => has("--no-checkout"),
        ("worktree", Some("remove")) => has("--force"),
        ("config", _) => has("--get") || has("--get-all"),
        _ => OWN.contains(&command),
    }
}

/// The first git of this `PATH` that lies, without links, in no place where agents write. The person's order counts, and where
/// the path leads to none it is not looked for elsewhere.
pub(crate) fn find(path: &str, never_below: &[PathBuf]) -> Option<PathBuf> {
    let places = std::env::split_paths(path).filter(|place| is_trusted(place, never_below));
    let mut programs = places.filter_map(|place| place.join("git").canonicalize().ok());
    let can_run = |found: std::fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    programs.find(|program| is_trusted(program, never_below) && program.metadata().is_ok_and(can_run))
}

fn is_trusted(place: &Path, never_below: &[PathBuf]) -> bool {
    let real = place.canonicalize().unwrap_or_else(|_| place.to_owned());
    place.is_absolute() && !never_below.iter().any(|below| place.starts_with(below) || real.starts_with(below))
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut arg = OsString::from(option);
    arg.push(path);
    arg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: bool) {
        let args: Vec<OsString> = command.split(' ').map(OsString::from).collect();
        assert_eq!(may_run_on_own(args[0].to_str().unwrap(), &args), expected, "{command}");
    }

    #[test]
    fn neither_git_nor_what_it_starts_is_found_where_agents_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}:bin::/usr/bin:/bin", dir.path().join("bin").display());
        let git = Git::new(&path, &[dir.path().to_owned()]);
        assert!(git.program.is_some_and(|program| program.starts_with('/')));
        assert!(git.env["PATH"].split(':').all(|place| ["/usr/bin", "/bin"].contains(&place)), "{}", git.env["PATH"]);
        assert_eq!(Git::new("/usr/bin:/bin", &[PathBuf::from("/")]).program, None);
    }

    #[test]
    fn only_commands_that_leave_content_alone_run_on_a_repositorys_own_git_dir() {
        for command in ["update-ref a b", "ls-files -z", "worktree add --no-checkout x", "worktree remove --force x"] {
            check(command, true);
        }
        for command in ["add -A", "diff", "checkout x", "status", "worktree add x", "worktree remove x", "config a b"] {
            check(command, false);
        }
    }
}
