//! House rules with teeth: what the tree must look like, checked like any other behaviour.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The edges of DESIGN.md's table: what each crate may use of ours.
const EDGES: &[(&str, &[&str])] = &[
    ("convoke-kernel", &[]),
    ("convoke-journal", &["convoke-kernel"]),
    ("convoke-claude", &["convoke-kernel"]),
    ("convoke-beneath", &[]),
    ("convoke-sandbox", &["convoke-beneath"]),
    ("convoke-files", &["convoke-beneath"]),
    ("convoke-script", &[]),
    ("convoke-trees", &["convoke-beneath", "convoke-sandbox"]),
    (
        "convoke-runtime",
        &[
            "convoke-beneath",
            "convoke-claude",
            "convoke-files",
            "convoke-journal",
            "convoke-kernel",
            "convoke-sandbox",
            "convoke-script",
            "convoke-trees",
        ],
    ),
    ("convoke-sim", &["convoke-claude"]),
    // The simulator serves it: the offline model is one of the things that can decide its replies.
    ("convoke-offline", &["convoke-sim"]),
    // It folds events and nothing else: neither the runtime nor the journal can be reached from there.
    ("convoke-view", &["convoke-kernel"]),
    // It draws what is folded there, so no picture is drawn from anything but events.
    ("convoke-terminal", &["convoke-kernel", "convoke-view"]),
    // The library's front: it puts the parts together and reads what they recorded; it decides nothing.
    (
        "convoke",
        &[
            "convoke-claude",
            "convoke-journal",
            "convoke-kernel",
            "convoke-offline",
            "convoke-runtime",
            "convoke-sandbox",
            "convoke-sim",
            "convoke-trees",
            "convoke-view",
        ],
    ),
    // The command line reads events and tables too; everything it does goes through the runtime.
    (
        "convoke-cli",
        &[
            "convoke-beneath",
            "convoke-claude",
            "convoke-journal",
            "convoke-kernel",
            "convoke-offline",
            "convoke-runtime",
            "convoke-sandbox",
            "convoke-sim",
            "convoke-terminal",
            "convoke-trees",
            "convoke-view",
        ],
    ),
];

/// The only foreign crates the kernel may use; `jsonschema`, because whether a value fits a schema is a
/// decision, and a pure one: its features that fetch are off.
const KERNEL_USES: &[&str] = &["jsonschema", "serde", "serde_json", "sha2", "thiserror"];

const LONGEST_FILE: usize = 500;
const LONGEST_TEST_FILE: usize = 800;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn crates() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.push(path);
        }
    }
}

pub(crate) fn files_of(name: &str, parts: &[&str]) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for part in parts {
        rust_files(&root().join("crates").join(name).join(part), &mut files);
    }
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn all_files() -> Vec<(PathBuf, String)> {
    crates().iter().flat_map(|name| files_of(name, &["src", "tests", "benches", "examples"])).collect()
}

pub(crate) fn is_test_file(path: &Path) -> bool {
    let relative = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
    relative.contains("/tests/") || relative.contains("/tests_") || relative.ends_with("tests.rs")
}

/// The part of a source file before its unit tests.
pub(crate) fn code(text: &str) -> &str {
    text.split("\n#[cfg(test)]\nmod tests {").next().unwrap()
}

