//! The proxy over real sockets, with real hosts on this machine.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use convoke_sandbox::serve_proxy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::{LONG, until};

/// A proxy and the hosts that it has turned away.
struct Proxy {
    address: SocketAddr,
    refused: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Proxy {
    async fn new(allowed: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let refused = Arc::new(Mutex::new(Vec::new()));
        let tell = Arc::clone(&refused);
        let allowed = allowed.iter().map(|host| (*host).to_owned()).collect();
        let note = move |host: &str| tell.lock().unwrap().push(host.to_owned());
        let task = tokio::spawn(async move { serve_proxy(listener, allowed, note).await });
        Self { address, refused, task }
    }

    /// Sends all of this, and reads until the proxy hangs up.
    async fn ask(&self, request: &[u8]) -> String {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(request).await.unwrap();
        String::from_utf8(rest(&mut client).await).unwrap()
    }

    async fn check(&self, request: &str, expected: &str) {
        let answer = self.ask(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{request:?}: {answer:?}");
    }

    /// The proxy tells of a refusal about when it answers, so it is waited for.
    async fn check_refused(&self, expected: &[&str]) {
        until("all refusals are told", || self.refused.lock().unwrap().len() >= expected.len()).await;
        assert_eq!(*self.refused.lock().unwrap(), expected);
    }

    /// A tunnel that has been granted.
    async fn tunnel(&self, to: SocketAddr, first: &[u8]) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client
            .write_all(&[format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes(), first].concat())
            .await
            .unwrap();
        let expected = b"HTTP/1.1 200 Connection established\r\n\r\n";
        let mut answer = vec![0; expected.len()];
        tokio::time::timeout(LONG, client.read_exact(&mut answer)).await.unwrap().unwrap();
        assert_eq!(answer, expected);
        client
    }
}

async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    tokio::time::timeout(LONG, stream.read_to_end(&mut bytes)).await.unwrap().unwrap();
    bytes
}

/// A host that sends back all it got, once the other side has said all.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                stream.read_to_end(&mut bytes).await.unwrap();
                stream.write_all(&bytes).await.unwrap();
            });
        }
    });
    address
}

/// A host that takes all up to `end`, answers and hangs up; what it took, and what came behind, is given
/// back.
async fn host(end: &'static str, answer: &'static str) -> (SocketAddr, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = Vec::new();
        while !bytes.ends_with(end.as_bytes()) {
            assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "{bytes:?}");
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        stream.read_to_end(&mut bytes).await.unwrap();
        String::from_utf8(bytes).unwrap()
    });
    (address, task)
}

