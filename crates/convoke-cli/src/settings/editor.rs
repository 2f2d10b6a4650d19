//! How a file is opened at a line in the editor that a person has chosen. It says which command that is and
//! runs nothing.

use std::ffi::OsString;
use std::path::Path;

/// A person's editor, as `VISUAL` or `EDITOR` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Editor(String);

/// How an editor is told the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineStyle {
    /// `+12 FILE`
    Plus,
    /// `FILE:12`
    Colon,
    /// `--goto FILE:12`
    GoTo,
    /// It is not known how.
    Unknown,
}

impl Editor {
    /// The editor of this name, which may have arguments behind it and quotes in it, as for a shell.
    pub(super) fn named(words: &str) -> Self {
        Self(words.to_owned())
    }

    /// The program and the arguments that open this file (by its absolute name), at this line if the editor
    /// is known to take one. The words are read by a shell, because they are written for one; the name of the
    /// file is never read by it.
    pub(crate) fn command(&self, file: &Path, line: Option<u32>) -> (&'static str, Vec<OsString>) {
        let mut args: Vec<OsString> =
            vec!["-c".into(), format!("exec {} \"$@\"", self.0).into(), self.program().into()];
        let with_line = |line: u32| {
            let mut named = file.as_os_str().to_owned();
            named.push(format!(":{line}"));
            named
        };
        match (self.manner(), line) {
            (LineStyle::Plus, Some(line)) => args.extend([format!("+{line}").into(), file.into()]),
            (LineStyle::Colon, Some(line)) => args.push(with_line(line)),
            (LineStyle::GoTo, Some(line)) => args.extend(["--goto".into(), with_line(line)]),
            (LineStyle::Unknown, _) | (_, None) => args.push(file.into()),
        }
        ("sh", args)
    }

    /// The name of the program, without its directory.
    fn program(&self) -> &str {
        let first = self.0.split_whitespace().next().unwrap_or_default();
        first.trim_matches(['\'', '"']).rsplit('/').next().unwrap_or_default()
    }

    fn manner(&self) -> LineStyle {
        match self.program() {
            "vi" | "vim" | "nvim" | "gvim" | "view" | "nano" | "pico" | "emacs" | "emacsclient" | "mg"
            | "joe" | "jed" | "kak" | "micro" | "ne" | "gedit" | "kate" | "elvis" | "vis" => LineStyle::Plus,
            "hx" | "helix" | "subl" | "zed" => LineStyle::Colon,
            "code" | "code-insiders" | "codium" | "cursor" => LineStyle::GoTo,
            _ => LineStyle::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &str, line: Option<u32>, expected: &[&str]) {
        let editor = Editor::named(words);
        let (program, args) = editor.command(Path::new("/a b/$(x).rs"), line);
        let mut said: Vec<String> = vec![program.to_owned()];
        said.extend(args.into_iter().map(|arg| arg.into_string().unwrap()));
        assert_eq!(said, expected, "{words}");
    }

    #[test]
    fn a_file_is_opened_at_its_line_as_the_editor_understands_it() {
        let file = "/a b/$(x).rs";
        let at = "/a b/$(x).rs:12";
        check("vi", Some(12), &["sh", "-c", "exec vi \"$@\"", "vi", "+12", file]);
        check(
            "/usr/bin/nano -w",
            Some(12),
            &["sh", "-c", "exec /usr/bin/nano -w \"$@\"", "nano", "+12", file],
        );
        check("hx", Some(12), &["sh", "-c", "exec hx \"$@\"", "hx", at]);
        check("code --wait", Some(12), &["sh", "-c", "exec code --wait \"$@\"", "code", "--goto", at]);
        check("my-own", Some(12), &["sh", "-c", "exec my-own \"$@\"", "my-own", file]);
        check("vim", None, &["sh", "-c", "exec vim \"$@\"", "vim", file]);
    }

    #[test]
    fn the_command_really_gets_the_words_and_the_file() {
        let check = |words: &str, expected: &str| {
            let editor = Editor::named(words);
            let (program, args) = editor.command(Path::new("/a b/$(x)"), Some(3));
            let ran = std::process::Command::new(program).args(args).output().unwrap();
            assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected, "{words}");
        };
        check("printf '<%s>' \"two words\"", "<two words></a b/$(x)>");
        check("echo  -n", "/a b/$(x)");
    }
}
