//! How git is run here: with an explicit git dir, through the door that confines it (`convoke_sandbox::Git`).
//! It knows which commands a repository's own git dir may be given, and their outcomes, never what they are
//! for.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use convoke_sandbox::{GitCall, ProgramOutput, Sight};

use crate::error::Error;

/// Commands that may be run on a repository's own git dir: they look at names, refs and objects, and never
/// carry a file's content through an attribute's driver.
const OWN: &[&str] = &[
    "cat-file",
    "check-ignore",
    "config",
    "for-each-ref",
    "ls-files",
    "ls-tree",
    "merge-base",
    "rev-parse",
    "update-ref",
];

/// The program git as we run it: one file, found once, never in a place that agents write.
#[derive(Debug, Clone)]
pub(crate) struct Git(Option<convoke_sandbox::Git>);

impl Git {
    /// Looks for git on a `PATH`, but not below any of `never_below`: what lies there may be what an agent
    /// wrote.
    pub(crate) fn new(path: &str, never_below: &[PathBuf], sight: &Sight) -> Self {
        Self(find(path, never_below, sight).map(|program| convoke_sandbox::Git::new(program, sight.clone())))
    }

    /// Whether there is none.
    pub(crate) fn is_missing(&self) -> bool {
        self.0.is_none()
    }

    /// A call on a git dir that we made and that no other program writes: every command may be used. Its
    /// configuration and its `info/attributes`, which go before any `.gitattributes`, are ours, so no driver
    /// has a program.
    pub(crate) fn ours(&self, git_dir: &Path, doing: &'static str) -> Call {
        // It is below the state directory, which a person may have linked to another place.
        let real = git_dir.canonicalize().unwrap_or_else(|_| git_dir.to_owned());
        Call::new(self, git_dir, doing, false).reads([real])
    }

    /// A call on a repository's own git dir, for refs and names. Commands that carry content are refused.
    pub(crate) fn own(&self, git_dir: &Path, doing: &'static str) -> Call {
        Call::new(self, git_dir, doing, true).reads([git_dir])
    }
}

/// One command of git's, put together piece by piece.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    call: Option<GitCall>,
    doing: &'static str,
    own: bool,
}

impl Call {
    fn new(git: &Git, git_dir: &Path, doing: &'static str, own: bool) -> Self {
        Self { call: git.0.as_ref().map(|git| git.call().git_dir(git_dir)), doing, own }
    }

    fn and(self, add: impl FnOnce(GitCall) -> GitCall) -> Self {
        Self { call: self.call.map(add), ..self }
    }

    /// The top of the files that the command is about; the command is run there.
    pub(crate) fn work_tree(self, top: &Path) -> Self {
        self.and(|call| call.work_tree(top))
    }

    /// The same for a directory of ours, which the command fills or compares.
    pub(crate) fn work_tree_of_ours(self, top: &Path) -> Self {
        let real = top.canonicalize().unwrap_or_else(|_| top.to_owned());
        self.work_tree(top).writes([real])
    }

    /// What it may read, by paths without links.
    pub(crate) fn reads<I: IntoIterator<Item: AsRef<Path>>>(self, paths: I) -> Self {
        self.and(|call| call.reads(paths))
    }

    /// What it may write.
    pub(crate) fn writes<I: IntoIterator<Item: AsRef<Path>>>(self, paths: I) -> Self {
        self.and(|call| call.writes(paths))
    }

    /// A directory of a work tree, which it reads, with the rules above it of what is ignored.
    pub(crate) fn looks_below(self, top: &Path, dir: &Path) -> Self {
        self.and(|call| call.looks_below(top, dir))
    }

    /// Files that a repository's configuration includes.
    pub(crate) fn includes_of(self, git_dir: &Path, top: &Path) -> Self {
        self.and(|call| call.includes_of(git_dir, top))
    }

    /// Objects of other stores that this one names.
    pub(crate) fn alternates_of(self, objects: &Path) -> Self {
        self.and(|call| call.alternates_of(objects))
    }

