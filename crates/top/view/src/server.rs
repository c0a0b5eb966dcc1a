//! Serves a page on loopback at an address that holds a token. A connection without the token gets a refusal of one line, its
//! body is not read, and it makes room for others.

mod connections;
mod deadline;
mod request;

use std::borrow::Cow;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use self::connections::{Connections, Guest};
use self::deadline::TimedStream;
use self::request::{Head, ReadError};

/// Time limits of receiving a request's head and body, and of sending an answer.
const HEAD: Duration = Duration::from_secs(5);
const BODY: Duration = Duration::from_secs(30);
const REPLY: Duration = Duration::from_secs(120);
/// Time limit of sending a refusal to a connection without the token.
const REFUSAL: Duration = Duration::from_secs(1);
/// Pause before the next connection after an error of the operating system, such as a lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(20);
/// Stack size of a connection's thread, bytes: that of the main thread of a Linux process, which builds pages for files.
const STACK: usize = 8 << 20;

/// Answers to requests of a page, which are JSON. Several threads call it at the same time.
pub trait Answers: Sync {
    /// Returns the step after a change, as by [`what_if`](crate::what_if).
    ///
    /// # Errors
    /// The reason in words, if the request is invalid or the change does not apply.
    fn what_if(&self, request: &[u8]) -> Result<Vec<u8>, String>;

    /// Returns the data of the page for a GPU, as by [`data`](crate::data).
    ///
    /// # Errors
    /// The reason in words, if the request is invalid, the GPU is not known, or the step cannot be predicted for it.
    fn data(&self, request: &[u8]) -> Result<Cow<'_, [u8]>, String>;
}

/// Errors of starting a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another program listens on the port.
    #[error("port {port} is taken: name another, or --port 0 for any that is free")]
    Taken {
        /// The port.
        port: u16,
    },
    /// The port is not available for another reason.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// The operating system's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system provides no random numbers.
    #[error("no random token can be made: {source}")]
    Token {
        /// The cause.
        source: getrandom::Error,
    },
}

/// A server on loopback.
pub struct Server {
    listener: TcpListener,
    port: u16,
    token: String,
}

/// An HTTP reply: status, content type and body.
struct Reply<'a> {
    status: &'static str,
    kind: &'static str,
    body: Cow<'a, [u8]>,
}

impl Server {
    /// Listens on a port of 127.0.0.1; 0 takes any free one.
    ///
    /// # Errors
    /// If the port is taken, or not available.
    pub fn bind(port: u16) -> Result<Server, ServeError> {
        let failed = |source: std::io::Error| match source.kind() {
            std::io::ErrorKind::AddrInUse => ServeError::Taken { port },
            _ => ServeError::Listen { port, source: source.into() },
        };
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|source| ServeError::Token { source })?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Server { listener, port, token })
    }

    /// Returns the address of the page.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Serves the page, and `POST whatif` and `POST data`, until the process ends. Each connection has a thread and one request;
    /// an error of the operating system, such as a refused thread, affects only that connection.
    pub fn run(&self, page: &str, answers: &impl Answers) {
        let connections = Connections::default();
        std::thread::scope(|scope| {
            loop {
                let Ok((stream, _)) = self.listener.accept() else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let Some(guest) = connections.admit(stream) else { continue };
                let serve = move || self.serve(&guest, page, answers);
                if std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, serve).is_err() {
                    std::thread::sleep(PAUSE);
                }
            }
        });
    }

    /// Serves one connection, to its end. The client may disconnect at any time.
    fn serve(&self, guest: &Guest<'_>, page: &str, answers: &impl Answers) {
        let stream = guest.stream();
        let Ok((head, begun)) = Head::read(&mut TimedStream::new(stream, HEAD)) else { return };
        let rest = match self.admitted(&head) {
            Ok(rest) => rest,
            Err(words) => {
                let _ = send(stream, REFUSAL, &text("403 Forbidden", words), true);
                return;
            }
        };
        guest.keep();
        let reply = match (head.method.as_str(), rest) {
            ("GET" | "HEAD", "") => found("text/html; charset=utf-8", page.as_bytes().into()),
            ("POST", "whatif" | "data") => match head.body(begun, &mut TimedStream::new(stream, BODY)) {
                Ok(body) if rest == "data" => {
                    answers.data(&body).map_or_else(refused, |data| found("text/plain; charset=utf-8", data))
                }
                Ok(body) => answers
                    .what_if(&body)
                    .map_or_else(refused, |bytes| found("application/octet-stream", bytes.into())),
                Err(ReadError::TooLong) => text("413 Content Too Large", "the request is too long"),
                Err(ReadError::NoLength) => text("411 Length Required", "the request has no length"),
                Err(ReadError::Broken) => return,
            },
            (_, "" | "whatif" | "data") => text("405 Method Not Allowed", "wrong method for this path"),
            _ => text("404 Not Found", "there is nothing here"),
        };
        let _ = send(stream, REPLY, &reply, head.method != "HEAD");
    }

    /// Returns the path of a request after the token, or the reason of its refusal.
    fn admitted<'h>(&self, head: &'h Head) -> Result<&'h str, &'static str> {
        let own = |name: &str| {
            let port = self.port;
            ["127.0.0.1", "localhost"].iter().any(|host| {
                name.strip_prefix(host).is_some_and(|rest| {
                    rest.strip_prefix(':')
                        .map_or(port == 80 && rest.is_empty(), |rest| rest == port.to_string())
                })
            })
        };
        // DNS rebinding: a foreign page whose name resolves to this address sends its own name.
        if !head.host.as_deref().is_some_and(own) {
            return Err("this address is for 127.0.0.1 alone");
        }
        let path = head.target.split('?').next().unwrap_or_default();
        let token = path.strip_prefix('/').and_then(|path| path.split_once('/'));
        let Some((_, rest)) = token.filter(|(token, _)| is_equal(token, &self.token)) else {
            return Err("the address lacks its token: use the one that was printed");
        };
        let from_here = |origin: &str| origin.strip_prefix("http://").is_some_and(own);
        if head.origin.as_deref().is_some_and(|origin| !from_here(origin)) {
            return Err("the request is from another page");
        }
        Ok(rest)
    }
}

/// Compares in a time that does not depend on the place of a difference.
fn is_equal(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |found, (a, b)| found | (a ^ b)) == 0
}

fn found<'a>(kind: &'static str, body: Cow<'a, [u8]>) -> Reply<'a> {
    Reply { status: "200 OK", kind, body }
}

fn refused<'a>(reason: String) -> Reply<'a> {
    text("422 Unprocessable Content", &reason)
}

fn text(status: &'static str, words: &str) -> Reply<'static> {
    let body = format!("{words}\n").into_bytes().into();
    Reply { status, kind: "text/plain; charset=utf-8", body }
}

fn send(stream: &TcpStream, within: Duration, reply: &Reply<'_>, with_body: bool) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nX-Frame-Options: DENY\r\n\r\n",
        reply.status,
        reply.kind,
        reply.body.len()
    );
    let mut out = TimedStream::new(stream, within);
    out.write_all(head.as_bytes())?;
    if with_body {
        out.write_all(&reply.body)?;
    }
    stream.shutdown(std::net::Shutdown::Write)
}

#[cfg(test)]
mod tests;
