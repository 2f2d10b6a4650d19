//! `convoke completions SHELL`: the completion script of a shell, on stdout.

use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::{Exit, Failure};
use crate::stdio;

/// Prints the script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut completed(Cli::command()), "convoke", &mut script);
    stdio::put(&living(args.shell, &String::from_utf8_lossy(&script)))?;
    Ok(Exit::Done)
}

/// The script with what it cannot know: runs, workflows, models and members of teams are asked for when Tab
/// is pressed. Where there are none, what the script knows is offered.
fn living(shell: Shell, script: &str) -> String {
    match shell {
        Shell::Bash => {
            let script = script.replace("complete -F _convoke ", "complete -F _convoke_living ");
            format!("{BASH}{script}")
        }
        Shell::Zsh => {
            // From the second Tab on zsh calls the function that is called like the file, so that one has to
            // ask.
            let (begin, rest) = script.split_once('\n').unwrap_or((script, ""));
            format!("{begin}\n{ZSH}{}", rest.replace("\n_convoke() {", "\n_convoke_known() {"))
        }
        Shell::Fish => {
            // What stands behind a flag is offered by that flag's own line.
            let is_asked = |line: &str| ASKED.iter().any(|flag| line.contains(&format!(" -l {flag} ")));
            let line = |line: &str| match is_asked(line) {
                true => format!("{line} -a '(__fish_convoke_living)'\n"),
                false => format!("{line}\n"),
            };
            format!("{}{FISH}", script.lines().map(line).collect::<String>())
        }
        _ => script.to_owned(),
    }
}

/// The flags whose values are asked for.
const ASKED: [&str; 4] = ["model", "worker-model", "session", "only"];

const BASH: &str = r#"_convoke_living() {
    local IFS=$'\n'
    COMPREPLY=($(convoke __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null))
    if [ "${#COMPREPLY[@]}" -eq 0 ]; then
        IFS=$' \t\n'
        _convoke "$@"
    fi
}

"#;

const ZSH: &str = r#"
_convoke() {
    local -a found
    found=(${(f)"$(convoke __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null </dev/null)"})
    if (( ${#found} )); then
        compadd -V convoke -a found
    else
        _convoke_known "$@"
    fi
}
"#;

const FISH: &str = r#"
function __fish_convoke_living
    set -l words (commandline -opc) (commandline -ct)
    convoke __complete fish $words[2..-1] 2>/dev/null </dev/null
end
complete -c convoke -k -a '(__fish_convoke_living)'
"#;

/// The command line as far as it can be completed: without the words of a task that stands where a command
/// could. The script for zsh takes the first of them for the command, and then knows no command at all.
fn completed(whole: Command) -> Command {
    let kept = whole.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set()).cloned();
    let kept: Vec<_> = kept.collect();
    // The scripts know aliases that are shown alone, and what stands behind the old name is completed too.
    let known = |command: &Command| match command.get_name() {
        "sessions" => command.clone().alias(None::<&'static str>).visible_alias("runs"),
        _ => command.clone(),
    };
    let below: Vec<_> = whole.get_subcommands().map(known).collect();
    let about = whole.get_about().cloned().unwrap_or_default();
    Command::new("convoke").version(env!("CARGO_PKG_VERSION")).about(about).args(kept).subcommands(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_the_task_can_be_completed() {
        let whole = Cli::command();
        let command = completed(Cli::command());
        assert_eq!(command.get_positionals().count(), 0);
        assert_eq!(command.get_subcommands().count(), whole.get_subcommands().count());
        let shown = |command: &Command| command.get_opts().filter(|arg| !arg.is_hide_set()).count();
        assert_eq!(shown(&command), shown(&whole));
        completed(Cli::command()).debug_assert();
    }
}
