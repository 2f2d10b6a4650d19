//! Tables for what is decided without a socket, and the timeouts, which only a short patience can show.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::allow::{AllowList, Permission, host_name};
use super::{Timing, check_host, head, serve_within};

fn list(patterns: &[&str]) -> AllowList {
    AllowList::new(&patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>())
}

#[test]
fn patterns_allow_what_they_say_and_no_more() {
    use Permission::*;
    let check = |pattern: &str, host: &str, port: u16, expected: Permission| {
        let host = host_name(host).unwrap();
        assert_eq!(list(&[pattern]).permission(&host, port), expected, "{pattern} for {host}:{port}");
    };
    check("crates.io", "crates.io", 443, Public);
    check("crates.io", "CRATES.IO.", 80, Public);
    check("Crates.io.", "crates.io", 80, Public);
    check("crates.io", "crates.io", 8080, None);
    check("crates.io", "static.crates.io", 443, None);
    check("crates.io", "notcrates.io", 443, None);
    check("*.crates.io", "static.crates.io", 443, Public);
    check("*.crates.io", "a.b.crates.io", 443, Public);
    check("*.crates.io", "crates.io", 443, None);
    check("*.crates.io", "notcrates.io", 443, None);
    check("*.crates.io", "crates.io.evil.example", 443, None);
    check("*.crates.io:8443", "a.crates.io", 8443, Public);
    check("host:8080", "host", 8080, Any);
    check("host:8080", "host", 443, None);
    check("10.0.0.1", "10.0.0.1", 443, Any);
    check("10.0.0.1", "10.0.0.1", 22, None);
    check("10.0.0.1:22", "10.0.0.1", 22, Any);
    check("*.0.0.1", "127.0.0.1", 80, None);
    check("[::1]:8080", "[::1]", 8080, Any);
    check("::1", "[0:0::1]", 80, Any);
    check("127.0.0.1", "[::ffff:127.0.0.1]", 80, Any);
    check("crates.io", "127.0.0.1", 80, None);
    assert_eq!(list(&["a", "a:443"]).permission("a", 443), Any);
    assert_eq!(list(&[]).permission("a", 443), None);
}

#[test]
fn patterns_that_are_none_are_told() {
    for pattern in [
        "crates.io",
        "*.crates.io",
        "h:1",
        "1.2.3.4",
        "1.2.3.4:5",
        "::1",
        "[::1]",
        "[::1]:5",
        "a_b",
        "localhost",
    ] {
        assert_eq!(check_host(pattern), Ok(()), "{pattern}");
    }
    for pattern in [
        "",
        "*",
        "*.",
        "a.*",
        "*a",
        "http://a",
        "a/b",
        "a:",
        "a:0",
        "a:70000",
        "a:b",
        "a b",
        "a..b",
        "ü.de",
        "[a]",
        "*.1.2.3.4",
        "u@a",
    ] {
        let problem = check_host(pattern).unwrap_err();
        assert!(problem.contains("is no host: write"), "{pattern}: {problem}");
    }
}

