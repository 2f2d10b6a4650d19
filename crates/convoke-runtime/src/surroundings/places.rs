//! Which places commands must not see and which of those they need all the same: a pure function of where
//! people keep their things. The table says what is where; this puts it together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::table::{BELOW_HOME, NAMED, NEEDED, OTHERS, Use};

/// Where people keep their things, as far as it matters here.
#[derive(Debug, Clone)]
pub struct UserDirs<'a> {
    /// The variables that name such places: those of [`SURROUNDING_VARIABLES`](super::VARIABLES). Empty ones
    /// count as not set.
    pub env: &'a BTreeMap<String, String>,
    /// The home that the system's list of users names.
    pub listed_home: Option<PathBuf>,
    /// Where the run works.
    pub dir: &'a Path,
    /// Where Convoke keeps its state.
    pub state: &'a Path,
    /// Where its settings are.
    pub config: Option<&'a Path>,
    /// The journal, if it is a file.
    pub journal: Option<&'a Path>,
    /// Convoke itself, which is started again inside.
    pub executable: &'a Path,
}

/// The places of a policy, in the terms of the sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) hidden: Vec<PathBuf>,
    pub(super) readable: Vec<PathBuf>,
    pub(super) caches: Vec<PathBuf>,
    pub(super) masked: Vec<PathBuf>,
}

/// What stands beside a SQLite journal; `-busy` is of versions before generations.
const BESIDE_JOURNAL: &[&str] = &["", "-wal", "-shm", "-next", "-turn", "-over", "-busy"];

/// Puts the places together. `exists` says what is there: only what is can be shown.
pub(super) fn places(around: &UserDirs<'_>, exists: &dyn Fn(&Path) -> bool) -> Places {
    let env = |name: &str| around.env.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let mut homes: Vec<PathBuf> = env("HOME").into_iter().chain(around.listed_home.clone()).collect();
    homes.dedup();
    let mut places = Places { hidden: hidden(around, &homes, env("XDG_RUNTIME_DIR")), ..Places::default() };
    for home in &homes {
        for (what, path) in BELOW_HOME {
            places.add(*what, home.join(path), exists);
        }
    }
    for (name, what, secrets) in NAMED {
        for path in list(around.env.get(*name).map(String::as_str)) {
            let masked = secrets.iter().map(|secret| path.join(secret)).collect::<Vec<_>>();
            masked.into_iter().for_each(|secret| places.add(Use::Mask, secret, exists));
            // What is visible anyway needs no exception; a cache needs its layer wherever it is.
            if *what == Use::Cache || places.hides(&path) {
                places.add(*what, path, exists);
            }
        }
    }
    let programs: Vec<PathBuf> =
        list(around.env.get("PATH").map(String::as_str)).filter(|path| places.hides(path)).collect();
    for path in programs {
        places.add(Use::Read, prefix(&path, &homes), exists);
    }
    if places.hides(around.executable) {
        places.readable.push(around.executable.to_owned());
    }
    places.tidy(&homes);
    places
}

fn hidden(around: &UserDirs<'_>, homes: &[PathBuf], runtime: Option<PathBuf>) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = homes.iter().filter(|home| can_be_hidden(home)).cloned().collect();
    hidden.extend(OTHERS.iter().map(PathBuf::from));
    hidden.extend(runtime.filter(|path| can_be_hidden(path)));
    hidden.push(around.state.to_owned());
    hidden.extend(around.config.map(Path::to_owned));
    if let Some(journal) = around.journal {
        let beside = |suffix: &&str| {
            let mut name = journal.as_os_str().to_owned();
            name.push(suffix);
            PathBuf::from(name)
        };
        hidden.extend(BESIDE_JOURNAL.iter().map(beside));
        // A directory that is the journal's own is hidden whole; one that other things share is not.
        let own =
            |dir: &&Path| can_be_hidden(dir) && dir.components().count() > 2 && !around.dir.starts_with(dir);
        hidden.extend(journal.parent().filter(own).map(Path::to_owned));
    }
    hidden
}

/// Whether a directory can be hidden without hiding what every program needs.
fn can_be_hidden(path: &Path) -> bool {
    path.is_absolute() && !NEEDED.iter().any(|needed| Path::new(needed).starts_with(path))
}

