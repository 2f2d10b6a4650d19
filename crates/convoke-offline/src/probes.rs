//! The commands the offline model looks with. They only read, need bash, awk, find, sort and xargs (git if
//! there is one), stand alone, and print bounded lines that end in a mark, so that a line that was cut is not
//! taken for a whole one.

use super::intent::{Term, Topic};

/// Something that is looked at with one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Probe {
    Inventory,
    LargestFiles,
    LongFunctions,
    Todos,
    Errors,
    Tests,
    Framework,
    Outline,
    Find(Term),
    List,
    Reread(Vec<Quote>),
}

/// A line to be read again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) path: String,
    pub(super) line: u64,
}

/// Which part of the tree is looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) scope: Option<String>,
    pub(super) language: Option<&'static str>,
}

/// Extensions and their languages; the flag says that the files are looked into and not only counted.
pub(super) const LANGUAGES: &[(&str, &str, bool)] = &[
    ("rs", "Rust", true),
    ("c", "C", true),
    ("h", "C", true),
    ("cc", "C++", true),
    ("cpp", "C++", true),
    ("cxx", "C++", true),
    ("hpp", "C++", true),
    ("hh", "C++", true),
    ("go", "Go", true),
    ("js", "JavaScript", true),
    ("mjs", "JavaScript", true),
    ("cjs", "JavaScript", true),
    ("jsx", "JavaScript", true),
    ("ts", "TypeScript", true),
    ("tsx", "TypeScript", true),
    ("java", "Java", true),
    ("py", "Python", true),
    ("sh", "Shell", true),
    ("bash", "Shell", true),
    ("awk", "Awk", false),
    ("cs", "C#", false),
    ("css", "CSS", false),
    ("html", "HTML", false),
    ("json", "JSON", false),
    ("kt", "Kotlin", false),
    ("lua", "Lua", false),
    ("md", "Markdown", false),
    ("php", "PHP", false),
    ("proto", "Protobuf", false),
    ("rb", "Ruby", false),
    ("scala", "Scala", false),
    ("scss", "SCSS", false),
    ("sql", "SQL", false),
    ("swift", "Swift", false),
    ("toml", "TOML", false),
    ("txt", "Text", false),
    ("xml", "XML", false),
    ("yaml", "YAML", false),
    ("yml", "YAML", false),
];

pub(super) const FILES: &str = include_str!("shell/files.sh");
pub(super) const BASE: &str = include_str!("shell/base.awk");
pub(super) const ITEM: &str = include_str!("shell/item.awk");
pub(super) const LEX: &str = include_str!("shell/lex.awk");
pub(super) const BLOCKS: &str = include_str!("shell/blocks.awk");
pub(super) const FUNCTIONS: &str = include_str!("shell/functions.awk");
pub(super) const TODOS: &str = include_str!("shell/todos.awk");
pub(super) const ERRORS: &str = include_str!("shell/errors.awk");
pub(super) const TESTS: &str = include_str!("shell/tests.awk");
pub(super) const JOIN: &str = include_str!("shell/join.awk");
const COUNT: &str = include_str!("shell/count.awk");
const LENGTHS: &str = include_str!("shell/lengths.awk");
const FIND: &str = include_str!("shell/find.awk");
const FRAMEWORKS: &str = include_str!("shell/frameworks.awk");
const MANIFESTS: &str = include_str!("shell/manifests.awk");
const OUTLINE: &str = include_str!("shell/outline.awk");

/// The files in which a project says by which framework it is tested, apart from its source files.
const MANIFEST_NAMES: &str = "Cargo.toml | package.json | pyproject.toml | setup.cfg | setup.py | tox.ini | \
    pytest.ini | Pipfile | noxfile.py | requirements*.txt | jest.config.* | vitest.config.* | \
    playwright.config.* | cypress.config.* | .mocharc* | go.mod | pom.xml | build.gradle | build.gradle.kts \
    | libs.versions.toml | Gemfile | *.gemspec | .rspec | composer.json | phpunit.xml* | *.csproj | \
    CMakeLists.txt | *.bats";
