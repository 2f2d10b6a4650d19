//! Which files are run, or obeyed, later by people or programs that work in a tree, without being looked at
//! first. Pure: by name and mode alone.

use std::path::{Component, Path, PathBuf};

/// What kind of file that is run later it is, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What a program keeps of a repository: its settings and hooks.
    Metadata,
    /// Run by something ordinary: entering the directory, a commit, a build, an interpreter's start.
    Named,
    /// It can be executed.
    Program,
}

/// Where hooks are kept by habit.
const HOOKS: &[&str] = &[".husky", ".githooks", ".git-hooks", ".hooks", ".lefthook"];

/// Files that shells, editors, debuggers and package managers obey where they find them.
const OBEYED: &[&str] = &[
    ".autoenv",
    ".autoenv.zsh",
    ".dir-locals.el",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".lldbinit",
    ".mise.local.toml",
    ".mise.toml",
    ".npmrc",
    ".nvimrc",
    ".pnpmfile.cjs",
    ".vimrc",
    ".yarnrc.yml",
    "lefthook-local.yml",
    "mise.local.toml",
    "mise.toml",
    "sitecustomize.py",
    "usercustomize.py",
];

/// The ends of paths of which the same is true.
const OBEYED_AT: &[&str] = &[
    ".cargo/config",
    ".cargo/config.toml",
    ".vscode/launch.json",
    ".vscode/settings.json",
    ".vscode/tasks.json",
];

/// Directories from which programs are run by name.
const PROGRAMS: &[&str] =
    &["node_modules/.bin", ".venv/bin", "venv/bin", "env/bin", ".direnv/bin", "vendor/bin"];

/// What is looked at of the metadata of repositories, relative to where they are.
const METADATA: &[(&str, &[&str])] = &[
    (".git", &["config", "config.worktree", "hooks"]),
    (".hg", &["hgrc", "hgrc-not-shared"]),
    (".sl", &["config"]),
    (".jj", &["repo/config.toml"]),
    (".svn", &[]),
];

/// Whether a file is run later, and how. `named` are places that the configuration of the repository names;
/// both are relative to the directory. A symbolic link has no mode of its own: `mode` is `None` then.
pub(crate) fn runs_later(path: &Path, mode: Option<u32>, named: &[PathBuf]) -> Option<Kind> {
    if let Some((rest, parts)) = of_metadata(path) {
        return parts.iter().any(|part| rest.starts_with(part)).then_some(Kind::Metadata);
    }
    let name = path.file_name()?;
    let above = path.parent().unwrap_or(Path::new(""));
    let by_name = OBEYED.iter().any(|own| name == *own)
        || OBEYED_AT.iter().any(|end| path.ends_with(end))
        || path.extension().is_some_and(|extension| extension == "pth")
        || PROGRAMS.iter().any(|end| above.ends_with(end))
        || path.components().any(|part| HOOKS.iter().any(|own| part.as_os_str() == *own))
        || named.iter().any(|place| path.starts_with(place) || (mode.is_none() && place.starts_with(path)));
    if by_name {
        return Some(Kind::Named);
    }
    mode.is_some_and(|mode| mode & 0o111 != 0).then_some(Kind::Program)
}

/// Whether a directory can hold such files. Of metadata only few places do.
pub(crate) fn is_entered(path: &Path) -> bool {
    let Some((rest, parts)) = of_metadata(path) else { return true };
    rest.as_os_str().is_empty()
        || parts.iter().any(|part| Path::new(part).starts_with(&rest) || rest.starts_with(part))
}

/// A path within metadata of a repository: what is below those, and what is looked at there.
fn of_metadata(path: &Path) -> Option<(PathBuf, &'static [&'static str])> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let at = parts.iter().position(|part| METADATA.iter().any(|(name, _)| part.as_os_str() == *name))?;
    let (_, looked_at) = METADATA.iter().find(|(name, _)| parts[at].as_os_str() == *name)?;
    Some((parts[at + 1..].iter().collect(), looked_at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_run_later_is_told_by_name_place_and_mode() {
        let named = [PathBuf::from("tools/hooks"), PathBuf::from("extra.cfg")];
        let check = |path: &str, mode: Option<u32>, expected: Option<Kind>| {
            assert_eq!(runs_later(Path::new(path), mode, &named), expected, "{path}");
        };
        let plain = Some(0o644);
        check("src/main.rs", plain, None);
        check("target/debug/app", Some(0o755), Some(Kind::Program));
        check("tool", Some(0o700), Some(Kind::Program));
        check(".envrc", plain, Some(Kind::Named));
        check("sub/.envrc", plain, Some(Kind::Named));
        check("envrc", plain, None);
        check(".husky/_/pre-commit", plain, Some(Kind::Named));
        check("web/.husky/x", plain, Some(Kind::Named));
        check("node_modules/.bin/tsc", None, Some(Kind::Named));
        check("a/node_modules/.bin/tsc", None, Some(Kind::Named));
        check("node_modules/tsc/index.js", plain, None);
        check(".venv/lib/python3/site-packages/x.pth", plain, Some(Kind::Named));
        check("tools/hooks/pre-commit", plain, Some(Kind::Named));
        check("extra.cfg", plain, Some(Kind::Named));
        check("tools/hooks2", plain, None);
        check(".git/config", plain, Some(Kind::Metadata));
        check("sub/.git/hooks/pre-push", Some(0o755), Some(Kind::Metadata));
        check(".git/objects/ab/cd", Some(0o755), None);
        check(".hg/hgrc", plain, Some(Kind::Metadata));
        check(".jj/repo/config.toml", plain, Some(Kind::Metadata));
        check("some/link", None, None);
        check(".husky", None, Some(Kind::Named));
        check("tools", None, Some(Kind::Named));
        check("tools", plain, None);
    }

    #[test]
    fn of_metadata_only_the_places_with_settings_and_hooks_are_entered() {
        let check = |path: &str, expected: bool| assert_eq!(is_entered(Path::new(path)), expected, "{path}");
        check("src", true);
        check("node_modules/.bin", true);
        check(".git", true);
        check(".git/hooks", true);
        check(".git/hooks/sub", true);
        check(".git/objects", false);
        check("a/.git/refs", false);
        check(".jj/repo", true);
        check(".jj/working_copy", false);
        check(".svn/pristine", false);
    }
}
