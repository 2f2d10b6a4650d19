//! Which file rules make a policy. Landlock can only allow, and what it allows for a directory it allows for
//! everything below, so a hole is made by allowing its neighbours one by one. Pure but for the listing it is
//! given.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::places::{Kind, Places, Spot};
use crate::policy::{Access, LayerSet};

/// What is allowed for a path and all below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Listing alone, where holes below keep the rest away.
    List,
    /// Reading, listing, executing.
    Read,
    /// All of that, and changing.
    Write,
}

/// What is said about single paths; the nearest above a path decides, and `None` is a hole.
pub(crate) type Marks = BTreeMap<PathBuf, Option<Grant>>;

/// Devices that hold nothing and lead to no other process.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What a policy says about single paths. `tree` is what the agent takes for its workspace; `layered` are the
/// caches that have a writable layer.
pub(crate) fn marks(
    places: &Places,
    access: Access,
    set: LayerSet,
    tree: &Path,
    layered: &[PathBuf],
) -> Marks {
    let mut marks = Marks::from([("/".into(), Some(Grant::Read))]);
    let temporary = places.private.join("tmp");
    match set {
        // What exists is kept away by mounts already; what does not exist yet could only be mounted upon
        // later.
        LayerSet::Namespaces => {
            let missing =
                places.hidden.iter().filter(|spot| spot.kind == Kind::Missing && !is_covered(places, spot));
            marks.extend(missing.map(|spot| (spot.path.clone(), None)));
            marks.extend(places.temporary.iter().map(|path| (path.clone(), Some(Grant::Write))));
            marks.insert("/dev".into(), Some(Grant::Write));
            marks.extend(places.home.iter().map(|path| (path.clone(), Some(Grant::Write))));
            marks.extend(layered.iter().map(|path| (path.clone(), Some(Grant::Write))));
        }
        LayerSet::Landlock => {
            marks.extend(["/dev", "/run"].map(|path| (path.into(), None)));
            marks.extend(places.temporary.iter().map(|path| (path.clone(), None)));
            marks.extend(DEVICES.map(|path| (path.into(), Some(Grant::Write))));
            marks.extend(places.hidden.iter().map(|spot| (spot.path.clone(), None)));
            let readable = places.readable.iter().chain(&places.caches);
            marks.extend(readable.map(|spot| (spot.path.clone(), Some(Grant::Read))));
            if access == Access::ReadOnly {
                marks.insert(places.workspace.clone(), Some(Grant::Read));
            }
            marks.insert(temporary, Some(Grant::Write));
            marks.extend(places.home.iter().map(|_| (places.private.join("home"), Some(Grant::Write))));
        }
    }
    marks.insert(tree.to_owned(), Some(Grant::Write));
    if let Some(own) = &places.own_git {
        marks.insert(own.clone(), Some(Grant::Write));
        if set == LayerSet::Landlock {
            marks.insert(super::own_git::programs(&places.private), Some(Grant::Read));
        }
    }
    drop_needless_reads(&mut marks);
    if set == LayerSet::Landlock {
        let masked: Vec<PathBuf> = places.masked.iter().map(|spot| spot.path.clone()).collect();
        let protected =
            |path: &Path| masked.iter().any(|mask| path.starts_with(mask) && !tree.starts_with(mask));
        marks.retain(|path, _| !protected(path));
        marks.extend(masked.into_iter().map(|path| (path, None)));
    }
    marks
}

/// Whether something that shows nothing of the machine is mounted above a place. Then it can never show
/// through there, and a hole would only take rights away from what is mounted.
fn is_covered(places: &Places, missing: &Spot) -> bool {
    let directories = places.hidden.iter().filter(|spot| spot.kind == Kind::Directory).map(|spot| &spot.path);
    let covers: Vec<&Path> = directories
        .chain(&places.home)
        .chain(&places.temporary)
        .map(PathBuf::as_path)
        .chain(places.run.then_some(Path::new("/run")))
        .collect();
    let shown = |path: &Path| {
        let mut spots = places.readable.iter().chain(&places.caches);
        path == places.workspace || spots.any(|spot| spot.path == path)
    };
    let nearest = missing.path.ancestors().skip(1).find(|above| shown(above) || covers.contains(above));
    nearest.is_some_and(|nearest| !shown(nearest))
}

