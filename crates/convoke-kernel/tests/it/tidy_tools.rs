//! The name of a tool is spelt in the file of the tool and nowhere else, so that adding or renaming one is a
//! matter of that file and one row of the table.

use std::collections::BTreeSet;
use std::path::Path;

use super::tidy::{code, crates, files_of, is_test_file, no_complaints, root};

/// Where the tools are.
const TOOLS: &str = "crates/convoke-kernel/src/tools/";

/// Crates that speak the names on the wire: they stand for the model and for the server, and must not learn
/// them from what they test.
const ON_THE_WIRE: &[&str] = &["convoke-offline", "convoke-sim"];

/// Names that are words of their own too: members of JSON objects, kinds of letters, states, slash commands.
/// A literal of one of them says nothing about tools.
const WORDS: &[&str] = &["broadcast", "compact", "idle", "task", "todo"];

/// Files that mean something else by a name.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("convoke-cli/src/commands/doctor.rs", "bash", "the program that has to be installed"),
    ("convoke-kernel/src/approval/commands.rs", "bash", "one of the shells that a command can start"),
    ("convoke-kernel/src/tools/grep.rs", "glob", "a field of grep"),
    ("convoke-sandbox/src/helper/bash.rs", "bash", "the program that is started"),
];

/// The names of all rows, as the files of the tools spell them, with the file.
fn names() -> Vec<(String, String)> {
    let mut names = Vec::new();
    for (path, text) in files_of("convoke-kernel", &["src/tools"]) {
        if is_test_file(&path) {
            continue;
        }
        let rows = code(&text).split("Tool = Tool {\n").skip(1);
        for row in rows {
            let value = row.lines().find_map(|line| line.trim().strip_prefix("name: ")).unwrap();
            let value = value.trim_end_matches(',');
            let name = match value.strip_prefix('"') {
                Some(literal) => literal.trim_end_matches('"').to_owned(),
                None => constant(&text, value),
            };
            names.push((name, relative(&path)));
        }
    }
    names
}

/// The value of a constant in the same file.
fn constant(text: &str, name: &str) -> String {
    let begins = format!("const {name}: &str = \"");
    let rest = text.split(&begins).nth(1).unwrap_or_else(|| panic!("{name} is no constant of its file"));
    rest.split('"').next().unwrap().to_owned()
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

#[test]
fn every_row_of_the_table_has_a_file_and_every_file_a_row() {
    let table = std::fs::read_to_string(root().join(TOOLS).join("mod.rs")).unwrap();
    let rows = code(&table).lines().filter(|line| line.starts_with("    &")).count();
    let names = names();
    assert_eq!(names.len(), rows, "{names:?}");
    let unique: BTreeSet<&String> = names.iter().map(|(name, _)| name).collect();
    assert_eq!(unique.len(), rows);
}

#[test]
fn the_name_of_a_tool_is_spelt_in_its_own_file_only() {
    let names = names();
    let mut complaints = Vec::new();
    for krate in crates().iter().filter(|krate| !ON_THE_WIRE.contains(&krate.as_str())) {
        for (path, text) in files_of(krate, &["src"]).iter().filter(|(path, _)| !is_test_file(path)) {
            let path = relative(path);
            let lines = || (1..).zip(code(text).lines()).filter(|(_, line)| !line.trim().starts_with("//"));
            let looked_for =
                names.iter().filter(|(name, own)| *own != path && !WORDS.contains(&name.as_str()));
            for (name, own) in looked_for {
                let is_allowed =
                    |(file, other, _): &&(&str, &str, &str)| path.ends_with(file) && other == name;
                if ALLOWED.iter().any(|allowed| is_allowed(&allowed)) {
                    continue;
                }
                let literal = format!("\"{name}\"");
                for (number, _) in lines().filter(|(_, line)| line.contains(&literal)) {
                    complaints.push(format!("{path}:{number} spells {literal}, which is for {own} to say"));
                }
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn every_exception_is_still_one() {
    let mut complaints = Vec::new();
    for (file, name, why) in ALLOWED {
        let text = std::fs::read_to_string(root().join("crates").join(file)).unwrap();
        if !code(&text).contains(&format!("\"{name}\"")) {
            complaints.push(format!("{file} does not spell {name:?} any more ({why}): take it off the list"));
        }
    }
    let names = names();
    for word in WORDS.iter().filter(|word| names.iter().all(|(name, _)| name != *word)) {
        complaints.push(format!("{word:?} is no tool any more: take it off the list"));
    }
    no_complaints(complaints);
}