pub(super) const MODULES: &str = include_str!("shell/modules.sh");
pub(super) const MODS: &str = include_str!("shell/mods.awk");
const TOP: &str = include_str!("shell/top.awk");
pub(super) const UNREAD: &str = include_str!("shell/unread.awk");
const AGAIN: &str = include_str!("shell/again.awk");
const REREAD: &str = r#"NR == N { print "R\t" I "\t" clean($0) "\t."; exit }"#;

impl Probe {
    /// What answers this.
    pub(super) fn of(ask: &Topic) -> Self {
        match ask {
            Topic::Count => Probe::Inventory,
            Topic::LargestFiles => Probe::LargestFiles,
            Topic::LongFunctions => Probe::LongFunctions,
            Topic::Todos => Probe::Todos,
            Topic::Errors => Probe::Errors,
            Topic::Tests => Probe::Tests,
            Topic::Framework => Probe::Framework,
            Topic::Outline => Probe::Outline,
            Topic::Find(term) => Probe::Find(term.clone()),
            Topic::List => Probe::List,
        }
    }

    /// The first line of the command, by which its result is recognised in the history.
    pub(super) fn title(&self) -> &'static str {
        match self {
            Probe::Inventory => "# Files and lines by language, and what is left out",
            Probe::LargestFiles => "# The largest files, by lines",
            Probe::LongFunctions => "# Functions of more than 80 lines",
            Probe::Todos => "# TODO, FIXME, XXX and HACK in comments",
            Probe::Errors => "# Errors that nobody handles, outside tests",
            Probe::Tests => "# Source files whose name no test mentions",
            Probe::Framework => "# Lines that name a testing framework",
            Probe::Outline => "# What the source files define",
            Probe::Find(_) => "# Lines that hold what was asked for",
            Probe::List => "# The files, by name",
            Probe::Reread(_) => "# The lines that will be quoted, read again",
        }
    }

    /// The command, for this part of the tree.
    pub(super) fn command(&self, view: &View) -> String {
        let scope = quoted(view.scope.as_deref().unwrap_or_default());
        let only = quoted(view.language.unwrap_or_default());
        let mut lines = vec![self.title().to_owned(), "(".to_owned()];
        if let Probe::Reread(quotes) = self {
            lines.push("export LC_ALL=C".to_owned());
            lines.push(base());
            lines.push(variable("P", &[BASE, REREAD]));
            lines.push(r#"again() { awk -v I="$1" -v N="$2" "$P" "./$3" 2>/dev/null; }"#.to_owned());
            lines.push(variable("AGAIN", &[AGAIN]));
            lines.push("{ :".to_owned());
            lines.extend(
                quotes.iter().enumerate().map(|(i, q)| format!("again {i} {} {}", q.line, quoted(&q.path))),
            );
            lines.push("} | awk \"$AGAIN\"\n)".to_owned());
            return lines.join("\n");
        }
        let (word, words) = match self {
            Probe::Find(Term::Exact(text)) => (text.clone(), String::new()),
            Probe::Find(Term::Words(words)) => (String::new(), words.join(" ")),
            _ => (String::new(), String::new()),
        };
        lines.push(format!(
            "S={scope}; IN=() EX=(); export MODS= ONLY={only} WORD={} WORDS={}",
            quoted(&word),
            quoted(&words)
        ));
        let pick = if matches!(self, Probe::Framework) { MANIFEST_NAMES } else { "-" };
        lines.push(without_comments(&FILES.replace("@SOURCE@", &source_patterns()).replace("@PICK@", pick)));
        lines.push(base());
        lines.push(variable("TOP", &[TOP]));
        lines.push(variable("UNREAD", &[BASE, UNREAD]));
        let (program, pipeline): (&[&str], &str) = match self {
            Probe::Inventory => (
                &[BASE, COUNT],
                "{ files why; NAMED=1 noting every; in_git && printf 'N\\tgit\\t1\\n'\n\
                 printf 'N\\tbig\\t%s\\n' \"$(files kept | big | tr -cd '\\0' | wc -c | tr -d ' ')\"\n\
                 [ \"$S\" = \"$A\" ] || printf 'N\\tscope_missing\\t1\\n'; } | top 8 inventory",
            ),
            Probe::LargestFiles => (&[BASE, ITEM, LENGTHS], "noting every | top 8 largest"),
            Probe::LongFunctions => (
                &[BASE, ITEM, LEX, BLOCKS, FUNCTIONS],
                "noting sources | top 8 'function of more than 80 lines|functions of more than 80 lines|in'",
            ),
            Probe::Todos => (
                &[BASE, ITEM, LEX, TODOS],
                "noting sources | top 10 'TODO, FIXME, XXX or HACK comment|TODO, FIXME, XXX or HACK \
                    comments|in'",
            ),
            Probe::Errors => (
                &[BASE, ITEM, LEX, BLOCKS, ERRORS],
                "export MODS=$(test_modules \"$MODS\")\nnoting sources | top 3 'error that nobody \
                    handles|errors that nobody handles|in'",
            ),
            Probe::Tests => (
                &[BASE, ITEM, LEX, TESTS],
                "export WITHIN=\"$S\" FOR=\"$ONLY\"; S= ONLY=\n\
                 noting sources | awk \"$JOIN\" | top 8 'source file that no test mentions|source files \
                 that no test mentions|judged'",
            ),
            Probe::Framework => (
                &[BASE, ITEM, LEX, FRAMEWORKS],
                "naming() { sources; files pick | small | over \"$M\"; }\n\
                 noting naming | top 2 'line that names one|lines that name one|in'",
            ),
            Probe::Outline => (
                &[BASE, ITEM, LEX, OUTLINE],
                "noting sources | top 60 'thing seen in them|things seen in them|in'",
            ),
            Probe::Find(_) => (&[BASE, ITEM, FIND], "noting every | top 20 'line with it|lines with it|in'"),
            Probe::List | Probe::Reread(_) => {
                (&[BASE, ITEM, LENGTHS], "export ALL=1; noting every | top 100 'file|files'")
            }
        };
        lines.push(variable("P", program));
        if matches!(self, Probe::Errors) {
            lines.push(variable("MODS", &[MODS]));
            lines.push(without_comments(MODULES));
        }
        if matches!(self, Probe::Tests) {
            lines.push(variable("JOIN", &[JOIN]));
        }
        if matches!(self, Probe::Framework) {
            lines.push(variable("M", &[BASE, ITEM, MANIFESTS]));
        }
        lines.push(pipeline.to_owned());
        lines.push(")".to_owned());
        lines.join("\n")
    }
}

