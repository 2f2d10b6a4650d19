//! Everything a session needs before work begins in it: the model that answers, what holds commands, what the
//! project brings along, a runtime. A new session has no lead yet; one that is taken up has.

use std::path::Path;

use convoke_journal::Journal;
use convoke_kernel::{AgentId, Confinement};
use convoke_runtime::{Library, Runtime, Start};
use convoke_terminal::Facts;

use super::front::QuestionFront;
use crate::catalog::{Catalog, ListedSession};
use crate::commands::ask::Rules;
use crate::commands::{resume, trust};
use crate::confine;
use crate::failure::Failure;
use crate::keeping::{self, Checkout, LeadTree};
use crate::lead::Lead;
use crate::open::{self, Opened};
use crate::paths;
use crate::render::Look;
use crate::settings::{ModelSource, Settings};

/// A session that can be worked in.
pub(super) struct Ready {
    pub(super) opened: Opened,
    pub(super) source: ModelSource,
    /// The workflows that it can run.
    pub(super) library: Library,
    pub(super) facts: Facts,
    /// What holds its commands.
    pub(super) confinement: Confinement,
    /// What a lead is made of, while there is none.
    pub(super) start: Option<Start>,
    /// When something last happened in it.
    pub(super) last_at: u64,
    /// What a person should know.
    pub(super) remarks: Vec<String>,
}

impl Ready {
    pub(super) fn runtime(&self) -> &Runtime {
        &self.opened.runtime
    }

    pub(super) fn lead(&self) -> Option<&AgentId> {
        self.facts.lead.as_ref()
    }

    /// A session in which nothing has been said yet.
    pub(super) async fn anew(
        settings: &Settings,
        look: Look,
        source: &ModelSource,
        journal: &Journal,
        front: &std::sync::Arc<QuestionFront>,
    ) -> Result<Self, Failure> {
        // Before anything is written or spent: what cannot be held is not begun.
        let held = confine::hold(settings, &settings.dir).await?;
        paths::check_writable(settings)?;
        let project = trust::project(settings, look, &settings.dir)?;
        let confinement = held.confinement;
        let mut start = open::start(settings, source, false, false, confinement.clone())?;
        start.approvals = settings.asking.approvals(true);
        open::give_project(&mut start, project.for_this_session, project.memory.as_ref());
        open::give_team(settings, &mut start, project.memory);
        open::check_prices(settings, source, &start)?;
        let kept = keeping::places_for(settings, &settings.dir).await;
        let asker = front.asker(Rules::of(settings, &start.approvals));
        let opened = open::runtime(
            settings,
            journal.clone(),
            source,
            Some(asker),
            held.confine,
            kept.clone().ok(),
            project.library.clone(),
        )
        .await?;
        let mut remarks = open::assumptions(settings, source);
        if let (Err(why), true, ModelSource::Api { .. }) = (&kept, confinement.sandbox.writes(), source) {
            remarks.push(keeping::cannot_take_back(why));
        }
        let facts = Facts {
            session: None,
            lead: None,
            dir: settings.dir.to_string_lossy().into_owned(),
            model: start.model.clone(),
            effort: start.capabilities.effort.clone(),
            mode: settings.fan_out.mode,
            offline: matches!(source, ModelSource::Offline),
            cap_nano: settings.caps.nano,
            can_go_on: false,
            watched: false,
        };
        let source = source.clone();
        let start = Some(start);
        let library = project.library;
        Ok(Self { opened, source, library, facts, confinement, start, last_at: 0, remarks })
    }

    /// A session that was begun before, named by any unique prefix of its id.
    pub(super) async fn again(
        settings: &Settings,
        look: Look,
        given: &str,
        journal: &Journal,
        front: &std::sync::Arc<QuestionFront>,
    ) -> Result<Self, Failure> {
        let catalog = Catalog::load(settings, Some(journal)).await?;
        let listed: &ListedSession = catalog.find(given)?;
        let lead = listed.lead();
        let told = Lead::read(journal, &lead.agent).await?;
        let summary = &lead.summary;
        let source = resume::source(settings, listed)?;
        // Before anything looks at the directory: it may have been taken away when its content was stored.
        let tree = LeadTree::again(settings, Path::new(&summary.dir)).await?;
        let dir = Path::new(&summary.dir);
        let recorded = told.spec.as_ref().map(|spec| spec.confinement.clone()).unwrap_or_default();
        let held = confine::hold_again(settings, dir, &recorded).await?;
        let kept = keeping::places_for(settings, dir).await;
        let rules = told.spec.as_ref().map(|spec| spec.approvals.clone()).unwrap_or_default();
        let library = trust::library_of(settings, look, &Checkout::of_listed(settings, listed), &told)?;
        let asker = front.asker(Rules::of(settings, &rules));
        let opened = open::runtime(
            settings,
            journal.clone(),
            &source,
            Some(asker),
            held.confine,
            kept.clone().ok(),
            library.clone(),
        )
        .await?;
        let mut remarks: Vec<String> = tree.iter().map(LeadTree::line).collect();
        if let (Err(why), ModelSource::Api { .. }, true) = (&kept, &source, recorded.sandbox.writes()) {
            remarks.push(keeping::cannot_take_back(why));
        }
        let facts = Facts {
            session: Some(listed.session.clone()),
            lead: Some(lead.agent.clone()),
            dir: Checkout::of_listed(settings, listed).to_string_lossy().into_owned(),
            model: summary.model.clone(),
            effort: summary.effort.clone(),
            mode: told.mode.unwrap_or(false),
            offline: matches!(source, ModelSource::Offline),
            cap_nano: None,
            can_go_on: summary.can_go_on,
            watched: lead.owner.is_some(),
        };
        let last_at = listed.updated_at().max(told.last_at);
        let confinement = held.confinement;
        Ok(Self { opened, source, library, facts, confinement, start: None, last_at, remarks })
    }
}
