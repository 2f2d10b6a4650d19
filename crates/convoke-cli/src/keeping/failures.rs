//! What `convoke-trees` refuses, as it is told to a person.

use convoke_trees::{Error, WorktreeError};

use crate::failure::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::NoGit | Error::NoRepository { .. } | Error::StateInside { .. } | Error::BadName { .. } => {
                Self::usage(message)
            }
            _ => Self::failed(message),
        }
    }
}

impl From<WorktreeError> for Failure {
    fn from(error: WorktreeError) -> Self {
        match error {
            WorktreeError::Trees(error) => error.into(),
            WorktreeError::Unknown { .. } | WorktreeError::NoCommit { .. } => Self::usage(error.to_string()),
            error => Self::failed(error.to_string()),
        }
    }
}
