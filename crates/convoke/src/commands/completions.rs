//! `convoke completions SHELL`: the completion script of a shell, on stdout.

use clap::{Command, CommandFactory};

use crate::args::{Cli, CompletionsArgs};
use crate::failure::{Exit, Failure};
use crate::stdio;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut completed(Cli::command()), "convoke", &mut script);
    stdio::put(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

/// The command line as far as it can be completed: without the words of a task that stands where a command could. The script
/// for zsh takes the first of them for the command, and then knows no command at all.
fn completed(whole: Command) -> Command {
    let kept = whole.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set()).cloned();
    let (kept, below): (Vec<_>, Vec<_>) = (kept.collect(), whole.get_subcommands().cloned().collect());
    let about = whole.get_about().cloned().unwrap_or_default();
    Command::new("convoke").version(env!("CARGO_PKG_VERSION")).about(about).args(kept).subcommands(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_task_can_be_completed() {
        let (whole, command) = (Cli::command(), completed(Cli::command()));
        assert_eq!(command.get_positionals().count(), 0);
        assert_eq!(command.get_subcommands().count(), whole.get_subcommands().count());
        let shown = |command: &Command| command.get_opts().filter(|arg| !arg.is_hide_set()).count();
        assert_eq!(shown(&command), shown(&whole));
        completed(Cli::command()).debug_assert();
    }
}
