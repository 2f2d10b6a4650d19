//! Where a program of the machine is found that runs outside every sandbox: never in a place that commands
//! can write. It looks and starts nothing.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Where programs are that belong to the machine, whatever the path says.
const USUAL: [&str; 4] = ["/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin"];

/// Finds a program by its name: in the usual places first, and then in `path`, a list as `PATH` holds it. The
/// result is absolute and free of links.
///
/// Relative and empty entries of the path are passed over, and so are entries and programs that really lie in
/// one of `never_below`: name there whatever commands may write, the workspace above all.
pub fn trusted_program(name: &str, path: Option<&OsStr>, never_below: &[&Path]) -> Option<PathBuf> {
    // A name with a slash in it would lead away from where it is looked for.
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let forbidden: Vec<PathBuf> = never_below
        .iter()
        .flat_map(|place| [Some(place.to_path_buf()), place.canonicalize().ok()])
        .flatten()
        .filter(|place| place.is_absolute())
        .collect();
    let allowed = |path: &Path| !forbidden.iter().any(|place| path.starts_with(place));
    let named = path.into_iter().flat_map(std::env::split_paths);
    let directories =
        USUAL.iter().map(PathBuf::from).chain(named).filter(|directory| directory.is_absolute());
    directories
        .filter(|directory| allowed(directory))
        .filter_map(|directory| directory.canonicalize().ok())
        .filter(|directory| allowed(directory))
        .filter_map(|directory| directory.join(name).canonicalize().ok())
        .find(|program| allowed(program) && is_program(program))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const NAME: &str = "convoke-test-program";

    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            for place in ["workspace/bin", "machine"] {
                std::fs::create_dir_all(machine.at(place)).unwrap();
            }
            machine
        }

        fn at(&self, rest: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(rest)
        }

        fn program(&self, directory: &str) -> PathBuf {
            let at = self.at(directory).join(NAME);
            std::fs::write(&at, "").unwrap();
            std::fs::set_permissions(&at, PermissionsExt::from_mode(0o755)).unwrap();
            at
        }

        fn check(&self, entries: &[PathBuf], expected: Option<&Path>) {
            let path = std::env::join_paths(entries).unwrap();
            let found = trusted_program(NAME, Some(&path), &[&self.at("workspace")]);
            assert_eq!(found.as_deref(), expected, "{entries:?}");
        }
    }

    #[test]
    fn a_program_in_a_place_that_commands_write_is_passed_over_for_the_next() {
        let machine = Machine::new();
        machine.program("workspace/bin");
        let bin = machine.at("workspace/bin");
        machine.check(std::slice::from_ref(&bin), None);
        let good = machine.program("machine");
        machine.check(&[bin, machine.at("machine")], Some(&good));
    }

    #[test]
    fn links_into_such_a_place_do_not_help() {
        let machine = Machine::new();
        let bad = machine.program("workspace/bin");
        symlink(machine.at("workspace/bin"), machine.at("linked")).unwrap();
        machine.check(&[machine.at("linked")], None);
        symlink(bad, machine.at("machine").join(NAME)).unwrap();
        machine.check(&[machine.at("machine")], None);
    }

    #[test]
    fn a_link_out_of_such_a_place_is_still_theirs() {
        let machine = Machine::new();
        machine.program("machine");
        symlink(machine.at("machine"), machine.at("workspace/out")).unwrap();
        machine.check(&[machine.at("workspace/out")], None);
    }

    #[test]
    fn relative_and_empty_entries_and_names_that_are_paths_are_passed_over() {
        let here = OsStr::new(".:::relative:");
        assert_eq!(trusted_program("Cargo.toml", Some(here), &[]), None);
        assert_eq!(trusted_program("../bin/sh", None, &[]), None);
        assert!(trusted_program("sh", None, &[]).is_some_and(|sh| sh.is_absolute()));
    }

    #[test]
    fn what_cannot_be_executed_is_no_program() {
        let machine = Machine::new();
        let at = machine.program("machine");
        std::fs::set_permissions(&at, PermissionsExt::from_mode(0o644)).unwrap();
        machine.check(&[machine.at("machine")], None);
    }
}
