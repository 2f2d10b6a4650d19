//! Where a journal is. Parses and shows; opens nothing. A password never appears in what it shows.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Error;

/// Where a journal is.
#[derive(Clone, PartialEq, Eq)]
pub enum Location {
    /// In this process only; gone when the last handle is dropped.
    Memory,
    /// A SQLite file, shared by the processes of one machine.
    Sqlite(PathBuf),
    /// A PostgreSQL database, by URL, shared by machines. The tables are in its schema `convoke`.
    Postgres(String),
}

impl FromStr for Location {
    type Err = Error;

    /// `memory`, a `postgres://` URL, or a path.
    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |reason: &str| Error::BadLocation { given: hide_passwords(text), reason: reason.to_owned() };
        if text.is_empty() {
            return Err(bad("it is empty; give a file path or a postgres:// URL"));
        }
        if text == "memory" || text == ":memory:" {
            return Ok(Self::Memory);
        }
        if is_postgres(text) {
            let reason = |_| bad("it is no URL PostgreSQL understands, such as postgres://user@host/database");
            return text.parse::<tokio_postgres::Config>().map_err(reason).map(|_| Self::Postgres(text.to_owned()));
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

/// Stars for the password of the user part and for any parameter whose name ends in `password`. The user part is cut
/// at the last `@`, so that an unescaped `@`, `/` or `?` in a password hides too much rather than too little.
fn hide_passwords(url: &str) -> String {
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
        let error = "mysql://me:secret@host".parse::<Location>().unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