/// The absolute paths of a variable that may name several.
fn list(value: Option<&str>) -> impl Iterator<Item = PathBuf> {
    value
        .unwrap_or_default()
        .split(':')
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .collect::<Vec<_>>()
        .into_iter()
}

/// What a directory of programs needs around it: an installation has its libraries beside its `bin`. A
/// directory that other things share, such as a home directory or `.local` in it, is not an installation.
fn prefix(path: &Path, homes: &[PathBuf]) -> PathBuf {
    let is_bin = path.file_name().is_some_and(|name| name == "bin" || name == "sbin");
    let parent = path.parent().filter(|parent| is_bin && !is_shared(parent, homes));
    parent.unwrap_or(path).to_owned()
}

fn is_shared(path: &Path, homes: &[PathBuf]) -> bool {
    let of_home = |home: &PathBuf| {
        home.starts_with(path) || path == home.join(".local") || path == home.join(".config")
    };
    homes.iter().any(of_home) || path.components().count() <= 2 || path.parent() == Some(Path::new("/home"))
}

impl Places {
    fn add(&mut self, what: Use, path: PathBuf, exists: &dyn Fn(&Path) -> bool) {
        let list = match what {
            Use::Cache => &mut self.caches,
            Use::Read => &mut self.readable,
            Use::Mask => &mut self.masked,
        };
        if exists(&path) && !list.contains(&path) {
            list.push(path);
        }
    }

