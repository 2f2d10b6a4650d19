//! Looks up what findings cite: lines of files, and what the agent's own commands printed. A command is run
//! again only where no record of it can vouch, and then by `rerun`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use convoke_beneath::{named_file, read_whole};
use convoke_journal::StreamId;
use convoke_kernel::{AgentId, Checked, Citation, Event, Report, Seen, check_citation, is_command};
use serde_json::Value;

use super::rerun;
use crate::children::Parent;
use crate::error::Error;
use crate::runtime::Config;
use crate::workspace::{Cited, Looked};

/// More of a command's output than this is not read back.
const MOST_OUTPUT: u64 = 8 * 1024 * 1024;

/// Compares every citation of a report.
pub(crate) async fn citations(
    parent: &Parent,
    name: &str,
    agent: Option<&AgentId>,
    report: &Report,
) -> Result<Vec<Vec<Checked>>, Error> {
    let cited = report.findings.iter().flat_map(|finding| &finding.citations);
    let cited: BTreeSet<&str> =
        cited.filter(|c| c.path.is_none()).filter_map(|c| c.command.as_deref()).map(str::trim).collect();
    let mut ran = match agent.filter(|_| !cited.is_empty()) {
        Some(agent) => commands(&parent.config, agent).await?,
        None => None,
    };
    let unknown = |command: &&&str| !ran.as_ref().is_some_and(|ran| ran.contains_key(**command));
    let unknown: Vec<String> = cited.iter().filter(unknown).map(|command| (*command).to_owned()).collect();
    let again = rerun::outputs(parent, name, unknown).await;
    if !again.is_empty() {
        ran.get_or_insert_default().extend(again);
    }
    let dir = PathBuf::from(&parent.spec.dir);
    let report = report.clone();
    // What commands cannot read, the answer to a citation must not tell either.
    let hidden = parent.config.confine.hidden_in(&parent.spec);
    let checked = tokio::task::spawn_blocking(move || {
        let tree = Cited::open(&dir, hidden);
        let check = |citation: &Citation| check(&tree, ran.as_ref(), citation);
        report.findings.iter().map(|finding| finding.citations.iter().map(check).collect()).collect()
    });
    checked.await.map_err(|_| Error::CheckBroke)
}

type Outputs = HashMap<String, Vec<String>>;

fn check(tree: &Cited, ran: Option<&Outputs>, citation: &Citation) -> Checked {
    let seen = match (&citation.path, &citation.command) {
        (Some(path), _) => match tree.read(path) {
            Looked::Text(text) => Seen::File(text),
            Looked::Missing => Seen::Missing,
            Looked::Outside => Seen::Outside,
            Looked::TooLarge => Seen::TooLarge,
            Looked::NotText => Seen::NotText,
        },
        (None, Some(command)) => match ran {
            None => return Checked::CannotTell("the record of that command is gone".to_owned()),
            Some(ran) => ran.get(command.trim()).cloned().map_or(Seen::NeverRan, Seen::Output),
        },
        (None, None) => return Checked::CannotTell("the citation names neither file nor command".to_owned()),
    };
    check_citation(citation, &seen)
}

/// What an agent's commands printed, as it was recorded; `None` when its stream is gone.
async fn commands(config: &Config, agent: &AgentId) -> Result<Option<Outputs>, Error> {
    let records = config.journal.load(&StreamId::from(agent), 0).await?;
    if records.is_empty() {
        return Ok(None);
    }
    let mut started = HashMap::new();
    let mut outputs = Outputs::new();
    for record in records {
        let bad = |cause| Error::BadEvent { agent: agent.clone(), seq: record.seq, cause };
        match Event::decode(&record.event).map_err(bad)? {
            // The editor has a `command` too, which is none.
            Event::ToolStarted(e) if is_command(&e.name) => {
                let input: Value = serde_json::from_str(e.input.as_str())?;
                if let Some(command) = input.get("command").and_then(Value::as_str) {
                    started.insert(e.id, command.trim().to_owned());
                }
            }
            Event::ToolFinished(e) => {
                if let Some(command) = started.remove(&e.id) {
                    let whole = e.result.full_output.as_deref().and_then(|file| whole(Path::new(file)));
                    outputs.entry(command).or_default().push(whole.unwrap_or(e.result.text));
                }
            }
            _ => {}
        }
    }
    Ok(Some(outputs))
}

fn whole(file: &Path) -> Option<String> {
    let (opened, _) = named_file(file, None).ok()?;
    read_whole(opened, file, MOST_OUTPUT).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}
