//! Refuses to start where commands could change what Convoke itself goes by: the journal, its state and its
//! settings have to lie outside the directory that is worked in. It looks; it changes nothing.

use std::path::Path;

use convoke_runtime::lies_inside;

use crate::failure::Failure;
use crate::settings::Settings;

/// Checks that nothing of Convoke's own lies in the directory, by its name or by where links lead.
pub(crate) fn check_places(settings: &Settings, dir: &Path) -> Result<(), Failure> {
    let config = settings.files.first().and_then(|file| file.path.parent());
    let journal = settings.journal.file();
    let origin = settings.origin("journal").map(ToString::to_string).unwrap_or_default();
    let things = [
        (
            journal,
            format!("the journal ({origin})"),
            "name a file outside of it with --journal or ORCH_JOURNAL",
        ),
        (
            Some(settings.state_dir.as_path()),
            "the state directory".to_owned(),
            "set XDG_STATE_HOME to a place outside",
        ),
        (config, "your configuration".to_owned(), "set XDG_CONFIG_HOME to a place outside"),
    ];
    let inside = |path: &Path| lies_inside(path, dir);
    let Some((Some(path), what, remedy)) = things.into_iter().find(|(path, ..)| path.is_some_and(inside))
    else {
        return Ok(());
    };
    let message = format!(
        "{what} lies in the directory that is worked in, where commands could change it: {} is in {}",
        path.display(),
        dir.display()
    );
    Err(Failure::usage(message)
        .hint("start in a project directory, or name one with --cwd")
        .hint(format!("or {remedy}")))
}
