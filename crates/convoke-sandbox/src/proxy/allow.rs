//! Which hosts may be reached: patterns for names, and the addresses that no name alone may lead to. Pure.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Whether a pattern can be used: a name (`crates.io`), the names below one (`*.crates.io`), or an address,
/// each with an optional port; without one it means the ports 80 and 443. The error says what is wrong with
/// it.
///
/// A name alone, and `*.` with or without a port, leads only to addresses of the public internet. A name with
/// its port, or an address, is taken at its word.
pub fn check_host(pattern: &str) -> Result<(), String> {
    Pattern::new(pattern).map(drop)
}

/// How far a permission goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    /// Nowhere.
    None,
    /// To the public internet.
    Public,
    /// To whatever address the name has, because a person named exactly this.
    Any,
}

#[derive(Debug)]
struct Pattern {
    host: Host,
    port: Option<u16>,
}

#[derive(Debug)]
enum Host {
    Name(String),
    /// With its leading dot.
    Below(String),
    Address(IpAddr),
}

impl Pattern {
    fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Ok(address) = text.parse() {
            return Ok(Self { host: Host::Address(canonical(address)), port: None });
        }
        let (host, port) = match split_port(text) {
            Some((host, port)) => (host, Some(port)),
            None if text.contains(':') && !text.starts_with('[') => {
                return Err(format!(
                    "{text} is no host: write host or host:port, without http:// and without a path"
                ));
            }
            None => (text, None),
        };
        // No name has such a part; the text was meant as a flag.
        if host.split('.').any(|part| part.starts_with('-') || part.ends_with('-')) {
            return Err(format!("{text} is no host: no part of a name begins or ends with a dash"));
        }
        let host = match host.strip_prefix("*.") {
            Some(parent) => host_name(parent)
                .filter(|parent| parent.parse::<IpAddr>().is_err())
                .map(|name| Host::Below(format!(".{name}"))),
            None => host_name(host).map(|name| match name.parse() {
                Ok(address) => Host::Address(canonical(address)),
                Err(_) => Host::Name(name),
            }),
        };
        let host = host.ok_or_else(|| {
            format!(
                "{text} is no host: write a name (crates.io), the names below one (*.crates.io) or an address"
            )
        })?;
        Ok(Self { host, port })
    }

    fn takes_port(&self, port: u16) -> bool {
        self.port.map_or(port == 80 || port == 443, |own| own == port)
    }

    fn permission(&self, host: &str, port: u16) -> Permission {
        let address = host.parse().ok().map(canonical);
        let fits = match &self.host {
            Host::Name(name) => name == host,
            Host::Below(suffix) => {
                address.is_none() && host.len() > suffix.len() && host.ends_with(suffix.as_str())
            }
            Host::Address(own) => address == Some(*own),
        };
        match self.host {
            _ if !fits || !self.takes_port(port) => Permission::None,
            Host::Address(_) => Permission::Any,
            Host::Name(_) if self.port.is_some() => Permission::Any,
            Host::Name(_) | Host::Below(_) => Permission::Public,
        }
    }
}

/// Everything that is allowed.
#[derive(Debug)]
pub(super) struct AllowList(Vec<Pattern>);

impl AllowList {
    /// Patterns that cannot be used allow nothing.
    pub(super) fn new(patterns: &[String]) -> Self {
        Self(patterns.iter().filter_map(|pattern| Pattern::new(pattern).ok()).collect())
    }

    /// How far one may go to this host, which is in the form that `host_name` gives.
    pub(super) fn permission(&self, host: &str, port: u16) -> Permission {
        let found = || self.0.iter().map(|pattern| pattern.permission(host, port));
        if found().any(|permission| permission == Permission::Any) {
            Permission::Any
        } else if found().any(|permission| permission == Permission::Public) {
            Permission::Public
        } else {
            Permission::None
        }
    }

    /// Whether a permission reaches this address of a host: an internal one must itself have been named.
    pub(super) fn may_reach(&self, permission: Permission, address: SocketAddr) -> bool {
        let ip = canonical(address.ip());
        match permission {
            Permission::None => false,
            Permission::Any => true,
            Permission::Public => {
                is_public(ip)
                    || self.0.iter().any(|pattern| {
                        matches!(pattern.host, Host::Address(own) if own == ip)
                            && pattern.takes_port(address.port())
                    })
            }
        }
    }
}

/// Splits `host:port`; an address with colons of its own stands in brackets.
pub(super) fn split_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let plain = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|&port| port != 0)?;
    (plain && digits).then_some((host, port))
}

/// The one form of a host's name: lower case, no dot at its end, an address without its brackets. `None` for
/// what is no name; names beyond ASCII come in their ASCII form.
pub(super) fn host_name(text: &str) -> Option<String> {
    if let Some(address) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return address.parse::<Ipv6Addr>().ok().map(|address| address.to_string());
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    (name.len() <= 253 && name.split('.').all(label)).then_some(name)
}

/// An address that only dresses another one is that other one.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Whether an address is one of the public internet, by the registries of special addresses. What is not may
/// be this machine, its neighbours, or the place where a cloud keeps a machine's credentials.
fn is_public(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match a {
        0 | 10 | 127 | 224.. => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => b == 168 || (b == 0 && (c == 0 || c == 2)) || (b == 88 && c == 99),
        198 => b == 18 || b == 19 || (b == 51 && c == 100),
        203 => b == 0 && c == 113,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let words = address.segments();
    let within = |high: u16, low: u16| {
        let [a, b, c, d] = [high >> 8, high & 0xff, low >> 8, low & 0xff].map(|byte| byte as u8);
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match words {
        // Translated addresses lead to the address that they carry.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => within(high, low),
        // Tunnels that carry an address in disguise, protocol assignments, and what is kept for documents.
        [0x2001, 0..0x200 | 0xdb8, ..] | [0x3fff, 0..0x1000, ..] => false,
        // Only this eighth of all addresses has been given out.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}
