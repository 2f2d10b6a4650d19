//! `convoke sim`: the simulator as a server of its own, for people who want to try a client without a key.
//! Its address is the first line on stdout, every request is a line on stderr.

use convoke_offline::Offline;
use convoke_sim::{EndpointKind, Received, Retention, Script, SimConfig, Simulator, Verdict};
use tokio::signal::unix::{SignalKind, signal};

use super::drive::say;
use crate::args::SimArgs;
use crate::failure::{Exit, Failure};
use crate::named::read_text;
use crate::render::clean;
use crate::settings::Settings;
use crate::stdio::{put, tell};

/// Serves until a signal comes.
pub(crate) async fn run(settings: &Settings, args: SimArgs) -> Result<Exit, Failure> {
    let cannot = |error: std::io::Error| Failure::failed(format!("cannot listen for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let config = match &args.script {
        Some(path) => {
            let unusable =
                |why: String| Failure::usage(format!("the script {} cannot be used: {why}", path.display()));
            let text = read_text(path, &settings.dir).map_err(|error| unusable(error.to_string()))?;
            SimConfig::from(Script::from_json(&text).map_err(|error| unusable(error.to_string()))?)
        }
        None => SimConfig::new(Offline),
    };
    let endpoint = EndpointKind::from(args.guise);
    let models = settings.models.clone();
    let config = SimConfig { endpoint, models, listen: args.listen, keep: Retention::Summaries, ..config };
    let simulator = Simulator::start(config)
        .await
        .map_err(|error| Failure::failed(format!("cannot listen on {}: {error}", args.listen)))?;
    put(&format!("{}\n", simulator.url()))?;
    say(
        settings,
        &format!(
            "point a client at it: ANTHROPIC_BASE_URL={} ANTHROPIC_API_KEY=any; Ctrl-C ends it",
            simulator.url()
        ),
    );
    let mut seen = 0;
    loop {
        tokio::select! {
            requests = simulator.wait_for_requests(seen + 1) => {
                for request in &requests[seen..] {
                    say(settings, &line(request));
                }
                seen = requests.len();
            }
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        }
    }
    tell(&format!("{seen} requests\n"));
    simulator.shutdown().await;
    Ok(Exit::Done)
}

fn line(request: &Received) -> String {
    let Received { index, conversation, position, verdict, fault, .. } = request;
    let verdict = match verdict {
        Verdict::Accepted => "accepted".to_owned(),
        Verdict::Refused { status, message, .. } => format!("refused with {status}: {message}"),
    };
    let fault = fault.as_ref().map(|fault| format!(" · fault {fault:?}")).unwrap_or_default();
    clean(&format!("{} · {conversation} · turn {} · {verdict}{fault}", index + 1, position + 1))
        .replace('\n', " ")
}