    /// The index to use instead of the git dir's own: a file of ours.
    pub(crate) fn index(self, path: &Path) -> Result<Self, Error> {
        let text = path.to_str().ok_or_else(|| Error::NotText { path: path.to_owned() })?;
        let beside = path.parent().unwrap_or(path);
        let beside = beside.canonicalize().unwrap_or_else(|_| beside.to_owned());
        Ok(self.env("GIT_INDEX_FILE", text).writes([beside]))
    }

    pub(crate) fn env(self, name: &str, value: &str) -> Self {
        self.and(|call| call.env(name, value))
    }

    /// A setting for this one time.
    pub(crate) fn setting(self, setting: &str) -> Self {
        self.and(|call| call.setting(setting))
    }

    /// Paths for `check-ignore`, which does not take them literally: they must not look like patterns.
    pub(crate) fn looked_up<I: IntoIterator<Item: AsRef<Path>>>(self, paths: I) -> Self {
        self.env("GIT_LITERAL_PATHSPECS", "0").args(paths.into_iter().map(|path| Path::new(".").join(path)))
    }

    pub(crate) fn arg(self, arg: impl AsRef<OsStr>) -> Self {
        self.args([arg])
    }

    pub(crate) fn args<I: IntoIterator<Item: AsRef<OsStr>>>(self, args: I) -> Self {
        self.and(|call| call.args(args))
    }

    /// Runs it to its end, however that is; only what kept it from running is an error.
    pub(crate) async fn outcome(self) -> Result<ProgramOutput, Error> {
        let doing = self.doing;
        let Some(call) = self.call else { return Err(Error::NoGit) };
        let command = call.command().first().and_then(|first| first.to_str()).unwrap_or_default();
        if self.own && !may_run_on_own(command, call.command()) {
            let said = format!(
                "`{command}` is not run on a repository's own git dir, since its settings could start \
                    programs"
            );
            return Err(Error::Git { doing, said });
        }
        let output = call.run().await.map_err(|source| Error::Run { doing, source })?;
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

/// Whether a command leaves file content alone: others would run the repository's filters.
fn may_run_on_own(command: &str, args: &[OsString]) -> bool {
    let has = |option: &str| args.iter().any(|arg| arg == option);
    match command {
        "config" => has("--get") || has("--get-all"),
        _ => OWN.contains(&command),
    }
}

/// The first git of this `PATH` that lies, without links, in no place where agents write. The person's order
/// counts, and where the path leads to none it is not looked for elsewhere. One that is confined must be git
/// itself: a script of that name would need a shell, and all that a shell needs.
pub(crate) fn find(path: &str, never_below: &[PathBuf], sight: &Sight) -> Option<PathBuf> {
    let places = std::env::split_paths(path).filter(|place| is_trusted(place, never_below));
    let mut programs = places.filter_map(|place| place.join("git").canonicalize().ok());
    let can_run = |found: std::fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    let fits = |program: &Path| *sight == Sight::Everything || !is_script(program);
    programs.find(|program| {
        is_trusted(program, never_below) && program.metadata().is_ok_and(can_run) && fits(program)
    })
}

fn is_script(program: &Path) -> bool {
    let mut first = [0; 2];
    std::fs::File::open(program).and_then(|mut file| file.read_exact(&mut first)).is_ok() && first == *b"#!"
}

fn is_trusted(place: &Path, never_below: &[PathBuf]) -> bool {
    let real = place.canonicalize().unwrap_or_else(|_| place.to_owned());
    place.is_absolute()
        && !never_below.iter().any(|below| place.starts_with(below) || real.starts_with(below))
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
    fn git_is_never_found_where_agents_write() {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}:bin::/usr/bin:/bin", dir.path().join("bin").display());
        let sight = Sight::LikeCommands(convoke_sandbox::Unseen::default());
        let found = find(&path, &[dir.path().to_owned()], &sight);
        assert!(found.is_some_and(|program| program.is_absolute() && !program.starts_with(dir.path())));
        assert_eq!(find("/usr/bin:/bin", &[PathBuf::from("/")], &sight), None);
    }

    #[test]
    fn only_commands_that_leave_content_alone_run_on_a_repositorys_own_git_dir() {
        for command in ["update-ref a b", "ls-files -z", "config --get a"] {
            check(command, true);
        }
        for command in ["add -A", "diff", "checkout x", "status", "worktree add x", "config a b"] {
            check(command, false);
        }
    }
}
