//! What a failed command's words are taken for.

use std::path::PathBuf;

use convoke_sandbox::{Access, LayerSet, Limits, Network, Policy, likely_denial};

fn policy(access: Access, network: Network) -> Policy {
    Policy { access, network, private: PathBuf::from("/private"), ..Policy::off(PathBuf::from("/w")) }
}

/// By what a note is known.
fn kind(note: Option<String>) -> &'static str {
    match note {
        None => "none",
        Some(note) => {
            assert!(note.starts_with("Note: this may come from the sandbox"), "{note}");
            assert!(note.len() < 500, "{note}");
            assert!(note.contains("Only a person can") || note.contains("Use less at a time"), "{note}");
            match () {
                () if note.contains("may write to") => "file",
                () if note.contains("network is off") || note.contains("reach only these hosts") => "network",
                () if note.contains("open files per process") => "limit",
                () => panic!("of no kind: {note}"),
            }
        }
    }
}

/// Fails with this output where everything is closed.
fn check(output: &str, expected: &str) {
    let policy = policy(Access::Workspace, Network::Off);
    assert_eq!(
        kind(likely_denial(output, Some(1), &policy, Some(LayerSet::Namespaces))),
        expected,
        "{output}"
    );
}

#[test]
fn a_host_that_cannot_be_reached_is_noted_and_one_on_this_machine_is_not() {
    let policy = policy(Access::Workspace, Network::Off);
    let note = |text: &str| likely_denial(text, Some(7), &policy, Some(LayerSet::Namespaces));
    assert!(
        note("curl: (7) Failed to connect to 1.1.1.1 port 80 after 0 ms: Couldn't connect to server")
            .is_some()
    );
    assert!(note("curl: (7) Failed to connect to localhost port 80: Couldn't connect to server").is_none());
}

#[test]
fn every_spelling_of_a_refused_file_is_known() {
    for output in [
        "touch: cannot touch '/etc/x': Read-only file system",
        "cat: /root/.ssh/id_rsa: Permission denied",
        "chown: changing ownership of 'a': Operation not permitted",
        "PermissionError: [Errno 13] Permission denied: '/etc/x'",
        "OSError: [Errno 30] oops",
        "Error: EACCES: permission denied, open '/etc/x'",
        "Error: EROFS: read-only file system, mkdir '/usr/x'",
        "  errno: -1, code: 'EPERM'",
        "open /etc/x: permission denied",
        "Error: Os { code: 30, kind: ReadOnlyFilesystem, message: \"Read-only file system\" }",
        "error: failed to write `/x`\nCaused by:\n  (os error 30)",
        "failed to create directory (os error 13)",
        "java.nio.file.AccessDeniedException: /etc/x",
        "fatal: Unable to create '/w/.git/index.lock': Read-only file system",
    ] {
        check(output, "file");
    }
}

#[test]
fn every_spelling_of_a_closed_network_is_known() {
    for output in [
        "curl: (6) Could not resolve host: example.com",
        "ping: connect: Network is unreachable",
        "wget: unable to resolve host address 'example.com'",
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "OSError: [Errno 101] Network is unreachable",
        "Error: getaddrinfo EAI_AGAIN registry.npmjs.org",
        "Error: getaddrinfo ENOTFOUND registry.npmjs.org",
        "dial tcp: lookup proxy.golang.org: no such host",
        "error: failed to lookup address information: Name or service not known",
        "ssh: Could not resolve hostname github.com: Temporary failure in name resolution",
        "curl: (56) CONNECT tunnel failed, response 403",
        "fatal: unable to access 'https://x/': Received HTTP code 403 from proxy after CONNECT",
        "connect failed (os error 101)",
        "java.net.UnknownHostException: example.com",
    ] {
        check(output, "network");
    }
}

#[test]
fn every_spelling_of_a_limit_is_known() {
    for output in [
        "dd: error writing 'x': No space left on device",
        "bash: line 1: 77 File size limit exceeded",
        "dd: error writing 'x': File too large",
        "bash: fork: retry: Resource temporarily unavailable",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable in os.fork()",
        "sh: 1: Cannot fork",
        "MemoryError",
        "mmap: Cannot allocate memory",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "memory allocation of 8589934592 bytes failed",
        "java.lang.OutOfMemoryError: unable to create native thread",
        "Error: EMFILE: too many open files, open 'x'",
        "thread spawn failed (os error 11)",
    ] {
        check(output, "limit");
    }
}

