//! The client: one request, one streamed reply or one failure that says what to do. It never sends anything
//! twice.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use convoke_kernel::{Failure, FailureKind, Reply, Retry};
use futures_util::{Stream, StreamExt, stream};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Body, Response, Url};

use crate::config::{ClientConfig, ClientError, Proxy, Timeouts, shown};
use crate::failures::{self, Asked};
use crate::limits::RateLimits;
use crate::listing::{Listed, read_listing};
use crate::reply::{Live, Show};
use crate::request::Request;
use crate::stream::{self as sse, ReadError};

/// The header that names the version of the API.
const VERSION: &str = "anthropic-version";

/// The most bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 * 1024;

/// The most bytes of a list of models that are read.
const LISTING_BYTES: usize = 4 * 1024 * 1024;

/// How long the next byte of an error's body is waited for: the status alone says enough.
const ERROR_IDLE: Duration = Duration::from_secs(5);

/// Talks to one server with one set of credentials. Cloning shares the connections: make one per process.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    http: reqwest::Client,
    url: Url,
    models_url: Url,
    shown_url: String,
    timeouts: Timeouts,
    credentials: bool,
    /// The version of the API that is sent unless a request says otherwise.
    version: String,
    /// Texts that must not appear in any failure, even if the server repeats them.
    secrets: Vec<String>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("url", &self.shared.shown_url).finish_non_exhaustive()
    }
}

