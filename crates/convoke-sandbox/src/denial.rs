//! Whether a command failed as the sandbox can make it fail, and what the model is then told. Reads words, so
//! it says what is likely and never what is certain; it decides nothing about what is allowed.

use crate::policy::{Access, LayerSet, Limits, Network, Policy};

/// What a sandbox can take away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Network,
    Limit,
}

/// Only the end of a long output is looked at: what made a command fail stands near its end.
const LOOKED_AT: usize = 64 * 1024;

/// The exit code of a command that passed the size limit for a file: 128 and SIGXFSZ.
const FILE_TOO_LARGE: i32 = 153;

/// A note for the model, if a failed command's output looks as this policy can make it look: what is allowed,
/// and what would widen it. `None` for a command that succeeded, and where nothing is confined.
pub fn likely(
    output: &str,
    exit_code: Option<i32>,
    policy: &Policy,
    set: Option<LayerSet>,
) -> Option<String> {
    let set = set.filter(|_| policy.access != Access::Off && exit_code != Some(0))?;
    let kind =
        if exit_code == Some(FILE_TOO_LARGE) { Kind::Limit } else { kind(end_of(output), policy, set)? };
    Some(match kind {
        Kind::File => about_files(policy, set),
        Kind::Network => about_network(&policy.network)?,
        Kind::Limit => about_limits(&policy.limits),
    })
}

fn end_of(output: &str) -> &str {
    let start = output.len().saturating_sub(LOOKED_AT);
    output.get(output.ceil_char_boundary(start)..).unwrap_or(output)
}

/// Words by which programs tell of a refused file, in lower case. The short ones count only as whole words.
const FILE: &[&str] = &[
    "read-only file system",
    "permission denied",
    "operation not permitted",
    "access is denied",
    "permissionerror",
    "accessdeniedexception",
    "erofs",
    "eacces",
    "eperm",
    "[errno 1]",
    "[errno 13]",
    "[errno 30]",
    "os error 1",
    "os error 13",
    "os error 30",
];

/// Words by which programs tell of a network that is not there.
const NETWORK: &[&str] = &[
    "network is unreachable",
    "network unreachable",
    "no route to host",
    "could not resolve",
    "couldn't resolve",
    "unable to resolve",
    "cannot resolve",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "nodename nor servname",
    "name resolution",
    "failed to lookup address",
    "no such host",
    "unknownhostexception",
    "connect tunnel failed",
    "from proxy after connect",
    "tunnel connection failed",
    "proxy connect aborted",
    "proxyerror",
    "cannot connect to proxy",
    "could not connect to proxy",
    "unexpected eof from proxy",
    "enetunreach",
    "ehostunreach",
    "eai_again",
    "enotfound",
    "[errno 101]",
    "[errno 113]",
    "[errno -2]",
    "[errno -3]",
    "os error 101",
    "os error 113",
];

/// Words by which programs tell that there is no more of something.
const LIMIT: &[&str] = &[
    "no space left on device",
    "file size limit exceeded",
    "file too large",
    "disk quota exceeded",
    "cannot allocate memory",
    "out of memory",
    "memory allocation of",
    "memoryerror",
    "outofmemoryerror",
    "std::bad_alloc",
    "too many open files",
    "fork: retry",
    "cannot fork",
    "can't fork",
    "unable to create native thread",
    "failed to spawn thread",
    "can't start new thread",
    "enospc",
    "efbig",
    "enomem",
    "emfile",
    "[errno 12]",
    "[errno 24]",
    "[errno 27]",
    "[errno 28]",
    "os error 12",
    "os error 24",
    "os error 27",
    "os error 28",
];

/// Words that mean a limit only beside talk of a new process: they are said of files in use and of pipes too.
const BUSY: &[&str] = &["resource temporarily unavailable", "eagain", "os error 11", "[errno 11]"];
const STARTING: &[&str] = &["fork", "clone", "spawn", "thread", "process"];

/// Words that mean the network unless they are about something on this machine, which just does not listen.
const UNREACHED: &[&str] =
    &["couldn't connect to server", "could not connect to server", "failed to connect to"];

/// Words that mean the network only beside the address of a proxy on this machine.
const REFUSED: &[&str] = &["connection refused", "econnrefused", "[errno 111]", "os error 111"];
const LOCAL: &[&str] = &["127.0.0.1", "localhost"];

