//! `convoke approvals list`: the calls of a session that wait for a person, and the questions of its
//! workflows, whole. It answers nothing: that is `convoke resume RUN --allow ID` and `--answer ID=TEXT`.

use convoke_runtime::Clock;
use serde_json::{Value, json};

use crate::again::Naming;
use crate::args::{ApprovalsCommand, OutputFormat};
use crate::catalog::{self, Catalog, State};
use crate::checkpoints::{self, OpenCall};
use crate::failure::{Exit, Failure};
use crate::questions::{self, Question};
use crate::render::{call_rows, hanging, revealed};
use crate::settings::Settings;
use crate::{stdio, utc};

/// What a line may take where no terminal says how wide it is.
const WIDE: usize = 120;

/// Lists the questions of a session.
pub(crate) async fn run(settings: &Settings, command: &ApprovalsCommand) -> Result<Exit, Failure> {
    let ApprovalsCommand::List(args) = command;
    let Some(journal) = catalog::open_existing(settings).await? else {
        return Err(super::sessions::no_journal(settings, &args.session));
    };
    let catalog = Catalog::load(settings, Some(&journal)).await?;
    let listed = catalog.find(&args.session)?;
    let open = questions::open(&journal, listed).await?;
    let asked = checkpoints::open(&journal, &listed.session).await?;
    let session = listed.session.as_str();
    let naming = Naming::of(settings);
    match settings.output {
        OutputFormat::Json => {
            let list: Vec<Value> = open.iter().map(object).collect();
            let asked: Vec<Value> = asked.iter().map(|call| checkpoint(call, &naming, session)).collect();
            let all = json!({"schema_version": 1, "run": session, "questions": list, "checkpoints": asked});
            stdio::put_json(&format!("{all:#}\n"))?;
        }
        OutputFormat::Jsonl => {
            let asked = asked.iter().map(|call| checkpoint(call, &naming, session));
            stdio::put_json(
                &open.iter().map(object).chain(asked).map(|it| format!("{it}\n")).collect::<String>(),
            )?;
        }
        OutputFormat::Text => {
            let now = Clock::system().now();
            let width = stdio::width().unwrap_or(WIDE);
            stdio::put(&open.iter().map(|question| text(question, now, width)).collect::<String>())?;
            stdio::put(&asked.iter().map(|call| call.told(&naming, session, width)).collect::<String>())?;
            tell(settings, session, &open, asked.len(), listed.state() == State::Running);
        }
    }
    Ok(Exit::Done)
}

fn object(question: &Question) -> Value {
    json!({
        "id": question.id,
        "agent": question.agent.as_str(),
        "role": question.role.word(),
        "label": question.label,
        "wanted": question.wanted,
        "why": question.why,
        "since": question.since,
    })
}

fn checkpoint(call: &OpenCall, naming: &Naming, session: &str) -> Value {
    json!({
        "id": call.id,
        "workflow": call.run.as_str(),
        "call": call.call,
        "program": call.program,
        "question": call.text,
        "since": call.since,
        "answer": call.answer(naming, session),
    })
}

fn text(question: &Question, now: u64, width: usize) -> String {
    let minutes = now.saturating_sub(question.since) / 60_000;
    let who = match question.label.is_empty() {
        true => question.who(),
        false => format!("{} {}", question.role.word(), question.who()),
    };
    let head = format!(
        "{}  {who} ({}), since {} UTC ({minutes} min)",
        question.id,
        question.agent,
        utc::minute(question.since)
    );
    let mut text = format!("{}\n", hanging(&head, width, "  "));
    for row in call_rows(&question.wanted, width.saturating_sub(2), usize::MAX) {
        text.push_str(&format!("  {row}\n"));
    }
    let why = format!("  because {}", revealed(&question.why).replace('\n', " "));
    text + &hanging(&why, width, "    ") + "\n"
}

fn tell(settings: &Settings, session: &str, open: &[Question], asked: usize, is_running: bool) {
    if open.is_empty() && asked == 0 {
        stdio::tell(&format!("{session} waits for no answer\n"));
    } else if is_running {
        // The process that drives it asks at its own terminal, or parks the question and ends.
        stdio::tell("a process drives this session: answer there, or wait until it has ended\n");
    } else if let Some(command) =
        Naming::of(settings).resume(session).filter(|_| !settings.quiet && !open.is_empty())
    {
        let ids = open.iter().map(|question| question.id.as_str()).collect::<Vec<_>>().join(",");
        stdio::tell(&format!("allow: {command} --allow {ids}\ndeny:  {command} --deny {ids}\n"));
    }
}
