//! What the library reads of the environment: credentials, the server, the model, and where files are.
//! Commands get an allow-list of it, and no secret.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::Error;

/// The environment of this process. Empty variables and those that are not UTF-8 count as not set.
#[derive(Debug, Clone)]
pub(crate) struct Environment {
    variables: BTreeMap<String, String>,
}

impl Environment {
    pub(crate) fn of_this_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok().filter(|value| !value.is_empty())?))
        };
        Self { variables: std::env::vars_os().filter_map(text).collect() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// What commands get.
    pub(crate) fn of_commands(&self) -> BTreeMap<String, String> {
        convoke_runtime::command_env(&self.variables)
    }

    /// What says where people keep their things.
    pub(crate) fn surroundings(&self) -> BTreeMap<String, String> {
        let names = convoke_runtime::SURROUNDING_VARIABLES.iter();
        names.filter_map(|name| Some(((*name).to_owned(), self.get(name)?.to_owned()))).collect()
    }

    /// The state directory of the program `convoke`: its journal, outputs and kept changes.
    pub(crate) fn state_dir(&self) -> Result<PathBuf, Error> {
        let missing =
            "neither XDG_STATE_HOME nor HOME names a directory: set one of them, or say state_dir(…)";
        let base = self.base("XDG_STATE_HOME", ".local/state");
        base.map(|base| base.join("convoke")).ok_or_else(|| Error::Setting(missing.to_owned()))
    }

    /// The configuration directory of the program, which commands must not see.
    pub(crate) fn config_dir(&self) -> Option<PathBuf> {
        self.base("XDG_CONFIG_HOME", ".config").map(|base| base.join("convoke"))
    }

    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let absolute = |name: &str| self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        absolute(variable).or_else(|| absolute("HOME").map(|home| home.join(below_home)))
    }
}
