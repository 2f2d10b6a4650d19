//! Which workflow is to be run.

/// A workflow program: one by its name, or a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    pub(crate) source: WorkflowSource,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkflowSource {
    Named(String),
    Source(String),
}

impl Workflow {
    /// One that comes with Convoke (`review`, `audit`, `migrate`), or one in a directory that
    /// [`SessionBuilder::workflows`](crate::SessionBuilder::workflows) names.
    pub fn named(name: impl Into<String>) -> Self {
        Self { source: WorkflowSource::Named(name.into()) }
    }

    /// A JavaScript source. `docs/workflows.md` says what it may hold.
    pub fn source(source: impl Into<String>) -> Self {
        Self { source: WorkflowSource::Source(source.into()) }
    }
}
