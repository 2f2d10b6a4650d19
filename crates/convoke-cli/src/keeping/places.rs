//! Where changes are kept: which git, and which directory of ours. It looks; it writes nothing.

use std::path::Path;

use convoke_trees::{HostPlaces, Keeper};

use crate::confine::sight;
use crate::settings::Settings;

/// A name that no session has.
const NO_RUN: &str = "none";

/// Where git is and where the state is.
pub(crate) fn places(settings: &Settings) -> HostPlaces {
    let path = settings.command_env.get("PATH").cloned().unwrap_or_default();
    HostPlaces { path, state: settings.state_dir.clone(), sight: sight(settings, &settings.dir) }
}

/// Where what is changed in a directory is kept, or why it cannot be.
pub(crate) async fn places_for(settings: &Settings, dir: &Path) -> Result<HostPlaces, String> {
    let places = places(settings);
    match Keeper::open(&places, dir, NO_RUN).await {
        Ok(_) => Ok(places),
        Err(error) => Err(error.to_string()),
    }
}

/// What a person is told before anything is written that cannot be taken back.
pub(crate) fn cannot_take_back(why: &str) -> String {
    format!("what this session changes cannot be shown or taken back afterwards: {why}")
}
