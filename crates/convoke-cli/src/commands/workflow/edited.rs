//! `convoke resume --script`: a person's own workflow goes on with an edited script, in the same session and
//! under the same budget. It says whether that can be and what is called for; the driving is `resume`'s.

use convoke_journal::Journal;
use convoke_kernel::{Program, ProgramStatus, Segment, Status};
use convoke_runtime::Library;
use serde_json::{Value, json};

use super::chosen::Chosen;
use super::planned::{children, plan, seen};
use super::run::{heading, text};
use super::{agree, given};
use crate::args::EditArgs;
use crate::catalog::ListedSession;
use crate::failure::Failure;
use crate::render::Look;
use crate::settings::{ModelSource, Settings};
use crate::work;

/// A call of an edited script.
pub(in crate::commands) struct Edited {
    /// What people are told of it.
    pub(in crate::commands) heading: String,
    /// How people read the call.
    pub(in crate::commands) text: String,
    /// Its input.
    pub(in crate::commands) input: Value,
}

/// The workflow's run that an edited script goes on from: the last one that a person ran, and it must have
/// ended.
pub(in crate::commands) async fn earlier(
    journal: &Journal,
    listed: &ListedSession,
) -> Result<Program, Failure> {
    let session = &listed.session;
    let Some(own) = listed.own_program() else {
        return Err(Failure::usage(format!(
            "{session} has no workflow of yours whose script could be edited"
        ))
        .hint("a workflow that a lead started is the lead's: `--say TEXT` tells it what you want")
        .hint("`convoke workflow run FILE` begins a new one"));
    };
    let goes_on = format!("`convoke resume {session}` goes on with it as it is");
    match (own.status, listed.lead().summary.status) {
        // The session was left in the middle of a run that a person then stopped: it makes way for the edited
        // script.
        (Some(ProgramStatus::Stopped), Status::Open) => work::program(journal, &own.run).await,
        (_, Status::Open) => {
            let message = format!("{} was left in the middle", own.run);
            let stop = format!(
                "`convoke sessions stop {session}` first: what is done stays done, and the edited script goes on \
                    from it"
            );
            Err(Failure::usage(message).hint(stop).hint(goes_on))
        }
        (None, _) => Err(Failure::usage(format!("{} has not ended", own.run))
            .hint(format!("`convoke sessions stop {session}` first: what is done stays done"))
            .hint(goes_on)),
        (Some(_), _) => work::program(journal, &own.run).await,
    }
}

impl Edited {
    /// Reads and checks the script and the arguments, and at a terminal has the person agree.
    pub(in crate::commands) async fn read(
        settings: &Settings,
        look: Look,
        source: &ModelSource,
        library: &Library,
        earlier: &Program,
        args: &EditArgs,
    ) -> Result<Self, Failure> {
        let file = args.script.as_ref().map(|file| file.to_string_lossy().into_owned()).unwrap_or_default();
        let value = given::value(&args.given, &settings.dir)?;
        let chosen = Chosen::file(library, &file, &settings.dir).await?;
        let spec = earlier.spec();
        let before = || {
            spec.and_then(|spec| spec.args.as_ref()).map(Segment::as_str).map(serde_json::from_str::<Value>)
        };
        // They are remembered by the run; here they are for the plan and for people.
        let known = value.clone().or_else(|| before().and_then(Result::ok));
        if look.is_interactive() && !args.yes {
            let seen = seen(settings).await;
            let plan = plan(settings, source, library.clone(), &chosen, known.as_ref(), &seen).await?;
            let children = children(settings, library, &plan).await;
            agree::ask(settings, look, &chosen, &plan, children)?;
        }
        let mut input =
            json!({"script": chosen.source, "resumeFromRunId": spec.map(|spec| spec.run.as_str())});
        if let Some(value) = value {
            input["args"] = value;
        }
        Ok(Self { heading: heading(&chosen), text: text(&chosen, known.as_ref()), input })
    }
}
