//! Reads one mutant's file: the header, then for each file what is found there and what is put in its place.

/// One way to break an invariant, and the test that must notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// The name of its file, without the extension.
    pub name: String,
    /// The invariant it breaks, in words.
    pub breaks: String,
    /// The test that must fail.
    pub test: TestCall,
    /// The test needs a PostgreSQL.
    pub postgres: bool,
    /// The edits, in the order in which they are made.
    pub edits: Vec<Edit>,
}

/// The arguments of `cargo test` in two parts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestCall {
    /// What is built: `-p PACKAGE`, then `--lib`, `--test it` and the like, or nothing for every target.
    pub selection: Vec<String>,
    /// The full name of one test in it.
    pub name: String,
}

/// Text that is looked for in a file, and the text that is put in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The file, from the root of the tree.
    pub path: String,
    /// What is looked for; whitespace does not count.
    pub find: String,
    /// What is put in its place, as it stands. Empty if the text is only taken out.
    pub put: String,
}

impl TestCall {
    fn parse(arguments: &str) -> Result<Self, String> {
        let mut words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        let name = words.pop().unwrap_or_default();
        if words.len() < 2 || words.first().is_none_or(|word| word != "-p") || name.starts_with('-') {
            return Err(
                "a line `# test:` reads `-p PACKAGE`, which target, and the name of one test".to_owned()
            );
        }
        Ok(Self { selection: words, name })
    }

    /// The package whose test it is.
    #[must_use]
    pub fn package(&self) -> &str {
        self.selection.get(1).map_or("", String::as_str)
    }
}

/// The indentation of the text below `find:` and `put:`. A line without it begins something else.
const INDENT: &str = "    ";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Outside,
    Find,
    Put,
}

impl Mutant {
    /// Reads the text of one file. The error says in which line it went wrong.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut breaks = None;
        let mut test = None;
        let mut postgres = false;
        let mut edits: Vec<Edit> = Vec::new();
        let mut path: Option<String> = None;
        let mut part = Part::Outside;
        for (index, line) in text.lines().enumerate() {
            let wrong = |what: &str| format!("line {}: {what}", index + 1);
            let begins = line.starts_with("in:") || line.trim_end() == "find:";
            if begins && part == Part::Find {
                return Err(wrong("`in:` or `find:` before the `put:` of an edit"));
            }
            if part != Part::Outside && (line.starts_with(INDENT) || line.trim().is_empty()) {
                let Some(edit) = edits.last_mut() else { return Err(wrong("text outside an edit")) };
                let kept = if part == Part::Find { &mut edit.find } else { &mut edit.put };
                kept.push_str(line.get(INDENT.len()..).unwrap_or(""));
                kept.push('\n');
            } else if let Some(rest) = line.strip_prefix("# breaks:") {
                breaks = Some(rest.trim().to_owned());
            } else if let Some(rest) = line.strip_prefix("# test:") {
                test = Some(TestCall::parse(rest).map_err(|error| wrong(&error))?);
            } else if let Some(rest) = line.strip_prefix("# postgres:") {
                postgres = rest.trim() == "yes";
            } else if let Some(rest) = line.strip_prefix("in:") {
                path = Some(rest.trim().to_owned());
                part = Part::Outside;
            } else if line.trim_end() == "find:" {
                let path = path.clone().ok_or_else(|| wrong("`find:` before any `in:`"))?;
                edits.push(Edit { path, find: String::new(), put: String::new() });
                part = Part::Find;
            } else if line.trim_end() == "put:" && part == Part::Find {
                part = Part::Put;
            } else if !line.starts_with('#') && !line.trim().is_empty() {
                return Err(wrong(
                    "neither a header, nor `in:`, `find:` or `put:`, nor text indented by four spaces",
                ));
            }
        }
        for edit in &mut edits {
            if edit.find.trim().is_empty() {
                return Err(format!("there is nothing to find in {}", edit.path));
            }
            edit.put.truncate(edit.put.trim_end().len());
        }
        if edits.is_empty() || part == Part::Find {
            return Err("there is no edit, or one has no `put:`".to_owned());
        }
        Ok(Self {
            name: name.to_owned(),
            breaks: breaks.filter(|breaks| !breaks.is_empty()).ok_or("there is no line `# breaks: …`")?,
            test: test.ok_or("there is no line `# test: …`")?,
            postgres,
            edits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "# breaks: every call is answered\n\
        # test: -p convoke-kernel --lib agent::tests::calls_are_answered\n\
        # A remark.\n\
        \n\
        in: crates/one.rs\n\
        find:\n\
        \x20   let answer = 1;\n\
        \n\
        \x20   done();\n\
        put:\n\
        \x20   let answer = 2;\n\
        find:\n\
        \x20   gone();\n\
        put:\n\
        in: crates/two.rs\n\
        find:\n\
        \x20   in: one\n\
        put:\n\
        \x20       put: two\n\
        # postgres: yes\n";

    #[test]
    fn a_whole_file_is_read() {
        let mutant = Mutant::parse("calls-unanswered", WHOLE).unwrap();
        assert_eq!(mutant.breaks, "every call is answered");
        assert_eq!(mutant.test.selection, ["-p", "convoke-kernel", "--lib"]);
        assert_eq!(mutant.test.package(), "convoke-kernel");
        assert_eq!(mutant.test.name, "agent::tests::calls_are_answered");
        assert!(mutant.postgres);
        let edit = |path: &str, find: &str, put: &str| Edit {
            path: path.into(),
            find: find.into(),
            put: put.into(),
        };
        assert_eq!(
            mutant.edits,
            [
                edit("crates/one.rs", "let answer = 1;\n\ndone();\n", "let answer = 2;"),
                edit("crates/one.rs", "gone();\n", ""),
                edit("crates/two.rs", "in: one\n", "    put: two"),
            ]
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let without = |line: &str| Mutant::parse("m", &WHOLE.replace(line, "")).unwrap_err();
        assert_eq!(without("# breaks: every call is answered\n"), "there is no line `# breaks: …`");
        let test = "# test: -p convoke-kernel --lib agent::tests::calls_are_answered\n";
        assert_eq!(without(test), "there is no line `# test: …`");
        assert_eq!(without("in: crates/one.rs\n"), "line 5: `find:` before any `in:`");
        assert_eq!(without("    gone();\n"), "there is nothing to find in crates/one.rs");
        assert!(
            Mutant::parse("m", &WHOLE.replace("-p convoke-kernel --lib", ""))
                .unwrap_err()
                .starts_with("line 2: ")
        );
        let cut = WHOLE.split("put:\n    let").next().unwrap();
        assert_eq!(Mutant::parse("m", cut).unwrap_err(), "there is no edit, or one has no `put:`");
        assert!(Mutant::parse("m", &WHOLE.replace("in: crates/two.rs", "to: crates/two.rs")).is_err());
    }

    #[test]
    fn an_edit_that_is_not_the_last_needs_its_put_too() {
        let text = WHOLE.replace("    gone();\nput:\n", "    gone();\n");
        assert_eq!(
            Mutant::parse("m", &text).unwrap_err(),
            "line 14: `in:` or `find:` before the `put:` of an edit"
        );
    }
}
