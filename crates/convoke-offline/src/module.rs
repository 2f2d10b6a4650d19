//! A new module from a template, in the language that most source files here are in: the second of the two
//! changes that the offline model makes. It is made only where nothing is said about what the module is to
//! do, because a template does nothing; and no file is ever overwritten.

use serde_json::json;

use super::policy::{Answer, call_tools, text};
use super::probes::{Probe, View, quoted};
use super::read::{Call, Exchange, Facts, Seen, short};

/// The first line of the command that writes it.
const TITLE: &str = "# A new module from a template";

/// What a module is called that is given no name.
const NAME: &str = "example_module";

/// A module that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Module {
    name: String,
    language: Option<Template>,
}

/// The languages there is a template for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Template {
    Python,
    Rust,
    JavaScript,
    TypeScript,
    Go,
}

const TEMPLATES: [(&str, Template); 5] = [
    ("Python", Template::Python),
    ("Rust", Template::Rust),
    ("JavaScript", Template::JavaScript),
    ("TypeScript", Template::TypeScript),
    ("Go", Template::Go),
];

/// Words that say nothing about what a module is to do.
const PLAIN: &str = "a an the one new small simple empty example sample module file here please in this \
    project directory repository";

impl Module {
    /// The module that a text asks for: "create a new module", "add a Rust module called greeting". None if
    /// more is said about it.
    pub(super) fn of(task: &str) -> Option<Self> {
        let trim = |word: &str| {
            word.trim_matches(['`', '"', '\''])
                .trim_end_matches(['.', ',', ';', ':', '!', '?', '`', '"'])
                .to_owned()
        };
        let words: Vec<String> = task.split_whitespace().map(trim).filter(|word| !word.is_empty()).collect();
        let mut rest = words.iter().map(String::as_str).skip_while(|word| is(word, "please now then first"));
        if !rest.next().is_some_and(|verb| is(verb, "create add write make generate")) {
            return None;
        }
        let mut module = Self { name: NAME.to_owned(), language: None };
        let mut named = false;
        while let Some(word) = rest.next() {
            if is(word, "called named") {
                let name = rest.next()?.to_lowercase().replace('-', "_");
                let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
                let fits = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                module.name = Some(name).filter(|name| begins && fits && name.len() <= 40)?;
            } else if let Some((_, language)) =
                TEMPLATES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))
            {
                module.language = Some(*language);
            } else if !is(word, PLAIN) {
                return None;
            }
            named |= is(word, "module");
        }
        named.then_some(module)
    }

    /// The next reply: what is here, then the command that writes it, then what came of it.
    pub(super) fn answer(&self, exchange: &Exchange) -> Answer {
        let called =
            |title: &str| exchange.calls.iter().rfind(|call| call.name == "bash" && call.title() == title);
        if let Some(call) = called(TITLE) {
            return text(&self.told(call, exchange));
        }
        if exchange.handing_back {
            return text("No module was made: the work ended before that.");
        }
        if called(Probe::Inventory.title()).is_none() {
            let command = Probe::Inventory.command(&View::default());
            let say = "Counting the files here, to write the module in the language of most of them.";
            return call_tools(say, vec![("bash", json!({"command": command}))], exchange.calls_so_far);
        }
        let command = self.command(self.template(exchange));
        call_tools(
            "Writing the module from a template.",
            vec![("bash", json!({"command": command}))],
            exchange.calls_so_far,
        )
    }

    fn template(&self, exchange: &Exchange) -> Template {
        let Seen::Facts(facts) = exchange.seen(&Probe::Inventory) else {
            return self.language.unwrap_or(Template::Python);
        };
        let here = facts.languages().into_iter().find_map(|row| {
            TEMPLATES
                .iter()
                .find(|(name, _)| row.files > 0 && *name == row.name)
                .map(|(_, template)| *template)
        });
        self.language.or(here).unwrap_or(Template::Python)
    }

    /// Writes the file beside no other of its name; a file that is the template already was made by this
    /// command before it was cut off.
    fn command(&self, template: Template) -> String {
        let names =
            [1, 2, 3, 4, 5].map(|n| if n == 1 { self.name.clone() } else { format!("{}_{n}", self.name) });
        let mut lines = vec![TITLE.to_owned(), "(".to_owned(), "export LC_ALL=C; set -C".to_owned()];
        lines.push("put() {".to_owned());
        lines.push(
            "  mkdir -p \"./$(dirname \"$1\")\" && { printf %s \"$2\" 2>/dev/null > \"./$1\" || [ \
            \"$(cat \"./$1\" 2>/dev/null; echo x)\" = \"$2x\" ]; } || return 1"
                .to_owned(),
        );
        lines.push(
            "  printf 'I\\t0\\tmade\\t%s\\t1\\t%s\\t\\t.\\nend\\n' \"$1\" \"$(wc -l < \"./$1\" | tr -d ' \
                ')\"; exit 0"
                .to_owned(),
        );
        lines.push("}".to_owned());
        for name in names {
            let file = template.file(&name);
            let path = match template {
                Template::Rust => format!("\"$([ -d src ] && echo src/){file}\""),
                _ => quoted(&file),
            };
            lines.push(format!("put {path} {}", quoted(&template.text(&name))));
        }
        lines.push("echo 'no free name, or nothing can be written here'".to_owned());
        lines.push(")".to_owned());
        lines.join("\n")
    }

    fn told(&self, call: &Call, exchange: &Exchange) -> String {
        let result = call.result.as_deref().unwrap_or_default();
        let made =
            Facts::parse(result).and_then(|facts| facts.items.into_iter().find(|item| item.kind == "made"));
        let Some(made) = made else {
            return format!(
                "No module was made: {}. (Offline model: fixed rules, no intelligence.)",
                short(result)
            );
        };
        let template = self.template(exchange);
        let language = TEMPLATES.iter().find(|(_, other)| *other == template).map_or("", |(name, _)| name);
        let more = match template {
            Template::Rust => " No `mod` line names it yet, so nothing compiles it.",
            _ => " Nothing uses it yet.",
        };
        format!(
            "Created `{}` ({} lines) from the offline model's {language} template: it defines one function, \
             `{}`, that says what the module is.{more} It was not run. (Offline model: fixed rules, no \
             intelligence.)",
            made.path,
            made.last,
            template.function()
        )
    }
}

