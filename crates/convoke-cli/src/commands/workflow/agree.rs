//! Whether a person agrees to run a workflow. Asked at a terminal alone: elsewhere the start itself is the
//! agreement. What is agreed to for good is bound to the digest of the source, to those of the workflows that
//! its plan saw it call, and to how many agents were spoken of, never to a name.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::chosen::Chosen;
use super::planned::{Priced, agents, cost, remarks};
use super::short;
use crate::commands::ask::{Said, read, said};
use crate::failure::Failure;
use crate::render::{Look, clean, hanging, revealed};
use crate::settings::Settings;
use crate::stdio::tell;

/// A plan of more agents than this is shown before it is begun, wherever the workflow comes from.
const MANY: u32 = 25;

/// What is remembered, by digest.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Agreements(BTreeMap<String, Terms>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Terms {
    name: String,
    /// The most agents that the plan spoke of.
    agents: u32,
    /// The workflows that the plan saw it call, each with its digest.
    #[serde(default)]
    children: Children,
}

/// Workflows by how a program names them, each with the digest of its source.
pub(super) type Children = BTreeMap<String, String>;

/// Asks, if there is anything to ask; an error if the person does not agree.
pub(super) fn ask(
    settings: &Settings,
    look: Look,
    chosen: &Chosen,
    plan: &Priced,
    children: Children,
) -> Result<(), Failure> {
    if !is_to_be_asked(settings, chosen, plan, &children) {
        return Ok(());
    }
    let file = file(settings);
    let most = most(plan);
    tell(&about(look, chosen, plan, &children));
    loop {
        let answer = read("Run it? [y/N/a/s] ").map(|line| said(&line));
        match answer {
            Some(Said::Once) => return Ok(()),
            Some(Said::Always) => {
                let terms = Terms { name: chosen.meta.name.clone(), agents: most, children };
                if let Err(why) = remember(&file, &chosen.digest, terms) {
                    tell(&look.fit(&format!("warning: this could not be remembered: {}\n", clean(&why))));
                }
                return Ok(());
            }
            Some(Said::Show) => {
                tell(&format!("{}\n", revealed(&chosen.source.replace('\t', "    ")).trim_end()))
            }
            Some(Said::Else) => tell("That is none of the answers.\n"),
            Some(Said::No) | None => {
                return Err(Failure::failed("not run: you did not agree; nothing was started or spent")
                    .hint("--yes runs a workflow without asking"));
            }
        }
    }
}

/// Whether a person is to agree to this plan of it first.
pub(super) fn is_to_be_asked(
    settings: &Settings,
    chosen: &Chosen,
    plan: &Priced,
    children: &Children,
) -> bool {
    is_asked(chosen.is_shipped(), most(plan), children, load(&file(settings)).0.get(&chosen.digest))
}

fn file(settings: &Settings) -> PathBuf {
    settings.state_dir.join("agreed-workflows.json")
}

fn most(plan: &Priced) -> u32 {
    plan.plan.low.agents.max(plan.plan.high.agents)
}

/// Whether there is something to ask.
fn is_asked(shipped: bool, agents: u32, children: &Children, agreed: Option<&Terms>) -> bool {
    match agreed {
        Some(terms) => {
            let is_other = |(name, digest): (&String, &String)| terms.children.get(name) != Some(digest);
            agents > terms.agents.max(MANY) || children.iter().any(is_other)
        }
        None => !shipped || agents > MANY,
    }
}

fn about(look: Look, chosen: &Chosen, plan: &Priced, children: &Children) -> String {
    let width = look.width().unwrap_or(80);
    let mut rows = rows(chosen, plan, children, width);
    rows.push(
        "y: run it · n or Enter: no · a: always, as long as the scripts are these · s: show the script"
            .to_owned(),
    );
    let row = |text: String| hanging(&text, width, "  ") + "\n";
    format!("\n{}", rows.into_iter().map(row).collect::<String>())
}

