//! Builds a copy of the tree, runs named tests in it and says how they ended.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// How a run of named tests ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// All of them ran and passed.
    Green,
    /// At least one of them failed, as a test.
    Red,
    /// The build failed.
    Unbuilt,
    /// The tests took too long and were killed.
    Hung,
    /// There is no verdict: the process died, or there is no such test.
    Aborted,
    /// There is no PostgreSQL.
    NoPostgres,
}

/// What is run, and where.
pub(crate) struct Call<'a> {
    pub(crate) root: &'a Path,
    pub(crate) source: &'a Path,
    pub(crate) build: &'a Path,
    /// The runner's directory: git looks for no repository above it.
    pub(crate) place: &'a Path,
    pub(crate) lock: &'a File,
    pub(crate) log: &'a Path,
    pub(crate) selection: &'a [String],
    pub(crate) names: &'a [&'a str],
    pub(crate) postgres: bool,
    /// Seconds.
    pub(crate) limit: u64,
}

/// `timeout` ends with this, or with 128 and the signal by which a stubborn process was killed.
const OUT_OF_TIME: std::ops::RangeInclusive<i32> = 124..=137;

/// `scripts/with-postgres` ends with this if there is no PostgreSQL.
const NO_CLUSTER: i32 = 69;

impl Call<'_> {
    /// Builds, then runs exactly these tests. Two calls of cargo, so that a failed build is never taken for a
    /// failed test and the limit does not pay for the compiler.
    pub(crate) fn run(&self) -> io::Result<Ended> {
        let log = File::create(self.log)?;
        if !self.build(&log)? {
            return Ok(Ended::Unbuilt);
        }
        let mut tests = if self.postgres {
            let mut wrapped = self.command(&self.root.join("scripts/with-postgres").to_string_lossy());
            wrapped.arg("timeout");
            wrapped
        } else {
            self.command("timeout")
        };
        tests.args(["--kill-after=10", &self.limit.to_string(), "cargo", "test"]).args(self.selection);
        tests.args(["--", "--exact"]).args(self.names);
        // Apart from stderr, to which tests write directly and in the middle of a line of results.
        let output = tests.stderr(log.try_clone()?).output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        (&log).write_all(&output.stdout)?;
        Ok(verdict(&said, output.status.code(), self.names))
    }

    /// Builds the tests, and says whether that went well.
    pub(crate) fn build(&self, log: &File) -> io::Result<bool> {
        let mut build = self.command("cargo");
        build.args(["test", "--quiet"]).args(self.selection).arg("--no-run");
        build.stdout(log.try_clone()?).stderr(log.try_clone()?);
        Ok(build.status()?.success())
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.source);
        command.env("CARGO_TARGET_DIR", self.build).env("CARGO_TERM_COLOR", "never").env_remove("RUSTFLAGS");
        // The copy lies inside a repository that ignores it, and is none of that repository's.
        command.env("GIT_CEILING_DIRECTORIES", self.place);
        // What `cargo run` says of the runner is not for the tests, and some build scripts would run again
        // for it.
        for (name, _) in std::env::vars_os() {
            if ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|said| name.to_string_lossy().starts_with(said)) {
                command.env_remove(name);
            }
        }
        // The lock stays held until the last test of an interrupted run has ended: an empty file to read
        // from.
        command.stdin(self.lock.try_clone().map_or_else(|_| Stdio::null(), Stdio::from));
        command
    }
}

/// What the tests said, without taking the exit code's word for it: a test counts as failed or passed only if
/// its own line says so.
fn verdict(said: &str, code: Option<i32>, names: &[&str]) -> Ended {
    let stands = |name: &str, how: &str| said.lines().any(|line| line == format!("test {name} ... {how}"));
    match code {
        Some(NO_CLUSTER) => Ended::NoPostgres,
        Some(code) if OUT_OF_TIME.contains(&code) => Ended::Hung,
        _ if names.iter().any(|name| stands(name, "FAILED")) => Ended::Red,
        Some(0) if names.iter().all(|name| stands(name, "ok")) => Ended::Green,
        _ => Ended::Aborted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_line_of_its_own_is_a_verdict() {
        let names = ["a::one", "a::two"];
        assert_eq!(verdict("test a::one ... ok\ntest a::two ... ok\n", Some(0), &names), Ended::Green);
        assert_eq!(verdict("test a::one ... ok\ntest a::two ... FAILED\n", Some(101), &names), Ended::Red);
        assert_eq!(
            verdict("test a::one ... ok\n", Some(0), &names),
            Ended::Aborted,
            "one of them does not exist"
        );
        assert_eq!(verdict("test a::one ... ok\ntest a::two ... ok\n", Some(101), &names), Ended::Aborted);
        assert_eq!(verdict("test b::one ... FAILED\n", Some(101), &names), Ended::Aborted, "another test");
        assert_eq!(verdict("", None, &names), Ended::Aborted);
        assert_eq!(verdict("", Some(124), &names), Ended::Hung);
        assert_eq!(verdict("", Some(137), &names), Ended::Hung);
        assert_eq!(verdict("", Some(69), &names), Ended::NoPostgres);
    }
}
