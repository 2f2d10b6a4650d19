//! Runs mutants: `cargo run -p convoke-mutants -- --help` says how, `tests/mutants/README.md` what it means.

mod args;
mod cargo;
mod report;
mod tree;
mod work;

use args::{Args, Asked};
use convoke_mutants::{Mutant, in_order, read_all, tenth};
use report::Report;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let report = Report::default();
    let asked = match args::read(std::env::args().skip(1)) {
        Ok(Asked::Help) => {
            report.line(args::HELP);
            return ExitCode::SUCCESS;
        }
        Ok(Asked::Run(args)) => args,
        Err(error) => {
            report.note(&format!("mutants: {error}; try --help"));
            return ExitCode::from(2);
        }
    };
    match run(&asked, &report) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            report.note(&format!("mutants: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Whether every chosen mutant is red. The error is what kept it from being known.
fn run(args: &Args, report: &Report) -> Result<bool, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root =
        here.join("../../..").canonicalize().map_err(|error| format!("{}: {error}", here.display()))?;
    let mut mutants = chosen(args, read_all(&root.join("tests/mutants"))?, report)?;
    if args.list {
        for mutant in &mutants {
            report.line(&format!("{:<40} {}", mutant.name, mutant.breaks));
        }
        return Ok(true);
    }
    in_order(&mut mutants);
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |named| root.join(named));
    let place = target.join("mutants");
    let unmade = |error: std::io::Error| format!("{}: {error}", place.display());
    fs::create_dir_all(place.join("logs")).map_err(unmade)?;
    let lock =
        File::options().read(true).append(true).create(true).open(place.join("lock")).map_err(unmade)?;
    lock.try_lock().map_err(|_| format!("another run of the mutants is at work in {}", place.display()))?;
    work::run(
        &work::Site { root: &root, target: &target, place: &place, lock: &lock },
        mutants,
        args.jobs,
        report,
    )
}

/// Those that the arguments name, or all; of them a tenth if that was asked for.
fn chosen(args: &Args, all: Vec<Mutant>, report: &Report) -> Result<Vec<Mutant>, String> {
    if let Some(unknown) =
        args.names.iter().find(|name| !all.iter().any(|m| m.name.starts_with(name.as_str())))
    {
        return Err(format!("no mutant's name begins with '{unknown}'; --list shows them all"));
    }
    let named = |mutant: &Mutant| {
        args.names.is_empty() || args.names.iter().any(|name| mutant.name.starts_with(name))
    };
    let tested = |mutant: &Mutant| {
        args.packages.is_empty() || args.packages.iter().any(|p| p == mutant.test.package())
    };
    let mutants: Vec<Mutant> = all.into_iter().filter(|mutant| named(mutant) && tested(mutant)).collect();
    if mutants.is_empty() {
        return Err("there is no such mutant; --list shows them all".to_owned());
    }
    let Some(seed) = args.tenth else { return Ok(mutants) };
    // What the standard library seeds its hash maps with: random, and no dependency.
    let seed = seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000);
    report.note(&format!("a tenth of the mutants, seed {seed} (again: --tenth {seed})"));
    Ok(tenth(mutants, seed))
}