    fn hides(&self, path: &Path) -> bool {
        self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    /// A variable can name anything, so nothing that holds a whole home is shown by it, and what lies in a
    /// cache is shown with it.
    fn tidy(&mut self, homes: &[PathBuf]) {
        let whole_home =
            |path: &PathBuf| homes.iter().any(|home| home.starts_with(path)) || !can_be_hidden(path);
        self.caches.retain(|path| !whole_home(path));
        self.readable.retain(|path| !whole_home(path));
        let caches = self.caches.clone();
        let within = |path: &PathBuf| caches.iter().any(|cache| path != cache && path.starts_with(cache));
        self.caches.retain(|path| !within(path));
        self.readable.retain(|path| !within(path) && !caches.contains(path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of a user at home in /home/me, with these variables besides. Every path that is asked for
    /// exists.
    fn of(vars: &[(&str, &str)], dir: &str, journal: &str) -> Places {
        let mut all = vec![("HOME", "/home/me"), ("PATH", "/usr/bin:/bin")];
        all.extend(vars);
        let env: BTreeMap<String, String> =
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let around = UserDirs {
            env: &env,
            listed_home: Some("/home/me".into()),
            dir: Path::new(dir),
            state: Path::new("/home/me/.local/state/convoke"),
            config: Some(Path::new("/home/me/.config/convoke")),
            journal: Some(Path::new(journal)).filter(|path| !path.as_os_str().is_empty()),
            executable: Path::new("/usr/bin/convoke"),
        };
        places(&around, &|_| true)
    }

    fn has(list: &[PathBuf], path: &str) -> bool {
        list.iter().any(|item| item == Path::new(path))
    }

    #[test]
    fn w82_homes_state_settings_and_the_journal_are_hidden_wherever_they_are() {
        let hidden = of(&[("XDG_RUNTIME_DIR", "/run/user/7")], "/w", "/srv/data/j.db").hidden;
        for path in [
            "/home/me",
            "/home",
            "/root",
            "/run/user/7",
            "/home/me/.local/state/convoke",
            "/home/me/.config/convoke",
            "/srv/data/j.db",
            "/srv/data/j.db-wal",
            "/srv/data",
        ] {
            assert!(has(&hidden, path), "{path} is not hidden: {hidden:?}");
        }
    }

    #[test]
    fn a_directory_that_is_everybodys_is_not_hidden_for_a_journal_in_it() {
        let check = |dir: &str, journal: &str, whole: &str, expected: bool| {
            let hidden = of(&[], dir, journal).hidden;
            assert!(has(&hidden, journal), "{hidden:?}");
            assert_eq!(has(&hidden, whole), expected, "{journal}: {hidden:?}");
        };
        check("/w", "/srv/data/j.db", "/srv/data", true);
        check("/srv/data/p", "/srv/data/j.db", "/srv/data", false);
        check("/w", "/opt/j.db", "/opt", false);
        check("/w", "/tmp/j.db", "/tmp", false);
        check("/w", "/j.db", "/", false);
    }

    #[test]
    fn what_every_program_needs_is_never_hidden() {
        for home in ["/", "/usr", "/tmp", "/etc"] {
            let hidden = of(&[("HOME", home)], "/w", "").hidden;
            assert!(!has(&hidden, home), "{home}: {hidden:?}");
        }
    }

    #[test]
    fn w83_toolchains_are_readable_and_credentials_in_them_are_not() {
        let places = of(&[("CARGO_HOME", "/opt/cargo"), ("GOPATH", "/home/me/go:/data/go")], "/w", "");
        for cache in
            ["/home/me/.cargo", "/home/me/.rustup", "/home/me/.npm", "/opt/cargo", "/home/me/go", "/data/go"]
        {
            assert!(has(&places.caches, cache), "{cache}: {:?}", places.caches);
        }
        for secret in
            ["/home/me/.cargo/credentials.toml", "/opt/cargo/credentials", "/home/me/.m2/settings.xml"]
        {
            assert!(has(&places.masked, secret), "{secret}: {:?}", places.masked);
        }
        for secret in [
            ".git-credentials",
            ".gitconfig",
            ".config/git/config",
            ".cabal/config",
            ".dotnet/corefx/cryptography/x509stores",
            ".local/share/uv/credentials",
            ".conda/aau_token",
        ] {
            let secret = format!("/home/me/{secret}");
            let shown =
                |place: &PathBuf| Path::new(&secret).starts_with(place) && !has(&places.masked, &secret);
            assert!(!places.readable.iter().chain(&places.caches).any(shown), "{secret} is shown");
        }
        assert!(has(&places.readable, "/home/me/.config/git/ignore"));
        for path in places.readable.iter().chain(&places.caches) {
            assert!(!places.masked.contains(path), "{}", path.display());
        }
    }

    #[test]
    fn only_what_is_there_is_shown() {
        let env: BTreeMap<String, String> =
            [("HOME".to_owned(), "/home/me".to_owned())].into_iter().collect();
        let around = UserDirs {
            env: &env,
            listed_home: None,
            dir: Path::new("/w"),
            state: Path::new("/s"),
            config: None,
            journal: None,
            executable: Path::new("/home/me/bin/convoke"),
        };
        let places = places(&around, &|path| path == Path::new("/home/me/.npm"));
        assert_eq!(places.caches, [PathBuf::from("/home/me/.npm")]);
        assert_eq!(places.readable, [PathBuf::from("/home/me/bin/convoke")]);
        assert!(places.masked.is_empty());
    }

    #[test]
    fn a_directory_of_programs_comes_with_its_installation_and_never_with_a_home() {
        let check = |path: &str, shown: &[&str], kept: &[&str]| {
            let places = of(&[("PATH", path)], "/w", "");
            for place in shown {
                let found = has(&places.readable, place) || has(&places.caches, place);
                assert!(found, "{path} does not show {place}: {:?}", places.readable);
            }
            for place in kept {
                let found = has(&places.readable, place) || has(&places.caches, place);
                assert!(!found, "{path} shows {place}: {:?}", places.readable);
            }
        };
        check("/home/me/miniconda3/bin", &["/home/me/miniconda3"], &["/home/me"]);
        check(
            "/home/linuxbrew/.linuxbrew/bin",
            &["/home/linuxbrew/.linuxbrew"],
            &["/home/linuxbrew", "/home"],
        );
        check("/home/me/bin", &["/home/me/bin"], &["/home/me"]);
        check("/home/me/.local/bin", &["/home/me/.local/bin"], &["/home/me/.local"]);
        check("/home/you/bin", &["/home/you/bin"], &["/home/you"]);
        check("/home/me:relative:/usr/bin", &[], &["/home/me", "/usr/bin"]);
        check("/home/me/.cargo/bin", &["/home/me/.cargo"], &["/home/me/.cargo/bin"]);
    }

    #[test]
    fn a_variable_that_names_a_whole_home_shows_nothing() {
        for home in ["/home/me", "/home", "/"] {
            let places = of(&[("GOPATH", home), ("PYTHONPATH", home)], "/w", "");
            assert!(!has(&places.caches, home) && !has(&places.readable, home), "{home}: {places:?}");
        }
    }
}
