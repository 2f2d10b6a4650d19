//! The public surface, one line for each public item, as `public-api.txt` has it: a change of it is seen in a
//! review. The list is read from the source, from every file of it: every `pub` item that `lib.rs` makes
//! public, every public method and field of it wherever it stands, the variants of public enums, what is
//! derived, and `#[non_exhaustive]`; and what is handed on from another crate.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Write the list anew: `CONVOKE_WRITE_SURFACE=1 cargo test -p convoke --test it surface`.
const WRITE: &str = "CONVOKE_WRITE_SURFACE";

#[test]
fn the_public_surface_is_the_one_that_is_listed() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = here.join("public-api.txt");
    let found = surface(here).join("\n") + "\n";
    if std::env::var_os(WRITE).is_some() {
        fs::write(&listed, &found).unwrap();
    }
    let expected = fs::read_to_string(&listed).unwrap_or_default();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let found = lines(&found);
    let expected = lines(&expected);
    let new: Vec<_> = found.difference(&expected).collect();
    let gone: Vec<_> = expected.difference(&found).collect();
    let hint = format!(
        "the public surface has changed; if that is meant: {WRITE}=1 cargo test -p convoke --test it surface"
    );
    assert!(new.is_empty() && gone.is_empty(), "{hint}\nnew: {new:#?}\ngone: {gone:#?}");
}

fn surface(here: &Path) -> Vec<String> {
    // What belongs to an item may stand in any file of the crate: `Session::team` is in `team.rs`.
    let sources = sources(&here.join("src"));
    let lib = fs::read_to_string(here.join("src/lib.rs")).unwrap();
    let mut lines = Vec::new();
    let exports: Vec<String> = statements(&lib).into_iter().map(|statement| statement.text).collect();
    for exported in exports.iter().filter_map(|line| line.strip_prefix("pub use ")) {
        let (module, names) = exported.trim_end_matches(';').split_once("::").unwrap();
        let names: Vec<&str> = names.trim_matches(['{', '}']).split(',').map(str::trim).collect();
        let ours = here.join(format!("src/{module}.rs")).exists();
        for name in names.into_iter().filter(|name| !name.is_empty()) {
            match ours {
                true => lines.extend(sources.iter().flat_map(|source| item(source, name))),
                false => lines.push(format!("use {module}::{name}")),
            }
        }
    }
    lines.sort();
    lines
}

/// The text of every file of the library; the program that the tests start is none of it.
fn sources(dir: &Path) -> Vec<String> {
    let mut sources = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("src/bin") {
            sources.extend(self::sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push(fs::read_to_string(&path).unwrap());
        }
    }
    sources
}

/// A line of a source, or a declaration over several lines, with the attributes before it.
struct Statement {
    text: String,
    attributes: Vec<String>,
}

/// The lines of a source without comments; a declaration over several lines is one.
fn statements(source: &str) -> Vec<Statement> {
    let mut statements = Vec::new();
    let mut open = String::new();
    let mut attribute = String::new();
    let mut attributes = Vec::new();
    for line in source.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        if line.starts_with("#[") || !attribute.is_empty() {
            attribute.push_str(line);
            if attribute.matches('[').count() == attribute.matches(']').count() {
                attributes.push(std::mem::take(&mut attribute));
            }
            continue;
        }
        if !open.is_empty() {
            open.push(' ');
        }
        open.push_str(line);
        let parts = |of: char| open.matches(of).count();
        let whole = parts('(') == parts(')') && (line.ends_with([';', '{', '}', ',']) || line.is_empty());
        // A `where` clause belongs to what stands before it.
        let continues = line.ends_with("where") || (open.contains(" where ") && !line.ends_with('{'));
        let use_list = open.starts_with("pub use") && !line.ends_with(';');
        if whole && !continues && !use_list {
            let text = std::mem::take(&mut open);
            statements.push(Statement { text, attributes: std::mem::take(&mut attributes) });
        }
    }
    statements
}

/// A public item with everything public in it.
fn item(source: &str, name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    // What the braces are open of: a public item, its implementation, or something else.
    let mut within: Option<(&str, usize)> = None;
    let mut depth: usize = 0;
    let mut variant = String::new();
    for Statement { text: statement, attributes } in statements(source) {
        let opens = statement.matches('{').count();
        let closes = statement.matches('}').count();
        if let Some((kind, at)) = within.filter(|(_, at)| depth == at + 1) {
            let member = statement.trim_end_matches([',', '{']).trim();
            let shown = match kind {
                "enum" => member != "}" && !member.is_empty(),
                "trait" => member.starts_with("fn ") || member.starts_with("type "),
                _ => member.starts_with("pub ") && !member.starts_with("pub("),
            };
            if kind == "enum" {
                variant = member.to_owned();
            }
            if shown {
                lines.push(format!("{name}: {}", member.trim_start_matches("pub ")));
            }
            if closes > 0 && opens == 0 && depth == at + 1 {
                within = None;
            }
        } else if within.is_some_and(|(kind, at)| kind == "enum" && depth == at + 2) {
            let member = statement.trim_end_matches(',').trim();
            if member != "}" {
                lines.push(format!("{name}: {variant} {member}"));
            }
        } else if within.is_none() {
            let word = |kind: &str| {
                let begins = format!("pub {kind} {name}");
                let rest = statement.strip_prefix(&begins);
                rest.is_some_and(|rest| rest.starts_with([' ', '(', '<', ';', '{', ':']))
            };
            let own = ["struct", "enum", "trait", "fn", "type", "const"].into_iter().find(|kind| word(kind));
            let implements = statement.starts_with("impl")
                && statement.trim_end_matches('{').trim().rsplit(' ').next() == Some(name);
            if let Some(kind) = own {
                let whole = statement.split('{').next().unwrap_or_default().trim();
                // What a struct without names holds is private, unless it says otherwise.
                let opaque = kind == "struct" && !whole.contains("(pub ");
                let head = if opaque { whole.split('(').next().unwrap_or_default() } else { whole };
                lines.push(head.trim_start_matches("pub ").to_owned());
                // What may be done with a value of it, and whether it may grow.
                let said =
                    attributes.into_iter().filter(|it| it == "#[non_exhaustive]" || it.contains("derive("));
                lines.extend(said.map(|attribute| format!("{name}: {attribute}")));
                let inside = if ["enum", "trait"].contains(&kind) { kind } else { "struct" };
                within = (opens > closes && kind != "fn").then_some((inside, depth));
            } else if implements {
                let head = statement.trim_end_matches('{').trim();
                if head.contains(" for ") {
                    lines.push(head.to_owned());
                }
                within = (!head.contains(" for ")).then_some(("impl", depth));
            }
        }
        depth = (depth + opens).saturating_sub(closes);
    }
    lines
}