/// What a person should know before agreeing to it.
pub(super) fn rows(chosen: &Chosen, plan: &Priced, children: &Children, width: usize) -> Vec<String> {
    let one_line = |text: &str| clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    let whose = match chosen.origin {
        Some(origin) => format!("{} workflow", origin.word()),
        None => "workflow in a file".to_owned(),
    };
    let mut rows = vec![
        format!("{whose} {}: {}", one_line(&chosen.meta.name), one_line(&chosen.meta.description)),
        format!("script: {}, digest {}", one_line(&chosen.named), chosen.short()),
    ];
    for (number, phase) in chosen.meta.phases.iter().enumerate() {
        let detail = phase.detail.as_deref().map(|detail| format!(": {detail}")).unwrap_or_default();
        rows.push(one_line(&format!("phase {}. {}{detail}", number + 1, phase.title)));
    }
    rows.extend(
        children.iter().map(|(name, digest)| one_line(&format!("calls {name}, digest {}", short(digest)))),
    );
    rows.push(format!("plan: {}, {}", agents(plan), cost(plan)));
    rows.extend(remarks(chosen, plan, Some(width)).lines().map(str::to_owned));
    rows
}

fn load(file: &Path) -> Agreements {
    // A file that cannot be read holds no agreement.
    std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn remember(file: &PathBuf, digest: &str, terms: Terms) -> Result<(), String> {
    let mut agreed = load(file);
    agreed.0.insert(digest.to_owned(), terms);
    let write = || -> std::io::Result<()> {
        let dir = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(dir)?;
        let mut new = tempfile::NamedTempFile::new_in(dir)?;
        new.write_all(serde_json::to_string_pretty(&agreed)?.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(file).map(drop).map_err(|error| error.error)
    };
    write().map_err(|error| format!("{}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_asked_about_what_is_foreign_or_large_and_not_twice_about_the_same() {
        let terms = |agents| Terms { name: "n".into(), agents, children: Children::new() };
        let check = |shipped, agents, agreed: Option<&Terms>, expected| {
            let asked = is_asked(shipped, agents, &Children::new(), agreed);
            assert_eq!(asked, expected, "{shipped} {agents} {agreed:?}");
        };
        check(true, 25, None, false);
        check(true, 26, None, true);
        check(false, 1, None, true);
        check(false, 1, Some(&terms(1)), false);
        check(false, 26, Some(&terms(1)), true);
        check(false, 90, Some(&terms(90)), false);
        check(true, 91, Some(&terms(90)), true);
    }

    #[test]
    fn a_person_is_asked_again_when_a_workflow_that_it_calls_is_another_one() {
        let children = |all: &[(&str, &str)]| {
            all.iter().map(|(name, digest)| ((*name).into(), (*digest).into())).collect()
        };
        let agreed = Terms { name: "n".into(), agents: 1, children: children(&[("a", "d1"), ("b", "d2")]) };
        let check = |now: &[(&str, &str)], expected| {
            assert_eq!(is_asked(false, 1, &children(now), Some(&agreed)), expected, "{now:?}");
        };
        check(&[("a", "d1"), ("b", "d2")], false);
        check(&[("a", "d1")], false);
        check(&[("a", "d9"), ("b", "d2")], true);
        check(&[("a", "d1"), ("c", "d2")], true);
        // What was agreed to before this was recorded names none.
        let old: Terms = serde_json::from_str(r#"{"name": "n", "agents": 1}"#).unwrap();
        assert!(
            is_asked(false, 1, &children(&[("a", "d1")]), Some(&old))
                && !is_asked(false, 1, &children(&[]), Some(&old))
        );
    }

    #[test]
    fn what_is_agreed_to_is_found_again_by_its_digest() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("state/agreed.json");
        remember(&file, "d1", Terms { name: "one".into(), agents: 3, children: Children::new() }).unwrap();
        remember(&file, "d2", Terms { name: "one".into(), agents: 4, children: Children::new() }).unwrap();
        let agreed = load(&file);
        assert_eq!((agreed.0["d1"].agents, agreed.0["d2"].agents, agreed.0.len()), (3, 4, 2));
        std::fs::write(&file, "nonsense").unwrap();
        assert!(load(&file).0.is_empty());
    }
}
