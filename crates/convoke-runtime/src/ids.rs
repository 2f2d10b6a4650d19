//! Where ids come from: the machine's randomness, or a counter that a test holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use convoke_kernel::{AgentId, SessionId};

use crate::error::Error;

/// A source of ids.
#[derive(Debug, Clone)]
pub struct Ids(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Random,
    Counting(Arc<AtomicU64>),
}

impl Ids {
    /// Random ids: each one is new.
    pub fn random() -> Self {
        Self(Kind::Random)
    }

    /// Ids in a row, for tests that compare runs.
    pub fn counting(from: u64) -> Self {
        Self(Kind::Counting(Arc::new(AtomicU64::new(from))))
    }

    /// Eighty bits for one id.
    pub fn bits(&self) -> Result<[u8; 10], Error> {
        let mut bits = [0; 10];
        match &self.0 {
            Kind::Random => getrandom::fill(&mut bits).map_err(|e| Error::NoRandomness(e.to_string()))?,
            Kind::Counting(next) => {
                bits[2..].copy_from_slice(&next.fetch_add(1, Ordering::SeqCst).to_be_bytes());
            }
        }
        Ok(bits)
    }

    pub(crate) fn agent(&self) -> Result<AgentId, Error> {
        self.bits().map(AgentId::from_bits)
    }

    pub(crate) fn session(&self) -> Result<SessionId, Error> {
        self.bits().map(SessionId::from_bits)
    }
}
