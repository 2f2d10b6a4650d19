//! What happens in the session while this process does not drive it: read from its journal and told to the
//! screen.

use convoke_journal::{Filter, LiveOwner, StreamId};
use convoke_terminal::{Screen, ScreenUpdate};

use super::session_loop::SessionLoop;
use crate::catalog::Catalog;
use crate::failure::Failure;
use crate::feed;
use crate::render::heard;

impl SessionLoop {
    /// Tells the screen what is new in the journal. What it has heard already changes nothing there.
    pub(super) async fn pass_on(&mut self) -> Result<(), Failure> {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        let records = feed.read().await?;
        let ledger = feed.ledger().await?;
        for notice in records.iter().filter_map(feed::notice).chain(ledger) {
            if let Some(heard) = heard(notice) {
                let _ = self.screen.send(Screen::Event(heard));
            }
        }
        Ok(())
    }

    /// Looks what another process has done in the session, and whether it still drives it.
    pub(super) async fn look(&mut self) -> Result<(), Failure> {
        let (lead, session) = self.lead()?;
        // Looked at first: what is written before the last one leaves is still shown.
        let filter = Filter { prefix: Some(StreamId::from(&lead).as_str().to_owned()), limit: Some(1) };
        let own = self.journal.options().process.id.clone();
        let is_elsewhere = |owner: Option<&LiveOwner>| owner.is_some_and(|owner| owner.process.id != own);
        let driven =
            self.journal.list(&filter).await?.iter().any(|listing| is_elsewhere(listing.owner.as_ref()));
        let was_watched = std::mem::replace(&mut self.ready.facts.watched, driven);
        if !driven && !was_watched {
            return Ok(());
        }
        self.pass_on().await?;
        if driven && !was_watched {
            self.ready.facts.can_go_on = false;
            self.tell(ScreenUpdate::Facts(Box::new(self.ready.facts.clone())));
            self.note("another process has taken this session up: it is watched here");
        }
        if !driven {
            let catalog = Catalog::load(&self.settings, Some(&self.journal)).await?;
            let facts = &mut self.ready.facts;
            (facts.watched, facts.can_go_on) =
                (false, catalog.find(session.as_str())?.lead().summary.can_go_on);
            self.tell(ScreenUpdate::Facts(Box::new(self.ready.facts.clone())));
            self.note("no other process drives this session any more; you can go on with it here");
        }
        Ok(())
    }
}