/// The languages that are looked into, each once.
pub(super) fn source_languages() -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for (_, name, source) in LANGUAGES {
        if *source && !names.contains(name) {
            names.push(name);
        }
    }
    names
}

pub(super) fn source_patterns() -> String {
    let patterns: Vec<String> = LANGUAGES
        .iter()
        .filter(|(_, _, source)| *source)
        .map(|(extension, _, _)| format!("*.{extension}"))
        .collect();
    patterns.join(" | ")
}

/// A shell variable that holds an awk program. The programs hold no single quote; a test sees to it. What all
/// of them begin with stands in the command once, in a variable of its own that must come first: [`base`].
pub(super) fn variable(name: &str, programs: &[&str]) -> String {
    match programs.split_first() {
        Some((&BASE, rest)) => format!("{name}=$BASE'\n{}\n'", program(rest)),
        _ => format!("{name}='\n{}\n'", program(programs)),
    }
}

/// The variable with what all programs begin with.
pub(super) fn base() -> String {
    format!("BASE='\n{}\n'", program(&[BASE]))
}

fn program(parts: &[&str]) -> String {
    let languages: Vec<String> =
        LANGUAGES.iter().map(|(extension, name, _)| format!("{extension} {name}")).collect();
    without_comments(&parts.join("\n")).replace("@LANGUAGES@", &languages.join(" "))
}

pub(super) fn without_comments(text: &str) -> String {
    let lines = text.lines().map(str::trim_start).filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// A text as one word of the shell.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', r"'\''"))
}
