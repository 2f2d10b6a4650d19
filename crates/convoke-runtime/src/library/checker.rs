//! Asks the interpreter what a source says of itself. The same source is asked about once: what comes out
//! depends on nothing else.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use convoke_sandbox::HelperPath;
use convoke_script::{GuestMessage, Meta, Problem};
use sha2::{Digest, Sha256};

use super::LibraryError;
use crate::interpreter::{self, InterpreterError};

/// Sources that are remembered at once.
const MOST_KNOWN: usize = 1_000;

/// Asks the interpreter what a source says of itself.
#[derive(Clone)]
pub struct Checker {
    asks: Arc<Asks>,
    known: Arc<Mutex<HashMap<[u8; 32], Checked>>>,
}

type Asks =
    dyn Fn(String) -> Pin<Box<dyn Future<Output = Result<GuestMessage, String>> + Send>> + Send + Sync;

/// What the interpreter says of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checked {
    /// It can be run.
    Sound {
        /// What it says of itself.
        meta: Meta,
        /// What is odd about it, but no obstacle.
        warnings: Vec<Problem>,
        /// What will go wrong once the program comes there.
        slips: Vec<Problem>,
    },
    /// It cannot be run.
    Unsound {
        /// Everything that is wrong with it, in the order it stands there.
        problems: Vec<Problem>,
    },
}

impl Checker {
    /// Asks by this.
    pub fn new<F>(asks: impl Fn(String) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<GuestMessage, String>> + Send + 'static,
    {
        Self { asks: Arc::new(move |source| Box::pin(asks(source))), known: Arc::default() }
    }

    /// Asks an interpreter in a process of its own, which is this helper.
    pub fn of(helper: HelperPath) -> Self {
        Self::new(move |source| {
            let helper = helper.clone();
            async move {
                match interpreter::check(&helper, &source).await {
                    // A source that the interpreter cannot read to its end cannot be run.
                    Err(error @ (InterpreterError::Deadline { .. } | InterpreterError::Died { .. })) => {
                        let problem = Problem { message: error.to_string(), place: None };
                        Ok(GuestMessage::Unsound { problems: vec![problem] })
                    }
                    told => told.map_err(|error| error.to_string()),
                }
            }
        })
    }

    /// What the interpreter says of this source.
    pub async fn check(&self, source: &str) -> Result<Checked, LibraryError> {
        let key: [u8; 32] = Sha256::digest(source.as_bytes()).into();
        if let Some(checked) = self.known().get(&key) {
            return Ok(checked.clone());
        }
        let checked = match (self.asks)(source.to_owned()).await {
            Ok(GuestMessage::Sound { meta, warnings, slips }) => Checked::Sound { meta, warnings, slips },
            Ok(GuestMessage::Unsound { problems }) => Checked::Unsound { problems },
            Ok(GuestMessage::Confused { why }) => return Err(LibraryError::Unchecked { why }),
            Ok(GuestMessage::Stepped(_)) => {
                let why = "the interpreter ran it although it was only to be checked".to_owned();
                return Err(LibraryError::Unchecked { why });
            }
            Err(why) => return Err(LibraryError::Unchecked { why }),
        };
        // What has no place may have other reasons than the source.
        if let Checked::Unsound { problems } = &checked
            && problems.iter().any(|problem| problem.place.is_none())
        {
            return Ok(checked);
        }
        let mut known = self.known();
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        known.insert(key, checked.clone());
        Ok(checked)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<[u8; 32], Checked>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Checker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Checker")
    }
}

/// The SHA-256 of a source, in hexadecimal.
pub fn source_digest(source: &str) -> String {
    Sha256::digest(source.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
