//! Which repository a directory lies in, found as git finds it and without running a program of the
//! repository's; and whether trees can be kept there.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::Location;
use crate::error::Error;
use crate::git::{Git, failed};
use crate::links::read_plain;

pub(super) fn real_directory(dir: &Path) -> Result<PathBuf, Error> {
    let found = dir.canonicalize().and_then(|dir| fs::read_dir(&dir).map(|_| dir));
    found.map_err(|source| Error::NoDirectory { path: dir.to_owned(), source })
}

/// The top of the work tree that `dir` lies in and its git dir, as git would find them.
pub(super) fn discover(dir: &Path) -> Result<Option<(PathBuf, PathBuf)>, Error> {
    for top in dir.ancestors() {
        let mark = top.join(".git");
        let Ok(found) = mark.metadata() else { continue };
        if found.is_dir() {
            // Git passes over a directory of this name that is no git dir.
            if mark.join("HEAD").symlink_metadata().is_ok()
                && (mark.join("objects").is_dir() || mark.join("commondir").is_file())
            {
                return Ok(Some((top.to_owned(), mark)));
            }
        } else if found.is_file() {
            let text = read_plain(&mark).map_err(Error::file("reading", &mark))?;
            let bad = |why: &str| Error::BadRepository { path: mark.clone(), why: why.to_owned() };
            let target =
                text.strip_prefix(b"gitdir: ").ok_or_else(|| bad("it does not begin with `gitdir: `"))?;
            let git_dir = top.join(OsString::from_vec(target.trim_ascii_end().to_vec()));
            let git_dir =
                git_dir.canonicalize().map_err(|_| bad("the git dir that it names is not there"))?;
            return Ok(Some((top.to_owned(), git_dir)));
        }
    }
    Ok(None)
}

/// The git dir that a linked work tree's git dir shares with the others; the git dir itself for the main one.
pub(super) fn common_of(git_dir: &Path) -> Result<PathBuf, Error> {
    let file = git_dir.join("commondir");
    match read_plain(&file) {
        Ok(text) => {
            let common = git_dir.join(OsString::from_vec(text.trim_ascii_end().to_vec()));
            common.canonicalize().map_err(Error::file("following", &file))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            git_dir.canonicalize().map_err(Error::file("following", git_dir))
        }
        Err(error) => Err(Error::file("reading", &file)(error)),
    }
}

/// Whether a repository is one as `git init` and `git clone` leave it, by its files: this user's own, with
/// objects named by SHA-1, and nothing in its settings that git could refuse. What is not certain is no; then
/// git is asked.
pub(super) fn is_plain(top: &Path, git_dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = Path::new("/proc/self").metadata().map(|own| own.uid()).ok();
    let is_own =
        |place: &Path| place.symlink_metadata().is_ok_and(|it| it.is_dir() && Some(it.uid()) == user);
    let text = |name: &str| String::from_utf8(read_plain(&git_dir.join(name)).ok()?).ok();
    [top, git_dir, &git_dir.join("objects"), &git_dir.join("refs")].into_iter().all(is_own)
        && text("HEAD").is_some_and(|head| head.starts_with("ref: refs/heads/") && head.ends_with('\n'))
        && text("config").is_some_and(|config| has_plain_settings(&config))
        && git_dir.join("config.worktree").symlink_metadata().is_err()
}

/// Whether settings are only those that git writes by itself, each in the form that it gives them.
fn has_plain_settings(config: &str) -> bool {
    const SWITCHES: [&str; 6] =
        ["bare", "filemode", "ignorecase", "logallrefupdates", "precomposeunicode", "symlinks"];
    let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let mut section = "";
    for line in config.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix('[') {
            let Some(name) = name.strip_suffix(']') else { return false };
            let (name, below) = name.split_once(' ').unwrap_or((name, "\"\""));
            let below = below.strip_prefix('"').and_then(|below| below.strip_suffix('"'));
            if !["core", "remote", "branch", "user"].contains(&name)
                || below.is_none_or(|below| below.contains(['"', '\\', ']']))
            {
                return false;
            }
            section = name;
            continue;
        }
        let Some((name, value)) = line.split_once(" = ") else { return false };
        let fits = match section {
            "" => false,
            "core" if name == "repositoryformatversion" => value == "0",
            "core" => SWITCHES.contains(&name) && (value == "true" || value == "false"),
            _ => is_word(name) && !value.contains(['"', '\\', ';', '#']),
        };
        if !fits || (section == "core" && name == "bare" && value == "true") {
            return false;
        }
    }
    !section.is_empty()
}