/// What a lead holds a new module against, by what a sub-agent told of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) path: String,
    /// The lines that are to stand in it.
    pub(super) lines: Vec<String>,
    pub(super) function: &'static str,
}

impl Made {
    /// Reads what was told; none if no module was made.
    pub(super) fn of(told: &str) -> Option<Self> {
        let path = told.trim().strip_prefix("Created `")?.split_once('`')?.0.to_owned();
        let (_, file) = path.rsplit_once('/').unwrap_or(("", &path));
        let (name, _) = file.rsplit_once('.')?;
        let (_, template) = TEMPLATES.iter().find(|(_, template)| template.file(name).ends_with(file))?;
        let lines = template.text(name).lines().map(str::to_owned).collect();
        Some(Self { path, lines, function: template.function() })
    }
}

impl Template {
    fn file(self, name: &str) -> String {
        match self {
            Self::Python => format!("{name}.py"),
            Self::Rust => format!("{name}.rs"),
            Self::JavaScript => format!("{name}.mjs"),
            Self::TypeScript => format!("{name}.ts"),
            // A package has a directory of its own.
            Self::Go => format!("{name}/{name}.go"),
        }
    }

    fn function(self) -> &'static str {
        match self {
            Self::Go => "Describe",
            _ => "describe",
        }
    }

    fn text(self, name: &str) -> String {
        let head = format!(
            "{name}: made from a template by Convoke's offline model, to be filled with what it is for."
        );
        let says = format!("\"{name} is a template\"");
        match self {
            Self::Python => format!(
                "\"\"\"{head}\"\"\"\n\n\ndef describe():\n    \"\"\"Says what this module is.\"\"\"\n    \
                    return {says}\n"
            ),
            Self::Rust => format!(
                "//! {head}\n\n/// Says what this module is.\npub fn describe() -> &'static str {{\n    \
                    {says}\n}}\n"
            ),
            Self::JavaScript => {
                format!(
                    "// {head}\n\n// Says what this module is.\nexport function describe() {{\n  return \
                        {says};\n}}\n"
                )
            }
            Self::TypeScript => {
                format!(
                    "// {head}\n\n// Says what this module is.\nexport function describe(): string {{\n  \
                        return {says};\n}}\n"
                )
            }
            Self::Go => format!(
                "// Package {head}\npackage {name}\n\n// Describe says what this package is.\nfunc \
                    Describe() string {{\n\treturn {says}\n}}\n"
            ),
        }
    }
}

fn is(word: &str, table: &str) -> bool {
    table.split(' ').any(|entry| entry.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_made_only_where_nothing_is_said_of_what_it_does() {
        let check = |task: &str, expected: Option<(&str, Option<Template>)>| {
            let module = Module::of(task);
            let read = module.as_ref().map(|module| (module.name.as_str(), module.language));
            assert_eq!(read, expected, "{task}");
        };
        check("create a new module", Some((NAME, None)));
        check("Please add a small Rust module called Greet-ing.", Some(("greet_ing", Some(Template::Rust))));
        check("make an empty module here", Some((NAME, None)));
        check("create a new module that parses dates", None);
        check("create a module called ../x", None);
        check("create a new file", None);
        check("delete the module", None);
        check("", None);
    }

    #[test]
    fn what_was_made_is_known_again_by_what_was_told() {
        for (_, template) in TEMPLATES {
            let file = template.file("greeting");
            let made = Made::of(&format!("Created `src/{file}` (7 lines) from")).unwrap();
            assert_eq!(made.path, format!("src/{file}"));
            assert!(made.lines.iter().any(|line| line.contains(made.function)), "{made:?}");
        }
        assert_eq!(Made::of("No module was made: nothing can be written here."), None);
    }
}
