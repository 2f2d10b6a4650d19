//! What has been granted, and what that covers. Pure.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::writes::WritePath;

/// Places that may be written.
#[derive(Debug, Default)]
pub(super) struct Claims {
    single: HashSet<PathBuf>,
    whole: HashSet<PathBuf>,
}

impl Claims {
    /// Takes places in.
    pub(super) fn add(&mut self, places: impl IntoIterator<Item = WritePath>) {
        for place in places {
            if place.whole { &mut self.whole } else { &mut self.single }.insert(place.path);
        }
    }

    /// Whether a place is among them, or lies in one that is granted whole.
    pub(super) fn cover(&self, place: &WritePath) -> bool {
        (!place.whole && self.single.contains(&place.path))
            || (!self.whole.is_empty() && place.path.ancestors().any(|above| self.whole.contains(above)))
    }

    /// Takes all of them back.
    pub(super) fn clear(&mut self) {
        self.single.clear();
        self.whole.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(path: &str, whole: bool) -> WritePath {
        WritePath { path: path.into(), whole }
    }

    #[test]
    fn a_whole_directory_covers_what_is_below_it_and_a_single_place_covers_itself() {
        let mut claims = Claims::default();
        claims.add([place("a/b", true), place("c", false)]);
        for (path, whole, covered) in [
            ("a/b", true, true),
            ("a/b", false, true),
            ("a/b/c/d", true, true),
            ("a", false, false),
            ("a/bc", false, false),
            ("c", false, true),
            ("c", true, false),
            ("c/d", false, false),
        ] {
            assert_eq!(claims.cover(&place(path, whole)), covered, "{path} {whole}");
        }
        claims.clear();
        assert!(!claims.cover(&place("c", false)));
        claims.add([place("", true)]);
        assert!(claims.cover(&place("x/y", true)));
    }
}
