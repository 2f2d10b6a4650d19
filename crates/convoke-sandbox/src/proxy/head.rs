//! The head of a request to the proxy, and the proxy's own answers. Pure.

use std::net::IpAddr;

use super::allow::{host_name, split_port};

/// The largest head that is read, in bytes.
pub(super) const HEAD_CAP: usize = 16 * 1024;

/// Headers in one head.
const HEADER_CAP: usize = 100;

/// The host and port that a request is for. The host is in its one form, see `host_name`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
}

impl Target {
    /// The pattern that would allow this.
    pub(super) fn pattern(&self) -> String {
        if matches!(self.port, 80 | 443) { self.host.clone() } else { self.with_port() }
    }

    fn with_port(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) target: Target,
    /// What is sent on; `None` for a tunnel.
    pub(super) forward: Option<Forward>,
}

/// A plain request as it is sent on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Forward {
    pub(super) head: Vec<u8>,
    /// Bytes behind the head that belong to it.
    pub(super) body: u64,
}

/// Reads a head, if it is whole, and says how long it is.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADER_CAP];
    let mut head = httparse::Request::new(&mut headers);
    let length = match head.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Answer::too_long()),
        Err(error) => {
            return Err(Answer::malformed(&format!("the head of the request is malformed ({error})")));
        }
    };
    if length > HEAD_CAP {
        return Err(Answer::too_long());
    }
    let (Some(method), Some(path)) = (head.method, head.path) else {
        return Err(Answer::malformed("the request has no method or no target"));
    };
    if method == "CONNECT" {
        let target = target(path, None).ok_or_else(|| Answer::malformed("CONNECT needs host:port"))?;
        return Ok(Some((Request { target, forward: None }, length)));
    }
    let Some((scheme, rest)) = path.split_once("://") else {
        return Err(Answer::malformed("this is a proxy: a request must name its whole URL, or use CONNECT"));
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(Answer::malformed("only http URLs are sent on; use CONNECT for everything else"));
    }
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let target =
        target(authority, Some(80)).ok_or_else(|| Answer::malformed("the URL's host is malformed"))?;
    let body = body_length(head.headers)?;
    let head = rewrite(method, path, &target, head.headers);
    Ok(Some((Request { target, forward: Some(Forward { head, body }) }, length)))
}

/// `host:port`, or `host` where there is a port to assume. Names and passwords before an `@` make it none.
fn target(authority: &str, assumed: Option<u16>) -> Option<Target> {
    let (host, port) = match split_port(authority) {
        Some((host, port)) => (host, port),
        None => (authority.strip_suffix(':').unwrap_or(authority), assumed?),
    };
    host_name(host).map(|host| Target { host, port })
}

/// How many bytes of body follow. Where two readers could come to different answers there is none: behind the
/// body of one request another one could be hidden.
fn body_length(headers: &[httparse::Header<'_>]) -> Result<u64, Answer> {
    let named =
        |name: &'static str| headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    if named("transfer-encoding").next().is_some() {
        return Err(Answer::length_required());
    }
    let mut lengths = named("content-length").map(|header| {
        let text = std::str::from_utf8(header.value).ok().map(str::trim)?;
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    });
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(0),
        (Some(Some(length)), None) => Ok(length),
        _ => Err(Answer::malformed("the length of the body is malformed")),
    }
}

/// Headers that are meant for the proxy and not for the host behind it, and those that we write ourselves.
const OURS: &[&str] = &[
    "host",
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
];

/// The head for the host itself. Its name is taken from the URL, which is what has been checked.
fn rewrite(method: &str, path: &str, target: &Target, headers: &[httparse::Header<'_>]) -> Vec<u8> {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let host = match (target.port, target.host.contains(':')) {
        (80, true) => format!("[{}]", target.host),
        (80, false) => target.host.clone(),
        _ => target.with_port(),
    };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n").into_bytes();
    // What a client lists in its own Connection header was meant for us too.
    let listed: Vec<String> = headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("connection"))
        .flat_map(|header| {
            String::from_utf8_lossy(header.value)
                .to_ascii_lowercase()
                .split(',')
                .map(|name| name.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .filter(|name| name != "content-length")
        .collect();
    for header in headers {
        let name = header.name.to_ascii_lowercase();
        if !OURS.contains(&&*name) && !listed.contains(&name) {
            head.extend_from_slice(header.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(header.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// An answer of the proxy's own.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    status: &'static str,
    body: String,
}

impl Answer {
    fn new(status: &'static str, body: String) -> Self {
        Self { status, body }
    }

    fn malformed(problem: &str) -> Self {
        Self::new("400 Bad Request", problem.to_owned())
    }

    fn length_required() -> Self {
        Self::new(
            "411 Length Required",
            "a request with a body must say its length; send it in one piece".to_owned(),
        )
    }

    pub(super) fn too_slow() -> Self {
        Self::new("408 Request Timeout", "the head of the request did not come in time".to_owned())
    }

    pub(super) fn too_long() -> Self {
        let body = format!("the head of the request is longer than {HEAD_CAP} bytes or {HEADER_CAP} headers");
        Self::new("431 Request Header Fields Too Large", body)
    }

    pub(super) fn not_allowed(target: &Target) -> Self {
        let body = format!(
            "{} is not among the hosts that the sandbox may reach. Only a person can allow it, with \
             --network-allow {}, or open the network with --network",
            target.with_port(),
            target.pattern()
        );
        Self::new("403 Forbidden", body)
    }

    pub(super) fn internal_address(target: &Target, address: IpAddr) -> Self {
        let body = format!(
            "{} leads to {address}, which is not an address of the public internet. Only a person can allow \
             that, by naming it with its port: --network-allow {}",
            target.host,
            target.with_port()
        );
        Self::new("403 Forbidden", body)
    }

    pub(super) fn unreachable(target: &Target, problem: &str) -> Self {
        Self::new(
            "502 Bad Gateway",
            format!("{} is allowed but cannot be reached: {problem}", target.with_port()),
        )
    }

    /// The answer as it is sent.
    pub(super) fn to_http(&self) -> String {
        let body = format!("convoke's proxy: {}\n", self.body);
        format!(
            "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: \
                close\r\n\r\n{body}",
            self.status,
            body.len()
        )
    }
}
