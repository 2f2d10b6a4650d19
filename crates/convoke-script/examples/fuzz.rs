//! Runs damaged scripts and made-up literals through the interpreter for a while: `fuzz scripts|meta|all
//! SECONDS [SEED] [FROM]`. Prints its seed and, every so often, how far it is; what is wrong is printed with
//! its source and ends it with 1.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a tool for developers that talks to a terminal"
)]
#![expect(dead_code, reason = "it borrows the tests' helpers and needs only some of them")]

#[path = "../tests/it/attacks.rs"]
mod attacks;
#[path = "../tests/it/compose.rs"]
mod compose;
#[path = "../tests/it/corpus.rs"]
mod corpus;
#[path = "../tests/it/drive.rs"]
mod drive;
#[path = "../tests/it/fuzz.rs"]
mod fuzz;
#[path = "../tests/it/mutate.rs"]
mod mutate;
#[path = "../tests/it/stub.rs"]
mod stub;

use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let target = words.next().unwrap_or_else(|| "all".to_owned());
    let seconds = words.next().map_or(60, |word| word.parse().unwrap());
    let seed = words.next().map_or(20_261_116, |word| word.parse().unwrap());
    let from: u64 = words.next().map_or(0, |word| word.parse().unwrap());
    println!("fuzz {target}, {seconds} s, seed {seed}, from case {from}");
    let seeds = fuzz::seeds();
    let mut case = from;
    let mut sound = 0_u64;
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        let script = match target.as_str() {
            "scripts" => true,
            "meta" => false,
            _ => case.is_multiple_of(2),
        };
        let verdict =
            if script { fuzz::script_case(&seeds, seed, case) } else { fuzz::meta_case(seed, case) };
        match verdict {
            Ok(was_sound) => sound += u64::from(was_sound),
            Err(wrong) => {
                println!("{wrong}");
                return ExitCode::FAILURE;
            }
        }
        case += 1;
        if case.is_multiple_of(500) {
            println!("case {case}: {sound} sound");
        }
    }
    println!("{} cases, {sound} of them sound, nothing wrong; seed {seed}", case - from);
    ExitCode::SUCCESS
}
