//! Where a journal is. Parses and shows; opens nothing. A password never appears in what it shows.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::Error;

/// Where a journal is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// In this process only; gone when the last handle is dropped.
    Memory,
    /// A SQLite file, shared by the processes of one machine.
    Sqlite(PathBuf),
    /// A PostgreSQL database, by URL or by `host=… dbname=…`, shared by machines. The tables are in its
    /// schema `convoke`.
    Postgres(String),
}

impl Location {
    /// The file that holds the journal, if one does.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Memory | Self::Postgres(_) => None,
        }
    }

    /// The same location with its file at another path; a location without a file stays as it is.
    #[must_use]
    pub fn with_file(self, path: impl FnOnce(PathBuf) -> PathBuf) -> Self {
        match self {
            Self::Sqlite(given) => Self::Sqlite(path(given)),
            Self::Memory | Self::Postgres(_) => self,
        }
    }

    /// Whether the journal is still there when the process has ended.
    pub fn outlives_the_process(&self) -> bool {
        !matches!(self, Self::Memory)
    }

    /// Whether the journal is behind a server, which can be away.
    pub fn is_on_a_server(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// The text that leads to the journal again, unless it would have to show a secret or is no text.
    pub fn as_argument(&self) -> Option<String> {
        match self {
            Self::Memory => Some(self.to_string()),
            Self::Sqlite(path) => path.to_str().map(str::to_owned),
            Self::Postgres(url) => Some(self.to_string()).filter(|shown| shown == url),
        }
    }
}

impl FromStr for Location {
    type Err = Error;

