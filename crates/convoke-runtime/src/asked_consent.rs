//! Whether there is consent to a workflow, flat or program. Consent that was given beforehand is named; where
//! there is none, a person is asked, and without a person the answer is no.

use convoke_kernel::{Consent, ConsentBasis, NO_CONSENT, ToolResult};

use crate::asker::Question;
use crate::children::Parent;
use crate::stop::StopLevel;

/// What came of asking for consent.
pub(crate) enum ConsentAnswer {
    /// There is consent, and this is what it rests on.
    By(&'static str),
    /// There is none, and this is the result of the call.
    No(ToolResult),
    /// A stop was requested before there was an answer.
    Stopped,
}

/// Finds out whether there is consent. `question` is worked out only where a person is really asked.
pub(crate) async fn agreed(
    parent: &Parent,
    consent: Consent,
    question: impl Future<Output = Question>,
) -> ConsentAnswer {
    let no = || ConsentAnswer::No(ToolResult::refused(NO_CONSENT));
    match consent {
        Consent::Given(ConsentBasis::Mode) => return ConsentAnswer::By("orchestration mode"),
        Consent::Given(ConsentBasis::Word) => return ConsentAnswer::By("the person's request"),
        Consent::Given(ConsentBasis::Flag) => return ConsentAnswer::By("--workflow"),
        Consent::Given(ConsentBasis::Command) => return ConsentAnswer::By("the person's command"),
        Consent::Missing => {}
    }
    let Some(asker) = &parent.config.asker else { return no() };
    let mut stop = parent.stop.clone();
    tokio::select! {
        agrees = async { asker.agrees(question.await).await } => if agrees { ConsentAnswer::By("the person's \
            answer") } else { no() },
        _ = stop.above(StopLevel::Run) => ConsentAnswer::Stopped,
    }
}
