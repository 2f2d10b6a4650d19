//! The flags with which a resume grants what programs lacked: as many agents as a step needs, and twice what
//! was granted of anything else, because what is still to come cannot be known. Pure; a person who pastes
//! them may write another number.

use crate::report::{ProgramReport, Spend};
use crate::settings::{Cap, Unit};

/// What a message says of a model that no cap in dollars can hold.
const NO_PRICE: &str = "no known price";

/// What stands before the number of agents that a fan-out was refused for.
const NEEDS: &str = "needs ";

/// The flags, each with a blank before it; none if no cap stood in the way. `said` is what was said where
/// flat workflows had no room.
pub(crate) fn raised(programs: &[ProgramReport], said: &[&str], spend: &Spend) -> String {
    let mut flags = String::new();
    let steps = programs.iter().filter_map(ProgramReport::waiting_step);
    let refused =
        said.iter().filter(|text| text.contains("--budget-agents")).filter_map(|text| needed(text)).max();
    let wanted = steps.fold(refused.unwrap_or(0), |sum, step| sum.saturating_add(step.agents));
    if wanted > 0 {
        flags.push_str(&format!(" --budget-agents {}", spend.agents.saturating_add(wanted)));
    }
    let said: Vec<&str> =
        programs.iter().flat_map(ProgramReport::shortages).chain(said.iter().copied()).collect();
    for (flag, words, unit, cap) in [
        // The program's own total is the cap on tokens.
        ("--budget-tokens", " tokens is spent", Unit::Tokens, spend.cap_tokens),
        ("--budget-usd", "--budget-usd", Unit::Dollars, spend.cap_nano),
        ("--budget-minutes", "--budget-minutes", Unit::Minutes, spend.cap_ms),
    ] {
        let about = |text: &&&str| text.contains(flag) || text.contains(words);
        let (Some(text), Some(cap)) = (said.iter().find(about), cap) else { continue };
        let unbounded = unit == Unit::Dollars && text.contains(NO_PRICE);
        let cap = Cap((!unbounded).then(|| cap.saturating_mul(2)));
        flags.push_str(&format!(" {flag} {}", unit.show(cap)));
    }
    flags
}

/// How many agents a fan-out needed that was refused.
fn needed(text: &str) -> Option<u32> {
    let after = text.split_once(NEEDS)?.1;
    let digits: String =
        after.chars().take_while(|c| c.is_ascii_digit() || *c == ',').filter(|c| *c != ',').collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use convoke_kernel::FailureKind;

    use super::*;
    use crate::report::{Failed, program_for_tests, spend_for_tests};

    #[track_caller]
    fn check(why: &str, thrown: Option<&str>, declined: bool, expected: &str) {
        let mut program = program_for_tests();
        program.losses[0].why = why.to_owned();
        program.losses[0].failure = why.starts_with("budget: ").then_some(FailureKind::Budget);
        program.failure = thrown.map(|message| Failed { kind: "thrown".into(), message: message.into() });
        program.status = if declined { "declined" } else { "partial" };
        let spend = Spend {
            agents: 3,
            cap_tokens: Some(1_000),
            cap_nano: Some(2_500_000_000),
            cap_ms: Some(90_000),
            ..spend_for_tests()
        };
        assert_eq!(raised(&[program], &[], &spend), expected, "{why} {thrown:?}");
    }

    #[test]
    fn a_refused_fan_out_names_as_many_agents_as_it_needs() {
        let spend = Spend { agents: 3, cap_nano: Some(2_500_000_000), ..spend_for_tests() };
        let refused =
            "needs 1,100 agents, 57 of 60 are left; start fewer or grant a new total with --budget-agents";
        assert_eq!(raised(&[], &[refused], &spend), " --budget-agents 1103");
        let short = "budget: $0.01 of $2.50 is left; grant a new total with --budget-usd";
        assert_eq!(raised(&[], &[refused, short], &spend), " --budget-agents 1103 --budget-usd 5");
    }

    #[test]
    fn a_resume_names_the_cap_that_stood_in_the_way() {
        check("api: overloaded, see --budget-usd", None, false, "");
        check("api: overloaded", None, true, " --budget-agents 550");
        check("budget: $0.01 left; grant a new total with --budget-usd", None, false, " --budget-usd 5");
        check(
            "budget: 3 of 1,000 tokens left; grant a new total with --budget-tokens",
            None,
            false,
            " --budget-tokens 2000",
        );
        check(
            "budget: the time is used up; grant a new total with --budget-minutes",
            None,
            false,
            " --budget-minutes 3",
        );
        check(
            "budget: the model has no known price; leave --budget-usd out",
            None,
            false,
            " --budget-usd none",
        );
        let total = "this agent was not started: the budget of 1000 tokens is spent (1200)";
        check("api: overloaded", Some(total), false, " --budget-tokens 2000");
        check(
            "api: overloaded",
            Some("budget exhausted: grant a new total with --budget-usd"),
            false,
            " --budget-usd 5",
        );
        check("api: overloaded", Some("I have no budget"), false, "");
    }
}