/// What may be read although something above is hidden, but lies in what may be written anyway, such as an
/// environment of Python in the workspace, is part of that and takes nothing away from it.
fn drop_needless_reads(marks: &mut Marks) {
    let read = Some(Grant::Read);
    let above = |path: &Path| {
        path.ancestors().skip(1).find_map(|above| marks.get(above).filter(|mark| **mark != read))
    };
    let needless =
        marks.iter().filter(|(path, mark)| **mark == read && above(path) == Some(&Some(Grant::Write)));
    let needless: Vec<PathBuf> = needless.map(|(path, _)| path.clone()).collect();
    marks.retain(|path, _| !needless.contains(path));
}

/// The rules that make these marks, given how to list a directory.
pub(crate) fn grants(marks: &Marks, list: &mut dyn FnMut(&Path) -> Vec<PathBuf>) -> Vec<(PathBuf, Grant)> {
    let mut grants = Vec::new();
    walk(Path::new("/"), marks.get(Path::new("/")).copied().flatten(), marks, list, &mut grants);
    grants
}

fn walk(
    path: &Path,
    grant: Option<Grant>,
    marks: &Marks,
    list: &mut dyn FnMut(&Path) -> Vec<PathBuf>,
    grants: &mut Vec<(PathBuf, Grant)>,
) {
    let below: Vec<&PathBuf> = marks.keys().filter(|mark| mark.starts_with(path) && *mark != path).collect();
    let hole =
        |mark: &&&PathBuf| marks[**mark] != grant && (marks[**mark].is_none() || grant == Some(Grant::Write));
    match grant {
        // More rights further down are added to those from above, so only fewer make a difference here.
        Some(given) if !below.iter().any(|mark| hole(&mark)) => {
            grants.push((path.to_owned(), given));
            for mark in below {
                if let Some(more) = marks[mark].filter(|more| *more != given) {
                    grants.push((mark.clone(), more));
                }
            }
        }
        Some(_) => {
            grants.push((path.to_owned(), Grant::List));
            for child in list(path) {
                let grant = marks.get(&child).copied().unwrap_or(grant);
                walk(&child, grant, marks, list, grants);
            }
        }
        None => {
            // Only the topmost of each branch: the others are found from there.
            let topmost =
                |mark: &&&PathBuf| !below.iter().any(|other| mark.starts_with(other) && other != *mark);
            let next: Vec<PathBuf> = below.iter().filter(topmost).map(|mark| (*mark).clone()).collect();
            for mark in next {
                walk(&mark, marks[&mark], marks, list, grants);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 12] = [
        "/bin/sh",
        "/etc/passwd",
        "/etc/shadow",
        "/home/me/.ssh/key",
        "/home/me/p/a",
        "/home/me/p/.env",
        "/home/you/x",
        "/home/me/.cargo/bin/cargo",
        "/home/me/.cargo/credentials",
        "/tmp/x",
        "/state/tmp/y",
        "/state/copy/a",
    ];

    fn list(path: &Path) -> Vec<PathBuf> {
        let children = FILES.iter().filter_map(|file| {
            let rest = Path::new(file).strip_prefix(path).ok()?;
            rest.components().next().map(|first| path.join(first))
        });
        let mut children: Vec<PathBuf> = children.collect();
        children.dedup();
        children
    }

    fn check(marks: &[(&str, Option<Grant>)], expected: &[&str]) {
        let marks: Marks = marks.iter().map(|(path, grant)| (PathBuf::from(path), *grant)).collect();
        let mut seen = Vec::new();
        for (path, grant) in grants(&marks, &mut list) {
            let sign = match grant {
                Grant::List => "l",
                Grant::Read => "r",
                Grant::Write => "w",
            };
            seen.push(format!("{sign} {}", path.display()));
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen, expected);
    }

    const R: Option<Grant> = Some(Grant::Read);
    const W: Option<Grant> = Some(Grant::Write);

    #[test]
    fn without_holes_the_root_is_enough() {
        check(&[("/", R), ("/tmp", W), ("/home/me/p", W)], &["r /", "w /home/me/p", "w /tmp"]);
    }

    #[test]
    fn neighbours_of_a_hole_are_allowed_one_by_one() {
        let marks = [("/", R), ("/home/me", None), ("/home/me/p", W), ("/state", None), ("/state/tmp", W)];
        let rules =
            ["l /", "l /home", "r /bin", "r /etc", "r /home/you", "r /tmp", "w /home/me/p", "w /state/tmp"];
        check(&marks, &rules);
    }

    #[test]
    fn a_hole_in_what_may_be_written_or_read_again_stays_a_hole() {
        let marks = [
            ("/", None),
            ("/home/me/p", W),
            ("/home/me/p/.env", None),
            ("/home/me/.cargo", R),
            ("/home/me/.cargo/credentials", None),
        ];
        check(&marks, &["l /home/me/.cargo", "l /home/me/p", "r /home/me/.cargo/bin", "w /home/me/p/a"]);
    }

    #[test]
    fn less_below_more_is_a_hole_too() {
        check(
            &[("/", None), ("/home/me", W), ("/home/me/.ssh", R)],
            &["l /home/me", "r /home/me/.ssh", "w /home/me/.cargo", "w /home/me/p"],
        );
    }

    fn places(workspace: &str, hidden: &[(&str, Kind)], readable: &[&str]) -> Places {
        let spot = |path: &str, kind| Spot { path: path.into(), kind };
        Places {
            workspace: workspace.into(),
            private: "/state".into(),
            hidden: hidden.iter().map(|(path, kind)| spot(path, *kind)).collect(),
            readable: readable.iter().map(|path| spot(path, Kind::Directory)).collect(),
            caches: Vec::new(),
            masked: Vec::new(),
            home: Some("/home/me".into()),
            git: false,
            nested: Vec::new(),
            temporary: vec!["/tmp".into()],
            run: true,
            own_git: None,
        }
    }

    #[test]
    fn what_is_missing_below_something_covered_makes_no_hole_and_elsewhere_it_does() {
        let check = |missing: &str, hole: bool| {
            let hidden = [("/home", Kind::Directory), ("/opt/h", Kind::Directory), (missing, Kind::Missing)];
            let places = places("/home/me/p", &hidden, &["/opt/h/shown"]);
            let marks = marks(&places, Access::Workspace, LayerSet::Namespaces, Path::new("/home/me/p"), &[]);
            assert_eq!(marks.contains_key(Path::new(missing)), hole, "{missing}");
        };
        check("/run/user/0", false);
        check("/home/me/.config/convoke", false);
        check("/home/you", false);
        check("/tmp/journal", false);
        check("/opt/h/x", false);
        check("/opt/h/shown/x", true);
        check("/home/me/p/x", true);
        check("/srv/journal", true);
        check("/nonexistent", true);
    }

    #[test]
    fn what_is_readable_in_the_writable_tree_is_part_of_it() {
        let tree = Path::new("/home/me/p");
        let places = places(
            "/home/me/p",
            &[("/home", Kind::Directory)],
            &["/home/me/p/venv", "/home/me/p/venv/bin", "/home/me/.x"],
        );
        let marks = marks(&places, Access::Workspace, LayerSet::Landlock, tree, &[]);
        let below: Vec<_> = marks.iter().filter(|(path, _)| path.starts_with("/home")).collect();
        let mark = |path: &str| PathBuf::from(path);
        let expected = [(mark("/home"), None), (mark("/home/me/.x"), R), (mark("/home/me/p"), W)];
        assert_eq!(below, expected.iter().map(|(path, mark)| (path, mark)).collect::<Vec<_>>());
    }
}
