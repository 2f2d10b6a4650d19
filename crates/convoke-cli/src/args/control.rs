//! The flags of `convoke sessions pause|stop|watch|retry`, which are about a session that another process
//! drives or has left. They are parsed here; what they mean is decided in `commands/sessions`.

use clap::Args;

use super::approval::AnswerArgs;
use super::{
    BudgetArgs, ConfineArgs, EditArgs, EndArgs, ResumeArgs, SessionFlags, SettingFlags, TeamArgs,
    TeamHostArgs, TrustArgs, refuse,
};
use crate::failure::Failure;

/// The examples of `convoke sessions --help`.
pub(super) const SESSIONS_EXAMPLES: &str = "\
Examples:
  convoke sessions list --all
  convoke sessions watch s_k3   what another process does
  convoke sessions pause s_k3   it finishes what is under
                                way and ends with code 5
  convoke sessions stop s_k3    the same, code 5 too, and its
                                workflow is recorded as
                                stopped
  convoke sessions retry s_k3   the failed agents of a
                                workflow, and them alone
  convoke resume s_k3           goes on after all of them
  convoke sessions fork s_k3    a new session that begins
                                with what was said";

#[derive(Debug, Args)]
pub(crate) struct ControlArgs {
    /// The session, by any unique prefix of its id, of one of its agents or of its workflow.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct RetryArgs {
    /// The session, by any unique prefix of its id or of its workflow's.
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) confine: ConfineArgs,
    #[command(flatten)]
    pub(crate) trust: TrustArgs,
    #[command(flatten)]
    pub(crate) end: EndArgs,
}

/// The flags of a command that goes on with a session.
type GoOn<'a> = (&'a mut BudgetArgs, &'a mut ConfineArgs, &'a mut TrustArgs, &'a mut EndArgs);

/// Adds what stood before the command to the flags of one that goes on with a session, and makes settings of
/// them. What a session keeps from its beginning is refused.
pub(super) fn go_on(
    before: SessionFlags,
    (budget, confine, trust, end): GoOn<'_>,
) -> Result<SettingFlags, Failure> {
    let SessionFlags { settings, task, end: wanted } = before;
    refuse(settings.agent.first_flag().or(settings.fan_out_args.first_flag()).or(task.first_flag()))?;
    refuse(settings.approval.first_flag().or(settings.team.first_flag()))?;
    *budget = budget.merged(settings.budget);
    *end = std::mem::take(end).merged(wanted);
    *trust = trust.merged(settings.trust);
    let confine = std::mem::take(confine).over(settings.confine)?;
    Ok(SettingFlags { budget: *budget, confine, trust: *trust, ..SettingFlags::default() })
}

/// The settings of a process that drives the teammates of a session. What the session keeps from its
/// beginning is refused.
pub(super) fn host(before: SessionFlags, args: &mut TeamHostArgs) -> Result<SettingFlags, Failure> {
    let SessionFlags { settings, task, end } = before;
    refuse(
        settings.agent.first_flag().or(settings.fan_out_args.first_flag()).or(settings.budget.first_flag()),
    )?;
    refuse(settings.approval.first_flag().or(task.first_flag()).or(end.first_flag()))?;
    refuse(settings.team.kept_flag())?;
    let confine = std::mem::take(&mut args.confine).over(settings.confine)?;
    let trust = args.trust.merged(settings.trust);
    let team = TeamArgs { idle: args.idle.or(settings.team.idle), ..TeamArgs::default() };
    Ok(SettingFlags { confine, trust, team, ..SettingFlags::default() })
}

impl RetryArgs {
    /// What resumes that session with these flags.
    pub(crate) fn resume(&self, session: &str) -> ResumeArgs {
        let Self { budget, confine, trust, end, .. } = self.clone();
        let session = Some(session.to_owned());
        let answers = AnswerArgs::default();
        let edit = EditArgs::default();
        ResumeArgs { session, forgive: false, answers, edit, budget, confine, trust, end }
    }
}
