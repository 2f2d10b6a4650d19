//! What an agent is taught about its server by others of its session, and by what replies say about the
//! cache. It passes on; what follows from it is the kernel's business.

use convoke_kernel::{EndpointLearnt, Input, Learnt};

use super::{CommitExtras, Driver};
use crate::error::Error;

impl Driver {
    /// Takes over what others have learnt, before the request that has room is decided.
    pub(super) async fn take_lessons(&mut self) -> Result<(), Error> {
        let endpoint = self.config.client.endpoint().to_owned();
        if self.agent.lessons().last().is_some_and(|last| last.endpoint != endpoint) {
            let model = self.agent.spec().map(|spec| spec.model.clone()).unwrap_or_default();
            let lacks = Vec::new();
            let said = String::new();
            let how = Learnt::Moved;
            let moved = EndpointLearnt { endpoint, model, lacks, how, said, window: None };
            self.learn(Some(moved)).await?;
        }
        let heard = self.agent.spec().and_then(|spec| self.session.lessons.heard(&spec.model));
        self.learn(heard).await
    }

    /// Records that the server ignores cache marks, once that shows. Only what was sent can be ignored.
    pub(super) async fn notice_ignored(&mut self, marked: bool) -> Result<(), Error> {
        let model = self.agent.spec().filter(|_| marked).map(|spec| spec.model.clone());
        let ignored = model.and_then(|model| self.session.lessons.ignores_marks(&model));
        self.learn(ignored).await
    }

    async fn learn(&mut self, learnt: Option<EndpointLearnt>) -> Result<(), Error> {
        let Some(learnt) = learnt.map(Box::new) else { return Ok(()) };
        Box::pin(self.commit(Input::Learn { learnt }, CommitExtras::default())).await
    }
}
