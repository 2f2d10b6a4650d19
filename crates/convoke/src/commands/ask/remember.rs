//! Remembers an answer as a rule in the user's configuration. The file keeps everything that stands in it; it is replaced
//! in one step, and not at all if the result could not be read.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use crate::settings::check_user_file;

/// Adds a rule that allows what begins like this command.
pub(super) fn allow(file: &Path, command: &str) -> Result<(), String> {
    // A configuration that is a link stays one.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let cannot = |error: std::io::Error| format!("{}: {error}", file.display());
    let dir = file.parent().ok_or_else(|| format!("{} has no directory", file.display()))?;
    fs::create_dir_all(dir).map_err(cannot)?;
    // Two sessions may remember at once, and neither may lose what the other wrote.
    let turn = File::open(dir).map_err(cannot)?;
    turn.lock().map_err(cannot)?;
    let (text, mode) = match fs::metadata(&file) {
        Ok(meta) => (fs::read_to_string(&file).map_err(cannot)?, Some(meta.permissions())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => (String::new(), None),
        Err(error) => return Err(cannot(error)),
    };
    let text = with_rule(&text, command);
    check_user_file(&file, &text).map_err(|failure| format!("{} (nothing was changed)", failure.message))?;
    let mut new = tempfile::NamedTempFile::new_in(dir).map_err(cannot)?;
    new.write_all(text.as_bytes()).map_err(cannot)?;
    if let Some(mode) = mode {
        new.as_file().set_permissions(mode).map_err(cannot)?;
    }
    new.as_file().sync_all().map_err(cannot)?;
    new.persist(&file).map_err(|error| cannot(error.error))?;
    Ok(())
}

/// The file with one more rule at its end.
fn with_rule(text: &str, command: &str) -> String {
    let apart = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let command = toml::Value::String(command.to_owned());
    format!(
        "{text}{apart}# Remembered from a question.\n[[rules]]\ntool = \"bash\"\ncommand = {command}\ndecision = \"allow\"\n"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const RULE: &str =
        "# Remembered from a question.\n[[rules]]\ntool = \"bash\"\ncommand = \"cargo test\"\ndecision = \"allow\"\n";

    #[track_caller]
    fn check(before: &str, expected: &str) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        fs::write(&file, before).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        allow(&file, "cargo test").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
    }

    #[test]
    fn a_rule_is_added_and_everything_else_stays() {
        check("", RULE);
        check("# mine\nmodel = \"m\" # this one", &format!("# mine\nmodel = \"m\" # this one\n\n{RULE}"));
        check("[env]\npass = [\"A\"]\n", &format!("[env]\npass = [\"A\"]\n\n{RULE}"));
        check(&format!("{RULE}\n"), &format!("{RULE}\n{RULE}"));
    }

    #[test]
    fn a_new_file_is_made_and_a_link_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("convoke/config.toml");
        allow(&file, "cargo test").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), RULE);
        let link = dir.path().join("link.toml");
        symlink(&file, &link).unwrap();
        allow(&link, "ls").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(fs::read_to_string(&file).unwrap().contains("command = \"ls\""));
    }

    #[test]
    fn a_file_that_would_not_be_readable_with_it_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        let text = "rules = [{ tool = \"bash\", decision = \"ask\" }]\n";
        fs::write(&file, text).unwrap();
        let why = allow(&file, "ls").unwrap_err();
        assert!(why.contains("nothing was changed"), "{why}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }

    #[test]
    fn two_that_remember_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("config.toml");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let file = &file;
                scope.spawn(move || allow(file, &format!("run {number}")).unwrap());
            }
        });
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text.matches("[[rules]]").count(), 8, "{text}");
    }
}
