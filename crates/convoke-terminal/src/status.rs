//! The status line: mode, model, effort, spend against the budget, cache hit rate, agents running. What
//! does not fit is left out from the least important on, never cut in the middle.

use ratatui::text::{Line, Span};

use convoke_view::Fleet;

use crate::screen_update::Facts;
use crate::text::{Theme, Tone, count, cut, dollars, shown, text_columns};

/// What stands between two parts.
const BETWEEN: &str = " · ";
/// What is under way is shortened to make room for the spend, but keeps this many columns.
const LEAST_DOING: usize = 20;

/// A part of the line: what it says, how it is seen, and what goes before it when there is no room for all.
struct Part {
    text: String,
    tone: Tone,
    /// The smaller, the longer it is kept.
    rank: u8,
}

/// The status line at this width. `doing` is what the lead is at.
pub(crate) fn status(
    facts: &Facts,
    fleet: &Fleet,
    doing: Option<&str>,
    width: usize,
    theme: Theme,
) -> Line<'static> {
    let mut spans = Vec::new();
    for part in fitted(parts(facts, fleet, doing, width), width) {
        if !spans.is_empty() {
            spans.push(Span::styled(BETWEEN, theme.style(Tone::Dim)));
        }
        spans.push(Span::styled(part.text, theme.style(part.tone)));
    }
    Line::from(spans)
}

/// Everything there is to say, in the order in which it stands.
fn parts(facts: &Facts, fleet: &Fleet, doing: Option<&str>, width: usize) -> Vec<Part> {
    let spend = spend(facts, fleet, width);
    let model = if facts.offline { "offline".to_owned() } else { one_line(&facts.model) };
    let beside = width.saturating_sub(text_columns(&spend) + text_columns(BETWEEN));
    let room = if beside >= LEAST_DOING { beside } else { width };
    let doing = doing.map(|doing| cut(&one_line(doing), room)).unwrap_or_default();
    let running = u32::try_from(fleet.running()).unwrap_or(u32::MAX);
    let agents = if running > 0 { count(running, "agent") } else { String::new() };
    let effort =
        facts.effort.as_deref().map(|effort| format!("effort {}", one_line(effort))).unwrap_or_default();
    let missed = if fleet.is_whole() { "" } else { "events missed" };
    let (mode, mode_tone) = if facts.mode { ("mode on", Tone::Strong) } else { ("mode off", Tone::Dim) };
    let all = [
        (0, doing, Tone::Busy),
        (4, mode.to_owned(), mode_tone),
        (5, model, Tone::Dim),
        (7, effort, Tone::Dim),
        (1, spend, Tone::Plain),
        (6, cache(fleet), Tone::Dim),
        (3, agents, Tone::Plain),
        (2, missed.to_owned(), Tone::Warn),
    ];
    let parts = all.into_iter().filter(|(_, text, _)| !text.is_empty());
    parts.map(|(rank, text, tone)| Part { text, tone, rank }).collect()
}

/// The parts that fit beside each other, the most important first to be kept.
fn fitted(parts: Vec<Part>, width: usize) -> Vec<Part> {
    let mut by_rank: Vec<&Part> = parts.iter().collect();
    by_rank.sort_by_key(|part| part.rank);
    let mut used = 0;
    let mut last = None;
    for part in by_rank {
        let between = if used == 0 { 0 } else { text_columns(BETWEEN) };
        let longer = used + between + text_columns(&part.text);
        // Nothing less important stands where something more important did not fit.
        if longer > width {
            break;
        }
        used = longer;
        last = Some(part.rank);
    }
    parts.into_iter().filter(|part| last.is_some_and(|last| part.rank <= last)).collect()
}

/// `$0.42 of $5.00`, without the budget where there is none or no room for it.
fn spend(facts: &Facts, fleet: &Fleet, width: usize) -> String {
    let spent = dollars(fleet.cost_nano());
    let cap = fleet.ledger().map_or(facts.cap_nano, |ledger| ledger.caps().nano);
    let whole = cap.map(|cap| format!("{spent} of {}", dollars(Some(cap))));
    let whole = whole.filter(|whole| text_columns(whole) <= width).unwrap_or(spent);
    // A request that was cut off counts as the most it can have cost; the server has not confirmed it.
    let unconfirmed = fleet.ledger().map_or(0, |ledger| ledger.unconfirmed().nano);
    let said = format!("{whole} and up to {} unconfirmed", dollars(Some(unconfirmed)));
    if unconfirmed > 0 && text_columns(&said) + LEAST_DOING <= width { said } else { whole }
}

/// `cache 87 %`: what was read from the cache of all that was sent.
fn cache(fleet: &Fleet) -> String {
    let usage = fleet.usage();
    let all = u128::from(usage.prompt_tokens());
    let hundredfold = u128::from(usage.cache_read_tokens) * 100;
    hundredfold.checked_div(all).map(|percent| format!("cache {percent} %")).unwrap_or_default()
}

