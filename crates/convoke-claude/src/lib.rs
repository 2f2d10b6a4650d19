//! Talks: a streaming Messages API client, and the tables of models and endpoints it is used with.
//!
//! What is said, which tools there are and whether a failed request is sent again is decided elsewhere: this
//! crate holds no prompt, no tool and no retry loop.

mod block;
mod client;
mod config;
mod endpoints;
mod failures;
mod limits;
mod listing;
mod models;
mod prices;
mod reply;
mod request;
mod stream;

pub use client::Client;
pub use config::{
    Auth, ClientConfig, ClientError, DEFAULT_BASE_URL, DEFAULT_VERSION, Proxy, Secret, Timeouts,
};
pub use endpoints::{Endpoint, EndpointPatch, Endpoints, Server, capabilities, is_claude};
pub use limits::{Bucket, RateLimits};
pub use listing::{Listed, read_listing};
pub use models::{
    Model, ModelPatch, Models, OFFLINE_MODEL, TableError, ThinkingDefault, ThinkingRules, ThinkingType,
    TierPatch,
};
pub use prices::{Prices, Rates, Tier, ceilings, cost};
pub use reply::Live;
pub use request::{Request, RequestBody};
pub use stream::{MAX_FRAME_BYTES, read_reply};
