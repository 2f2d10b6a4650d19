//! Where saved workflows and kinds of agents are looked for, and which projects a person trusts with theirs.
//! It looks at names alone; what stands there is the library's business.

use std::path::{Path, PathBuf};

use convoke_runtime::{LibraryFolder, Origin as Whose};

use super::environment::Environment;
use super::layers::Layers;
use super::paths;
use crate::args::TrustArgs;
use crate::failure::Failure;

/// Where saved workflows and kinds of agents are, apart from those of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    /// Directories that hold the user's `workflows` and `agents`, nearest first.
    user: Vec<PathBuf>,
    /// Projects whose own are loaded.
    trusted: Vec<PathBuf>,
    /// Whether any project's are, by flag.
    any: bool,
}

/// The folders of one directory, nearest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LibraryFolders {
    /// The project it belongs to.
    pub(crate) root: PathBuf,
    pub(crate) workflows: Vec<LibraryFolder>,
    pub(crate) agents: Vec<LibraryFolder>,
    /// Whether the project's own may be loaded.
    pub(crate) trusted: bool,
    /// Whether the configuration says so, which holds for every session.
    pub(crate) for_good: bool,
}

/// Where a project keeps them, nearest first.
const IN_PROJECT: [&str; 2] = [".convoke", ".claude"];

/// What the settled layers and the environment say about it.
pub(super) fn saved(layers: &Layers, args: &TrustArgs, env: &Environment) -> Result<Saved, Failure> {
    let home = paths::home(env);
    let claude = env.get("CLAUDE_CONFIG_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let claude = claude.or_else(|| home.as_ref().map(|home| home.join(".claude")));
    let mut trusted = Vec::new();
    for text in layers.list("trusted") {
        let path = Path::new(&text);
        let path = match (path.strip_prefix("~"), &home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path.to_owned(),
        };
        if !path.is_absolute() {
            let message = format!("{}: 'trusted': '{text}' is no absolute path", layers.origin("trusted"));
            return Err(
                Failure::usage(message).hint("write the root of the project, such as /home/me/project")
            );
        }
        trusted.push(real(path));
    }
    let user = std::iter::once(paths::config_dir(env)?).chain(claude).map(real).collect();
    Ok(Saved { user, trusted, any: args.trust_project })
}

/// The directory behind links, if it is there.
fn real(dir: PathBuf) -> PathBuf {
    dir.canonicalize().unwrap_or(dir)
}

impl Saved {
    /// Whether the project of a directory, which is canonical, is trusted.
    pub(super) fn trusts(&self, dir: &Path) -> bool {
        self.any || self.trusts_for_good(dir)
    }

    fn trusts_for_good(&self, dir: &Path) -> bool {
        self.trusted.iter().any(|root| root == paths::project_root(dir))
    }

    /// The folders of a directory, which is canonical.
    pub(crate) fn folders(&self, dir: &Path) -> LibraryFolders {
        let root = paths::project_root(dir).to_owned();
        let trusted = self.trusts(dir);
        let for_good = self.trusts_for_good(dir);
        let folders = |what: &str| {
            let in_project = paths::project_dirs(dir).flat_map(|dir| IN_PROJECT.map(|name| dir.join(name)));
            // What is the user's own stays so in whatever directory it stands.
            let in_project =
                in_project.filter(|dir| !self.user.contains(dir)).map(|dir| (dir, Whose::Project));
            let all = in_project.chain(self.user.iter().map(|dir| (dir.clone(), Whose::User)));
            all.map(|(dir, origin)| LibraryFolder { dir: dir.join(what), origin }).collect()
        };
        LibraryFolders { workflows: folders("workflows"), agents: folders("agents"), root, trusted, for_good }
    }
}

impl LibraryFolders {
    /// These folders without the project's.
    pub(crate) fn without_project(mut self) -> Self {
        let kept = |folder: &LibraryFolder| folder.origin != Whose::Project;
        self.workflows.retain(kept);
        self.agents.retain(kept);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(user: &[&str], dir: &str, expected: &[&str]) {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("repo/.git")).unwrap();
        std::fs::create_dir_all(root.join("repo/a/b")).unwrap();
        let saved = Saved { user: user.iter().map(|dir| root.join(dir)).collect(), ..Saved::default() };
        let folders = saved.folders(&root.join(dir));
        let show = |folder: &LibraryFolder| {
            format!("{} {}", folder.origin.word(), folder.dir.strip_prefix(&root).unwrap().to_string_lossy())
        };
        assert_eq!(folders.workflows.iter().map(show).collect::<Vec<_>>(), expected, "{dir}");
        let agents: Vec<String> =
            expected.iter().map(|folder| folder.replace("workflows", "agents")).collect();
        assert_eq!(folders.agents.iter().map(show).collect::<Vec<_>>(), agents, "{dir}");
    }

    #[test]
    fn folders_go_from_the_directory_to_the_root_and_then_to_the_user() {
        let project = |dir: &str| {
            [format!("project {dir}.convoke/workflows"), format!("project {dir}.claude/workflows")]
        };
        let all = [project("repo/a/"), project("repo/")].concat();
        let mut all: Vec<&str> = all.iter().map(String::as_str).collect();
        all.extend(["user config/workflows", "user .claude/workflows"]);
        check(&["config", ".claude"], "repo/a", &all);
        // What stands above a directory that is in no repository has no say.
        check(
            &["config"],
            "",
            &["project .convoke/workflows", "project .claude/workflows", "user config/workflows"],
        );
    }

    #[test]
    fn what_is_the_users_is_not_the_projects_too() {
        check(&[".claude"], "", &["project .convoke/workflows", "user .claude/workflows"]);
    }

    #[test]
    fn a_project_is_trusted_by_its_root_and_by_nothing_above_or_below() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("repo/.git")).unwrap();
        std::fs::create_dir_all(root.join("repo/sub")).unwrap();
        let check = |trusted: &str, any: bool, dir: &str, expected: bool| {
            let saved = Saved { trusted: vec![root.join(trusted)], any, ..Saved::default() };
            assert_eq!(saved.folders(&root.join(dir)).trusted, expected, "{trusted:?} {dir:?}");
        };
        check("repo", false, "repo", true);
        check("repo", false, "repo/sub", true);
        check("repo/sub", false, "repo/sub", false);
        check("", false, "repo", false);
        check("elsewhere", false, "repo", false);
        check("elsewhere", true, "repo", true);
    }
}