fn one_line(text: &str) -> String {
    shown(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use convoke_kernel::{AgentId, BudgetGranted, Caps, Ledger, LedgerEvent, Role, Usage};

    use super::*;
    use convoke_view::{AgentRow, AgentState};

    fn facts() -> Facts {
        Facts { model: "claude-opus-4-8".into(), effort: Some("high".into()), mode: true, ..Facts::default() }
    }

    fn row(number: u8) -> AgentRow {
        AgentRow {
            id: AgentId::from_bits([number; 10]),
            role: Role::Worker,
            label: "w".into(),
            phase: "working".into(),
            run: None,
            state: AgentState::Running,
            act: "running",
            last: String::new(),
            since: 0,
            started_at: 0,
            turns: 0,
            commands: 0,
            tokens: 0,
            cost_nano: Some(0),
            model: "m".into(),
        }
    }

    fn ledger(spent_nano: u64, cap: Option<u64>) -> Ledger {
        let caps = Caps { nano: cap, ..Caps::default() };
        let mut ledger = Ledger::default();
        ledger.apply(&LedgerEvent::from(BudgetGranted { caps, by: "start".into() }), 0);
        let state = serde_json::to_value(&ledger).unwrap();
        let mut state = state.as_object().unwrap().clone();
        state.insert("spent".into(), serde_json::json!({"tokens": 1, "nano": spent_nano}));
        serde_json::from_value(state.into()).unwrap()
    }

    fn fleet(cap: Option<u64>) -> Fleet {
        let mut fleet = Fleet::of_rows((1..=3).map(row).collect(), vec![], vec![], vec![], vec![]);
        fleet.set_ledger(ledger(420_000_000, cap));
        fleet.set_usage(Usage { input_tokens: 13, cache_read_tokens: 87, ..Usage::default() });
        fleet
    }

    fn text(facts: &Facts, fleet: &Fleet, doing: Option<&str>, width: usize) -> String {
        let line = status(facts, fleet, doing, width, Theme { colour: false });
        line.spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn a_status_line_says_everything_where_there_is_room() {
        let check = |facts: &Facts, cap, doing, expected: &str| {
            assert_eq!(text(facts, &fleet(cap), doing, 200), expected)
        };
        let cap = Some(5_000_000_000);
        check(
            &facts(),
            cap,
            None,
            "mode on · claude-opus-4-8 · effort high · $0.42 of $5.00 · cache 87 % · 3 agents",
        );
        check(
            &facts(),
            None,
            None,
            "mode on · claude-opus-4-8 · effort high · $0.42 · cache 87 % · 3 agents",
        );
        let offline = Facts { offline: true, mode: false, effort: None, ..facts() };
        check(
            &offline,
            cap,
            Some("thinking"),
            "thinking · mode off · offline · $0.42 of $5.00 · cache 87 % · 3 agents",
        );
    }

    #[test]
    fn what_does_not_fit_is_left_out_from_the_least_important_on() {
        let check = |width, expected: &str| {
            assert_eq!(
                text(&facts(), &fleet(Some(5_000_000_000)), Some("thinking"), width),
                expected,
                "{width}"
            );
        };
        check(90, "thinking · mode on · claude-opus-4-8 · $0.42 of $5.00 · cache 87 % · 3 agents");
        check(70, "thinking · mode on · claude-opus-4-8 · $0.42 of $5.00 · 3 agents");
        check(50, "thinking · mode on · $0.42 of $5.00 · 3 agents");
        check(40, "thinking · $0.42 of $5.00 · 3 agents");
        check(30, "thinking · $0.42 of $5.00");
        check(10, "thinking");
    }

    #[test]
    fn a_status_line_is_never_wider_than_its_width_and_at_ten_columns_still_says_something() {
        let long = "$ cargo test --workspace --all-targets 漢字漢字 \u{1b}[2J and more";
        for doing in [None, Some("thinking"), Some(long)] {
            for width in 0..120 {
                let line = text(&facts(), &fleet(Some(5_000_000_000)), doing, width);
                assert!(text_columns(&line) <= width, "{width}: {line:?}");
                assert!(width < 10 || !line.is_empty(), "{width}");
                assert!(!line.contains(char::is_control), "{line:?}");
            }
        }
        assert_eq!(text(&facts(), &fleet(Some(5_000_000_000)), None, 10), "$0.42");
    }

    #[test]
    fn a_long_command_leaves_room_for_what_it_costs() {
        let long = "$ cargo test --workspace --all-targets -- --include-ignored";
        let line = text(&facts(), &fleet(Some(5_000_000_000)), Some(long), 50);
        assert!(line.starts_with("$ cargo test") && line.ends_with(" · $0.42 of $5.00"), "{line}");
    }
}
