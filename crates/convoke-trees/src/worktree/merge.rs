//! What an apply does with one path: a three-way rule over base, checkout and worktree. Pure; the merging of
//! text itself is git's.

/// A file as git stores it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Side {
    /// `0o100644`, `0o100755`, `0o120000` (link) or `0o160000` (submodule).
    pub(super) mode: u32,
    /// The id of its content.
    pub(super) id: String,
}

impl Side {
    fn is_file(&self) -> bool {
        self.mode & 0o170_000 == 0o100_000
    }
}

/// What lies in the checkout at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Here {
    /// Nothing.
    Missing,
    /// A file or a link.
    There(Side),
    /// Something that cannot be replaced, and why.
    Blocked(String),
}

/// What is to be done with a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It already is as the worktree has it.
    Already,
    /// The checkout has it as the base had it: the worktree's version is taken.
    Take,
    /// Both changed the text: to be merged with this mode, and a conflict if that fails.
    Merge(u32),
    /// Refused, and why.
    Conflict(&'static str),
    /// Refused for a reason found on disk.
    Blocked(String),
}

/// The rule. `base` and `work` differ.
pub(super) fn decide(base: Option<&Side>, here: &Here, work: Option<&Side>) -> Step {
    let here = match here {
        Here::Blocked(why) => return Step::Blocked(why.clone()),
        Here::Missing => None,
        Here::There(side) => Some(side),
    };
    if here == work {
        return Step::Already;
    }
    if here == base {
        return Step::Take;
    }
    match (base, here, work) {
        (Some(base), Some(here), Some(work)) => {
            if !(base.is_file() && here.is_file() && work.is_file()) {
                return Step::Conflict("both sides changed it, and it is not text in all of them");
            }
            // Of two sides and a base at least one side agrees with one of the others, for there are only two
            // modes.
            let mode = if here.mode == base.mode { work.mode } else { here.mode };
            Step::Merge(mode)
        }
        (None, Some(_), Some(_)) => Step::Conflict("a different file of this name is already there"),
        (Some(_), None, Some(_)) => Step::Conflict("it was removed here and changed in the worktree"),
        (Some(_), Some(_), None) => Step::Conflict("it was changed here and removed in the worktree"),
        // With two of the three missing, one of the comparisons above held.
        (_, None, None) | (None, None, Some(_)) | (None, Some(_), None) => Step::Already,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: u32 = 0o100_644;
    const EXEC: u32 = 0o100_755;

    fn side(text: &str) -> Option<Side> {
        let (mode, id) = match text.as_bytes().first()? {
            b'+' => (EXEC, &text[1..]),
            b'@' => (0o120_000, &text[1..]),
            _ => (FILE, text),
        };
        Some(Side { mode, id: id.to_owned() })
    }

    #[track_caller]
    fn check(base: &str, here: &str, work: &str, expected: &Step) {
        let here = side(here).map_or(Here::Missing, Here::There);
        assert_eq!(&decide(side(base).as_ref(), &here, side(work).as_ref()), expected);
    }

    #[test]
    fn what_only_the_worktree_changed_is_taken() {
        check("1", "1", "2", &Step::Take);
        check("", "", "2", &Step::Take);
        check("1", "1", "", &Step::Take);
        check("1", "1", "@2", &Step::Take);
        check("1", "1", "+1", &Step::Take);
    }

    #[test]
    fn what_is_already_there_is_left_alone() {
        check("1", "2", "2", &Step::Already);
        check("", "2", "2", &Step::Already);
        check("1", "", "", &Step::Already);
    }

    #[test]
    fn text_changed_on_both_sides_is_merged_with_the_changed_mode() {
        check("1", "2", "3", &Step::Merge(FILE));
        check("1", "+2", "3", &Step::Merge(EXEC));
        check("1", "2", "+3", &Step::Merge(EXEC));
        check("+1", "2", "+3", &Step::Merge(FILE));
    }

    #[test]
    fn everything_else_is_a_conflict() {
        for (base, here, work) in
            [("", "1", "2"), ("1", "", "2"), ("1", "2", ""), ("1", "@2", "3"), ("@1", "@2", "@3")]
        {
            let here = side(here).map_or(Here::Missing, Here::There);
            let step = decide(side(base).as_ref(), &here, side(work).as_ref());
            assert!(matches!(step, Step::Conflict(_)), "{base} {here:?} {work}: {step:?}");
        }
        let blocked = Here::Blocked("a directory".to_owned());
        assert_eq!(decide(None, &blocked, side("1").as_ref()), Step::Blocked("a directory".to_owned()));
    }
}
