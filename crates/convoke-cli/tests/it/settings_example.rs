//! `docs/config.example.toml` as a user's configuration: the real binary takes it with every setting switched
//! on.

use serde_json::Value;

use crate::support::{TestHome, ran};

/// The example with every setting switched on but one of each pair that excludes the other.
fn switched_on(without: &[&str]) -> String {
    let example = include_str!("../../../../docs/config.example.toml");
    let setting = |line: &'static str| {
        let rest = line.strip_prefix('#').filter(|rest| !rest.starts_with(' ') || rest.starts_with("  "))?;
        (!without.iter().any(|name| rest.starts_with(name))).then_some(rest)
    };
    example.lines().map(|line| setting(line).unwrap_or_default().to_owned() + "\n").collect()
}

#[test]
fn the_binary_takes_every_setting_of_the_example_and_goes_by_it() {
    for without in [["network =", "bearer ="], ["network_allow =", "key ="]] {
        let place = TestHome::new();
        place.write(&place.user_config(), &switched_on(&without));
        let got = ran(&mut place.command(&["config", "show", "--output", "json"]));
        assert_eq!(got.code, 0, "{}", got.err);
        let shown: Value = serde_json::from_str(&got.out).unwrap();
        let rows = shown["settings"].as_array().unwrap();
        assert!(rows.len() > 45, "{} rows", rows.len());
        let left: Vec<&str> = rows
            .iter()
            .filter(|row| row["origin"] == "default")
            .filter_map(|row| row["key"].as_str())
            .filter(|key| !key.starts_with("endpoints.\"https://api.anthropic.com\""))
            .collect();
        let expected: &[&str] =
            if without[0] == "network =" { &["auth.bearer"] } else { &["network_allow", "auth.key"] };
        assert_eq!(left, expected, "{without:?}");
    }
}