impl Client {
    /// Makes a client; nothing is sent yet.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        // An error means that a provider is installed for this process already, and any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = api_url(&config.base_url, "messages")?;
        let models_url = api_url(&config.base_url, "models?limit=1000")?;
        refuse_clear(&config, &url)?;
        let mut builder = reqwest::Client::builder()
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(config.timeouts.connect)
            .tcp_nodelay(true)
            .default_headers(headers(&config)?);
        let through_proxy = match &config.proxy {
            Proxy::Environment => !is_local(&url),
            Proxy::Off => false,
            Proxy::Url(_) => true,
        };
        if !through_proxy {
            builder = builder.no_proxy();
        }
        if let Proxy::Url(text) = &config.proxy {
            let unusable = || ClientError::Proxy { url: shown(text) };
            builder = builder.proxy(reqwest::Proxy::all(text).map_err(|_| unusable())?);
        }
        if url.scheme() == "http" && !through_proxy {
            // No certificate will ever be looked at, so a machine without any can still talk, and nothing is
            // loaded.
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build().map_err(|error| ClientError::Build(chain(&error.without_url())))?;
        let credentials = config.auth.key.is_some() || config.auth.bearer.is_some();
        let shared = Shared {
            http,
            shown_url: shown(&config.base_url),
            url,
            models_url,
            timeouts: config.timeouts,
            credentials,
            version: config.version.clone(),
            secrets: secrets(&config),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The server, fit to be shown: its base URL without anything that could be a secret.
    pub fn endpoint(&self) -> &str {
        &self.shared.shown_url
    }

    /// What the server says about its models. It is asked once, and not waited for any longer than this: a
    /// run can do without.
    pub async fn models(&self, within: Duration) -> Result<Vec<Listed>, String> {
        let Shared { http, models_url, .. } = &*self.shared;
        let asking = async {
            let response = http.get(models_url.clone()).header("accept", "application/json").send().await;
            let response = response.map_err(|error| chain(&error.without_url()))?;
            let status = response.status();
            let body = body_of(watched(response, within, within), LISTING_BYTES).await;
            match status.is_success() {
                true => Ok(read_listing(&body)),
                false => Err(format!("the server answered {status}")),
            }
        };
        let asked = tokio::time::timeout(within, asking).await;
        asked
            .unwrap_or_else(|_| Err(format!("no answer within {} s", within.as_secs_f64())))
            .map_err(|why| self.scrub(why))
    }

    /// Sends a request and reads its reply to the end. `live` sees the pieces as they come.
    ///
    /// `cost_nano` of the reply is left to [`cost`](crate::cost), which knows the prices.
    pub async fn send(
        &self,
        request: Request,
        mut live: impl FnMut(Live<'_>) + Send,
    ) -> Result<Reply, Failure> {
        let total = self.shared.timeouts.total;
        let result = match tokio::time::timeout(total, self.exchange(request, &mut live)).await {
            Ok(result) => result,
            Err(_) => {
                Err(failures::deadline(format!("the reply took longer than {} s", total.as_secs_f64())))
            }
        };
        result.map_err(|failure| Failure { message: self.scrub(failure.message), ..failure })
    }

    async fn exchange(&self, request: Request, show: Show<'_>) -> Result<Reply, Failure> {
        let Shared { http, url, shown_url, timeouts, credentials, version, .. } = &*self.shared;
        let asked = Asked { model: &request.model, base_url: shown_url, credentials: *credentials };
        let mut post = http.post(url.clone()).body(Body::wrap(request.body()));
        if let Some(version) = request.version {
            post = post.header(VERSION, version);
        }
        let sending = post.send();
        let response = match tokio::time::timeout(timeouts.first, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unsent(error)),
            Err(_) => {
                let seconds = timeouts.first.as_secs_f64();
                return Err(failures::deadline(format!(
                    "{shown_url} did not begin to answer within {seconds} s"
                )));
            }
        };
        show(Live::Limits(&RateLimits::from_headers(response.headers())));
        let status = response.status();
        let head = response.headers().clone();
        let request_id = head.get("request-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
        if !status.is_success() {
            let idle = timeouts.idle.min(ERROR_IDLE);
            let body = body_of(watched(response, idle, idle), ERROR_BYTES).await;
            let carries = |part| request.carries(part, version);
            return Err(failures::from_response((status.as_u16(), &head, &body), &asked, carries));
        }
        let result = match not_a_stream(&head) {
            Some(kind) => Err(failures::failure(
                FailureKind::Api,
                format!(
                    "{shown_url} answered {status} with {kind} instead of an event stream; check that the \
                        base URL is that of a Messages API server that can stream"
                ),
                Retry::Never,
            )),
            None => sse::read(watched(response, timeouts.first, timeouts.idle), &asked, show).await,
        };
        match result {
            Ok(reply) => Ok(Reply { request_id, ..reply }),
            Err(failure) => Err(Failure { request_id: request_id.or(failure.request_id), ..failure }),
        }
    }

    /// The request did not get through, or no response came back.
    fn unsent(&self, error: reqwest::Error) -> Failure {
        let url = &self.shared.shown_url;
        let connect = error.is_connect();
        let timeout = error.is_timeout();
        let error = error.without_url();
        let why = chain(&error);
        let cause = last_cause(&error);
        let what = match (connect, timeout) {
            (true, true) => {
                format!(
                    "no connection to {url} within {} s; check the network and the proxy",
                    self.shared.timeouts.connect.as_secs_f64()
                )
            }
            // The layers above the last cause say nothing but that it was a connection.
            (true, false) => {
                format!("cannot connect to {url} ({cause}); check the base URL, the network and the proxy")
            }
            _ => format!("the connection to {url} broke before an answer came ({why})"),
        };
        match connect {
            true => {
                Failure { unbilled: true, ..failures::failure(FailureKind::Transport, what, Retry::Soon) }
            }
            false => failures::transport(what),
        }
    }

    fn scrub(&self, message: String) -> String {
        self.shared.secrets.iter().fold(message, |text, secret| text.replace(secret.as_str(), "[secret]"))
    }
}

fn api_url(base_url: &str, what: &str) -> Result<Url, ClientError> {
    let wrong = |problem: &str| ClientError::BaseUrl { url: shown(base_url), problem: problem.to_owned() };
    let base = Url::parse(base_url).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(wrong("write http:// or https://"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(wrong("it holds a user or a password; send them as a header instead"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(wrong("leave out everything from the ? or # on"));
    }
    let joined = format!("{}/v1/{what}", base.as_str().trim_end_matches('/'));
    Url::parse(&joined).map_err(|error| wrong(&error.to_string()))
}

/// Refuses to send what could be a secret unencrypted to another machine, unless `insecure_http` allows it.
fn refuse_clear(config: &ClientConfig, url: &Url) -> Result<(), ClientError> {
    let what = match (&config.auth, config.headers.is_empty()) {
        (auth, _) if auth.key.is_some() => "the API key",
        (auth, _) if auth.bearer.is_some() => "the bearer token",
        (_, false) => "the headers of your configuration, any of which may be a secret,",
        (_, true) => return Ok(()),
    };
    // A proxy can read a request for an http:// address.
    let proxy = match &config.proxy {
        Proxy::Url(text) => Url::parse(text).ok(),
        Proxy::Environment | Proxy::Off => None,
    };
    let far = [Some(url), proxy.as_ref()].into_iter().flatten().find(|url| !is_local(url));
    match far {
        Some(far) if url.scheme() == "http" && !config.insecure_http => {
            let url = if far == url { shown(&config.base_url) } else { shown(far.as_str()) };
            Err(ClientError::InsecureHttp { what, url })
        }
        _ => Ok(()),
    }
}

fn is_local(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn headers(config: &ClientConfig) -> Result<HeaderMap, ClientError> {
    let mut headers = HeaderMap::new();
    let mut set = |name: &str, value: &str, secret: bool| {
        let wrong =
            |problem: &str| ClientError::Header { name: name.to_owned(), problem: problem.to_owned() };
        let key: HeaderName = name.parse().map_err(|_| wrong("its name is not a header name"))?;
        if matches!(key.as_str(), "content-length" | "transfer-encoding" | "connection") {
            return Err(wrong("the client sets it by itself"));
        }
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| wrong("its value has line breaks or other control characters"))?;
        value.set_sensitive(secret);
        headers.insert(key, value);
        Ok(())
    };
    set("user-agent", concat!("convoke/", env!("CARGO_PKG_VERSION")), false)?;
    set("accept", "text/event-stream", false)?;
    set("content-type", "application/json", false)?;
    set(VERSION, &config.version, false)?;
    if !config.betas.is_empty() {
        set("anthropic-beta", &config.betas.join(","), false)?;
    }
    match (&config.auth.key, &config.auth.bearer) {
        (Some(_), Some(_)) => return Err(ClientError::TwoCredentials),
        (Some(key), None) => set("x-api-key", key.reveal(), true)?,
        (None, Some(bearer)) => set("authorization", &format!("Bearer {}", bearer.reveal()), true)?,
        (None, None) => {}
    }
    for (name, value) in &config.headers {
        set(name, value, true)?;
    }
    Ok(headers)
}

/// Everything that could be a secret. Very short texts are left out: they would blot out ordinary words.
fn secrets(config: &ClientConfig) -> Vec<String> {
    let auth = [&config.auth.key, &config.auth.bearer]
        .into_iter()
        .flatten()
        .map(|secret| secret.reveal().to_owned());
    // Of `Bearer abc` the token alone is a secret too; the last word of any other value is itself again.
    let words = config.headers.iter().filter_map(|(_, value)| value.split(' ').next_back());
    let headers = config.headers.iter().map(|(_, value)| value.as_str()).chain(words).map(str::to_owned);
    auth.chain(headers).filter(|text| text.len() >= 8).collect()
}

/// The type of a body that cannot be an event stream.
fn not_a_stream(head: &HeaderMap) -> Option<String> {
    let kind = head.get("content-type")?.to_str().ok()?.split(';').next()?.trim().to_ascii_lowercase();
    matches!(kind.as_str(), "text/html" | "application/json").then_some(kind)
}

/// What every event of content has in it. One that is cut in two is found in the next one.
const CONTENT: &[u8] = b"content_block";

/// The bytes of a response. It gives up when none come for too long: `first`
/// until there is content, `idle` from then on.
fn watched(
    response: Response,
    first: Duration,
    idle: Duration,
) -> impl Stream<Item = Result<Bytes, ReadError>> {
    stream::unfold((response, first), move |(mut response, patience)| async move {
        let mut next = patience;
        let item = match tokio::time::timeout(patience, response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                if patience != idle && chunk.windows(CONTENT.len()).any(|bytes| bytes == CONTENT) {
                    next = idle;
                }
                Ok(chunk)
            }
            Ok(Ok(None)) => return None,
            Ok(Err(error)) => Err(ReadError::Cut(chain(&error.without_url()))),
            Err(_) => Err(ReadError::Idle(patience)),
        };
        Some((item, (response, next)))
    })
}

/// The start of a body, as far as it comes; the status tells enough without the rest.
async fn body_of(bytes: impl Stream<Item = Result<Bytes, ReadError>>, most: usize) -> String {
    let mut bytes = std::pin::pin!(bytes);
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = bytes.next().await {
        body.extend_from_slice(&chunk);
        if body.len() >= most {
            break;
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

/// What an error comes down to.
fn last_cause(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), last_cause)
}

/// An error and what caused it, in one line.
fn chain(error: &dyn Error) -> String {
    let mut said = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Layers like to repeat what the one below says.
        if !said.iter().any(|before| before.contains(&text)) {
            said.push(text);
        }
        source = cause.source();
    }
    said.join(": ")
}
