//! How text is kept: short text in its row, long text once, under its digest. No I/O.

use sha2::{Digest, Sha256};

use crate::{Batch, Changed, Error, KeyedInput};

/// Text longer than this many bytes is stored once, as a blob, and referred to by its SHA-256.
pub const BLOB_ABOVE: usize = 64 * 1024;

/// Text on its way into a row: exactly one of the two columns is filled.
pub(crate) struct Stored<'a> {
    pub(crate) inline: Option<&'a str>,
    pub(crate) digest: Option<String>,
    text: &'a str,
}

impl<'a> Stored<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        if text.len() <= BLOB_ABOVE {
            Self { inline: Some(text), digest: None, text }
        } else {
            Self { inline: None, digest: Some(digest(text)), text }
        }
    }

    /// The digest and the text, if this is to be a blob.
    pub(crate) fn blob(&self) -> Option<(&str, &'a str)> {
        self.digest.as_deref().map(|digest| (digest, self.text))
    }
}

/// The SHA-256 of a text, in hexadecimal digits.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses text that not every store can keep. JSON writes NUL as an escape, so no legal event has one.
pub(crate) fn check_batch(batch: &Batch) -> Result<(), Error> {
    check("an event", batch.events.iter())?;
    check("an acknowledged key", batch.acks.iter())?;
    check("a summary", batch.summary.iter())?;
    check("a result", batch.results.iter().flat_map(|(key, json)| [key, json]))?;
    batch.inputs.iter().try_for_each(check_input)
}

pub(crate) fn check_input(input: &KeyedInput) -> Result<(), Error> {
    check("an input", [&input.key, &input.body])
}

pub(crate) fn check_changed(changed: &Changed) -> Result<(), Error> {
    check("the state of a shared stream", [&changed.state])?;
    check("an event", &changed.events)
}

fn check<'a>(what: &'static str, texts: impl IntoIterator<Item = &'a String>) -> Result<(), Error> {
    if texts.into_iter().any(|text| text.as_bytes().contains(&0)) {
        Err(Error::BadText { what })
    } else {
        Ok(())
    }
}
