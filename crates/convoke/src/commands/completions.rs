//! `convoke completions SHELL`: the completion script of a shell, on stdout.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::{Exit, Failure};
use crate::stdio;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "convoke", &mut script);
    stdio::put(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
