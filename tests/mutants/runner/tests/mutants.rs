//! Every file in `tests/mutants` still says something: it applies to the tree as it is and names a test that
//! exists. A renamed test or a rewritten line would be noticed only when the mutant is run, which is seldom.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use convoke_mutants::{Mutant, apply, read_all};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

fn mutants() -> Vec<Mutant> {
    let mutants = read_all(&root().join("tests/mutants")).unwrap();
    assert!(mutants.len() > 200, "{} mutants", mutants.len());
    mutants
}

fn no_complaints(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_mutant_still_applies_and_changes_something() {
    let mut complaints = Vec::new();
    for mutant in mutants() {
        let mut texts: BTreeMap<&str, String> = BTreeMap::new();
        for edit in &mutant.edits {
            let kept = texts.remove(edit.path.as_str());
            let Some(text) = kept.or_else(|| fs::read_to_string(root().join(&edit.path)).ok()) else {
                complaints.push(format!("{}: there is no {}", mutant.name, edit.path));
                continue;
            };
            match apply(&text, edit) {
                Ok(changed) if changed == text => {
                    complaints.push(format!("{}: changes nothing", mutant.name))
                }
                Ok(changed) => _ = texts.insert(&edit.path, changed),
                Err(misfit) => {
                    complaints.push(format!("{}: {}: {misfit}:\n{}", mutant.name, edit.path, edit.find))
                }
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn every_mutant_names_a_test_that_exists() {
    let mut complaints = Vec::new();
    for mutant in mutants() {
        let is_unit_test =
            mutant.test.selection.iter().any(|word| ["--lib", "--bin"].contains(&word.as_str()));
        let part = if is_unit_test { "src" } else { "tests" };
        let parts: Vec<&str> = mutant.test.name.split("::").collect();
        let module = format!("/{}", parts[0]);
        let function = parts[parts.len() - 1];
        let mut sources = Vec::new();
        rust_files(&root().join("crates").join(mutant.test.package()).join(part), &mut sources);
        let is_there = |path: &PathBuf| {
            let path = path.display().to_string();
            path.ends_with(&format!("{module}.rs"))
                || path.contains(&format!("{part}{module}/"))
                || path.contains(&format!("/it{module}/"))
        };
        // One that a macro makes for every store stands there by its name alone.
        let is_named = |path: &PathBuf| fs::read_to_string(path).unwrap().contains(function);
        if !sources.iter().any(is_there) || !sources.iter().any(is_named) {
            complaints.push(format!("{}: {} {}", mutant.name, mutant.test.package(), mutant.test.name));
        }
    }
    no_complaints(&complaints);
}
