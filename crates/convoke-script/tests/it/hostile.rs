//! Programs that attack end as they must, within their limits, and the next program does not notice.

use std::time::Instant;

use convoke_script::{ProgramRemark, State};

use crate::attacks::{Attack, families, limits};
use crate::drive::{End, Order, Ran, guarded, run, run_body, start};
use crate::stub::{self, Mode};

/// Answers that are given to one attack at most.
const MOST: usize = 3_000;
/// Characters that people may have to read at most.
const LONGEST_MESSAGE: usize = 20_000;

fn launch(attack: &Attack) -> Result<Ran, String> {
    let mut start = start(&attack.source);
    start.args = Some(serde_json::json!({"some": ["argument"]}));
    start.limits = limits();
    guarded(&attack.name, move || run(start, Order::First, MOST, |call| stub::answer(call, Mode::Ok)))
}

/// What is wrong with how an attack ended.
fn complaints(attack: &Attack, ran: &Ran) -> Vec<String> {
    let state = if let End::State(state) = &ran.end { Some(state) } else { None };
    let mut complaints = Vec::new();
    if !attack.allows(state) {
        let mut ended = format!("{:?}", ran.end);
        ended.truncate(ended.floor_char_boundary(600));
        complaints.push(format!("ended as {ended}, not as one of {:?}", attack.ends));
    }
    if let Some(State::Failed { fault }) = state
        && fault.message.chars().count() > LONGEST_MESSAGE
    {
        complaints.push(format!("a message of {} bytes", fault.message.len()));
    }
    if let End::Unsound(problems) = &ran.end {
        if problems.is_empty() {
            complaints.push("refused without a reason".to_owned());
        }
        for problem in problems {
            let text = problem.place.as_ref().map_or(0, |place| place.text.chars().count());
            if problem.message.chars().count() > LONGEST_MESSAGE || text > 1_000 || problem.message.is_empty()
            {
                complaints.push(format!("a problem of {} and {text} characters", problem.message.len()));
            }
        }
        if problems.len() > 1_000 {
            complaints.push(format!("{} problems", problems.len()));
        }
    }
    let mut lines = 0;
    for said in &ran.said {
        let text = match said {
            ProgramRemark::Log { text } => {
                lines += 1;
                text
            }
            ProgramRemark::Phase { title, .. } => title,
        };
        if text.chars().any(|c| c.is_control() && c != '\t') {
            complaints.push(format!(
                "control characters were said: {:?}",
                text.chars().take(60).collect::<String>()
            ));
        }
        if text.chars().count() > limits().log_chars + 200 {
            complaints.push(format!("{} characters were said at once", text.chars().count()));
        }
    }
    if lines > limits().log_lines + 100 || ran.said.len() > 2 * limits().log_lines + 100 {
        complaints.push(format!("{lines} lines, {} things were said", ran.said.len()));
    }
    complaints
}

fn check_family(family: &str) {
    let (_, attacks) = families().into_iter().find(|(name, _)| name == family).unwrap();
    let mut all = Vec::new();
    let mut run = 0;
    for attack in attacks.iter().filter(|attack| !attack.needs_process) {
        run += 1;
        // Said before, so that a crash of the process shows its cause.
        println!("{family}: {}", attack.name);
        let began = Instant::now();
        match launch(attack) {
            Ok(ran) => all.extend(
                complaints(attack, &ran).into_iter().map(|c| format!("{family}: {}: {c}", attack.name)),
            ),
            Err(gone) => all.push(format!("{family}: {gone}")),
        }
        println!("    {} ms", began.elapsed().as_millis());
        // Whatever that one did, the next program runs as if it had never been.
        let after = guarded("the program after it", || {
            run_body("return [await agent('x'), typeof Array.prototype.map, {}.label]")
        });
        match after {
            Ok(after) if after.value()[1] == "function" => {}
            other => all.push(format!("{family}: after {}: {other:?}", attack.name)),
        }
    }
    assert!(all.is_empty(), "\n{}\n{} of {run} attacks", all.join("\n"), all.len());
}

#[test]
fn no_way_leads_to_a_function_made_of_text() {
    check_family("constructors");
}

#[test]
fn what_everybody_uses_cannot_be_changed() {
    check_family("pollution");
}

#[test]
fn values_do_no_harm_when_they_are_read() {
    check_family("crossing");
}

#[test]
fn programs_that_never_wait_are_ended() {
    check_family("loops");
}

#[test]
fn programs_that_want_all_the_memory_are_ended() {
    check_family("memory");
}

#[test]
fn programs_that_go_too_deep_are_ended() {
    check_family("recursion");
}

#[test]
fn programs_that_ask_or_say_too_much_are_ended() {
    check_family("floods");
}

#[test]
fn there_is_no_world_outside() {
    check_family("ambient");
}

#[test]
fn sources_mean_what_they_seem_to_mean() {
    check_family("syntax");
}

#[test]
fn meta_is_a_literal_and_never_evaluated() {
    check_family("metas");
}

#[test]
fn there_are_as_many_attacks_as_are_claimed_and_their_names_are_their_own() {
    let families = families();
    let all: Vec<&str> =
        families.iter().flat_map(|(_, attacks)| attacks.iter().map(|a| a.name.as_str())).collect();
    let mut unique = all.clone();
    unique.sort_unstable();
    unique.dedup();
    println!("{} attacks in {} families", all.len(), families.len());
    assert_eq!(unique.len(), all.len(), "a name is there twice");
    assert!(all.len() >= 300);
    for (family, attacks) in &families {
        // Hardly anything but native loops may have to be killed.
        let killed = attacks.iter().filter(|a| a.needs_process).count();
        assert!(if family == "native" { killed == attacks.len() } else { killed <= 3 }, "{family}: {killed}");
    }
}
