//! Flags of the commands that are about the server: the simulator that plays one, and the doctor that tries
//! one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use convoke_sim::EndpointKind;

use super::SettingFlags;

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// The address to listen on; port 0 takes any free one.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub(crate) listen: std::net::SocketAddr,
    /// Reply from this script (JSON) instead of the offline model.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// The kind of server to imitate.
    #[arg(long = "as", value_name = "SERVER", value_enum, default_value_t = ServerKind::Anthropic)]
    pub(crate) guise: ServerKind,
}

/// A server that the simulator plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ServerKind {
    /// Anthropic's own API.
    Anthropic,
    /// A gateway that passes everything on.
    Gateway,
    /// A gateway that drops cache marks, thinking and effort without a word.
    Dropping,
    /// A gateway that refuses cache marks and effort.
    Refusing,
    /// A plain local server, which knows the oldest form of the API.
    Plain,
}

impl From<ServerKind> for EndpointKind {
    fn from(guise: ServerKind) -> Self {
        match guise {
            ServerKind::Anthropic => Self::Anthropic,
            ServerKind::Gateway => Self::Gateway,
            ServerKind::Dropping => Self::Dropping,
            ServerKind::Refusing => Self::Refusing,
            ServerKind::Plain => Self::Generic,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Try what the server understands, with a few requests of a few tokens each. They are paid for.
    #[arg(long)]
    pub(crate) probe: bool,
    #[command(flatten)]
    pub(crate) flags: SettingFlags,
}
