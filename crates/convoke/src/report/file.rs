//! Report files: in which form, whether they can be written, and writing them so that a reader sees the old file or the
//! new one and never a part.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::json::json;
use super::markdown::markdown;
use super::model::RunReport;
use super::sarif::sarif;
use crate::failure::Failure;
use crate::render::escaped;

/// A file that a report is to be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReportFile {
    pub(crate) path: PathBuf,
    pub(crate) form: Form,
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
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
        let form = match ending.as_str() {
            "md" => Form::Markdown,
            "json" => Form::Json,
            "sarif" => Form::Sarif,
            _ => return Err(format!("'{text}' does not say in which form: end it in .md, .json or .sarif")),
        };
        Ok(Self { path, form })
    }

    /// That the file can be expected to be written: said before anything is spent.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let cannot =
            |why: String| Failure::usage(format!("the report {} cannot be written: {why}", self.path.display()));
        if self.path.is_dir() {
            return Err(cannot("it is a directory".to_owned()));
        }
        match std::fs::metadata(self.dir()) {
            Ok(meta) if meta.is_dir() => match tempfile::tempfile_in(self.dir()) {
                Ok(_) => Ok(()),
                Err(error) => Err(cannot(format!("{}: {error}", self.dir().display()))),
            },
            Ok(_) => Err(cannot(format!("{} is no directory", self.dir().display()))),
            Err(error) => Err(cannot(format!("{}: {error}", self.dir().display()))),
        }
    }

    /// Writes the report beside the file and puts it in its place. What goes wrong is said in one sentence.
    pub(crate) fn write(&self, report: &RunReport) -> Result<(), String> {
        self.replace(&self.form.render(report))
            .map_err(|error| format!("the report {} was not written: {error}", self.path.display()))
    }

    fn replace(&self, text: &str) -> std::io::Result<()> {
        // A link stays a link, and what it names is replaced.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let permissions = match std::fs::metadata(&path) {
            Ok(meta) => meta.permissions(),
            Err(_) => std::os::unix::fs::PermissionsExt::from_mode(0o666),
        };
        let mut file = tempfile::Builder::new().prefix(".convoke-report-").permissions(permissions).tempfile_in(dir)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&path).map(|_| ()).map_err(|error| error.error)
    }

    fn dir(&self) -> &Path {
        self.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

impl Form {
    /// The report in this form.
    pub(crate) fn render(self, report: &RunReport) -> String {
        match self {
            Self::Markdown => markdown(report),
            // Somebody may look at it in a terminal.
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
        let check = |text: &str, expected| assert_eq!(ReportFile::parse(text).ok().map(|file| file.form), expected);
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

    #[test]
    fn a_report_replaces_the_file_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("real.json");
        std::fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, dir.path().join("r.json")).unwrap();
        let file = ReportFile { path: dir.path().join("r.json"), form: Form::Json };
        file.check().unwrap();
        file.write(&fan_out()).unwrap();
        let written: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&target).unwrap()).unwrap();
        assert_eq!(written["exit_code"], 6);
        assert!(std::fs::symlink_metadata(&file.path).unwrap().is_symlink(), "a link stays a link");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let nowhere = ReportFile { path: dir.path().join("no/such/r.md"), form: Form::Markdown };
        assert!(nowhere.check().unwrap_err().message.contains("no/such/r.md"));
        assert!(nowhere.write(&fan_out()).unwrap_err().contains("no/such/r.md"));
        let taken = ReportFile { path: dir.path().to_owned(), form: Form::Markdown };
        assert!(taken.check().unwrap_err().message.contains("is a directory"));
    }
}
