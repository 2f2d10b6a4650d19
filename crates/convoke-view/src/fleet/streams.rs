//! What has been heard of each stream: an event that comes twice is taken in once, and one that comes too
//! soon is told by its number. It keeps numbers, never events.

use std::collections::{HashMap, HashSet};

/// The streams that were heard of.
#[derive(Debug, Default)]
pub struct Streams {
    last: HashMap<String, u64>,
    /// Those of which something was not heard.
    marked: HashSet<String>,
}

impl Streams {
    /// Whether the event with this number was not heard before. A number that does not follow the last one
    /// marks the stream.
    pub fn is_new(&mut self, stream: &str, seq: u64) -> bool {
        let due = match self.last.get_mut(stream) {
            Some(last) if seq <= *last => return false,
            Some(last) => std::mem::replace(last, seq).saturating_add(1),
            None => {
                self.last.insert(stream.to_owned(), seq);
                1
            }
        };
        if seq > due {
            self.mark(stream);
        }
        true
    }

    /// Something of this stream was not heard.
    pub(super) fn mark(&mut self, stream: &str) {
        if !self.marked.contains(stream) {
            self.marked.insert(stream.to_owned());
        }
    }

    /// Whether nothing is missing anywhere.
    pub(super) fn are_whole(&self) -> bool {
        self.marked.is_empty()
    }
}
