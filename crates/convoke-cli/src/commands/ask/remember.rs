//! Remembers an answer in the user's configuration. The file keeps everything that stands in it; it is
//! replaced in one step, and not at all if the result could not be read.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use convoke_kernel::COMMANDS;
use toml::de::DeTable;

use crate::settings::check_user_file;

/// Adds a rule that allows what begins like this command.
pub(super) fn allow(file: &Path, command: &str) -> Result<(), String> {
    rewrite(file, |text| Ok(with_rule(text, command)))
}

/// Adds a directory to those whose workflows and agents are trusted.
pub(in crate::commands) fn trust(file: &Path, dir: &str) -> Result<(), String> {
    rewrite(file, |text| with_trusted(text, dir))
}

/// Makes a new text of a file's text, and puts it in its place.
fn rewrite(file: &Path, change: impl FnOnce(&str) -> Result<String, String>) -> Result<(), String> {
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
    let text = change(&text)?;
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
        "{text}{apart}# Remembered from a question.\n[[rules]]\ntool = \"{}\"\ncommand = \
            {command}\ndecision = \"allow\"\n",
        COMMANDS.name
    )
}

/// The file with one more trusted directory. A key outside of tables must stand before all of them, so a new
/// one comes first.
fn with_trusted(text: &str, dir: &str) -> Result<String, String> {
    let item = toml::Value::String(dir.to_owned());
    let table = DeTable::parse(text).map_err(|error| error.message().to_owned())?;
    let list = table.get_ref().iter().find(|(key, _)| key.get_ref() == "trusted").map(|(_, value)| value);
    let Some(list) = list else {
        let apart = if text.is_empty() { "" } else { "\n" };
        return Ok(format!(
            "# Workflows and agents of these directories are loaded.\ntrusted = [{item}]\n{apart}{text}"
        ));
    };
    let items = list.get_ref().as_array().ok_or("'trusted' is no list (nothing was changed)")?;
    let apart = if items.is_empty() { "" } else { ", " };
    // Right behind the bracket nothing can be in the way: no comment, no comma.
    let at = list.span().start + 1;
    Ok(format!("{}{item}{apart}{}", &text[..at], &text[at..]))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const RULE: &str = "# Remembered from a question.\n[[rules]]\ntool = \"bash\"\ncommand = \"cargo \
        test\"\ndecision = \"allow\"\n";

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
    fn a_trusted_directory_is_added_and_everything_else_stays() {
        let check = |before: &str, expected: &str| {
            let after = with_trusted(before, "/a b/\"c\"").unwrap();
            assert_eq!(after, expected);
            check_user_file(Path::new("config.toml"), &after).unwrap();
        };
        let new = "# Workflows and agents of these directories are loaded.\ntrusted = ['/a b/\"c\"']\n";
        check("", new);
        check(
            "# mine\nmodel = \"m\"\n[env]\npass = []\n",
            &format!("{new}\n# mine\nmodel = \"m\"\n[env]\npass = []\n"),
        );
        check("trusted = []\n", "trusted = ['/a b/\"c\"']\n");
        check("trusted = [\n  # work\n  \"/w\",\n]\n", "trusted = ['/a b/\"c\"', \n  # work\n  \"/w\",\n]\n");
        assert!(with_trusted("trusted = 1\n", "/a").unwrap_err().contains("no list"));
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
