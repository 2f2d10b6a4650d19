//! The commands of a team. Like those of the solo review they only read, stand alone and print bounded lines;
//! the awk programs are put together from the same parts.

use super::concern::Concern;
use super::kind::Kind;
use crate::probes::{
    BASE, BLOCKS, ERRORS, FILES, FUNCTIONS, ITEM, JOIN, LEX, MODS, MODULES, TESTS, TODOS, UNREAD, base,
    quoted, source_patterns, variable, without_comments,
};
use crate::read::SCOUT as SCOUT_TITLE;

/// So many findings are reported at most.
pub(super) const MOST: usize = 8;

/// Something that is looked at with one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Look {
    /// Files and lines by directory and language, in a part of the tree.
    Scout(Scope),
    /// One concern in a part of the tree.
    Check { concern: Concern, place: Scope },
    /// The same rule again, at these lines of these files alone.
    Again { concern: Concern, spots: Vec<(String, u64)> },
    /// Lines that hold at least so many of these terms.
    Words { terms: Vec<String>, least: usize, place: Scope },
    /// Lines that were cited.
    Cite(Vec<Lines>),
}

/// Which part of the tree is looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Scope {
    /// These alone; none means everything.
    pub(super) within: Vec<String>,
    pub(super) except: Vec<String>,
}

/// Lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) path: String,
    pub(super) first: u64,
    pub(super) last: u64,
}

const SIFT: &str = include_str!("../shell/sift.sh");
const FACT: &str = include_str!("../shell/fact.awk");
const FACTS: &str = include_str!("../shell/facts.awk");
const GRAVE: &str = include_str!("../shell/grave.awk");
const CONFLICT: &str = include_str!("../shell/conflict.awk");
const CONFLICT_SOURCE: &str = include_str!("../shell/conflict_source.awk");
const CONFLICT_OTHER: &str = include_str!("../shell/conflict_other.awk");
const LINKS: &str = include_str!("../shell/links.awk");
const LINKS_SH: &str = include_str!("../shell/links.sh");
const DEBUG: &str = include_str!("../shell/debug.awk");
const SKIPPED: &str = include_str!("../shell/skipped.awk");
const SIZE: &str = include_str!("../shell/size.awk");
const SECRETS: &str = include_str!("../shell/secrets.awk");
const DATA: &str = include_str!("../shell/data.awk");
const DATA_SH: &str = include_str!("../shell/data.sh");
const HYGIENE: &str = include_str!("../shell/hygiene.sh");
const WORDS: &str = include_str!("../shell/words.awk");
const SCOUT: &str = include_str!("../shell/scout.awk");
const SUM: &str = include_str!("../shell/sum.awk");
const AREAS: &str = include_str!("../shell/areas.awk");
const CITE: &str = include_str!("../shell/cite.awk");

const SCRIPTS: &str = "*.py | *.js | *.mjs | *.cjs | *.jsx | *.ts | *.tsx";
const SECRET_SIGNS: &str = "AKIA|PRIVATE \
    KEY|gh[pousr]_|github_pat_|xox[abprs]-|sk_live_|AIza|sk-ant-|[Pp][Aa][Ss][Ss][Ww]|\
    [Ss][Ee][Cc][Rr][Ee][Tt]|[Aa][Pp][Ii]_?[Kk][Ee][Yy]|[Tt][Oo][Kk][Ee][Nn]";

/// How a concern is checked: the variables with programs, what else the shell needs, which files, and the
/// pipeline.
pub(super) struct Recipe {
    programs: Vec<(&'static str, Vec<&'static str>)>,
    shell: &'static str,
    pick: String,
    pipeline: String,
    /// Whether it must know which modules of Rust are tests.
    modules: bool,
    /// Whether it must see the whole tree, whatever part is judged.
    whole: bool,
}

