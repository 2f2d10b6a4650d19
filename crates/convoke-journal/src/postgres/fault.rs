//! What PostgreSQL's errors mean for the caller.

use std::error::Error as _;

use tokio_postgres::error::SqlState;

use crate::Error;

/// Why an operation failed.
pub(super) enum Fault {
    /// Something to tell the caller.
    Told(Error),
    /// Nothing was done, and doing it again may well succeed.
    Again(String),
    /// The connection broke while the commit was under way.
    Unknown(String),
    /// What the server or the connection said; the transaction is undone.
    Sql(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE) => Self::Again(words(&error)),
            _ => Self::Sql(error),
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
    }
}

impl Fault {
    /// The error of a commit: the server's refusal is an answer, a broken connection is not.
    pub(super) fn of_commit(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(code) if !is_connection(code.code()) => Self::from(error),
            _ => Self::Unknown(words(&error)),
        }
    }

    /// The error of a begin: nothing was done yet, so another connection may do it.
    pub(super) fn of_begin(error: tokio_postgres::Error) -> Self {
        if error.is_closed() { Self::Again(words(&error)) } else { Self::from(error) }
    }

    pub(super) fn told(self, place: &str) -> Error {
        let place = place.to_owned();
        let error = match self {
            Self::Told(error) => return error,
            Self::Again(reason) => return Error::Unavailable { place, reason },
            Self::Unknown(reason) => {
                let reason = format!("{reason}; whether the change was committed is not known: look again");
                return Error::Unavailable { place, reason };
            }
            Self::Sql(error) => error,
        };
        let reason = words(&error);
        match error.code().map(SqlState::code) {
            // A read-only server, a full disk, a lost permission.
            Some("25006" | "53100" | "42501" | "58030") => Error::CannotWrite { place, reason },
            // Tables that are not as we made them, or pages that are not as the server wrote them.
            Some(code) if code.starts_with("42") || code.starts_with("XX") => Error::Corrupt { place, reason },
            _ => Error::Unavailable { place, reason },
        }
    }
}

/// The classes by which a server says that it ends the connection, not the transaction.
fn is_connection(code: &str) -> bool {
    code.starts_with("57P") || code.starts_with("08")
}

/// The error and its cause in one line; the outer one alone says only "db error".
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
