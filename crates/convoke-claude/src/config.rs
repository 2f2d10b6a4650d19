//! What a client needs to know before it can send: the server, the credentials, the
//! time limits. It never reads the environment.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Where requests go unless a setting says otherwise.
pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// The `anthropic-version` that is sent unless a configuration says otherwise, or the server refuses it.
pub const DEFAULT_VERSION: &str = "2026-10-21";

/// Everything a [`Client`](crate::Client) is made from.
#[derive(Clone)]
pub struct ClientConfig {
    /// The server, without `/v1/messages`.
    pub base_url: String,
    /// The credentials.
    pub auth: Auth,
    /// The `anthropic-version` header.
    pub version: String,
    /// The values of the `anthropic-beta` header.
    pub betas: Vec<String>,
    /// Further headers; they replace the ones above where the names are equal.
    pub headers: Vec<(String, String)>,
    /// The proxy, if any.
    pub proxy: Proxy,
    /// How long to wait, and for what.
    pub timeouts: Timeouts,
    /// Whether credentials and headers may go over plain http to another machine,
    /// where every machine on the way can read them.
    pub insecure_http: bool,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            base_url: DEFAULT_BASE_URL.to_owned(),
            auth: Auth::default(),
            version: DEFAULT_VERSION.to_owned(),
            betas: Vec::new(),
            headers: Vec::new(),
            proxy: Proxy::default(),
            timeouts: Timeouts::default(),
            insecure_http: false,
        }
    }
}

impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A header of the user's own may carry a token, and so may the user part of a URL.
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ClientConfig")
            .field("base_url", &shown(&self.base_url))
            .field("auth", &self.auth)
            .field("version", &self.version)
            .field("betas", &self.betas)
            .field("header_names", &names)
            .field("proxy", &self.proxy)
            .field("timeouts", &self.timeouts)
            .field("insecure_http", &self.insecure_http)
            .finish()
    }
}

/// Credentials: an API key or a bearer token, or neither for a server that asks for none. The API refuses
/// both at once.
#[derive(Debug, Clone, Default)]
pub struct Auth {
    /// Sent as `x-api-key`.
    pub key: Option<Secret>,
    /// Sent as `Authorization: Bearer`.
    pub bearer: Option<Secret>,
}

/// A text that is sent but never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Takes a secret over. Blanks and line breaks around it are the commonest accident with secrets and are
    /// removed.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// Whether requests go through a proxy.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Proxy {
    /// As `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` say; a server on this machine is always reached
    /// directly.
    #[default]
    Environment,
    /// Never.
    Off,
    /// Through this one.
    Url(String),
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment => f.write_str("Environment"),
            Self::Off => f.write_str("Off"),
            Self::Url(url) => write!(f, "Url({})", shown(url)),
        }
    }
}

/// How long to wait, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// For the first piece of content. A server on a small machine can be busy with the prompt for minutes,
    /// silent or with pings.
    pub first: Duration,
    /// For the next byte after that. Thinking can be silent for minutes.
    pub idle: Duration,
    /// For the whole reply.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let connect = Duration::from_secs(10);
        let idle = Duration::from_secs(300);
        Self { connect, first: idle, idle, total: Duration::from_secs(3600) }
    }
}

/// How long the first piece of content is waited for from a server on this machine or next to it, unless a
/// setting says otherwise.
const NEAR_FIRST: Duration = Duration::from_secs(1800);

impl Timeouts {
    /// How long the first piece of content of this server is waited for unless a setting says otherwise. A
    /// model on one's own hardware reads a long prompt for minutes; behind any other address a silence of
    /// five minutes is a fault.
    pub fn usual_first(base_url: &str) -> Duration {
        if is_near(base_url) { NEAR_FIRST } else { Self::default().first }
    }
}

/// Whether the server of a base URL is on this machine or in a private network, by its address alone.
fn is_near(base_url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(base_url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.is_loopback() || address.is_private() || address.is_link_local(),
        Ok(IpAddr::V6(address)) => address.is_loopback() || address.is_unique_local(),
        // A name without a dot is a name of the local network, as in a compose file.
        Err(_) => {
            !host.is_empty()
                && (!host.contains('.') || host.ends_with(".local") || host.ends_with(".internal"))
        }
    }
}

/// A configuration no client can be made from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// Two kinds of credentials.
    #[error(
        "both an API key and a bearer token are set and the API refuses both at once; unset \
            ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
    )]
    TwoCredentials,
    /// The base URL cannot be used.
    #[error("the base URL {url} cannot be used: {problem}")]
    BaseUrl {
        /// The URL, without user and password.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Credentials would go unencrypted to another machine.
    #[error(
        "{what} would go over plain http to {url}, where it can be read on the way; write https://, use a \
         tunnel that ends on this machine (http://127.0.0.1:…), or allow it: insecure_http = true in your \
         own configuration, or CONVOKE_INSECURE_HTTP=on"
    )]
    InsecureHttp {
        /// What would be read.
        what: &'static str,
        /// The server or the proxy, without user and password.
        url: String,
    },
    /// A header cannot be sent.
    #[error("the header `{name}` cannot be sent: {problem}")]
    Header {
        /// The header's name; its value may be a secret.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The proxy cannot be used.
    #[error(
        "the proxy {url} cannot be used; write http://host:port, https://host:port or socks5://host:port"
    )]
    Proxy {
        /// The URL, without user and password.
        url: String,
    },
    /// The HTTP client could not be made.
    #[error(
        "the HTTP client cannot be made: {0}; for https, check that CA certificates are installed \
            (ca-certificates)"
    )]
    Build(String),
}

/// A URL without anything that could be a secret: user, password and query are left out.
pub(crate) fn shown(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            let slash = if path.is_empty() { "" } else { "/" };
            format!("{scheme}://{host}{slash}{path}")
        }
        None => url.rsplit('@').next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_next_to_us_has_half_an_hour_to_begin_and_any_other_five_minutes() {
        let check =
            |url: &str, seconds: u64| assert_eq!(Timeouts::usual_first(url).as_secs(), seconds, "{url}");
        for near in [
            "http://127.0.0.1:8080",
            "http://[::1]:1",
            "http://localhost",
            "http://10.0.0.7:8000",
            "http://ollama:11434",
        ] {
            check(near, 1_800);
        }
        check("http://box.local:8080/x", 1_800);
        for far in [DEFAULT_BASE_URL, "https://gateway.example.com", "http://8.8.8.8", "no url"] {
            check(far, 300);
        }
    }
}
