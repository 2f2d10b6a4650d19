//! The scripts in `tests/scripts`, each with what its header says of it:
//!
//! `// args: JSON`, `// budget: N`, `// expect-null: returned|thrown`, `// expect-half: returned|thrown`, `//
//! order: free|bound` (whether the result is the same in whatever order agents end) and, where it matters,
//! `// expect-no-args: returned|thrown`.

use std::fs;

use convoke_script::{Limits, Start};
use serde_json::Value;

use crate::stub::SCRIPTS;

/// One script.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    /// Its file's name.
    pub(crate) name: String,
    /// Its source.
    pub(crate) source: String,
}

impl Script {
    /// What its header says under this key.
    pub(crate) fn header(&self, key: &str) -> Option<&str> {
        let key = format!("// {key}: ");
        self.source.lines().find_map(|line| line.strip_prefix(&key)).map(str::trim)
    }

    /// How it is to be started.
    pub(crate) fn start(&self) -> Start {
        Start {
            source: self.source.clone(),
            args: self.header("args").map(|text| {
                serde_json::from_str::<Value>(text)
                    .unwrap_or_else(|error| panic!("{}: args: {error}", self.name))
            }),
            budget_total: self.header("budget").map(|text| text.parse().unwrap()),
            spent: 0,
            limits: Limits::default(),
        }
    }
}

/// All of them, by name.
pub(crate) fn scripts() -> Vec<Script> {
    let mut scripts: Vec<Script> = fs::read_dir(SCRIPTS)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "js"))
        .map(|path| Script {
            name: path.file_stem().unwrap().to_string_lossy().into_owned(),
            source: fs::read_to_string(&path).unwrap(),
        })
        .collect();
    scripts.sort_by(|a, b| a.name.cmp(&b.name));
    scripts
}
