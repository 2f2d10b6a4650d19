//! What lies around the directory that is worked in: the places that commands must not see, the variables
//! that they get. The caller says where things are and which variables are set; nothing is read from the
//! environment here.

mod inside;
mod own_files;
mod places;
mod table;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use convoke_sandbox::{LatePaths, Limits, Promise, Templates};

pub use inside::lies_inside;
pub use places::UserDirs;
pub use table::VARIABLES;

use self::own_files::own_files;
use self::places::places;
use crate::confine::Confine;

/// What commands see of the environment without being asked for: enough to find tools, speak the user's
/// language and tell the time. A `*` at the end stands for any text.
pub const COMMAND_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "HOSTNAME",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
];

/// The environment of commands: of these variables the ones that hold no secret.
pub fn command_env(variables: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let fits = |name: &str| {
        COMMAND_VARIABLES.iter().any(|allowed| match allowed.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => *allowed == name,
        })
    };
    let passed = variables.iter().filter(|(name, _)| fits(name));
    let mut passed: BTreeMap<String, String> =
        passed.map(|(name, value)| (name.clone(), value.clone())).collect();
    // The output of a command is never drawn, so programs must not draw.
    passed.entry("TERM".to_owned()).or_insert_with(|| "dumb".to_owned());
    passed
}

impl UserDirs<'_> {
    /// What is hidden from commands and shown to them; `path` is where they find programs, `private` where
    /// the private directories of agents are made. No layer is chosen yet.
    pub fn confine(&self, path: Option<&str>, private: PathBuf) -> Confine {
        let found = places(self, &|path| path.symlink_metadata().is_ok());
        let mut shown = [self.dir.to_owned()].to_vec();
        shown.extend(found.readable.iter().chain(&found.caches).chain(&found.hidden).cloned());
        shown.extend(programs(path));
        Confine {
            set: None,
            promise: Promise::default(),
            hidden: found.hidden,
            readable: found.readable,
            caches: found.caches,
            masked: found.masked,
            own_files: LatePaths::new(move || own_files(own_uid(), &shown)),
            limits: Limits::default(),
            private,
            templates: Templates::default(),
        }
    }
}

/// The user of this process; `None` where there is no `/proc`. The directory itself, unlike what is in it,
/// stays the user's also where others may not inspect the process.
pub fn own_uid() -> Option<u32> {
    Path::new("/proc/self").metadata().ok().map(|meta| meta.uid())
}

/// Where programs are found, with what is installed around them.
fn programs(path: Option<&str>) -> impl Iterator<Item = PathBuf> {
    let directories =
        path.unwrap_or_default().split(':').map(Path::new).filter(|path| path.components().count() > 2);
    directories.filter_map(Path::parent).map(Path::to_owned).collect::<Vec<_>>().into_iter()
}

/// The home that the system's list of users names: the variable can say anything.
pub fn listed_home() -> Option<PathBuf> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    home_of(&users, own_uid()?)
}

fn home_of(users: &str, uid: u32) -> Option<PathBuf> {
    let home = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let own = fields.next()?;
        let home = fields.nth(2)?;
        (own.parse() == Ok(uid)).then(|| PathBuf::from(home))
    };
    users.lines().find_map(home).filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_found_in_the_list_of_users() {
        let users = "root:x:0:0:root:/root:/bin/bash\nme:x:1000:1000:Me,,:/home/me:/bin/sh\nodd:x:7\nnone:x:8:8::rel:/x\n";
        let check =
            |uid: u32, expected: Option<&str>| assert_eq!(home_of(users, uid), expected.map(PathBuf::from));
        check(0, Some("/root"));
        check(1000, Some("/home/me"));
        check(7, None);
        check(8, None);
        check(9, None);
    }

    #[test]
    fn commands_get_the_listed_variables_and_no_other() {
        let given = ["PATH", "LC_ALL", "ANTHROPIC_API_KEY", "PATH_TO_KEY"];
        let given = given.iter().map(|name| ((*name).to_owned(), "x".to_owned())).collect();
        let passed = command_env(&given);
        assert_eq!(passed.keys().collect::<Vec<_>>(), ["LC_ALL", "PATH", "TERM"]);
    }
}