/// Whether a ref of this run may be in a git dir, by its files: nothing is asked of git. What cannot be told
/// is yes.
pub(super) fn may_name(git_dir: &Path, run: &str) -> bool {
    let beginning = format!("refs/convoke/{run}/");
    if git_dir.join(&beginning).symlink_metadata().is_ok() || git_dir.join("reftable").exists() {
        return true;
    }
    match read_plain(&git_dir.join("packed-refs")) {
        Ok(packed) => packed.windows(beginning.len()).any(|part| part == beginning.as_bytes()),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether this user can write objects and refs there. Nothing is left behind by the asking.
pub(super) fn can_be_written(common: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags, accessat, open};
    use rustix::io::Errno;
    let denied = |errno: Errno| matches!(errno, Errno::ACCESS | Errno::PERM | Errno::ROFS);
    let may = |dir: &Path| {
        let asked = accessat(CWD, dir, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
        !asked.is_err_and(denied)
    };
    let objects = common.join("objects");
    let below = fs::read_dir(&objects).into_iter().flatten().flatten().map(|entry| entry.path());
    let refs = ["refs", "refs/convoke"].map(|name| common.join(name));
    let all = [common.to_owned(), objects.clone()].into_iter().chain(refs).chain(below);
    if !all.filter(|path| path.is_dir()).all(|dir| may(&dir)) {
        return false;
    }
    // A file without a name also meets what permissions do not show, such as a sandbox that we are in
    // ourselves.
    let nameless =
        open(&objects, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    !nameless.is_err_and(denied)
}

/// Whether the repository ignores the directory and tracks nothing below it.
pub(super) async fn is_ignored(git: &Git, location: &Location) -> Result<bool, Error> {
    let doing = "asking whether the directory is ignored";
    let top = Path::new(&location.top);
    let dir = Path::new(&location.dir);
    let git_dir = location.git_dir.as_deref().map_or(top, Path::new);
    let prefix = dir.strip_prefix(top).unwrap_or(dir);
    let own = || location.look(git.own(git_dir, doing).work_tree(top));
    let checked =
        own().args(["check-ignore", "--quiet", "--no-index", "--"]).looked_up([prefix]).outcome().await?;
    match checked.code {
        0 => Ok(own().args(["ls-files", "-z", "--"]).arg(prefix).run().await?.is_empty()),
        1 => Ok(false),
        _ => Err(failed(doing, &checked)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_as_git_writes_them_are_taken_for_sound() {
        let core = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n";
        let remote =
            "[remote \"origin\"]\n\turl = https://x.example/y.git\n\tfetch = +refs/heads/*:refs/x/*\n";
        let check = |config: String, plain: bool| assert_eq!(has_plain_settings(&config), plain, "{config}");
        check(core.to_owned(), true);
        check(format!("{core}{remote}[branch \"main\"]\n\tremote = origin\n"), true);
        check(format!("{core}[user]\n\tname = A B\n"), true);
        for bad in [
            "",
            "bare = false\n",
            "[core]\n\trepositoryformatversion = 1\n",
            "[core]\n\tbare = true\n",
            "[core]\n\tfilemode = perhaps\n",
            "[core]\n\tabbrev = 7\n",
            "[core]\n\tfilemode\n",
            "[core\n",
            "[extensions]\n\tobjectformat = sha256\n",
            "[include]\n\tpath = other\n",
            "[remote \"o\"]\n\turl = \"half\n",
            "[remote \"o\"]\n\turl = a \\\n",
            "garbage",
        ] {
            check(bad.to_owned(), false);
            check(format!("{core}{bad}"), bad.is_empty() || bad == "bare = false\n");
        }
    }
}
