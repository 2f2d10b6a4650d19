//! Short stable names made from content. Nothing here is random, so that a repeated request gets the same
//! reply.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

/// The digest of several parts; the border between two parts counts.
pub(crate) fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().into()
}

/// The first `length` hexadecimal digits of the digest.
pub fn hex(parts: &[&str], length: usize) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest(parts) {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.truncate(length);
    text
}

/// The digest as a number.
pub(crate) fn number(parts: &[&str]) -> u64 {
    digest(parts).iter().take(8).fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}
