//! `docs/config.example.toml`, read by the real settings code: it has every key, and the defaults in it are
//! those that hold.

use std::collections::BTreeMap;

use convoke_claude::ModelPatch;
use serde::Deserialize;

use super::file::{self, Owner, Stated};
use super::keys::{KEYS, Kind};
use super::layers::Layers;
use super::rules;

const EXAMPLE: &str = include_str!("../../../../docs/config.example.toml");

/// The settings that stand in it as comments: `#` without a blank behind it, or with two in a list of several
/// lines.
fn settings() -> String {
    let is_setting = |rest: &&str| !rest.starts_with(' ') || rest.starts_with("  ");
    let setting = |line: &'static str| line.strip_prefix('#').filter(is_setting).unwrap_or_default();
    EXAMPLE.lines().map(|line| format!("{}\n", setting(line))).collect()
}

fn read(text: &str) -> BTreeMap<&'static str, Stated> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, text).unwrap();
    file::read(&path, &Owner::User).unwrap_or_else(|failure| panic!("{}", failure.message)).unwrap()
}

/// The members of a tier of prices, from what is said to a mistyped one.
fn tier_members() -> Vec<String> {
    let row: toml::Value = toml::from_str("prices = [{ mistyped = 1 }]").unwrap();
    let said = ModelPatch::deserialize(row).unwrap_err().message().to_owned();
    let (_, members) = said.split_once("expected").unwrap_or_else(|| panic!("{said}"));
    members.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn as_it_is_the_example_sets_nothing() {
    assert_eq!(read(EXAMPLE), BTreeMap::new());
}

#[test]
fn the_example_has_every_key_and_every_member() {
    let stated = read(&settings());
    let missing: Vec<&str> =
        KEYS.iter().map(|key| key.name).filter(|name| !stated.contains_key(name)).collect();
    assert!(missing.is_empty(), "docs/config.example.toml has no line for {missing:?}");
    let table: toml::Table = settings().parse().unwrap();
    let tiers = table["models"]["my-model"]["prices"].as_array().unwrap();
    let has = |rows: &[toml::Value], member: &str| rows.iter().any(|row| row.get(member).is_some());
    let mut missing = Vec::new();
    for key in KEYS {
        let Kind::Rows(members) = key.kind else { continue };
        let rows: Vec<toml::Value> = table[key.name].as_table().unwrap().values().cloned().collect();
        missing.extend(
            members
                .iter()
                .filter(|member| !has(&rows, member))
                .map(|member| format!("{}: {member}", key.name)),
        );
    }
    let members = tier_members();
    assert!(members.len() > 5, "{members:?}");
    missing.extend(members.into_iter().filter(|member| !has(tiers, member)));
    let given = table["rules"].as_array().unwrap();
    missing.extend(
        rules::MEMBERS.iter().filter(|member| !has(given, member)).map(|member| format!("rules: {member}")),
    );
    assert!(missing.is_empty(), "docs/config.example.toml has no line for {missing:?}");
}

#[test]
fn the_example_says_the_defaults_that_hold() {
    let stated = read(&settings());
    let builtin = Layers::builtin();
    for (name, Stated { value, .. }) in stated {
        if let Some(default) = builtin.value(name) {
            assert_eq!(value, *default, "{name}");
        }
    }
}

/// Each setting has a comment of its own above it, members of a price and repeated members of rules apart.
#[test]
fn every_setting_of_the_example_has_a_comment() {
    let mut above = "";
    let mut seen = Vec::new();
    for (line, setting) in EXAMPLE.lines().zip(settings().lines()) {
        let name = setting.split([' ', '=']).next().unwrap_or_default().trim_matches(['[', ']']);
        let is_new =
            !setting.is_empty() && !setting.starts_with([' ', ']']) && !seen.contains(&setting.to_owned());
        let is_header_row = above.starts_with("#[headers]") || above.starts_with("#[[rules]]");
        assert!(
            !is_new || above.starts_with("# ") || is_header_row || ["decision", "tool"].contains(&name),
            "{line}"
        );
        seen.push(setting.to_owned());
        above = line;
    }
    assert!(seen.len() > 100, "{}", seen.len());
}
