//! Report files: in which form, whether they can be written, and writing them so that a reader sees the old
//! file or the new one and never a part. The directory is held from the check on: nothing that commands do to
//! the path meanwhile leads the report elsewhere.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use convoke_beneath::{Error, WriteTarget};

use super::json::json;
use super::markdown::markdown;
use super::model::SessionReport;
use super::sarif::sarif;
use crate::failure::Failure;
use crate::render::escaped;

/// A file that a report is to be written to.
#[derive(Debug, Clone)]
pub(crate) struct ReportFile {
    path: PathBuf,
    form: Form,
    /// Where it is, from the check on.
    place: Option<Arc<WriteTarget>>,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Markdown,
    Json,
    Sarif,
}

impl ReportFile {
    /// Reads a path; its ending says the form.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let ending =
            path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let form = match ending.as_str() {
            "md" => Form::Markdown,
            "json" => Form::Json,
            "sarif" => Form::Sarif,
            _ => return Err(format!("'{text}' does not say in which form: end it in .md, .json or .sarif")),
        };
        Ok(Self { path, form, place: None })
    }

    /// Where it is, as it was named.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Finds the file's place, from the directory in which the process was started, and says before anything
    /// is spent whether it can be written. In `tree`, which commands and strangers write, no link is followed
    /// to it.
    pub(crate) fn check(&mut self, here: &Path, tree: &Path) -> Result<(), Failure> {
        self.path = here.join(&self.path);
        let found = WriteTarget::find(&self.path, Some(tree))
            .and_then(|place| place.check_writable().map(|()| place));
        let place = found.map_err(|error| {
            let failure = Failure::usage(format!(
                "the report {} cannot be written: {}",
                self.path.display(),
                why(&error)
            ));
            match error {
                Error::Link { .. } => failure.hint("name the file itself, by a path without links"),
                _ => failure,
            }
        })?;
        self.place = Some(Arc::new(place));
        Ok(())
    }

    /// Writes the report beside the file and puts it in its place. What goes wrong is said in one sentence.
    pub(crate) fn write(&self, report: &SessionReport) -> Result<(), String> {
        let not_written = |why: &str| format!("the report {} was not written: {why}", self.path.display());
        let place = self.place.as_ref().ok_or_else(|| not_written("its place was never looked up"))?;
        place.replace(self.form.render(report).as_bytes(), 0o666).map_err(|error| not_written(&why(&error)))
    }
}

fn why(error: &Error) -> String {
    match error {
        Error::Kind { found, .. } => format!("it is {found}"),
        error => error.reason(),
    }
}

impl Form {
    /// The report in this form.
    pub(crate) fn render(self, report: &SessionReport) -> String {
        match self {
            Self::Markdown => markdown(report),
            // The file may be looked at in a terminal.
            Self::Json => escaped(&format!("{:#}\n", json(report))),
            Self::Sarif => escaped(&format!("{:#}\n", sarif(report))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::fan_out;
    use super::*;

    #[test]
    fn the_ending_says_the_form() {
        let check =
            |text: &str, expected| assert_eq!(ReportFile::parse(text).ok().map(|file| file.form), expected);
        check("r.md", Some(Form::Markdown));
        check("out/r.JSON", Some(Form::Json));
        check("r.sarif", Some(Form::Sarif));
        check("r.sarif.json", Some(Form::Json));
        check("r.txt", None);
        check("md", None);
        check(".md", None);
        check("", None);
        assert!(ReportFile::parse("r.html").unwrap_err().contains(".md, .json or .sarif"));
    }

    fn file(path: &Path) -> ReportFile {
        ReportFile::parse(path.to_str().unwrap()).unwrap()
    }

    #[test]
    fn a_report_replaces_the_file_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("r.json"), "old").unwrap();
        let mut file = ReportFile::parse("r.json").unwrap();
        file.check(dir.path(), dir.path()).unwrap();
        file.write(&fan_out()).unwrap();
        let written = std::fs::read_to_string(dir.path().join("r.json")).unwrap();
        let written: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(written["exit_code"], 6);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn no_report_goes_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let tree = place.path().join("tree");
        let mine = place.path().join("mine");
        for dir in [&tree, &mine] {
            std::fs::create_dir(dir).unwrap();
        }
        std::fs::write(mine.join("r.json"), "kept").unwrap();
        std::os::unix::fs::symlink(mine.join("r.json"), tree.join("r.json")).unwrap();
        std::os::unix::fs::symlink(&mine, tree.join("out")).unwrap();
        for committed in ["r.json", "out/r.json"] {
            let refused = file(&tree.join(committed)).check(&tree, &tree).unwrap_err();
            assert!(
                refused.message.contains("a symbolic link stands there or on the way"),
                "{}",
                refused.message
            );
            assert!(refused.render().contains("name the file itself"), "{}", refused.render());
        }
        std::os::unix::fs::symlink("r.json", mine.join("r.md")).unwrap();
        assert!(file(&mine.join("r.md")).check(&tree, &tree).is_err(), "a link at the end, whosever it is");
        let mut late = file(&tree.join("late.json"));
        late.check(&tree, &tree).unwrap();
        std::os::unix::fs::symlink(mine.join("r.json"), tree.join("late.json")).unwrap();
        assert!(late.write(&fan_out()).unwrap_err().contains("late.json was not written: a symbolic link"));
        assert_eq!(std::fs::read_to_string(mine.join("r.json")).unwrap(), "kept");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut nowhere = file(&dir.path().join("no/such/r.md"));
        assert!(nowhere.check(dir.path(), dir.path()).unwrap_err().message.contains("no/such/r.md"));
        assert!(nowhere.write(&fan_out()).unwrap_err().contains("no/such/r.md"));
        std::fs::create_dir(dir.path().join("r.md")).unwrap();
        let taken = file(&dir.path().join("r.md")).check(dir.path(), dir.path()).unwrap_err();
        assert!(taken.message.contains("it is a directory"), "{}", taken.message);
    }
}
