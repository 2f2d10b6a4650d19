//! What PostgreSQL's errors mean for the caller.

use std::error::Error as _;
use std::io;

use tokio_postgres::error::SqlState;

use crate::Error;

/// Why an operation failed.
pub(super) enum Fault {
    /// Something to tell the caller.
    Told(Error),
    /// Nothing was done, and doing it again may well succeed.
    Again(String),
    /// The connection is gone, or there is none to be had for now. If a commit was under way, it may have
    /// been done.
    Lost(String),
    /// What the server said; the transaction is undone.
    Sql(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code() {
            Some(&SqlState::T_R_DEADLOCK_DETECTED | &SqlState::T_R_SERIALIZATION_FAILURE) => {
                Self::Again(words(&error))
            }
            _ if is_lost(&error) => Self::Lost(reason(&error)),
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
    pub(super) fn told(self, place: &str) -> Error {
        let place = place.to_owned();
        let error = match self {
            Self::Told(error) => return error,
            Self::Again(reason) | Self::Lost(reason) => return Error::Unavailable { place, reason },
            Self::Sql(error) => error,
        };
        let reason = words(&error);
        match error.code().map(SqlState::code) {
            // A read-only server, a full disk, a lost permission.
            Some("25006" | "53100" | "42501" | "58030") => Error::CannotWrite { place, reason },
            // Tables that are not as we made them, or pages that are not as the server wrote them.
            Some(code) if code.starts_with("42") || code.starts_with("XX") => {
                Error::Corrupt { place, reason }
            }
            _ => Error::Unavailable { place, reason },
        }
    }
}

/// Whether the connection has ended or none could be made, and another one may be had later.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    match error.code().map(SqlState::code) {
        // The database was dropped; it does not come back.
        Some("57P04") => false,
        // The server ends connections or takes none yet, has too many of them, or found us silent amid a
        // transaction.
        Some(code) => code.starts_with("57P") || code.starts_with("08") || matches!(code, "53300" | "25P03"),
        None => {
            let broke = error.source().is_some_and(|cause| cause.is::<io::Error>());
            // A connection that takes too long has no cause that could be asked.
            error.is_closed() || broke || error.to_string().starts_with("timeout")
        }
    }
}

/// What a person is told of a lost connection: the cause alone, where there is one.
fn reason(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => error.source().map_or_else(|| error.to_string(), ToString::to_string),
    }
}

/// The error and its cause in one line; the outer one alone says only "db error".
pub(super) fn words(error: &tokio_postgres::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
