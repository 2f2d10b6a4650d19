//! The workers: each has a copy of the tree and takes one mutant after the other from its share.

use crate::cargo::{Call, Ended};
use crate::report::Report;
use crate::tree::{self, Tree};
use convoke_mutants::{Mutant, TestCall, apply};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Seconds that a mutant's test may take. One that hangs is red, and said to hang.
const PATIENCE: u64 = 180;

/// Seconds that the named tests of one target may take together without any mutant.
const PATIENCE_WITHOUT: u64 = 900;

/// Where the work is done.
pub(crate) struct Site<'a> {
    pub(crate) root: &'a Path,
    /// The build directory of the tree itself.
    pub(crate) target: &'a Path,
    pub(crate) place: &'a Path,
    pub(crate) lock: &'a File,
}

struct Work<'a> {
    site: &'a Site<'a>,
    report: &'a Report,
    files: BTreeSet<PathBuf>,
    shares: Mutex<Vec<VecDeque<Mutant>>>,
    /// How each named test ended without any mutant, so far.
    without: Mutex<BTreeMap<TestCall, Ended>>,
    /// Held while a target is built for the first time in a copy: only then crates from the registry are
    /// built, and the next worker links them instead of building them again.
    first_build: Mutex<()>,
    red: AtomicUsize,
    /// Something went wrong that is no mutant's doing: the others stop too.
    broken: AtomicBool,
}

/// Runs the mutants, which are in order. Whether all of them are red.
pub(crate) fn run(site: &Site, mutants: Vec<Mutant>, jobs: usize, report: &Report) -> Result<bool, String> {
    let begun = Instant::now();
    let count = mutants.len();
    let jobs = jobs.clamp(1, count.max(1));
    let work = Work {
        site,
        report,
        files: tree::files(site.root)?,
        shares: Mutex::new(shares(mutants, jobs)),
        without: Mutex::default(),
        first_build: Mutex::default(),
        red: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
    };
    report.note(&format!("{count} mutants, {jobs} at a time; logs in {}", site.place.join("logs").display()));
    let work = &work;
    let ended: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|number| scope.spawn(move || work.worker(number))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a worker panicked".into())))
            .collect()
    });
    ended.into_iter().collect::<Result<Vec<()>, String>>()?;
    let red = work.red.load(Ordering::Relaxed);
    report.line(&format!("{red} of {count} red ({} s)", begun.elapsed().as_secs()));
    Ok(red == count)
}

/// Cuts the ordered mutants into as many runs of neighbours as there are workers.
fn shares(mutants: Vec<Mutant>, jobs: usize) -> Vec<VecDeque<Mutant>> {
    let count = mutants.len().max(1);
    let mut shares = vec![VecDeque::new(); jobs];
    for (index, mutant) in mutants.into_iter().enumerate() {
        shares[index * jobs / count].push_back(mutant);
    }
    shares
}

/// The next one of this worker's share, or else the last one of the longest share: it is the farthest from
/// what the other worker is at.
fn next(shares: &mut [VecDeque<Mutant>], number: usize) -> Option<Mutant> {
    let own = shares.get_mut(number).and_then(VecDeque::pop_front);
    own.or_else(|| shares.iter_mut().max_by_key(|share| share.len()).and_then(VecDeque::pop_back))
}

/// What is said of a mutant, and whether it is red.
fn word(ended: Ended) -> (&'static str, bool) {
    match ended {
        Ended::Green => ("STILL GREEN", false),
        Ended::Red | Ended::Hung => ("red", true),
        Ended::Unbuilt => ("DOES NOT BUILD", false),
        Ended::Aborted => ("ABORTED", false),
        Ended::NoPostgres => ("NO POSTGRES", false),
    }
}

