//! The body of a streamed reply: a list of steps, most of them frames, some of them trouble.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use serde_json::json;

use crate::accounts::{Progress, SimClock};
use crate::fault::FaultKind;
use crate::gate::HoldState;
use crate::message::Event;

/// What happens next on a stream.
pub(crate) enum Step {
    /// These bytes are sent.
    Frame(String),
    /// Nothing is sent for this long.
    Pause(Duration),
    /// Nothing is sent until a test says so.
    Hold(Arc<HoldState>),
    /// Nothing is sent any more.
    Stall,
    /// The connection breaks.
    Cut,
    /// The body's `watch` is told how far the reply has come.
    Note(Progress),
}

/// The steps of a reply with these events, under this fault and these holds.
pub(crate) fn steps(events: &[Event], fault: Option<&FaultKind>, holds: &[Arc<HoldState>]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(events.len() + 2);
    let last = events.len() - 1;
    let mut generated = 0;
    for (index, event) in events.iter().enumerate() {
        // What is to happen after more events than there are happens before the last one.
        let due = |after: usize| after.min(last) == index;
        steps.extend(holds.iter().filter(|hold| due(hold.after)).cloned().map(Step::Hold));
        match fault {
            Some(FaultKind::MidStreamError { after, error_type }) if due(*after) => {
                let message =
                    if error_type == "overloaded_error" { "Overloaded" } else { "Internal server error" };
                let error = json!({"type": error_type, "message": message});
                steps.push(Step::Note(Progress::Broken));
                steps.push(Step::Frame(Event::new(json!({"type": "error", "error": error})).frame()));
                return steps;
            }
            Some(FaultKind::CutAfter(after)) if due(*after) => {
                steps.push(Step::Note(Progress::Broken));
                steps.push(Step::Cut);
                return steps;
            }
            Some(FaultKind::Stall(after)) if due(*after) => {
                steps.push(Step::Stall);
                return steps;
            }
            Some(FaultKind::MalformedFrame(after)) if due(*after) => {
                steps.push(Step::Note(Progress::Broken));
                steps.push(Step::Frame(
                    "event: content_block_delta\ndata: {\"type\":\"content_bl\n\n".to_owned(),
                ));
                return steps;
            }
            Some(FaultKind::UnknownEvent(after)) if due(*after) => {
                let event = Event::new(json!({"type": "simulator_novelty", "meaning": {"none": true}}));
                steps.push(Step::Frame(event.frame()));
            }
            Some(FaultKind::Drip(milliseconds)) => {
                steps.push(Step::Pause(Duration::from_millis(*milliseconds)))
            }
            _ => {}
        }
        if index == 0 {
            steps.push(Step::Note(Progress::Began));
        }
        if event.generated > generated {
            generated = event.generated;
            steps.push(Step::Note(Progress::Generated(generated)));
        }
        if index == last {
            steps.push(Step::Note(Progress::Completed));
        }
        steps.push(Step::Frame(event.frame()));
    }
    steps
}

/// A body that goes through the steps, and tells `watch` how far it has come. When the response is over, for
/// whatever reason, `watch` is dropped.
pub(crate) fn body(steps: Vec<Step>, clock: SimClock, watch: impl FnMut(Progress) + Send + 'static) -> Body {
    Body::from_stream(stream::unfold(
        (steps.into_iter(), clock, watch),
        |(mut steps, clock, mut watch)| async move {
            loop {
                match steps.next()? {
                    Step::Frame(text) => return Some((Ok(Bytes::from(text)), (steps, clock, watch))),
                    Step::Pause(time) => clock.pass(time).await,
                    Step::Hold(hold) => hold.pass().await,
                    Step::Stall => std::future::pending().await,
                    Step::Cut => {
                        // Giving way once lets the server write out the frames it still holds.
                        tokio::task::yield_now().await;
                        let error = io::Error::new(io::ErrorKind::ConnectionAborted, "cut on demand");
                        return Some((Err(error), (steps, clock, watch)));
                    }
                    Step::Note(progress) => watch(progress),
                }
            }
        },
    ))
}
