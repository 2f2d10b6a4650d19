//! Where Convoke's files are: the user's configuration, the project's, and the state directory. It looks; it
//! creates nothing.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use crate::failure::Failure;

/// The configuration file of the user.
pub(super) fn user_config(env: &Environment) -> Result<PathBuf, Failure> {
    config_dir(env).map(|dir| dir.join("config.toml"))
}

/// Where the journal, output files and unrecorded replies are kept.
pub(super) fn state_dir(env: &Environment) -> Result<PathBuf, Failure> {
    base(env, "XDG_STATE_HOME", ".local/state").map(|dir| dir.join("convoke"))
}

/// The home directory.
pub(super) fn home(env: &Environment) -> Option<PathBuf> {
    env.get("HOME").map(PathBuf::from).filter(|dir| dir.is_absolute())
}

/// Where the user's configuration of Convoke stands.
pub(super) fn config_dir(env: &Environment) -> Result<PathBuf, Failure> {
    base(env, "XDG_CONFIG_HOME", ".config").map(|dir| dir.join("convoke"))
}

/// The root of the project: the git root. Without one it is the directory itself, so that nothing above a
/// project can slip it anything.
pub(super) fn project_root(dir: &Path) -> &Path {
    dir.ancestors().find(|dir| dir.join(".git").exists()).unwrap_or(dir)
}

/// The directories of the project, from this one up to its root.
pub(super) fn project_dirs(dir: &Path) -> impl Iterator<Item = &Path> {
    let root = project_root(dir);
    dir.ancestors().take_while(move |above| above.starts_with(root))
}

/// The configuration file of the project: the nearest one from the directory up to the root.
pub(super) fn project_config(dir: &Path) -> PathBuf {
    let mut files = project_dirs(dir).map(|dir| dir.join(".convoke/config.toml"));
    files.find(|file| file.exists()).unwrap_or_else(|| project_root(dir).join(".convoke/config.toml"))
}

/// A base directory; a relative path in the variable does not count, as the specification of these variables
/// says.
fn base(env: &Environment, variable: &str, below_home: &str) -> Result<PathBuf, Failure> {
    let stated = env.get(variable).map(PathBuf::from).filter(|dir| dir.is_absolute());
    let found = stated.or_else(|| home(env).map(|home| home.join(below_home)));
    let missing = || Failure::usage(format!("neither {variable} nor HOME names a directory"));
    found.ok_or_else(|| missing().hint(format!("set HOME, or {variable} to an absolute path")))
}