impl Work<'_> {
    fn worker(&self, number: usize) -> Result<(), String> {
        let worked = self.work_through(number);
        if worked.is_err() {
            self.broken.store(true, Ordering::Relaxed);
        }
        worked
    }

    fn work_through(&self, number: usize) -> Result<(), String> {
        let place = self.site.place.join((number + 1).to_string());
        let tree = Tree::prepare(&place, self.site.root, &self.files)
            .map_err(|error| format!("the tree could not be copied to {}: {error}", place.display()))?;
        while !self.broken.load(Ordering::Relaxed) {
            let taken = next(&mut self.shares.lock().unwrap_or_else(PoisonError::into_inner), number);
            let Some(mutant) = taken else { break };
            self.one(&tree, number, &mutant).map_err(|error| format!("{}: {error}", mutant.name))?;
        }
        Ok(())
    }

    /// Shows one mutant to its test.
    fn one(&self, tree: &Tree, number: usize, mutant: &Mutant) -> Result<(), String> {
        let log = self.log(&mutant.name);
        let changed = match mutated(tree, mutant) {
            Ok(changed) => changed,
            Err(error) => {
                self.say("DOES NOT APPLY", mutant, &error);
                return Ok(());
            }
        };
        let without = self.without_any(tree, number, mutant)?;
        if without != Ended::Green {
            let (word, why) = match without {
                Ended::NoPostgres => ("NO POSTGRES", "try: apt-get install postgresql".to_owned()),
                _ => (
                    "NOT GREEN",
                    format!("without any mutant, or there is no such test: {}", mutant.test.name),
                ),
            };
            self.say(word, mutant, &why);
            return Ok(());
        }
        let begun = Instant::now();
        let mut originals = Vec::new();
        for (path, text) in &changed {
            originals.push((path, fs::read(path).map_err(|error| error.to_string())?));
            fs::write(path, text).map_err(|error| error.to_string())?;
        }
        let ended = self.tests(tree, &log, &mutant.test, &[&mutant.test.name], mutant.postgres, PATIENCE);
        // Written anew rather than put back with its old time, which cargo would take for already built.
        for (path, original) in originals {
            fs::write(path, original).map_err(|error| format!("it could not be taken back: {error}"))?;
        }
        let ended = ended?;
        let (word, is_red) = word(ended);
        let more = match ended {
            Ended::Red => format!("{} s", begun.elapsed().as_secs()),
            Ended::Hung => format!("hung: over {PATIENCE} s"),
            _ => log.display().to_string(),
        };
        self.red.fetch_add(usize::from(is_red), Ordering::Relaxed);
        self.say(word, mutant, &more);
        Ok(())
    }

    fn say(&self, word: &str, mutant: &Mutant, more: &str) {
        let package = mutant.test.package();
        self.report.line(&format!("{word:<14} {:<40} {package} {} ({more})", mutant.name, mutant.test.name));
    }

    fn log(&self, name: &str) -> PathBuf {
        self.site.place.join("logs").join(format!("{name}.log"))
    }

    fn tests(
        &self,
        tree: &Tree,
        log: &Path,
        test: &TestCall,
        names: &[&str],
        postgres: bool,
        limit: u64,
    ) -> Result<Ended, String> {
        let call = Call { names, postgres, limit, ..self.call(tree, log, test) };
        call.run().map_err(|error| format!("cargo test could not be run: {error}"))
    }

    fn call<'b>(&'b self, tree: &'b Tree, log: &'b Path, test: &'b TestCall) -> Call<'b> {
        let Site { root, place, lock, .. } = *self.site;
        let source = &tree.source;
        let build = &tree.build;
        let selection = &test.selection;
        Call {
            root,
            source,
            build,
            place,
            lock,
            log,
            selection,
            names: &[],
            postgres: false,
            limit: PATIENCE,
        }
    }

    /// Builds a target for the first time in this copy, with what is there already of the crates from the
    /// registry.
    fn build_first(&self, tree: &Tree, log: &Path, test: &TestCall) -> io::Result<()> {
        let _turn = self.first_build.lock().unwrap_or_else(PoisonError::into_inner);
        tree.share(self.site.target)?;
        for entry in fs::read_dir(self.site.place)? {
            tree.share(&entry?.path().join("build"))?;
        }
        self.call(tree, log, test).build(&File::create(log)?).map(drop)
    }

    /// How a mutant's test ends without it: a test that fails anyway says nothing. Those that this worker
    /// needs of the same target are run together, the first time one of them is needed.
    fn without_any(&self, tree: &Tree, number: usize, mutant: &Mutant) -> Result<Ended, String> {
        let known =
            |test: &TestCall| self.without.lock().unwrap_or_else(PoisonError::into_inner).get(test).copied();
        if let Some(ended) = known(&mutant.test) {
            return Ok(ended);
        }
        let alike = |other: &Mutant| {
            other.test.selection == mutant.test.selection && other.postgres == mutant.postgres
        };
        let mut tests = BTreeSet::from([mutant.test.clone()]);
        if let Some(share) = self.shares.lock().unwrap_or_else(PoisonError::into_inner).get(number) {
            tests.extend(share.iter().filter(|other| alike(other)).map(|other| other.test.clone()));
        }
        tests.retain(|test| known(test).is_none());
        let names: Vec<&str> = tests.iter().map(|test| test.name.as_str()).collect();
        let target = mutant.test.selection.join(" ").replace(['-', ' '], "");
        let log = self.log(&format!("without-any-{target}-{}", number + 1));
        let begun = Instant::now();
        self.build_first(tree, &log, &mutant.test)
            .map_err(|error| format!("{}: {error}", tree.build.display()))?;
        let all = self.tests(tree, &log, &mutant.test, &names, mutant.postgres, PATIENCE_WITHOUT)?;
        if all == Ended::Unbuilt {
            return Err(format!("the tree does not build without any mutant: {}", log.display()));
        }
        let selection = mutant.test.selection.join(" ");
        let seconds = begun.elapsed().as_secs();
        let count = names.len();
        self.report.note(&format!("{count} tests of {selection} without any mutant: {all:?} ({seconds} s)"));
        for test in &tests {
            // One that fails does not make the others useless: each is asked for by itself then.
            let names = [test.name.as_str()];
            let ended = match all {
                Ended::Red | Ended::Aborted if tests.len() > 1 => {
                    self.tests(tree, &log, test, &names, mutant.postgres, PATIENCE_WITHOUT)?
                }
                _ => all,
            };
            self.without.lock().unwrap_or_else(PoisonError::into_inner).insert(test.clone(), ended);
        }
        Ok(known(&mutant.test).unwrap_or(all))
    }
}

