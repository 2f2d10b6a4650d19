//! The arguments of the runner.

pub(crate) const HELP: &str = "\
Breaks each invariant on purpose, in a copy of the tree, and shows that the test that guards it fails.

  cargo run -p convoke-mutants -- [--list] [--tenth [SEED]] [--jobs N] [-p CRATE]... [NAME...]

  NAME...          those whose name begins so; all without any
  -p CRATE         those whose test is in this crate
  --list           names them and what they break, and runs nothing
  --tenth [SEED]   a tenth of them, drawn at random; the seed is printed, and with it the same are drawn
  --jobs N         how many are run at the same time, each in a copy of the tree of its own (2)

One line for each mutant: `red` is what is wanted, anything else makes the exit code 1.
The copies, their builds and a log for each mutant are kept in target/mutants.";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Help,
    Run(Args),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Args {
    pub(crate) list: bool,
    /// A tenth is asked for, with this seed if one is given.
    pub(crate) tenth: Option<Option<u64>>,
    pub(crate) jobs: usize,
    /// Only mutants whose test is in one of these crates, if there are any.
    pub(crate) packages: Vec<String>,
    pub(crate) names: Vec<String>,
}

pub(crate) fn read(words: impl Iterator<Item = String>) -> Result<Asked, String> {
    let mut args = Args { list: false, tenth: None, jobs: 2, packages: Vec::new(), names: Vec::new() };
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-h" | "--help" => return Ok(Asked::Help),
            "--list" => args.list = true,
            "--tenth" => {
                // The name of a mutant has letters in it, so a number behind `--tenth` is the seed.
                let seed = words.peek().and_then(|next| next.parse().ok());
                args.tenth = Some(seed);
                seed.and_then(|_| words.next());
            }
            "--jobs" => {
                let count =
                    words.next().and_then(|next| next.parse().ok()).filter(|count| (1..=64).contains(count));
                args.jobs = count.ok_or("--jobs needs a number from 1 to 64")?;
            }
            "-p" => args.packages.push(words.next().ok_or("-p needs the name of a crate")?),
            _ if word.starts_with('-') => return Err(format!("unknown option {word}")),
            _ => args.names.push(word),
        }
    }
    Ok(Asked::Run(args))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Asked, String> {
        read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read() {
        let plain = || Args { list: false, tenth: None, jobs: 2, packages: Vec::new(), names: Vec::new() };
        assert_eq!(of(""), Ok(Asked::Run(plain())));
        assert_eq!(
            of("--list spool"),
            Ok(Asked::Run(Args { list: true, names: vec!["spool".into()], ..plain() }))
        );
        assert_eq!(of("--tenth --jobs 3"), Ok(Asked::Run(Args { tenth: Some(None), jobs: 3, ..plain() })));
        assert_eq!(of("--tenth 42"), Ok(Asked::Run(Args { tenth: Some(Some(42)), ..plain() })));
        assert_eq!(
            of("-p one -p two a"),
            Ok(Asked::Run(Args {
                packages: vec!["one".into(), "two".into()],
                names: vec!["a".into()],
                ..plain()
            }))
        );
        assert_eq!(of("--list --help"), Ok(Asked::Help));
        assert!(of("--jobs 0").is_err() && of("--jobs").is_err() && of("--fast").is_err());
    }
}
