//! A workflow that a person calls in a session by `/NAME words`: found, planned and put as a question by the
//! rules of the command line.

use convoke_journal::Journal;
use convoke_runtime::Library;
use serde_json::Value;

use super::chosen::Chosen;
use super::planned::{children, first_time, plan};
use super::run::{input, text};
use super::{Lookup, agree};
use crate::commands::plan::past;
use crate::estimate::seen_costs;
use crate::failure::Failure;
use crate::settings::{ModelSource, Settings};

/// A workflow that can be begun.
pub(crate) struct Called {
    /// How people read the call.
    pub(crate) text: String,
    /// The call's input.
    pub(crate) input: Value,
    /// What a person is to agree to first, line by line.
    pub(crate) question: Option<Vec<String>>,
    /// What is said before the first paid request of a directory.
    pub(crate) first: Option<String>,
}

/// Finds the workflow of this name in the library of a session, to be called with these words.
pub(crate) async fn called(
    settings: &Settings,
    source: &ModelSource,
    library: Library,
    journal: &Journal,
    (name, words): (&str, &str),
) -> Result<Called, Failure> {
    let lookup = Lookup::of(settings)?;
    let chosen = Chosen::find(&lookup, &library, name).await?;
    let value = (!words.is_empty()).then(|| Value::String(words.to_owned()));
    let (sessions, is_first) = past(settings, source, Some(journal)).await?;
    let plan =
        plan(settings, source, library.clone(), &chosen, value.as_ref(), &seen_costs(&sessions)).await?;
    let children = children(settings, &library, &plan).await;
    let is_asked = agree::is_to_be_asked(settings, &chosen, &plan, &children);
    Ok(Called {
        text: text(&chosen, value.as_ref()),
        question: is_asked.then(|| agree::rows(&chosen, &plan, &children, WIDE)),
        first: is_first.then(|| first_time(settings, &chosen, &plan)),
        input: input(&chosen, value),
    })
}

/// The screen breaks lines itself.
const WIDE: usize = 1_000;