#[test]
fn unrelated_failures_are_let_be() {
    for output in [
        "",
        "error[E0308]: mismatched types",
        "make: *** [all] Error 13",
        "No such file or directory (os error 2)",
        "File exists (os error 17)",
        "[Errno 111] Connection refused",
        "connect to 127.0.0.1 port 5432: Connection refused",
        "flock: Resource temporarily unavailable",
        "the word superman holds no eperm_table",
        "[Errno 133] what",
    ] {
        check(output, "none");
    }
}

#[test]
fn the_last_telling_line_decides() {
    check("Permission denied\nCould not resolve host: x\nfailed", "network");
    check("Could not resolve host: x\nPermission denied\nfailed", "file");
    let long = format!("Permission denied\n{}", "ä line that means nothing\n".repeat(5000));
    check(&long, "none");
}

#[test]
fn success_and_the_unconfined_are_never_noted() {
    let confined = policy(Access::ReadOnly, Network::Off);
    let set = Some(LayerSet::Landlock);
    let text = "Permission denied";
    assert_eq!(likely_denial(text, Some(0), &confined, set), None);
    assert_eq!(likely_denial(text, Some(1), &confined, None), None);
    assert_eq!(likely_denial(text, Some(1), &policy(Access::Off, Network::Off), set), None);
    assert_eq!(kind(likely_denial(text, None, &confined, set)), "file");
}

#[test]
fn an_open_network_is_never_to_blame() {
    let open = policy(Access::Workspace, Network::On);
    assert_eq!(likely_denial("Could not resolve host: x", Some(6), &open, Some(LayerSet::Namespaces)), None);
}

#[test]
fn refused_sockets_are_the_network_where_it_has_no_namespace() {
    let closed = policy(Access::Workspace, Network::Off);
    let output = "socket: Operation not permitted";
    assert_eq!(kind(likely_denial(output, Some(1), &closed, Some(LayerSet::Landlock))), "network");
    assert_eq!(kind(likely_denial(output, Some(1), &closed, Some(LayerSet::Namespaces))), "file");
}

#[test]
fn the_note_says_what_is_allowed_and_what_would_widen_it() {
    let note = |output: &str, code, access, network, set| {
        likely_denial(output, Some(code), &policy(access, network), Some(set)).unwrap()
    };
    let has = |note: String, words: &[&str]| {
        words.iter().for_each(|word| assert!(note.contains(word), "{word}: {note}"))
    };
    let denied = "Permission denied";
    let copy = note(denied, 1, Access::ReadOnly, Network::Off, LayerSet::Landlock);
    has(copy, &["policy is read-only", "copy of /w at /private/copy", "--sandbox workspace"]);
    let overlay = note(denied, 1, Access::ReadOnly, Network::Off, LayerSet::Namespaces);
    has(overlay, &["copy of /w, seen at that path"]);
    let workspace = note(denied, 1, Access::Workspace, Network::Off, LayerSet::Namespaces);
    has(workspace, &["policy is workspace", "/w without its .git", "--sandbox off"]);
    let offline = note("Network is unreachable", 1, Access::ReadOnly, Network::Off, LayerSet::Namespaces);
    has(offline, &["--network-allow HOST", "--network for all"]);
    let hosts = Network::Hosts((0..14).map(|number| format!("h{number}.example")).collect());
    let proxied = "connect to 127.0.0.1 port 3128: Connection refused";
    let listed = note(proxied, 7, Access::ReadOnly, hosts, LayerSet::Namespaces);
    has(listed, &["h0.example, h1.example", "and 2 more", "--network-allow HOST"]);
    let none =
        note("Network is unreachable", 1, Access::ReadOnly, Network::Hosts(vec![]), LayerSet::Namespaces);
    has(none, &["HTTPS_PROXY: none"]);
    let limit = note("", 153, Access::ReadOnly, Network::Off, LayerSet::Namespaces);
    has(limit, &["4 GiB of memory", "512 processes", "files of 2 GiB", "4096 open files"]);
    let odd = Policy {
        limits: Limits { memory: 1500, ..Limits::default() },
        ..policy(Access::ReadOnly, Network::Off)
    };
    has(
        likely_denial("MemoryError", Some(1), &odd, Some(LayerSet::Landlock)).unwrap(),
        &["1500 bytes of memory"],
    );
}