#[test]
fn only_public_addresses_are_reached_by_a_name_alone() {
    let check = |address: &str, expected: bool| {
        let address: IpAddr = address.parse().unwrap();
        let reached = list(&["a"]).may_reach(Permission::Public, SocketAddr::new(address, 443));
        assert_eq!(reached, expected, "{address}");
    };
    for public in
        ["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "192.167.1.1", "198.20.0.1", "223.255.255.1"]
    {
        check(public, true);
    }
    for internal in [
        "0.0.0.0",
        "10.1.2.3",
        "127.0.0.1",
        "127.255.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.1",
        "192.168.0.1",
        "100.64.0.1",
        "192.0.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ] {
        check(internal, false);
        check(&format!("::ffff:{internal}"), false);
        check(&format!("64:ff9b::{internal}"), false);
    }
    for public in ["2606:4700::1111", "2002:101:101::1", "64:ff9b::1.1.1.1", "2a00::1"] {
        check(public, true);
    }
    for internal in [
        "::",
        "::1",
        "::127.0.0.1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "fec0::1",
        "ff02::1",
        "2001:0:1::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:a9fe:a9fe::",
        "64:ff9b:1::1",
        "100::1",
    ] {
        check(internal, false);
    }
    // Unless the address itself has been named, at its port.
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let named = list(&["a", "10.0.0.1"]);
    assert!(named.may_reach(Permission::Public, address("10.0.0.1:443")));
    assert!(!named.may_reach(Permission::Public, address("10.0.0.1:8080")));
    assert!(!named.may_reach(Permission::Public, address("10.0.0.2:443")));
    assert!(named.may_reach(Permission::Any, address("10.0.0.2:443")));
}

fn check_target(request: &str, expected: Option<(&str, u16)>) {
    let found = head::parse(format!("{request}\r\n\r\n").as_bytes());
    let found = found.ok().flatten().map(|(request, _)| (request.target.host, request.target.port));
    assert_eq!(found, expected.map(|(host, port)| (host.to_owned(), port)), "{request}");
}

#[test]
fn the_target_is_read_in_one_way_only() {
    check_target("CONNECT a.example:443 HTTP/1.1", Some(("a.example", 443)));
    check_target("CONNECT [::1]:443 HTTP/1.1", Some(("::1", 443)));
    check_target("CONNECT a.example HTTP/1.1", None);
    check_target("CONNECT allowed.example:443@evil.example:443 HTTP/1.1", None);
    check_target("CONNECT a.example:443/x HTTP/1.1", None);
    check_target("CONNECT ::1:443 HTTP/1.1", None);
    check_target("GET http://A.example./x HTTP/1.1", Some(("a.example", 80)));
    check_target("GET http://a.example:81 HTTP/1.0", Some(("a.example", 81)));
    check_target("GET http://a.example:?q HTTP/1.1", Some(("a.example", 80)));
    check_target("GET HTTP://a.example?q HTTP/1.1", Some(("a.example", 80)));
    check_target("GET http://user:pw@evil.example/ HTTP/1.1", None);
    check_target("GET http://a.example#@evil.example/ HTTP/1.1", None);
    check_target("GET http://a.example\\@evil.example/ HTTP/1.1", None);
    check_target("GET http:///x HTTP/1.1", None);
    check_target("GET http://a%2eexample/ HTTP/1.1", None);
    check_target("GET https://a.example/ HTTP/1.1", None);
    check_target("GET ftp://a.example/ HTTP/1.1", None);
    check_target("GET / HTTP/1.1\r\nHost: a.example", None);
    check_target("OPTIONS * HTTP/1.1", None);
}

#[test]
fn a_request_is_sent_on_without_what_was_meant_for_the_proxy() {
    let request = "POST http://a.example:81/x?y HTTP/1.0\r\nHost: evil.example\r\nProxy-Authorization: \
        z\r\nX-A: 1\r\n\
        Connection: X-Mine, close\r\nX-Mine: 2\r\nContent-Length: 3\r\nUpgrade: h2c\r\n\r\nabc";
    let (request, length) = head::parse(request.as_bytes()).unwrap().unwrap();
    let forward = request.forward.unwrap();
    let expected = "POST /x?y HTTP/1.1\r\nHost: a.example:81\r\nConnection: close\r\nX-A: \
        1\r\nContent-Length: 3\r\n\r\n";
    assert_eq!((String::from_utf8(forward.head).unwrap().as_str(), forward.body), (expected, 3));
    assert!(length > expected.len());
}

#[test]
fn bodies_without_one_clear_length_are_refused() {
    let check = |headers: &str, expected: &str| {
        let request = format!("POST http://a.example/ HTTP/1.1\r\n{headers}\r\n\r\n");
        let answer = head::parse(request.as_bytes()).unwrap_err().to_http();
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{headers}: {answer}");
    };
    check("Transfer-Encoding: chunked", "411");
    check("Transfer-Encoding: chunked\r\nContent-Length: 3", "411");
    check("Content-Length: 3\r\nContent-Length: 4", "400");
    check("Content-Length: 3\r\nContent-Length: 3", "400");
    check("Content-Length: +3", "400");
    check("Content-Length: 3, 3", "400");
    check("Content-Length: ", "400");
    check("Content-Length: 99999999999999999999999", "400");
}

const IMPATIENT: Timing = Timing {
    head: Duration::from_millis(100),
    connect: Duration::from_secs(20),
    idle: Duration::from_millis(100),
    farewell: Duration::from_secs(2),
};

async fn ask(allowed: Vec<String>, request: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let work = async {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    };
    tokio::select! {
        () = serve_within(listener, allowed, |_| (), IMPATIENT) => unreachable!("it serves until it is \
            dropped"),
        answer = tokio::time::timeout(Duration::from_secs(60), work) => answer.unwrap(),
    }
}

#[tokio::test]
async fn a_head_that_does_not_come_to_its_end_is_given_up() {
    let answer = ask(Vec::new(), "GET http://a.example/ HTTP/1.1\r\nX-Slow: ").await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn a_tunnel_in_which_nothing_moves_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let answer = ask(vec![address.clone()], &format!("CONNECT {address} HTTP/1.1\r\n\r\n")).await;
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\n");
}

#[tokio::test]
async fn a_host_that_never_answers_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let answer = ask(vec![address.clone()], &format!("GET http://{address}/ HTTP/1.1\r\n\r\n")).await;
    assert_eq!(answer, "");
}