/// The files that a mutant changes, with their new text. Nothing is written.
fn mutated(tree: &Tree, mutant: &Mutant) -> Result<BTreeMap<PathBuf, String>, String> {
    let mut changed = BTreeMap::new();
    for edit in &mutant.edits {
        let path = tree.source.join(&edit.path);
        let text = match changed.remove(&path) {
            Some(text) => text,
            None => fs::read_to_string(&path).map_err(|error| format!("{}: {error}", edit.path))?,
        };
        let text = apply(&text, edit).map_err(|misfit| format!("{}: {misfit}", edit.path))?;
        changed.insert(path, text);
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutants(count: usize) -> Vec<Mutant> {
        let text = "# breaks: b\n# test: -p one --lib t\nin: x.rs\nfind:\n    a\nput:\n    b\n";
        (0..count).map(|number| Mutant::parse(&format!("m{number}"), text).unwrap()).collect()
    }

    #[test]
    fn a_worker_that_is_done_takes_from_the_end_of_the_longest_share() {
        let mut shares = shares(mutants(5), 2);
        let mut taken = |number: usize| next(&mut shares, number).map(|mutant| mutant.name);
        assert_eq!([taken(0), taken(1), taken(1)], [Some("m0".into()), Some("m3".into()), Some("m4".into())]);
        assert_eq!([taken(1), taken(0), taken(0)], [Some("m2".into()), Some("m1".into()), None]);
    }

    #[test]
    fn every_mutant_is_in_one_share() {
        for (count, jobs) in [(0, 1), (1, 1), (7, 3), (212, 2), (64, 64)] {
            let lengths: Vec<usize> = shares(mutants(count), jobs).iter().map(VecDeque::len).collect();
            assert_eq!(lengths.iter().sum::<usize>(), count);
            assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1, "{lengths:?}");
        }
    }
}