impl Recipe {
    pub(super) fn of(concern: Concern) -> Self {
        let recipe = |parts: &[&'static str], pick: &str, pipeline: &str| {
            let pick = pick.to_owned();
            let pipeline = pipeline.to_owned();
            Self {
                programs: vec![("P", parts.to_vec())],
                shell: "",
                pick,
                pipeline,
                modules: false,
                whole: false,
            }
        };
        let errors = [BASE, FACT, LEX, BLOCKS, ERRORS];
        match concern {
            Concern::Markers => recipe(&[BASE, FACT, LEX, TODOS], "-", "noting sources"),
            Concern::Conflicts => Self {
                programs: vec![
                    ("P1", vec![BASE, FACT, LEX, CONFLICT, CONFLICT_SOURCE]),
                    ("P2", vec![BASE, FACT, CONFLICT, CONFLICT_OTHER]),
                ],
                shell: "both() { P=$P1; sifted source '^<<<<<<< '; P=$P2; sifted other '^<<<<<<< '; }",
                ..recipe(&[], "-", "noting both")
            },
            Concern::Secrets => Self {
                shell: "suspects() { sifted kept \"$SIGNS\"; }",
                ..recipe(
                    &[BASE, FACT, SECRETS],
                    "-",
                    &format!("SIGNS={}\nnoting suspects", quoted(SECRET_SIGNS)),
                )
            },
            Concern::Panics => Self { modules: true, ..recipe(&errors, "*.rs", "noting picked") },
            Concern::Swallowed => recipe(&errors, &format!("{SCRIPTS} | *.java | *.go"), "noting picked"),
            Concern::Shell => recipe(&errors, "*.sh | *.bash", "noting picked"),
            Concern::Debug => Self {
                modules: true,
                ..recipe(
                    &[BASE, FACT, LEX, BLOCKS, DEBUG],
                    &format!("{SCRIPTS} | *.rs | *.java | *.go"),
                    "noting picked",
                )
            },
            Concern::Data => Self {
                shell: DATA_SH,
                ..recipe(&[BASE, FACT, DATA], "*.json | *.toml | *.yml | *.yaml", "noting picked | doubted")
            },
            Concern::Links => Self {
                shell: LINKS_SH,
                ..recipe(&[BASE, FACT, LINKS], "*.md | *.markdown", "noting picked | dangling")
            },
            Concern::Size => recipe(&[BASE, FACT, SIZE, LEX, BLOCKS, FUNCTIONS], "-", "noting sources"),
            Concern::Skipped => {
                recipe(&[BASE, FACT, LEX, SKIPPED], &format!("{SCRIPTS} | *.rs"), "noting picked")
            }
            Concern::Hygiene => Self { shell: HYGIENE, whole: true, ..recipe(&[BASE], "-", "tidy") },
            Concern::Untested => Self {
                programs: vec![("P", vec![BASE, ITEM, LEX, TESTS]), ("JOIN", vec![JOIN])],
                modules: true,
                whole: true,
                ..recipe(&[], "-", "noting sources | awk \"$JOIN\"")
            },
        }
    }
}

impl Look {
    /// The first line of the command, by which its result is recognised.
    pub(super) fn title(&self) -> String {
        match self {
            Look::Scout(_) => SCOUT_TITLE.to_owned(),
            Look::Check { concern, .. } => format!("# {}", concern.about().title),
            Look::Again { concern, .. } => format!("# {}, looked up again", concern.about().title),
            Look::Words { .. } => "# Lines that hold words of the subtask".to_owned(),
            Look::Cite(_) => "# The cited lines, read again".to_owned(),
        }
    }

    pub(super) fn command(&self) -> String {
        match self {
            Look::Cite(cited) => self.cite(cited),
            Look::Scout(place) => self.over(
                &Recipe {
                    programs: vec![("P", vec![BASE, SCOUT]), ("SUM", vec![SUM]), ("AREAS", vec![AREAS])],
                    shell: "",
                    pick: "-".to_owned(),
                    pipeline:
                        "noting every | awk \"$SUM\" | sort -t\"$T\" -k5,5nr -k2,2 -k3,3 | awk \"$AREAS\""
                            .to_owned(),
                    modules: false,
                    whole: false,
                },
                place,
                "",
                &[],
            ),
            Look::Check { concern, place } => {
                self.over(&facts(concern.recipe()), place, &Kind::names(*concern), &[])
            }
            Look::Again { concern, spots } => {
                let mut paths: Vec<String> = spots.iter().map(|(path, _)| path.clone()).collect();
                paths.dedup();
                let place = Scope { within: paths, except: Vec::new() };
                self.over(&facts(concern.recipe()), &place, &Kind::names(*concern), spots)
            }
            Look::Words { terms, least, place } => {
                let recipe = Recipe {
                    programs: vec![("P", vec![BASE, FACT, WORDS])],
                    shell: "",
                    pick: "-".to_owned(),
                    pipeline: "noting every".to_owned(),
                    modules: false,
                    whole: false,
                };
                let mut recipe = facts(recipe);
                recipe.pipeline =
                    format!("export TERMS={} LEAST={least}\n{}", quoted(&terms.join("\n")), recipe.pipeline);
                self.over(&recipe, place, " hit ", &[])
            }
        }
    }

