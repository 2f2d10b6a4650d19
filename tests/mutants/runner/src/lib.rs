//! The mutants in `tests/mutants`: how their files are read, applied to a source, ordered and chosen. All of
//! it is pure but [`read_all`]; `main.rs` and its modules run them. `tests/mutants/README.md` describes the
//! files.

mod apply;
mod choose;
mod parse;

pub use apply::{Misfit, apply, place_of};
pub use choose::{in_order, tenth};
pub use parse::{Edit, Mutant, TestCall};

use std::path::Path;

/// The name of a mutant's file ends in this.
pub const EXTENSION: &str = "mutant";

/// Reads every mutant in a directory, sorted by name. The error names the file.
pub fn read_all(directory: &Path) -> Result<Vec<Mutant>, String> {
    let unreadable = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut mutants = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_none_or(|extension| extension != EXTENSION) {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        mutants.push(Mutant::parse(&name, &text).map_err(|error| format!("{}: {error}", path.display()))?);
    }
    mutants.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(mutants)
}
