use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Answers, of which one to `data` waits for a message on `turn`.
struct BlockingAnswers {
    turn: Mutex<Receiver<()>>,
}

impl Answers for BlockingAnswers {
    fn what_if(&self, request: &[u8]) -> Result<Vec<u8>, String> {
        match request {
            b"{}" => Ok(b"fine".to_vec()),
            _ => Err("no such change".to_owned()),
        }
    }

    fn data(&self, request: &[u8]) -> Result<Cow<'_, [u8]>, String> {
        match request {
            b"{}" => Ok(b"head\nblock\n".into()),
            b"slow" => match self.turn.lock().expect("no panic").recv() {
                Ok(()) => Ok(b"late".into()),
                Err(_) => Err("nobody lets it go".to_owned()),
            },
            _ => Err("no such GPU".to_owned()),
        }
    }
}

/// Sends a request, and returns the status and the body.
fn ask(port: u16, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    stream.write_all(request.as_bytes()).expect("writes");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("reads");
    let status = reply.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, reply.split_once("\r\n\r\n").map_or_else(String::new, |(_, body)| body.to_owned()))
}

#[test]
fn only_who_knows_the_token_is_answered() {
    let (port, token) = served();
    assert!(matches!(Server::bind(port), Err(ServeError::Taken { .. })));
    let get = |path: &str, host: &str| {
        ask(port, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    let own = format!("127.0.0.1:{port}");
    assert_eq!(get(&format!("/{token}/"), &own), (200, "<p>page".to_owned()));
    assert_eq!(get("/", &own).0, 403);
    assert_eq!(get("/0123/", &own).0, 403);
    assert_eq!(get(&format!("/{token}/other"), &own).0, 404);
    assert_eq!(get(&format!("/{token}/"), "evil.example").0, 403);
    let post_to = |path: &str, body: &str, more: &str| {
        let length = body.len();
        ask(
            port,
            &format!(
                "POST /{path} HTTP/1.1\r\nHost: {own}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            ),
        )
    };
    let post = |body: &str, more: &str| post_to(&format!("{token}/whatif"), body, more);
    assert_eq!(post("{}", ""), (200, "fine".to_owned()));
    assert_eq!(post("[]", ""), (422, "no such change\n".to_owned()));
    assert_eq!(post("{}", "Origin: http://evil.example\r\n").0, 403);
    assert_eq!(post(&" ".repeat(2 << 20), "").0, 413);
    // The same of the data for another GPU.
    let data = |body: &str, more: &str| post_to(&format!("{token}/data"), body, more);
    assert_eq!(data("{}", ""), (200, "head\nblock\n".to_owned()));
    assert_eq!(data("[]", ""), (422, "no such GPU\n".to_owned()));
    assert_eq!(data("{}", "Origin: http://evil.example\r\n").0, 403);
    assert_eq!(data(&" ".repeat(2 << 20), "").0, 413);
    assert_eq!(post_to("data", "{}", "").0, 403);
    assert_eq!(post_to("0123/data", "{}", "").0, 403);
    assert_eq!(get(&format!("/{token}/data"), &own).0, 405);
}

/// Starts a server with a page and answers, and returns its port and token.
fn served() -> (u16, String) {
    let (port, token, _) = served_slowly();
    (port, token)
}

/// The same, and a sender that releases a waiting answer.
fn served_slowly() -> (u16, String, Sender<()>) {
    let server = Server::bind(0).expect("a free port");
    let (go, turn) = channel();
    let found = (server.port, server.token.clone(), go);
    std::thread::spawn(move || server.run("<p>page", &BlockingAnswers { turn: Mutex::new(turn) }));
    found
}

/// Slow answers, and those whose clients are gone, do not block others.
#[test]
fn a_slow_answer_is_not_in_the_way() {
    let (port, token, go) = served_slowly();
    let to = |path: &str, body: &str| {
        let length = body.len();
        format!(
            "POST /{token}/{path} HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let mut waiting: Vec<_> = (0..3)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
            stream.write_all(to("data", "slow").as_bytes()).expect("writes");
            stream
        })
        .collect();
    let mut idle = TcpStream::connect(("127.0.0.1", port)).expect("connects");
    idle.write_all(&to("data", "slow").as_bytes()[..40]).expect("writes");
    assert!(is_served(port, &token));
    assert_eq!(ask(port, &to("data", "{}")).0, 200);
    assert_eq!(ask(port, &to("whatif", "{}")).0, 200);
    // The clients of these are gone: their answers are dropped, and the last is answered.
    let mut last = waiting.pop().expect("three");
    drop(waiting);
    for _ in 0..3 {
        go.send(()).expect("it runs");
    }
    let mut reply = String::new();
    last.read_to_string(&mut reply).expect("reads");
    assert!(reply.starts_with("HTTP/1.1 200") && reply.ends_with("late"), "{reply}");
    assert!(is_served(port, &token));
}

fn is_served(port: u16, token: &str) -> bool {
    let got = ask(port, &format!("GET /{token}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"));
    got == (200, "<p>page".to_owned())
}

/// Connections without the token do not block others, whether they send data or not.
#[test]
fn nobody_without_the_token_is_in_the_way() {
    let (port, token) = served();
    let mut held = Vec::new();
    let mut open = |begin: &[u8]| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
        // It may be closed before all is sent.
        let _ = stream.write_all(begin);
        held.push(stream);
    };
    for length in ["5000", "8000000000", "1000000000000000", "18446744073709551615"] {
        open(format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\nx").as_bytes());
    }
    open(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab");
    open(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\n\r\n");
    open(&b"A".repeat(4 << 20));
    open(&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(10_000));
    assert!(is_served(port, &token));
    // More half requests than there is room for.
    for _ in 0..200 {
        open(b"GET / HTTP/1.1\r\nHost: x\r\nA: ");
    }
    assert!(is_served(port, &token));
    let refused = ask(port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8000000000\r\n\r\n");
    assert_eq!(refused.0, 403);
}

#[test]
fn a_page_may_be_opened_by_either_name() {
    let (port, token) = served();
    for host in ["127.0.0.1", "localhost"] {
        let post = |origin: &str| {
            ask(
                port,
                &format!(
                    "POST /{token}/whatif HTTP/1.1\r\nHost: {host}:{port}\r\nOrigin: {origin}\r\nContent-Length: 2\r\n\r\n{{}}"
                ),
            )
            .0
        };
        assert_eq!(post(&format!("http://{host}:{port}")), 200);
        for other in [
            "null",
            "https://localhost",
            "http://localhost",
            "http://localhost:1",
            "http://localhost.evil:80",
        ] {
            assert_eq!(post(other), 403, "{other}");
        }
    }
}
