//! What could stand where something has been begun: files, names, and what the commands take. It looks and
//! changes nothing.

use std::path::Path;

use convoke_beneath::{Dir, Kind};
use convoke_terminal::{COMMANDS, Candidate};

use super::session_loop::SessionLoop;
use crate::catalog::Catalog;
use crate::render::first_line;

/// A longer list is not read.
const MOST: usize = 50;

/// The candidates for a word that has been begun, as the argument of a command or within a text.
pub(super) async fn offers(session_loop: &SessionLoop, word: &str, command: Option<&str>) -> Vec<Candidate> {
    let fixed = |words: &[&str]| words.iter().map(|word| candidate(word, "")).collect::<Vec<_>>();
    let all = match command {
        Some("mode") => fixed(&["on", "off"]),
        Some("effort") => fixed(&["low", "medium", "high", "xhigh", "max"]),
        Some("budget") => fixed(&["usd", "tokens", "agents", "minutes"]),
        Some("model") => {
            let now = &session_loop.ready.facts.model;
            let about = |id: &str| if id == now { "the lead's now" } else { "" };
            let models =
                session_loop.settings.models.iter().map(|model| candidate(&model.id, about(&model.id)));
            // The present one first: Enter alone changes nothing.
            let (mut all, others): (Vec<_>, Vec<_>) = models.partition(|one| one.text == *now);
            all.extend(others);
            all
        }
        Some("help") => COMMANDS.iter().map(|row| candidate(row.name, row.about)).collect(),
        Some("resume" | "fork") => sessions(session_loop).await,
        Some(_) => files(Path::new(&session_loop.ready.facts.dir), word, ""),
        None => {
            let mut all = match word.strip_prefix('@') {
                Some(path) => files(Path::new(&session_loop.ready.facts.dir), path, "@"),
                None => files(Path::new(&session_loop.ready.facts.dir), word, ""),
            };
            all.extend(names(session_loop, word).await);
            all
        }
    };
    let mut fitting: Vec<Candidate> = all.into_iter().filter(|one| one.text.starts_with(word)).collect();
    fitting.truncate(MOST);
    fitting
}

fn candidate(text: &str, about: &str) -> Candidate {
    Candidate { text: text.to_owned(), about: about.to_owned() }
}

async fn sessions(session_loop: &SessionLoop) -> Vec<Candidate> {
    let Ok(catalog) = Catalog::load(&session_loop.settings, Some(&session_loop.journal)).await else {
        return Vec::new();
    };
    let row = |listed: &crate::catalog::ListedSession| {
        let about = format!("{} · {}", listed.words(), first_line(&listed.lead().summary.task, 60));
        candidate(listed.session.as_str(), &about)
    };
    // Those of this directory, as `sessions list` has them: a session works where it was begun. The one
    // that is open need not be gone to.
    catalog
        .of_this_directory()
        .filter(|listed| Some(&listed.session) != session_loop.session().as_ref())
        .map(row)
        .collect()
}

/// The members of the team, as they are written to.
async fn names(session_loop: &SessionLoop, word: &str) -> Vec<Candidate> {
    let (Some(session), false) = (session_loop.session(), word.contains('/')) else { return Vec::new() };
    let members = session_loop.team().members(&session).await.unwrap_or_default();
    let mark = if word.starts_with('@') { "@" } else { "" };
    members
        .iter()
        .map(|member| candidate(&format!("{mark}{}", member.member.name), &member.member.role))
        .collect()
}

/// What is in a directory, hidden things only if they are asked for.
fn files(dir: &Path, word: &str, mark: &str) -> Vec<Candidate> {
    let (folder, begun) = word.rsplit_once('/').map_or(("", word), |(folder, begun)| (folder, begun));
    let place = if word.starts_with('/') {
        Path::new("/").join(folder.trim_start_matches('/'))
    } else {
        dir.join(folder)
    };
    // The person looks where the person points, along any link.
    let Ok(entries) = Dir::open(&place).and_then(|dir| dir.entries(Path::new(""))) else { return Vec::new() };
    let before = if word.contains('/') { format!("{folder}/") } else { String::new() };
    let mut found: Vec<Candidate> = entries
        .into_iter()
        .filter_map(|entry| {
            // A name that is no text cannot be typed.
            let name = entry.name.into_string().ok()?;
            let fits = name.starts_with(begun) && (!name.starts_with('.') || begun.starts_with('.'));
            let is_dir =
                entry.kind == Kind::Directory || entry.kind == Kind::Link && place.join(&name).is_dir();
            let slash = if is_dir { "/" } else { "" };
            fits.then(|| candidate(&format!("{mark}{before}{name}{slash}"), ""))
        })
        .collect();
    found.sort_by(|a, b| a.text.cmp(&b.text));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_offered_below_where_the_word_points() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        for name in ["src/main.rs", "src/map.rs", "README.md", ".hidden"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let check = |word: &str, mark: &str, expected: &[&str]| {
            let found: Vec<String> = files(dir.path(), word, mark).into_iter().map(|one| one.text).collect();
            assert_eq!(found, expected, "{word}");
        };
        check("", "", &["README.md", "src/"]);
        check("src/ma", "@", &["@src/main.rs", "@src/map.rs"]);
        check("src/", "", &["src/deep/", "src/main.rs", "src/map.rs"]);
        check(".", "", &[".hidden"]);
        check("nowhere/x", "", &[]);
        let absolute = format!("{}/READ", dir.path().display());
        check(&absolute, "", &[&format!("{}/README.md", dir.path().display())]);
    }
}
