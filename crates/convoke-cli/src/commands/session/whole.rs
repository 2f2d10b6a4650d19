//! What a person in a session is told of an answer that is not whole: the same end that a report and a
//! listing would show.

use convoke_journal::Journal;
use convoke_kernel::{EndStatus, SessionId};

use crate::again::Naming;
use crate::catalog::Catalog;
use crate::settings::Settings;

/// That the last answer is not whole, and how to go on. What cannot be read now is said elsewhere.
pub(super) async fn remark(
    settings: &Settings,
    journal: &Journal,
    session: Option<&SessionId>,
) -> Option<String> {
    let catalog = Catalog::load(settings, Some(journal)).await.ok()?;
    let listed = catalog.find(session?.as_str()).ok()?;
    let nothing = listed.losses.lost.is_empty() && listed.losses.refused.is_none();
    if nothing || listed.state().ending().is_some_and(|end| end.status != EndStatus::Partial) {
        return None;
    }
    let way = match listed.way_on(&Naming::of(settings)) {
        Some(command) => format!("; after /quit `{command}` tries just that again"),
        None => String::new(),
    };
    Some(format!("this answer is not whole: {}{way}", listed.not_done()))
}
