//! The arguments of `convoke session`, and when `convoke` alone means one. They are parsed and laid over one
//! another here; what happens in a session is not decided here.

use clap::Args;

use super::{OutputFormat, PlaceArgs, SessionFlags, SettingFlags, TaskArgs, refuse};
use crate::failure::Failure;

/// The examples of `convoke session --help`.
pub(super) const SESSION_EXAMPLES: &str = "\
Examples:
  convoke                       a session, in a terminal
  convoke session               the same
  convoke session --offline     without a key
  convoke session --plain       for a screen reader
  convoke session s_k3          goes on with one; any unique
                                prefix of its id
  convoke session s_k3 --budget-usd 20
                                and grants a new total
  convoke session s_k3 --fork   a new one that begins with
                                what was said in that one
  convoke sessions list         which there are

In a session: Esc stops safely, Esc again cuts, Ctrl-O
shows all agents, Ctrl-D leaves, /help helps.";

/// A session that is opened or gone on with.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionArgs {
    /// The session to go on with, by any unique prefix of its id; alone: a new one.
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Leave that session as it is and begin a new one with its conversation.
    #[arg(long, requires = "session")]
    pub(crate) fork: bool,
    /// Ignore every remembered result.
    #[arg(long, conflicts_with = "session")]
    pub(crate) fresh: bool,
    #[command(flatten)]
    pub(crate) flags: SettingFlags,
}

/// Whether `convoke` with neither a task nor a command means a session: not where the command line asks for
/// data, for quiet, or for something that only one task has.
pub(super) fn is_meant(place: &PlaceArgs, flags: &SessionFlags) -> bool {
    let task = TaskArgs { fresh: false, ..flags.task.clone() };
    let of_a_task = task.first_flag().or(flags.end.first_flag());
    matches!(place.output, None | Some(OutputFormat::Text)) && !place.quiet && of_a_task.is_none()
}

/// That a session can be shown in the form that was asked for.
pub(super) fn check(place: &PlaceArgs) -> Result<(), Failure> {
    let advice = "`convoke run TASK` gives one task and prints what was asked for";
    match (place.output, place.quiet) {
        (Some(OutputFormat::Json | OutputFormat::Jsonl), _) => {
            Err(Failure::usage("a session is for people: it has no json or jsonl form").hint(advice))
        }
        (_, true) => Err(Failure::usage("--quiet has no meaning for a session").hint(advice)),
        _ => Ok(()),
    }
}

/// Adds what stood before the command to the flags of a session, and makes settings of them. A session that
/// is gone on with keeps what it was started with, as a resumed session does; what it may spend, touch and
/// trust can be said anew.
pub(super) fn settle(before: SessionFlags, args: &mut SessionArgs) -> Result<SettingFlags, Failure> {
    let SessionFlags { settings, mut task, end } = before;
    args.fresh |= std::mem::take(&mut task.fresh);
    if args.fresh && args.session.is_some() {
        refuse(Some("--fresh"))?;
    }
    refuse(task.first_flag().or(end.first_flag()))?;
    let settings = std::mem::take(&mut args.flags).over(settings)?;
    if args.session.is_some() {
        refuse(settings.agent.first_flag().or(settings.fan_out_args.first_flag()))?;
        refuse(settings.approval.first_flag().or(settings.team.kept_flag()))?;
    }
    args.flags = settings.clone();
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::args::{Cli, Command};

    /// What a command line means: `session`, or the name of another command, or what is wrong with it.
    fn meaning(line: &str, has_person: bool) -> String {
        let words = std::iter::once("convoke").chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().split(has_person) {
            Ok((_, Command::Session(args))) => {
                let fork = if args.fork { " fork" } else { "" };
                format!(
                    "session{}{fork}",
                    args.session.map(|session| format!(" {session}")).unwrap_or_default()
                )
            }
            Ok((_, Command::Run(args))) => format!("run {}", args.task.join(" ")).trim().to_owned(),
            Ok((_, other)) => format!("{other:?}").split('(').next().unwrap_or_default().to_owned(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn convoke_alone_is_a_session_where_a_person_sits_and_a_review_elsewhere() {
        let check = |line: &str, here: &str, elsewhere: &str| {
            assert_eq!(
                (meaning(line, true).as_str(), meaning(line, false).as_str()),
                (here, elsewhere),
                "{line:?}"
            );
        };
        check("", "session", "run");
        check("--offline", "session", "run");
        check("--plain --output text --budget-usd 3", "session", "run");
        check("--output json", "run", "run");
        check("--quiet", "run", "run");
        check("--report r.md", "run", "run");
        check("--fresh", "session", "run");
        check("--fresh --offline", "session", "run");
        check("--continue", "run", "run");
        check("session", "session", "session");
        check("find dead code", "run find dead code", "run find dead code");
        check("run", "run", "run");
    }

    #[test]
    fn a_session_is_gone_on_with_by_its_id_and_keeps_what_it_was_started_with() {
        let check = |line: &str, expected: &str| assert_eq!(meaning(line, true), expected, "{line:?}");
        check("session s_k3", "session s_k3");
        check("session s_k3 --fork", "session s_k3 fork");
        check("--budget-usd 20 session s_k3 --idle 5m --plain", "session s_k3");
        check("session --model m", "session");
        check("session --fresh", "session");
        check("--fresh session s_k3", "--fresh has no meaning for this command");
        check("session s_k3 --model m", "--model has no meaning for this command");
        check("--mode off session s_k3", "--mode has no meaning for this command");
        check("session s_k3 --no-team", "--no-team has no meaning for this command");
        check("--report r.md session", "--report has no meaning for this command");
        check("--output json session", "a session is for people: it has no json or jsonl form");
        check("--quiet session", "--quiet has no meaning for a session");
    }

    #[test]
    fn flags_behind_the_command_win_over_those_before_it() {
        let line = ["convoke", "--budget-usd", "5", "--effort", "low", "session", "--budget-usd", "7"];
        let (globals, command) = Cli::try_parse_from(line).unwrap().split(true).unwrap();
        let Command::Session(args) = command else { panic!("{command:?}") };
        for flags in [&globals.settings, &args.flags] {
            assert_eq!(flags.budget.budget_usd.unwrap().0, Some(7_000_000_000));
            assert_eq!(flags.agent.effort.as_deref(), Some("low"));
        }
    }

    #[test]
    fn a_fork_needs_the_session_that_it_begins_with() {
        let error = Cli::try_parse_from(["convoke", "session", "--fork"]).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::MissingRequiredArgument);
    }
}
