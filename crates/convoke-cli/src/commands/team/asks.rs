//! `convoke team stop|plan|compact`: a person's word to a teammate. It is written into the journal; the
//! process that drives the teammate, now or later, acts on it.

use convoke_kernel::{LEAD, MessageId, Request, RequestKind, Roster};
use serde_json::{Value, json};

use super::target::TeamTarget;
use crate::again::Naming;
use crate::args::{OutputFormat, TeamCompactArgs, TeamPlanArgs, TeamStopArgs};
use crate::commands::no_jsonl;
use crate::failure::{Exit, Failure};
use crate::settings::Settings;
use crate::stdio;

/// Asks a teammate to stop.
pub(super) async fn stop(settings: &Settings, args: &TeamStopArgs) -> Result<Exit, Failure> {
    no_lines(settings, "team stop")?;
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let request = at.team.ask_to_stop(&at.session, &at.lead, &args.name, args.timeout).await?;
    let seconds = args.timeout.as_secs();
    let line = format!("{} was asked to stop; after {seconds} s without an answer it is stopped", args.name);
    report(settings, &at, json!({"name": args.name, "request": request, "patience_s": seconds}), &line)
}

/// Answers a plan.
pub(super) async fn plan(settings: &Settings, args: &TeamPlanArgs) -> Result<Exit, Failure> {
    no_lines(settings, "team plan")?;
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    let roster = at.team.roster(&at.session).await?;
    let (request, from) = waiting_plan(&roster, &args.request)?;
    let feedback = args.feedback.as_deref().unwrap_or_default();
    let letter = at.team.answer_plan(&at.session, &at.lead, &request, args.approve, feedback).await?;
    let word = if args.approve { "approved" } else { "rejected" };
    let object = json!({"name": from, "request": request, "approved": args.approve, "letter": letter});
    report(settings, &at, object, &format!("the plan of {from} is {word}"))
}

/// Has a member begin a new history.
pub(super) async fn compact(settings: &Settings, args: &TeamCompactArgs) -> Result<Exit, Failure> {
    no_lines(settings, "team compact")?;
    let at = TeamTarget::find(settings, args.of.session.as_deref()).await?;
    // A lead is there whether it has a team or not.
    let agent = if args.name == LEAD { at.lead.clone() } else { at.member(&args.name).await?.member.agent };
    at.team.compact(&agent, args.focus.as_deref()).await?;
    let line = format!("{} begins a new history before its next request", args.name);
    report(settings, &at, json!({"name": args.name, "agent": agent}), &line)
}

fn no_lines(settings: &Settings, command: &str) -> Result<(), Failure> {
    match settings.output {
        OutputFormat::Jsonl => Err(no_jsonl(command)),
        OutputFormat::Text | OutputFormat::Json => Ok(()),
    }
}

/// Says what was written down, and if no process drives the session, which command makes it happen.
fn report(settings: &Settings, at: &TeamTarget, mut object: Value, line: &str) -> Result<Exit, Failure> {
    if settings.output == OutputFormat::Json {
        object["schema_version"] = json!(1);
        object["run"] = json!(at.session);
        object["driven"] = json!(at.driven);
        stdio::put_json(&format!("{object:#}\n"))?;
    }
    if settings.quiet {
        return Ok(Exit::Done);
    }
    stdio::tell(&format!("{line}\n"));
    if let (false, Some(command)) = (at.driven, Naming::of(settings).resume(at.session.as_str())) {
        stdio::tell(&format!("no process drives it now; it happens when one does: `{command}`\n"));
    }
    Ok(Exit::Done)
}

/// The plan that a person means, by any unique beginning of its request's id, and whose it is.
fn waiting_plan(roster: &Roster, given: &str) -> Result<(MessageId, String), Failure> {
    let open: Vec<(&MessageId, &Request)> =
        roster.open_requests().into_iter().filter(|(_, request)| request.kind == RequestKind::Plan).collect();
    let fits = |id: &MessageId| {
        let body = id.as_str().strip_prefix(MessageId::PREFIX).unwrap_or_default();
        !given.is_empty() && (id.as_str().starts_with(given) || body.starts_with(given))
    };
    let found: Vec<&(&MessageId, &Request)> = open.iter().filter(|(id, _)| fits(id)).collect();
    let list =
        || open.iter().map(|(id, request)| format!("{id} ({})", request.from)).collect::<Vec<_>>().join(", ");
    match found.as_slice() {
        [(id, request)] => Ok(((*id).clone(), request.from.clone())),
        [] if open.is_empty() => {
            Err(Failure::failed(format!("there is no plan '{given}': no plan waits for approval")))
        }
        [] => Err(Failure::failed(format!("there is no plan '{given}' that waits for approval"))
            .hint(format!("these do: {}", list()))),
        _ => {
            Err(Failure::failed(format!("'{given}' fits several plans: {}", list()))
                .hint("write more of the id"))
        }
    }
}
