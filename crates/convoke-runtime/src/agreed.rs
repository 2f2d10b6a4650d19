//! Whether anybody agreed to a workflow, flat or program. Consent that was given beforehand is named; where there is none, a
//! person is asked, and without a person the answer is no.

use convoke_kernel::{By, Consent, NO_CONSENT, ToolResult};

use crate::asker::Question;
use crate::children::Parent;
use crate::stop::StopLevel;

/// What came of asking for consent.
pub(crate) enum Agreed {
    /// There is consent, and this is what it rests on.
    By(&'static str),
    /// There is none, and this is the result of the call.
    No(ToolResult),
    /// Somebody asked to stop before there was an answer.
    Stopped,
}

/// Finds out; `question` is worked out only where a person is really asked.
pub(crate) async fn agreed(parent: &Parent, consent: Consent, question: impl Future<Output = Question>) -> Agreed {
    let no = || Agreed::No(ToolResult::refused(NO_CONSENT));
    match consent {
        Consent::Given(By::Mode) => return Agreed::By("orchestration mode"),
        Consent::Given(By::Word) => return Agreed::By("the person's request"),
        Consent::Given(By::Flag) => return Agreed::By("--workflow"),
        Consent::Given(By::Command) => return Agreed::By("the person's command"),
        Consent::Missing => {}
    }
    let Some(asker) = &parent.config.asker else { return no() };
    let mut stop = parent.stop.clone();
    tokio::select! {
        agrees = async { asker.agrees(question.await).await } => if agrees { Agreed::By("the person's answer") } else { no() },
        _ = stop.above(StopLevel::Run) => Agreed::Stopped,
    }
}
