//! Cuts a tree into subtasks: one for each concern that files here can have, and in a large tree the wide
//! ones by directory.

use super::concern::{ALL, About, Concern, SOURCES};
use super::facts::Area;
use super::look::Scope;
use super::subtask;

/// The most subtasks of one review.
const MOST: usize = 12;

/// From so many lines of source on, wide concerns are cut by directory.
const LARGE: u64 = 20_000;

/// What is to be fanned out, and what was left for want of room.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) subtasks: Vec<String>,
    /// The titles of concerns that would apply and are not looked into.
    pub(super) left: Vec<&'static str>,
}

/// The plan for a tree, or for the part of it that was asked for.
pub(super) fn plan(areas: &[Area], scope: Option<&str>) -> Plan {
    let within = |area: &&Area| {
        scope.is_none_or(|scope| inside(&area.path, scope) || inside(scope, &area.path) || area.path == ".")
    };
    let areas: Vec<&Area> = areas.iter().filter(within).collect();
    let place = Scope { within: scope.map(str::to_owned).into_iter().collect(), except: Vec::new() };
    let wanted: Vec<&About> = ALL.iter().filter(|about| applies(about, &areas, scope)).collect();
    let left = wanted.iter().skip(MOST).map(|about| about.title).collect();
    let mut cuts: Vec<(Concern, Scope)> =
        wanted.iter().take(MOST).map(|about| (about.concern, place.clone())).collect();
    if lines(&areas, SOURCES) >= LARGE && scope.is_none() {
        for about in wanted.iter().take(MOST).filter(|about| about.cuts) {
            let Some(half) = half(&areas, about.languages).filter(|_| cuts.len() < MOST) else { continue };
            let Some(at) = cuts.iter().position(|(concern, _)| *concern == about.concern) else { continue };
            cuts[at].1 = Scope { within: vec![half.clone()], except: Vec::new() };
            cuts.insert(at + 1, (about.concern, Scope { within: Vec::new(), except: vec![half] }));
        }
    }
    Plan { subtasks: cuts.iter().map(|(concern, place)| subtask::write(*concern, place)).collect(), left }
}

fn applies(about: &About, areas: &[&Area], scope: Option<&str>) -> bool {
    let of_language =
        |area: &&&Area| about.languages.is_empty() || about.languages.contains(&area.language.as_str());
    let files: u64 = areas.iter().filter(of_language).map(|area| area.files).sum();
    let tests: u64 = areas.iter().filter(of_language).map(|area| area.tests).sum();
    match about.concern {
        Concern::Hygiene => files > 0 && scope.is_none(),
        // Rust has its tests beside the code.
        Concern::Skipped => tests > 0 || areas.iter().any(|area| area.language == "Rust"),
        Concern::Untested => tests > 0 && files > tests && scope.is_none(),
        _ => files > 0,
    }
}

fn lines(areas: &[&Area], languages: &[&str]) -> u64 {
    areas.iter().filter(|area| languages.contains(&area.language.as_str())).map(|area| area.lines).sum()
}

fn inside(path: &str, directory: &str) -> bool {
    path == directory || path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// The directory that holds closest to half of these lines, if there is one with a fair share.
fn half(areas: &[&Area], languages: &[&str]) -> Option<String> {
    let whole = lines(areas, languages);
    let mut names: Vec<&str> = Vec::new();
    for area in areas.iter().filter(|area| area.path != ".") {
        names.extend([area.path.as_str(), area.path.split('/').next().unwrap_or_default()]);
    }
    names.sort_unstable();
    names.dedup();
    let share = |name: &str| {
        let here: Vec<&Area> = areas.iter().filter(|area| inside(&area.path, name)).copied().collect();
        lines(&here, languages) * 100 / whole.max(1)
    };
    let fair = names.into_iter().map(|name| (share(name).abs_diff(50), name)).filter(|(off, _)| *off <= 35);
    fair.min().map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(path: &str, language: &str, lines: u64, tests: u64) -> Area {
        Area { path: path.to_owned(), language: language.to_owned(), files: tests + 1, lines, tests }
    }

    fn titles(plan: &Plan) -> Vec<&str> {
        plan.subtasks.iter().map(|subtask| subtask.lines().next().unwrap()).collect()
    }

    #[test]
    fn only_concerns_of_files_that_exist_are_chosen() {
        let plan = plan(&[area("src", "Python", 100, 0), area(".", "Markdown", 10, 0)], None);
        let titles = titles(&plan);
        assert_eq!(titles.len(), 8, "{titles:?}");
        assert!(
            !titles
                .iter()
                .any(|title| title.contains("Rust") || title.contains("Shell") || title.contains("JSON"))
        );
        assert!(titles.contains(&"Broken relative links in Markdown in the whole directory"), "{titles:?}");
    }

    #[test]
    fn a_large_tree_is_cut_by_directory_and_never_into_more_than_twelve() {
        let areas = [
            area("crates/a", "Rust", 20_000, 2),
            area("crates/b", "Rust", 15_000, 0),
            area(".", "TOML", 9, 0),
        ];
        let plan = plan(&areas, None);
        let titles = titles(&plan);
        assert_eq!(titles.len(), 12, "{titles:?}");
        assert!(titles.contains(&"Panics in Rust code outside tests in `crates/a/`"), "{titles:?}");
        assert!(
            titles.contains(&"Panics in Rust code outside tests in everything except `crates/a/`"),
            "{titles:?}"
        );
    }

    #[test]
    fn what_finds_no_room_is_said() {
        let all =
            ["Rust", "Python", "JSON", "Markdown", "Shell"].map(|language| area("src", language, 10, 1));
        let plan = plan(&all, None);
        assert_eq!((plan.subtasks.len(), plan.left), (12, vec!["Source files that no test mentions"]));
    }
}