    /// `memory`, a `postgres://` URL or the `host=… dbname=…` of PostgreSQL, or a path.
    fn from_str(text: &str) -> Result<Self, Error> {
        let bad =
            |reason: &str| Error::BadLocation { given: hide_passwords(text), reason: reason.to_owned() };
        if text.is_empty() {
            return Err(bad("it is empty; give a file path or a postgres:// URL"));
        }
        if text == "memory" || text == ":memory:" {
            return Ok(Self::Memory);
        }
        if is_keywords(text) {
            let reason = |_| {
                bad("PostgreSQL does not understand it; give a postgres:// URL, or host=… user=… dbname=…")
            };
            return text
                .parse::<tokio_postgres::Config>()
                .map_err(reason)
                .map(|_| Self::Postgres(text.to_owned()));
        }
        if is_postgres(text) {
            let reason =
                |_| bad("it is no URL PostgreSQL understands, such as postgres://user@host/database");
            return text
                .parse::<tokio_postgres::Config>()
                .map_err(reason)
                .map(|_| Self::Postgres(text.to_owned()));
        }
        match text.split_once("://") {
            Some(_) => Err(bad("the scheme is unknown; give a file path or a postgres:// URL")),
            None => Ok(Self::Sqlite(PathBuf::from(text))),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Sqlite(path) => write!(f, "{}", path.display()),
            Self::Postgres(url) => f.write_str(&hide_passwords(url)),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

fn is_postgres(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// The first words of what PostgreSQL takes instead of a URL: those of libpq, whether this client knows them
/// or not.
const KEYWORDS: &[&str] = &[
    "application_name",
    "channel_binding",
    "client_encoding",
    "connect_timeout",
    "database",
    "dbname",
    "fallback_application_name",
    "gssencmode",
    "host",
    "hostaddr",
    "keepalives",
    "keepalives_count",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "krbsrvname",
    "load_balance_hosts",
    "options",
    "passfile",
    "port",
    "replication",
    "require_auth",
    "server",
    "service",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
    "tcp_user_timeout",
    "user",
    "username",
];

/// Whether this is `host=… user=… password=…` and no file: it begins with a word of PostgreSQL's, or has a
/// password in it.
fn is_keywords(text: &str) -> bool {
    let names = text.split('=').map(|before| before.trim_end().to_ascii_lowercase()).collect::<Vec<_>>();
    let Some((_, names)) = names.split_last() else { return false };
    if text.contains("://") {
        return false;
    }
    let first = names.first().is_some_and(|name| KEYWORDS.contains(&name.trim_start()));
    first || names.iter().any(|name| ["password", "passwd", "pwd"].iter().any(|word| name.ends_with(word)))
}

/// Of `host=… user=… password=…` what names the place, and nothing else: any other word could hold a secret.
fn named(text: &str) -> String {
    const UNKNOWN: &str = "a PostgreSQL connection string (not shown: it may hold a password)";
    let Ok(config) = text.parse::<tokio_postgres::Config>() else { return UNKNOWN.to_owned() };
    let hosts = config.get_hosts().iter().map(|host| match host {
        tokio_postgres::config::Host::Tcp(name) => name.clone(),
        tokio_postgres::config::Host::Unix(path) => path.display().to_string(),
    });
    let numbers = |numbers: &[u16]| numbers.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
    let addresses = config.get_hostaddrs().iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let parts = [
        ("host", hosts.collect::<Vec<_>>().join(",")),
        ("hostaddr", addresses),
        ("port", numbers(config.get_ports())),
        ("user", config.get_user().unwrap_or_default().to_owned()),
        ("password", config.get_password().map(|_| "***".to_owned()).unwrap_or_default()),
        ("dbname", config.get_dbname().unwrap_or_default().to_owned()),
    ];
    let said =
        parts.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name}={value}"));
    said.collect::<Vec<_>>().join(" ")
}

/// Stars for the password of the user part and for any parameter whose name ends in `password`. The user part
/// is cut at the last `@`, so that an unescaped `@`, `/` or `?` in a password hides too much rather than too
/// little.
fn hide_passwords(url: &str) -> String {
    if is_keywords(url) {
        return named(url);
    }
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (user, place) = match rest.rsplit_once('@') {
        Some((user, place)) => match user.split_once(':') {
            Some((name, _)) => (format!("{name}:***@"), place),
            None => (format!("{user}@"), place),
        },
        None => (String::new(), rest),
    };
    let place = match place.split_once('?') {
        Some((place, query)) => {
            let hidden = query.split('&').map(|pair| match pair.split_once('=') {
                Some((name, _)) if name.ends_with("password") => format!("{name}=***"),
                _ => pair.to_owned(),
            });
            format!("{place}?{}", hidden.collect::<Vec<_>>().join("&"))
        }
        None => place.to_owned(),
    };
    format!("{scheme}://{user}{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_says_what_its_users_ask_for() {
        let check = |given: &str, file: Option<&str>, lasts, on_a_server, argument: Option<&str>| {
            let location: Location = given.parse().unwrap();
            assert_eq!(location.file(), file.map(Path::new), "{given}");
            assert_eq!(
                (location.outlives_the_process(), location.is_on_a_server()),
                (lasts, on_a_server),
                "{given}"
            );
            assert_eq!(location.as_argument().as_deref(), argument, "{given}");
            let moved = location.clone().with_file(|path| Path::new("/base").join(path));
            assert_eq!(moved.file(), file.map(|file| Path::new("/base").join(file)).as_deref(), "{given}");
        };
        check("memory", None, false, false, Some("memory"));
        check("runs.db", Some("runs.db"), true, false, Some("runs.db"));
        check("postgres://me@host/db", None, true, true, Some("postgres://me@host/db"));
        // The text that is shown has no password, so it would lead to another place.
        check("postgres://me:secret@host/db", None, true, true, None);
    }

    #[test]
    fn a_location_is_memory_a_path_or_a_url() {
        assert_eq!("memory".parse::<Location>().unwrap(), Location::Memory);
        assert_eq!("a/b.db".parse::<Location>().unwrap(), Location::Sqlite("a/b.db".into()));
        let url = "postgres://me@/db?host=/run/pg";
        assert_eq!(url.parse::<Location>().unwrap(), Location::Postgres(url.to_owned()));
    }

    #[test]
    fn what_is_no_location_is_refused_with_what_to_give() {
        for bad in ["", "mysql://x", "postgres://me@host:notaport/db"] {
            let error = bad.parse::<Location>().unwrap_err();
            assert!(matches!(error, Error::BadLocation { .. }), "{error}");
            assert!(error.to_string().contains("postgres://"), "{error}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        let check = |url: &str, shown: &str| {
            let location = Location::Postgres(url.to_owned());
            assert_eq!(location.to_string(), shown);
            assert!(!format!("{location:?}").contains("secret"));
        };
        check("postgres://me:secret@host:5/db", "postgres://me:***@host:5/db");
        check("postgres://me:se@/?cret@host/db", "postgres://me:***@host/db");
        check("postgres://host/db?user=me&password=secret", "postgres://host/db?user=me&password=***");
        check("postgres://host/db", "postgres://host/db");
        check("host=h user=me password=secret dbname=db", "host=h user=me password=*** dbname=db");
        check("host=h options='-c x=secret' dbname=db", "host=h dbname=db");
        for bad in [
            "mysql://me:secret@host",
            "host=h password='secret",
            "host=h sslpassword=secret",
            "Host=h;Username=me;Password=secret;Database=db",
            "user=me password = se cret=secret",
        ] {
            let error = bad.parse::<Location>().unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn what_postgres_takes_instead_of_a_url_is_no_file() {
        for text in [
            "host=h user=me password=secret dbname=db",
            " host = /run/pg dbname='my db'",
            "dbname=db",
            "user=me password='it\\'s a secret' host=h port=5433",
        ] {
            assert_eq!(text.parse::<Location>().unwrap(), Location::Postgres(text.to_owned()));
        }
        for path in ["a=b.db", "x/host=1.db", "hosts", "/tmp/j=1/user=2.db"] {
            assert_eq!(path.parse::<Location>().unwrap(), Location::Sqlite(path.into()));
        }
    }
}