#[tokio::test]
async fn a_tunnel_carries_everything_and_each_side_may_end_first() {
    let to = echo().await;
    let proxy = Proxy::new(&[&to.to_string()]).await;
    // What came with the request goes through the tunnel too.
    let mut client = proxy.tunnel(to, b"early ").await;
    let much = vec![7; 3_000_000];
    client.write_all(&much).await.unwrap();
    client.shutdown().await.unwrap();
    let back = rest(&mut client).await;
    assert_eq!((back.len(), &back[..6], back[6..] == much), (3_000_006, &b"early "[..], true));
    assert!(proxy.refused.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_plain_request_is_sent_on_and_its_answer_comes_back() {
    let (to, task) = host("body", "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello").await;
    let proxy = Proxy::new(&[&to.to_string()]).await;
    // A second request behind the first, for whichever host, goes nowhere.
    let request = format!(
        "POST http://{to}/x HTTP/1.1\r\nHost: elsewhere\r\nProxy-Connection: keep-alive\r\nContent-Length: \
            4\r\n\r\nbody\
         GET http://evil.example/ HTTP/1.1\r\n\r\n"
    );
    assert_eq!(proxy.ask(request.as_bytes()).await, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
    let sent =
        format!("POST /x HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody");
    assert_eq!(task.await.unwrap(), sent);
}

#[tokio::test]
async fn a_host_that_answers_before_it_has_the_whole_body_is_heard() {
    let (to, _task) = host("\r\n\r\n", "HTTP/1.1 413 Too Large\r\nConnection: close\r\n\r\n").await;
    let proxy = Proxy::new(&[&to.to_string()]).await;
    let mut client = TcpStream::connect(proxy.address).await.unwrap();
    let request = format!("POST http://{to}/ HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
    client.write_all(request.as_bytes()).await.unwrap();
    assert!(rest(&mut client).await.starts_with(b"HTTP/1.1 413 "));
}

#[tokio::test]
async fn a_host_that_is_not_allowed_is_refused_with_the_way_out() {
    let proxy = Proxy::new(&["crates.io", "127.0.0.1:1"]).await;
    let answer = proxy.ask(b"CONNECT evil.example:443 HTTP/1.1\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    assert!(answer.contains("Only a person can allow it, with --network-allow evil.example,"), "{answer}");
    proxy.check("GET http://evil.example:8080/ HTTP/1.1\r\n\r\n", "403").await;
    proxy.check("CONNECT crates.io:22 HTTP/1.1\r\n\r\n", "403").await;
    proxy.check("CONNECT 127.0.0.1:2 HTTP/1.1\r\n\r\n", "403").await;
    proxy.check_refused(&["evil.example", "evil.example:8080", "crates.io:22", "127.0.0.1:2"]).await;
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_unless_it_was_meant() {
    let to = echo().await;
    let port = to.port();
    // By its name alone, on the usual ports, it is meant as a name of the internet.
    let proxy = Proxy::new(&["localhost", "*.localhost"]).await;
    let answer = proxy.ask(b"CONNECT localhost:443 HTTP/1.1\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("not an address of the public internet"),
        "{answer}"
    );
    proxy.check_refused(&["localhost"]).await;
    // With its port it is meant as it is.
    let proxy = Proxy::new(&[&format!("localhost:{port}")]).await;
    let mut client = TcpStream::connect(proxy.address).await.unwrap();
    client.write_all(format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nhello").as_bytes()).await.unwrap();
    client.shutdown().await.unwrap();
    let answer = String::from_utf8(rest(&mut client).await).unwrap();
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nhello");
}

#[tokio::test]
async fn a_host_that_is_allowed_and_not_there_is_another_matter() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = Proxy::new(&[&free.to_string(), "no-such-host.invalid"]).await;
    proxy.check(&format!("CONNECT {free} HTTP/1.1\r\n\r\n"), "502").await;
    proxy.check("GET http://no-such-host.invalid/ HTTP/1.1\r\n\r\n", "502").await;
    assert!(proxy.refused.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_is_no_request_is_answered_and_cut() {
    let proxy = Proxy::new(&["a.example"]).await;
    for garbage in [
        "\u{16}\u{3}\u{1}\u{2}\0\u{1}\0",
        "GET\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nNo colon here\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nX: a\r\n folded\r\n\r\n",
        "CONNECT a.example:443:443 HTTP/1.1\r\n\r\n",
        "CONNECT u@a.example:443 HTTP/1.1\r\n\r\n",
    ] {
        proxy.check(garbage, "400").await;
    }
    let endless = format!("GET http://a.example/ HTTP/1.1\r\nX: {}", "x".repeat(40_000));
    proxy.check(&endless, "431").await;
    let many = format!("GET http://a.example/ HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(200));
    proxy.check(&many, "431").await;
    // A client that says nothing gets nothing, and disturbs no other client.
    drop(TcpStream::connect(proxy.address).await.unwrap());
    proxy.check("CONNECT evil.example:443 HTTP/1.1\r\n\r\n", "403").await;
}

#[tokio::test]
async fn a_head_may_come_in_pieces() {
    let to = echo().await;
    let proxy = Proxy::new(&[&to.to_string()]).await;
    let mut client = TcpStream::connect(proxy.address).await.unwrap();
    client.set_nodelay(true).unwrap();
    for byte in format!("CONNECT {to} HTTP/1.1\r\n\r\nx").bytes() {
        client.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    client.shutdown().await.unwrap();
    assert_eq!(rest(&mut client).await, b"HTTP/1.1 200 Connection established\r\n\r\nx");
}

#[tokio::test]
async fn many_connections_are_served_at_once() {
    let to = echo().await;
    let proxy = Proxy::new(&[&to.to_string()]).await;
    // All are open before the first one ends.
    let mut open = Vec::new();
    for number in 0..100_u32 {
        open.push((number, proxy.tunnel(to, &number.to_be_bytes()).await));
    }
    for (number, mut client) in open {
        client.shutdown().await.unwrap();
        assert_eq!(rest(&mut client).await, number.to_be_bytes());
    }
}

#[tokio::test]
async fn everything_ends_with_the_proxy() {
    let to = echo().await;
    let mut proxy = Proxy::new(&[&to.to_string()]).await;
    let mut client = proxy.tunnel(to, b"").await;
    proxy.task.abort();
    assert!((&mut proxy.task).await.unwrap_err().is_cancelled());
    let mut byte = [0];
    let read = tokio::time::timeout(LONG, client.read(&mut byte)).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(TcpStream::connect(proxy.address).await.is_err());
}