/// Words beside which a refusal is about the network: without a network of their own, sockets are refused
/// like files.
const SOCKETS: &[&str] =
    &["socket", "connect", "resolv", "getaddrinfo", "dial tcp", "dial udp", "network", "dns", "http", "bind"];

/// What the last telling line is about. The last, since earlier ones are often survived.
fn kind(output: &str, policy: &Policy, set: LayerSet) -> Option<Kind> {
    output.lines().rev().find_map(|line| {
        let line = line.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| stands_in(&line, word));
        let mentions = |words: &[&str]| words.iter().any(|word| line.contains(word));
        let through_proxy = matches!(policy.network, Network::Hosts(_));
        let closed = policy.network != Network::On;
        if closed
            && (has(NETWORK)
                || has(UNREACHED) && !mentions(LOCAL)
                || through_proxy && has(REFUSED) && mentions(LOCAL))
        {
            Some(Kind::Network)
        } else if has(LIMIT) || has(BUSY) && mentions(STARTING) {
            Some(Kind::Limit)
        } else if has(FILE) {
            let sockets_refused = closed && set == LayerSet::Landlock;
            Some(if sockets_refused && mentions(SOCKETS) { Kind::Network } else { Kind::File })
        } else {
            None
        }
    })
}

/// Whether the word stands in the line as a word of its own, so that `os error 1` is not found in `os error
/// 17`.
fn stands_in(line: &str, word: &str) -> bool {
    let part_of_word =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let begins_or_ends = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        // Names of exceptions are often the end of a longer name.
        let clear_before = word.len() > 7 || !begins_or_ends(word.chars().next()) || !part_of_word(before);
        let clear_after = !begins_or_ends(word.chars().next_back()) || !part_of_word(after);
        clear_before && clear_after
    })
}

const OPENING: &str = "Note: this may come from the sandbox and not from the command.";

fn about_files(policy: &Policy, set: LayerSet) -> String {
    let workspace = policy.workspace.display();
    let (name, write, flag) = match (policy.access, set) {
        (Access::ReadOnly, LayerSet::Namespaces) => (
            "read-only",
            format!("a throwaway copy of {workspace}, seen at that path"),
            "--sandbox workspace",
        ),
        (Access::ReadOnly, LayerSet::Landlock) => {
            let copy = policy.private.join("copy");
            (
                "read-only",
                format!("a throwaway copy of {workspace} at {}", copy.display()),
                "--sandbox workspace",
            )
        }
        (_, LayerSet::Namespaces) if policy.own_git.is_some() => {
            ("workspace", format!("{workspace} and a git dir of their own"), "--sandbox off")
        }
        (_, LayerSet::Namespaces) => ("workspace", format!("{workspace} without its .git"), "--sandbox off"),
        (_, LayerSet::Landlock) => ("workspace", workspace.to_string(), "--sandbox off"),
    };
    format!(
        "{OPENING} Its policy is {name}: commands may write to {write}, and to their private temporary \
         directory; the home directory and credentials cannot be read. Work within that if you can. Only a \
         person can widen it, with {flag}."
    )
}

/// `None` if the network is open.
fn about_network(network: &Network) -> Option<String> {
    match network {
        Network::On => None,
        Network::Off => Some(format!(
            "{OPENING} Its network is off: commands reach no other machine. Work offline if you can. Only a \
             person can open it, with --network-allow HOST for single hosts or --network for all."
        )),
        Network::Hosts(hosts) => Some(format!(
            "{OPENING} Commands reach only these hosts, over HTTP and HTTPS through the proxy in \
             HTTPS_PROXY: {}. Only a person can add one, with --network-allow HOST, or open the network \
             with --network.",
            some_of(hosts)
        )),
    }
}

/// The first few of a list, and how many more there are.
fn some_of(hosts: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = hosts.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if hosts.is_empty() {
        text.push_str("none");
    } else if hosts.len() > SHOWN {
        text.push_str(&format!(" and {} more", hosts.len() - SHOWN));
    }
    text
}

fn about_limits(limits: &Limits) -> String {
    format!(
        "{OPENING} A command and all it starts may use {} of memory, {} processes, files of {} each and {} \
         open files per process. Use less at a time, such as fewer parallel jobs.",
        size(limits.memory),
        limits.processes,
        size(limits.file_size),
        limits.open_files
    )
}

/// A size in the largest unit that shows it whole.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}
