//! The glob tool: names that fit a pattern. It opens no file, only directories.

use std::ops::ControlFlow;

use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::{AtFlags, FileType};
use serde::Deserialize;

use crate::beneath::{self, Opened};
use crate::caps::Caps;
use crate::editor::Done;
use crate::refused::Refused;
use crate::root::Root;
use crate::show;
use crate::walk::Walk;

/// One call of the glob tool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Glob {
    /// Which names: `*` and `?` within a component, `**` across them, `[a-z]`, `{a,b}`. Without a slash it is
    /// compared with the last component of a path, with one with the whole path below `path`.
    pub pattern: String,
    /// The directory to look in; the tree if none.
    #[serde(default)]
    pub path: Option<String>,
    /// Whether hidden and ignored files are listed too.
    #[serde(default)]
    pub all: bool,
    /// The order of the answer.
    #[serde(default)]
    pub sort: Sort,
}

/// The order of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sort {
    /// By path.
    #[default]
    Path,
    /// The file changed last comes first.
    Newest,
}

/// Carries out one call of the glob tool.
pub fn glob(root: &Root, glob: &Glob, caps: &Caps) -> Result<Done, Refused> {
    let pattern = Pattern::read(root, &glob.pattern)?;
    let named = root.named(glob.path.as_deref().unwrap_or("."))?;
    let directory = match beneath::open(root, &named)? {
        Opened::Directory(directory) => directory,
        Opened::File(..) => {
            let advice = "glob looks in directories";
            return Err(Refused::Kind { path: named.said, kind: "a file", advice });
        }
    };
    let mut walk = Walk::new(caps, glob.all);
    let mut found: Vec<(i128, String)> = Vec::new();
    let mut left_over = 0_u64;
    walk.run(root, &named, directory, &mut |entry| {
        if entry.kind == FileType::Directory || !pattern.fits(entry.below) {
            return ControlFlow::Continue(());
        }
        // By path the first ones are wanted, and they come first; for the newest all have to be known.
        if glob.sort == Sort::Path && found.len() >= caps.results {
            left_over += 1;
            return ControlFlow::Continue(());
        }
        let age = match glob.sort {
            Sort::Path => 0,
            Sort::Newest => -rustix::fs::statat(entry.directory, entry.name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(0, |stat| changed(&stat)),
        };
        found.push((age, show::below(entry.path)));
        ControlFlow::Continue(())
    });
    if glob.sort == Sort::Newest {
        found.sort();
        left_over += found.len().saturating_sub(caps.results) as u64;
        found.truncate(caps.results);
    }
    let mut text = String::new();
    let mut room = caps.view_chars;
    for (number, (_, path)) in found.iter().enumerate() {
        let chars = path.chars().count() + 1;
        if chars > room {
            left_over += (found.len() - number) as u64;
            break;
        }
        room -= chars;
        text.push_str(path);
        text.push('\n');
    }
    let mut remarks = Vec::new();
    if left_over > 0 {
        remarks.push(format!("{left_over} more fit: narrow the pattern or the path"));
    }
    if found.is_empty() {
        remarks.push(format!("no file below `{}` fits `{}`", named.said, glob.pattern));
        if walk.left_out > 0 {
            remarks.push(format!(
                "{} hidden or ignored and not looked at: all includes them",
                show::count(walk.left_out, "entry is", "entries are")
            ));
        }
    }
    remarks.extend(walk.remarks(caps));
    if !remarks.is_empty() {
        text.push_str(&format!("[{}]\n", remarks.join("; ")));
    }
    Ok(Done { text, changed: None })
}

/// When a file was changed, as one number.
pub(crate) fn changed(stat: &rustix::fs::Stat) -> i128 {
    i128::from(stat.st_mtime) * 1_000_000_000 + i128::from(stat.st_mtime_nsec)
}

/// A pattern for names.
#[derive(Debug)]
pub(crate) struct Pattern {
    matcher: GlobMatcher,
    last_only: bool,
}

impl Pattern {
    pub(crate) fn read(root: &Root, said: &str) -> Result<Self, Refused> {
        /// Longer ones are no patterns a person would write, and cost memory.
        const LONGEST: usize = 2_000;
        let bad = |why: String| Refused::Pattern { pattern: show::cut(said, 200, 0), why };
        if said.trim().is_empty() {
            return Err(bad("it is empty; `**` fits everything.".to_owned()));
        }
        if said.len() > LONGEST {
            return Err(bad(format!("it has more than {LONGEST} bytes; use several calls.")));
        }
        // A pattern that begins with the tree's own path means what is below it.
        let tree = root.shown().to_string_lossy();
        let tree = tree.trim_end_matches('/');
        let pattern = match said.strip_prefix(tree).and_then(|rest| rest.strip_prefix('/')) {
            Some(rest) => rest,
            None if said.starts_with('/') => {
                return Err(bad(format!(
                    "it begins with `/` and not with `{tree}/`; patterns are relative to the tree."
                )));
            }
            None => said.strip_prefix("./").unwrap_or(said),
        };
        if pattern.split('/').any(|part| part == "..") {
            return Err(bad("it holds `..`; say where to look with path.".to_owned()));
        }
        let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| bad(format!("{}.", error.kind())))?;
        Ok(Self { matcher: glob.compile_matcher(), last_only: !pattern.contains('/') && pattern != "**" })
    }

    /// Whether a path fits.
    pub(crate) fn fits(&self, path: &std::path::Path) -> bool {
        if self.last_only {
            path.file_name().is_some_and(|name| self.matcher.is_match(name))
        } else {
            self.matcher.is_match(path)
        }
    }
}
