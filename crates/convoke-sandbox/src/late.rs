//! Paths that take time to find and that need not be known before something is confined by them.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

type Look = Box<dyn FnOnce() -> Vec<PathBuf> + Send>;

/// Paths that are looked for once, when they are first needed; all clones share the answer.
#[derive(Clone)]
pub struct LatePaths(Arc<LazyLock<Vec<PathBuf>, Look>>);

impl LatePaths {
    /// Will be found by this.
    pub fn new(look: impl FnOnce() -> Vec<PathBuf> + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(look))))
    }

    /// The paths. The first call waits until they are found.
    pub fn get(&self) -> &[PathBuf] {
        &self.0
    }
}

impl Default for LatePaths {
    fn default() -> Self {
        Self::new(Vec::new)
    }
}

impl PartialEq for LatePaths {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.get() == other.get()
    }
}

impl Eq for LatePaths {}

impl fmt::Debug for LatePaths {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, out)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn nothing_is_looked_for_before_it_is_needed_and_then_once() {
        let looks = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&looks);
        let paths = LatePaths::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            vec!["/a".into()]
        });
        let other = paths.clone();
        assert_eq!((&paths, looks.load(Ordering::Relaxed)), (&other, 0));
        assert_eq!((paths.get(), other.get()), ([PathBuf::from("/a")].as_slice(), paths.get()));
        assert_eq!(looks.load(Ordering::Relaxed), 1);
    }
}
