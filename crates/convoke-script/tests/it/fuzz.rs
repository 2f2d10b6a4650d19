//! Two things that must hold for every source, tried on sources made by dice: scripts are refused or run to a
//! typed end, and `meta` is read exactly when it is a literal. `examples/fuzz.rs` runs the same for as long
//! as one likes.

use convoke_script::{GuestMessage, HostMessage, Interpreter, Limits};

use crate::attacks::families;
use crate::compose::composed;
use crate::corpus::scripts;
use crate::drive::{End, Order, guarded, run, start};
use crate::mutate::{Dice, damaged, meta_source};
use crate::stub::{self, Mode};

/// What scripts are damaged into others.
pub(crate) fn seeds() -> Vec<String> {
    let mut seeds: Vec<String> = scripts().into_iter().map(|script| script.source).collect();
    let short = |source: &String| source.len() < 4_000;
    for (family, attacks) in families() {
        if matches!(
            family.as_str(),
            "syntax" | "metas" | "crossing" | "constructors" | "pollution" | "ambient"
        ) {
            seeds.extend(attacks.into_iter().map(|attack| attack.source).filter(short));
        }
    }
    seeds
}

fn small() -> Limits {
    Limits { heap_bytes: 16 << 20, ticks: 60, pending: 500, log_lines: 500, ..Limits::default() }
}

fn is_sound(source: &str) -> Result<bool, String> {
    match Interpreter::new().hear(HostMessage::Check { source: source.to_owned(), limits: small() }) {
        GuestMessage::Sound { meta, .. } if meta.name.is_empty() || meta.description.is_empty() => {
            Err(format!("sound: {meta:?}"))
        }
        GuestMessage::Sound { .. } => Ok(true),
        GuestMessage::Unsound { problems } if problems.is_empty() => {
            Err("refused without a reason".to_owned())
        }
        GuestMessage::Unsound { .. } => Ok(false),
        other => Err(format!("{other:?}")),
    }
}

/// One script: whether it was sound, or what is wrong with the interpreter. Of four, two are scripts that
/// were damaged, one is a program that was composed, and one is such a program, damaged.
pub(crate) fn script_case(seeds: &[String], seed: u64, case: u64) -> Result<bool, String> {
    let mut dice = Dice::of_case(seed, case);
    let whole = dice.below(4) == 0;
    let source = if whole {
        composed(&mut dice)
    } else if dice.once_in(3) {
        let program = composed(&mut dice);
        damaged(&[program], &mut dice)
    } else {
        damaged(seeds, &mut dice)
    };
    let shown = source.clone();
    let verdict = guarded("a script", move || {
        let sound = is_sound(&source)?;
        if whole && !sound {
            return Err("a program that was composed is refused".to_owned());
        }
        let mut begin = start(&source);
        begin.limits = small();
        begin.budget_total = dice.once_in(2).then_some(20_000);
        let mode = if dice.once_in(2) { Mode::Half } else { Mode::Ok };
        let go = |begin, order| run(begin, order, 200, |call| stub::answer(call, mode));
        let ran = go(begin.clone(), Order::Shuffled(case));
        if sound == matches!(ran.end, End::Unsound(_)) {
            return Err(format!("checked as sound: {sound}, and yet {:?}", ran.end));
        }
        if case.is_multiple_of(8) && go(begin, Order::Shuffled(case)) != ran {
            return Err("the same answers gave another program".to_owned());
        }
        Ok(sound)
    });
    verdict
        .and_then(|inner| inner)
        .map_err(|why| format!("seed {seed}, case {case}: {why}\n--- source\n{shown}\n---"))
}

/// One literal for `meta`: whether it was allowed, or what is wrong with the check.
pub(crate) fn meta_case(seed: u64, case: u64) -> Result<bool, String> {
    let mut dice = Dice::of_case(seed, case);
    let (mut source, allowed) = meta_source(&mut dice);
    // Every fourth one is damaged too; whether it is allowed is then
    // not known, but it must be read or refused.
    let known = !case.is_multiple_of(4);
    if !known {
        source = damaged(&[source], &mut dice);
    }
    let shown = source.clone();
    let verdict = guarded("a literal", move || {
        let sound = is_sound(&source)?;
        if known && sound != allowed { Err(format!("allowed: {allowed}, sound: {sound}")) } else { Ok(sound) }
    });
    verdict
        .and_then(|inner| inner)
        .map_err(|why| format!("seed {seed}, case {case}: {why}\n--- source\n{shown}\n---"))
}

fn many(what: &str, cases: u64, one: impl Fn(u64) -> Result<bool, String>) {
    let mut sound = 0;
    for case in 0..cases {
        match one(case) {
            Ok(true) => sound += 1,
            Ok(false) => {}
            Err(wrong) => panic!("{wrong}"),
        }
    }
    println!("{what}: {cases} cases, {sound} of them sound");
    assert!(sound > cases / 20 && sound < cases, "{sound} of {cases} are sound: nothing was tried");
}

#[test]
fn damaged_scripts_are_refused_or_run_to_a_typed_end() {
    let seed = 20_261_116;
    let seeds = seeds();
    many(&format!("scripts, seed {seed}"), 400, |case| script_case(&seeds, seed, case));
}

#[test]
fn meta_is_read_exactly_when_it_is_a_literal() {
    let seed = 20_261_117;
    many(&format!("meta, seed {seed}"), 600, |case| meta_case(seed, case));
}