    /// A command over the files of a place.
    fn over(&self, recipe: &Recipe, place: &Scope, kinds: &str, at: &[(String, u64)]) -> String {
        let list = |paths: &[String]| paths.iter().map(|path| quoted(path)).collect::<Vec<_>>().join(" ");
        let at: Vec<String> = at.iter().map(|(path, line)| format!("{}:{line}", encoded(path))).collect();
        let mut lines = vec![self.title(), "(".to_owned()];
        let (within, except) =
            if recipe.whole { (&[][..], &[][..]) } else { (&place.within[..], &place.except[..]) };
        lines.push(format!("S=; IN=({}); EX=({})", list(within), list(except)));
        let at = quoted(&at.join("\n"));
        let ranks = quoted(&Kind::ranks(kinds));
        lines.push(format!("export ONLY= KINDS={} RANKS={ranks} AT={at} WITHIN= FOR= MODS=", quoted(kinds)));
        if let (true, [only]) = (recipe.whole, place.within.as_slice()) {
            lines.push(format!("WITHIN={}", quoted(only)));
        }
        lines.push(without_comments(
            &FILES.replace("@SOURCE@", &source_patterns()).replace("@PICK@", &recipe.pick),
        ));
        lines.push(without_comments(SIFT));
        lines.push(base());
        lines.push(variable("UNREAD", &[BASE, UNREAD]));
        lines.extend(recipe.programs.iter().map(|(name, parts)| variable(name, parts)));
        if recipe.modules {
            lines.push(variable("MODS", &[MODS]));
            lines.push(without_comments(MODULES));
            lines.push("export MODS=$(test_modules \"$MODS\")".to_owned());
        }
        lines.push(without_comments(recipe.shell));
        let missing = format!(
            "for d in {}; do [ -e \"./$d\" ] || printf 'N\\tscope_missing\\t1\\n'; done",
            list(within)
        );
        let missing = if within.is_empty() { ":".to_owned() } else { missing };
        lines.push(recipe.pipeline.replace("@MISSING@", &missing));
        lines.push(")".to_owned());
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    }

    fn cite(&self, cited: &[Lines]) -> String {
        let mut lines = vec![self.title(), "(".to_owned(), "export LC_ALL=C KINDS=".to_owned()];
        lines.push(base());
        lines.push(variable("P", &[BASE, FACT, CITE]));
        lines.push(
            "cite() { if [ -f \"./$4\" ] && [ -r \"./$4\" ]; then awk -v QUOTE=600 -v NUMBER=\"$1\" -v FROM=\"$2\" -v TO=\"$3\" \"$P\" \
             \"./$4\" 2>/dev/null; else printf 'E\\t%s\\t-1\\t.\\n' \"$1\"; fi; }"
                .to_owned(),
        );
        lines.push(format!("echo '# read again: {}'", cited.len()));
        lines.push("{ :".to_owned());
        for (index, Lines { path, first, last }) in cited.iter().enumerate() {
            lines.push(format!("cite {index} {first} {last} {}", quoted(path)));
        }
        // What does not fit is not read, and said to be so by its absence.
        lines.push("} | awk '{ n += length($0) + 1 } n < 7000 { print }'\necho end\n)".to_owned());
        lines.join("\n")
    }
}

/// A recipe whose findings are sorted, counted and cut.
fn facts(mut recipe: Recipe) -> Recipe {
    recipe.programs.extend([("GRAVE", vec![GRAVE]), ("FACTS", vec![FACTS])]);
    let (setup, last) = match recipe.pipeline.rsplit_once('\n') {
        Some((setup, last)) => (format!("{setup}\n"), last.to_owned()),
        None => (String::new(), recipe.pipeline.clone()),
    };
    recipe.pipeline = format!(
        "{setup}{{ @MISSING@\n{last}; }} | awk \"$GRAVE\" | sort -t\"$T\" -k2,2nr -k4,4 -k5,5n | awk -v \
            MAX={MOST} \"$FACTS\""
    );
    recipe
}

/// A path as the commands print it.
fn encoded(path: &str) -> String {
    path.replace('%', "%25").replace('\t', "%09").replace('\n', "%0A").replace('\r', "%0D")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_is_so_long_that_it_does_not_fit_into_a_reply() {
        for about in super::super::concern::ALL {
            let spots =
                (1..=40).map(|line| (format!("a/rather/long/path/of/a/file_{line}.rs"), line)).collect();
            let length = Look::Again { concern: about.concern, spots }.command().len();
            assert!(length < 22_000, "{}: {length}", about.title);
        }
    }
}
