//! The words of where a lead stands. Pure; it is folded in `convoke-view`.

use convoke_view::{Doing, Progress, Waits, count, dollars, first_line, revealed, tokens};

/// A command or a reason takes at most this much of a progress line.
const SHORT: usize = 60;

/// `turn 3 · 2 commands`.
pub(super) fn steps(progress: &Progress) -> String {
    let turn = progress.used.turns + u32::from(progress.doing() == Doing::Asking);
    format!("turn {} · {}", turn.max(1), count(progress.used.commands, "command"))
}

/// `12.3k tokens · $0.04`: what the lead has spent.
pub(super) fn spent(progress: &Progress) -> String {
    format!("{} tokens · {}", tokens(progress.used.tokens()), dollars(progress.used.cost_nano))
}

/// What is under way at this time, in a few words.
pub(super) fn words(progress: &Progress, now: u64, waits: &Waits) -> Option<String> {
    match progress.doing() {
        Doing::Nothing => None,
        Doing::Asking => Some("the model is answering".to_owned()),
        Doing::Running(call) if call.is_command => {
            Some(format!("running: {}", first_line(&call.text, SHORT)))
        }
        Doing::Running(call) => Some(first_line(&call.text, SHORT)),
        Doing::Waiting { until, why } => {
            Some(format!("asking again {}: {}", waits.when(until, now), first_line(why, SHORT)))
        }
        Doing::Asked { what } => {
            Some(format!("waits for your answer ({})", first_line(&revealed(what), SHORT)))
        }
    }
}

/// What a stop has to wait for.
pub(super) fn under_way(progress: &Progress) -> Option<&'static str> {
    match progress.doing() {
        Doing::Asking => Some("the reply under way"),
        Doing::Running(_) => Some("the command under way"),
        Doing::Nothing | Doing::Waiting { .. } | Doing::Asked { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{
        Event, Failure, FailureKind, ModelCalled, ModelFailed, Purpose, Retry, Segment, ToolStarted,
    };

    use super::*;

    #[test]
    fn a_lead_says_where_it_stands_and_what_is_under_way() {
        let mut progress = Progress::new("m");
        progress.used.turns = 2;
        progress.used.commands = 1;
        progress.used.usage.input_tokens = 12_345;
        progress.used.cost_nano = Some(40_000_000);
        let input = Segment::encode(&serde_json::json!({"command": "ls\necho"}));
        let call = ToolStarted { id: "t".into(), name: "bash".into(), input };
        progress.apply(0, &call.into());
        assert_eq!(steps(&progress), "turn 2 · 2 commands");
        assert_eq!(spent(&progress), "12.3k tokens · $0.04");
        assert_eq!(words(&progress, 0, &Waits::default()).unwrap(), "running: ls (+1 line)");
        let failure = Failure {
            kind: FailureKind::Api,
            message: "overloaded".into(),
            retry: Retry::Soon,
            request_id: None,
            unbilled: true,
            refused: None,
        };
        let failed: Event = ModelFailed { call: 1, attempt: 1, failure, retry_at: Some(1_500) }.into();
        progress.apply(0, &failed);
        let asking = "asking again in 2 s: overloaded";
        assert_eq!(words(&progress, 0, &Waits::default()).unwrap(), asking);
        let digest = String::new();
        let purpose = Purpose::Turn;
        let called = ModelCalled { call: 1, attempt: 2, segments: 1, max_tokens: 1, digest, purpose };
        progress.apply(0, &called.into());
        assert_eq!(steps(&progress), "turn 3 · 2 commands");
    }
}
