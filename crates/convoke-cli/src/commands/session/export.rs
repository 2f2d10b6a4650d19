//! `/export`: the session as files: what was said, every event, and the team with its mail and tasks if there
//! is one.

use std::path::Path;

use convoke_beneath::Dir;
use convoke_kernel::Outcome;
use convoke_terminal::ScreenUpdate;

use super::session_loop::SessionLoop;
use super::slash::printed;
use crate::failure::Failure;
use crate::lead::Lead;

/// Writes the session to this directory, or to one of Convoke's own: without a name nothing is put into a
/// repository. Nothing that stands there is replaced.
pub(super) async fn export(session_loop: &SessionLoop, word: Option<&str>) -> Result<(), Failure> {
    let (lead, session) = session_loop.lead()?;
    let dir = match word {
        Some(named) => Path::new(&session_loop.ready.facts.dir).join(named),
        None => session_loop.settings.state_dir.join("exports").join(session.as_str()),
    };
    // No link leads there within the tree, which commands fill.
    let tree = Path::new(&session_loop.ready.facts.dir);
    let opened = Dir::make_named(&dir, Some(tree), 0o777).map_err(|error| {
        Failure::failed(format!("{} cannot be written: {}", dir.display(), error.reason()))
    })?;
    let told = Lead::read(&session_loop.journal, &lead).await?;
    put(&opened, &dir, "conversation.md", &conversation(session.as_str(), &told))?;
    let (events, done) = printed(session_loop, &["sessions", "export", session.as_str()]).await?;
    done?;
    put(&opened, &dir, "events.jsonl", &events)?;
    let team = dir.to_string_lossy().into_owned();
    let mut written = vec!["conversation.md", "events.jsonl"];
    // A session without a team has nothing more.
    if let (_, Ok(_)) = printed(session_loop, &["export", session.as_str(), "--to", &team]).await? {
        written.extend([".team", ".tasks"]);
    }
    written.retain(|name| matches!(opened.kind(Path::new(name)), Ok(Some(_))));
    let names: Vec<String> = written.iter().map(|name| dir.join(name).display().to_string()).collect();
    session_loop.tell(ScreenUpdate::Text { title: "/export".into(), text: names.join("\n") });
    Ok(())
}

/// Writes a new file. One that is there already may be the person's own, and stays.
fn put(opened: &Dir, dir: &Path, name: &str, text: &str) -> Result<(), Failure> {
    opened.create(Path::new(name), text.as_bytes(), 0o666).map_err(|error| {
        Failure::failed(format!("{} cannot be written: {}", dir.join(name).display(), error.reason()))
            .hint("nothing is replaced: name another directory, as in /export notes/today")
    })
}

/// What was said, in markdown.
fn conversation(session: &str, told: &Lead) -> String {
    let mut text = format!("# {session}\n");
    for exchange in &told.exchanges {
        text.push_str(&format!("\n## You\n\n{}\n\n## Lead\n\n", exchange.text.trim_end()));
        let came_to = match &exchange.outcome {
            Some(Outcome::Ok { text }) => text.trim_end().to_owned(),
            Some(Outcome::Failed { message, text, .. }) => {
                format!("{}\n\n(failed: {message})", text.trim_end()).trim_start().to_owned()
            }
            None => "(unfinished)".to_owned(),
        };
        text.push_str(&came_to);
        text.push('\n');
    }
    text
}