pub(crate) fn no_complaints(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn dependency_edges_are_those_of_the_design() {
    let allowed: BTreeMap<_, _> = EDGES.iter().copied().collect();
    let mut complaints = Vec::new();
    for name in crates() {
        let manifest = fs::read_to_string(root().join("crates").join(&name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let used = manifest.get("dependencies").and_then(|d| d.as_table()).cloned().unwrap_or_default();
        let Some(allowed) = allowed.get(name.as_str()) else {
            complaints.push(format!("crates/{name} is not in the table of edges"));
            continue;
        };
        for dependency in used.keys() {
            if dependency.starts_with("convoke") && !allowed.contains(&dependency.as_str()) {
                complaints.push(format!("{name} must not use {dependency}"));
            }
            if name == "convoke-kernel" && !KERNEL_USES.contains(&dependency.as_str()) {
                complaints.push(format!("the kernel must not use {dependency}"));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn the_kernel_knows_no_clock_no_files_no_network_and_never_waits() {
    let banned =
        ["async ", ".await", "std::time", "std::fs", "std::net", "std::env", "std::process", "std::thread"];
    let mut complaints = Vec::new();
    for (path, text) in files_of("convoke-kernel", &["src"]) {
        for word in banned {
            if code(&text).contains(word) {
                complaints.push(format!("{}: {word}", path.display()));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut complaints = Vec::new();
    for (path, text) in all_files() {
        let longest = if is_test_file(&path) { LONGEST_TEST_FILE } else { LONGEST_FILE };
        let lines = code(&text).lines().count();
        if lines > longest {
            complaints.push(format!("{}: {lines} lines, at most {longest}", path.display()));
        }
        if !text.starts_with("//!") {
            complaints.push(format!("{}: does not begin with //! and what it is for", path.display()));
        }
    }
    no_complaints(complaints);
}

const LONGEST_LINE: usize = 110;

/// Rustfmt breaks what it can, but leaves the arms of `select!`, guards of `matches!` and comments alone. A
/// string may be longer than a line, and a row of a table cannot be broken.
#[test]
fn lines_are_short() {
    let too_long = |line: &str| {
        let is_row = line.trim_start().trim_start_matches(['/', '!']).trim_start().starts_with('|');
        line.chars().count() > LONGEST_LINE && !line.contains('"') && !(is_row && line.contains("//"))
    };
    assert!(too_long(&format!("// {}", "word ".repeat(30))));
    assert!(!too_long(&format!("/// | {} |", "cell ".repeat(30))));
    assert!(!too_long(&format!("\"{}\"", "text ".repeat(30))));
    let mut complaints = Vec::new();
    for (path, text) in all_files() {
        let long = text.lines().enumerate().filter(|(_, line)| too_long(line));
        complaints.extend(long.map(|(at, _)| format!("{}:{}", path.display(), at + 1)));
    }
    no_complaints(complaints);
}

/// Words for persons. A comment is about things in the code: a process, a caller, an agent.
const PERSONS: &[&str] = &["whoever", "somebody", "nobody", "everybody", "anybody"];

/// The comment of a line, whether it stands alone or behind code. A mark between quotes begins none.
fn comment<'a>(line: &'a str, mark: &str, quotes: &[char]) -> Option<&'a str> {
    let mut quote = None;
    let mut before = ' ';
    for (at, here) in line.char_indices() {
        let escaped = before == '\\';
        match quote {
            Some(open) if here == open && !escaped => quote = None,
            None if quotes.contains(&here) && !escaped => quote = Some(here),
            None if before.is_whitespace() && line[at..].starts_with(mark) => {
                return Some(&line[at + mark.len()..]);
            }
            _ => {}
        }
        before = if escaped { ' ' } else { here };
    }
    None
}

/// The first word for a person in the comment of a line.
fn person_in(line: &str, mark: &str, quotes: &[char]) -> Option<String> {
    let words = comment(line, mark, quotes)?.split(|c: char| !c.is_alphanumeric());
    words.map(str::to_lowercase).find(|word| PERSONS.contains(&word.as_str()))
}

fn person_in_rust(line: &str) -> Option<String> {
    person_in(line, "//", &['"'])
}

/// What awk and the shells take as a comment.
fn person_in_script(line: &str) -> Option<String> {
    person_in(line, "#", &['"', '\''])
}

/// The programs in awk and shell: all of `scripts/`, and those that lie with a crate.
fn scripts() -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, into: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let is_script = path.extension().is_some_and(|ext| ext == "awk" || ext == "sh");
            if path.is_dir() {
                walk(&path, into);
            } else if is_script || path.parent().is_some_and(|dir| dir.ends_with("scripts")) {
                into.push(path);
            }
        }
    }
    let mut files = Vec::new();
    for dir in ["scripts", "crates"] {
        walk(&root().join(dir), &mut files);
    }
    files.into_iter().filter_map(|path| Some((path.clone(), fs::read_to_string(path).ok()?))).collect()
}

#[test]
fn comments_name_the_thing_and_not_a_person() {
    assert_eq!(person_in_rust("    /// Nobody's business.").as_deref(), Some("nobody"));
    assert_eq!(person_in_rust("let x = 1; // nobody").as_deref(), Some("nobody"));
    assert_eq!(person_in_rust("let x = \"a // nobody\";"), None);
    assert_eq!(person_in_script("x=1 # for whoever asks").as_deref(), Some("whoever"));
    assert_eq!(person_in_script("echo 'a # nobody' \"${x# nobody}\""), None);
    let mut runner = Vec::new();
    rust_files(&root().join("tests/mutants/runner"), &mut runner);
    assert!(!runner.is_empty());
    let runner = runner.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap()));
    let mut complaints = Vec::new();
    let mut check = |files: Vec<(PathBuf, String)>, named: fn(&str) -> Option<String>| {
        for (path, text) in files {
            for (number, line) in text.lines().enumerate() {
                complaints
                    .extend(named(line).map(|word| format!("{}:{}: {word}", path.display(), number + 1)));
            }
        }
    };
    check(all_files().into_iter().chain(runner).collect(), person_in_rust);
    check(scripts(), person_in_script);
    no_complaints(complaints);
}

/// The text between quotes in a line of code, as far as a line shows it.
fn quoted(line: &str) -> String {
    line.split('"').skip(1).step_by(2).collect::<Vec<_>>().join(" ")
}

/// What is printed says what is the case: no process drives a session, no person was asked. Texts for a model
/// are elsewhere, and so are names that tests make up.
#[test]
fn what_people_read_names_the_thing_and_not_a_person() {
    let mut complaints = Vec::new();
    for name in ["convoke", "convoke-cli"] {
        for (path, text) in files_of(name, &["src"]) {
            if is_test_file(&path) {
                continue;
            }
            for (number, line) in code(&text).lines().enumerate() {
                let said = quoted(line).to_lowercase();
                let mut words = said.split(|c: char| !c.is_alphanumeric());
                if let Some(word) = words.find(|word| PERSONS.contains(word)) {
                    complaints.push(format!("{}:{}: {word}", path.display(), number + 1));
                }
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn there_is_no_sql_outside_the_journal() {
    let words = ["SELECT ", "INSERT INTO", "CREATE TABLE", "DELETE FROM", "PRAGMA "];
    let mut complaints = Vec::new();
    for name in crates().iter().filter(|name| *name != "convoke-journal") {
        for (path, text) in files_of(name, &["src"]) {
            complaints.extend(
                words
                    .iter()
                    .filter(|word| code(&text).contains(*word))
                    .map(|w| format!("{}: {w}", path.display())),
            );
        }
    }
    no_complaints(complaints);
}

#[test]
fn unsafe_code_lives_in_the_sandbox_alone() {
    let mut complaints = Vec::new();
    for name in crates().iter().filter(|name| *name != "convoke-sandbox") {
        let manifest = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        if !manifest.contains("[lints]\nworkspace = true") {
            complaints.push(format!("crates/{name} does not inherit the workspace's lints"));
        }
    }
    no_complaints(complaints);
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(workspace.contains("unsafe_code = \"forbid\""));
}

#[test]
fn every_test_module_is_reached() {
    let mut complaints = Vec::new();
    for name in crates() {
        let dir = root().join("crates").join(&name).join("tests/it");
        let mut files = Vec::new();
        rust_files(&dir, &mut files);
        let all: String = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        for path in files.iter().filter(|path| !path.ends_with("main.rs")) {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let module = if stem == "mod" {
                path.parent().unwrap().file_name().unwrap().to_str().unwrap()
            } else {
                stem
            };
            if !all.contains(&format!("mod {module};")) {
                complaints.push(format!("{}: no `mod {module};`", path.display()));
            }
        }
    }
    no_complaints(complaints);
}

#[test]
fn the_map_names_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let missing: Vec<String> =
        crates().into_iter().filter(|name| !map.contains(&format!("`{name}`"))).collect();
    no_complaints(missing);
}

/// Test names that carry ids of the mission: `d4_2_d4_3_…` names D4.2 and D4.3, `a7_…` names A7, `w31_…` the
/// fault W31.
fn ids_in(name: &str) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    let mut parts = name.split('_').peekable();
    while let Some(part) = parts.next() {
        let (letter, digits) = part.split_at(part.len().min(1));
        let numbered = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        if !numbered || !matches!(letter, "a" | "b" | "c" | "d" | "w") {
            break;
        }
        let sub = if letter == "d" { parts.next_if(|p| p.bytes().all(|b| b.is_ascii_digit())) } else { None };
        match (letter, sub) {
            ("d", Some(sub)) => ids.insert(format!("D{digits}.{sub}")),
            ("d", None) => break,
            _ => ids.insert(format!("{}{digits}", letter.to_uppercase())),
        };
    }
    ids
}

/// The names of the tests in a file.
fn tests_in(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let is_test = line.trim().starts_with("#[test]") || line.trim().starts_with("#[tokio::test");
        let name =
            lines.peek().filter(|_| is_test).and_then(|next| next.split("fn ").nth(1)?.split('(').next());
        names.extend(name.map(str::to_owned));
    }
    names
}

/// Whether an id has a row of its own. Faults from W45 on belong to the statements that they override and
/// stand in their rows.
fn has_a_row(id: &str) -> bool {
    id.strip_prefix('W')
        .is_none_or(|number| number.parse::<u32>().is_ok_and(|number| number <= LAST_FAULT_OF_TEAMS))
}

/// The faults up to this one are those of teams, and each has a row.
const LAST_FAULT_OF_TEAMS: u32 = 44;

#[test]
fn the_mission_table_and_the_tests_name_each_other() {
    let mut tests: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (_, text) in all_files() {
        for name in tests_in(&text) {
            for id in ids_in(&name).into_iter().filter(|id| has_a_row(id)) {
                tests.entry(id).or_default().insert(name.clone());
            }
        }
    }
    let table = fs::read_to_string(root().join("docs/internals/mission.md")).unwrap();
    let mut complaints = Vec::new();
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id ")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [id, _, _, test] = cells[..] else { panic!("four cells a row: {row}") };
        let names = test.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
        if names.is_empty() && !test.starts_with("issue ") {
            complaints.push(format!("{id}: names neither a test nor the issue that brings it"));
        }
        if named.insert(id.to_owned(), names).is_some() {
            complaints.push(format!("{id}: has two rows"));
        }
    }
    for (letter, last) in [('A', 12), ('B', 18), ('C', 22), ('W', LAST_FAULT_OF_TEAMS)] {
        let ids = (1..=last).map(|number| format!("{letter}{number}"));
        complaints.extend(ids.filter(|id| !named.contains_key(id)).map(|id| format!("{id}: has no row")));
    }
    for (id, names) in &named {
        for name in names {
            if !tests.get(id).is_some_and(|tests| tests.contains(name)) {
                complaints.push(format!("{id}: there is no test {name} that carries the id"));
            }
        }
    }
    for (id, names) in &tests {
        for name in names {
            if !named.get(id).is_some_and(|named| named.contains(name)) {
                complaints.push(format!("docs/internals/mission.md does not name {name} at {id}"));
            }
        }
    }
    no_complaints(complaints);
}

/// Whether there is a test that a page names as `crate: file::name`: in `tests/it` of the crate, or else
/// below its `src`.
fn is_a_test(reference: &str) -> bool {
    let Some((name, (file, test))) =
        reference.split_once(": ").and_then(|(name, rest)| Some((name, rest.split_once("::")?)))
    else {
        return false;
    };
    let dir = root().join("crates").join(format!("convoke-{name}"));
    let files = ["tests/it", "src"].map(|part| dir.join(part).join(format!("{file}.rs")));
    files.iter().filter_map(|file| fs::read_to_string(file).ok()).any(|text| tests_in(&text).contains(test))
}

#[test]
fn every_row_of_the_conformance_table_names_tests_that_exist_or_says_what_is_not_here() {
    let page = fs::read_to_string(root().join("docs/internals/conformance.md")).unwrap();
    let mut complaints = Vec::new();
    let mut rows = 0;
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| the contract ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let (contract, tests, here) = match cells[..] {
            [contract, tests, here] => (contract, tests, here),
            // What differs, and why.
            [_, _] => continue,
            _ => panic!("two or three cells a row: {line}"),
        };
        rows += 1;
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if named.is_empty() && !(tests == "none" && here.starts_with("differs: ")) {
            complaints.push(format!("{contract}: names no test"));
        }
        let missing = named.iter().filter(|test| !is_a_test(test));
        complaints.extend(missing.map(|test| format!("{contract}: there is no test {test}")));
    }
    assert!(rows > 120, "{rows} rows");
    no_complaints(complaints);
}

#[test]
fn a_named_test_is_looked_for_in_its_own_file() {
    assert!(is_a_test("kernel: tidy::a_named_test_is_looked_for_in_its_own_file"));
    assert!(is_a_test("kernel: program/tests::no_more_agents_are_sent_into_a_dead_quota"));
    for none in
        ["kernel: tidy::nobody_wrote_this", "runtime: tidy::ids_are_read_off_test_names", "kernel: tidy", "?"]
    {
        assert!(!is_a_test(none), "{none}");
    }
}

#[test]
fn ids_are_read_off_test_names() {
    let check = |name: &str, expected: &[&str]| {
        assert_eq!(ids_in(name).into_iter().collect::<Vec<_>>(), expected, "{name}");
    };
    check("d4_2_d4_3_calls_are_read", &["D4.2", "D4.3"]);
    check("a7_a_child_ends", &["A7"]);
    check("w31_w33_b4_a_task_is_given_once", &["B4", "W31", "W33"]);
    check("a_plain_answer", &[]);
    check("w_is_no_id", &[]);
    check("d2_is_not_an_id", &[]);
}
