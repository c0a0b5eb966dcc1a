//! Serves a page on loopback to whoever knows its address, which holds a token.

use std::io::{Cursor, Read};
use std::net::{Ipv4Addr, SocketAddr};

use tiny_http::{Header, Method, Request, Response};

/// The longest question that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// What answers the page: takes the JSON that it asks, gives bytes, or says in words why not.
pub type Answer<'a> = dyn Fn(&[u8]) -> Result<Vec<u8>, String> + 'a;

/// Why a page is not served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Another program listens there.
    #[error("port {port} is taken: name another, or --port 0 for any that is free")]
    Taken {
        /// The port.
        port: u16,
    },
    /// The port cannot be had for another reason.
    #[error("cannot listen on 127.0.0.1:{port}: {source}")]
    Listen {
        /// The port.
        port: u16,
        /// The operating system's reason.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operating system gave no random numbers.
    #[error("no random token can be made: {source}")]
    Token {
        /// Why not.
        source: getrandom::Error,
    },
}

/// Listens on loopback.
pub struct Server {
    http: tiny_http::Server,
    port: u16,
    token: String,
}

type Reply = Response<Cursor<Vec<u8>>>;

impl Server {
    /// Listens on a port of 127.0.0.1; 0 takes any that is free.
    ///
    /// # Errors
    /// Where the port is taken, or cannot be had.
    pub fn bind(port: u16) -> Result<Server, ServeError> {
        let http = tiny_http::Server::http(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let http = http.map_err(|source| match source.downcast_ref::<std::io::Error>() {
            Some(error) if error.kind() == std::io::ErrorKind::AddrInUse => ServeError::Taken { port },
            _ => ServeError::Listen { port, source },
        })?;
        let port = http.server_addr().to_ip().map_or(port, |address| address.port());
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(|source| ServeError::Token { source })?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Server { http, port, token })
    }

    /// Where the page is.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token)
    }

    /// Serves until the process ends: the page, and `POST whatif` beside it.
    ///
    /// # Errors
    /// Where the operating system ends it.
    pub fn run(&self, page: &str, answer: &Answer<'_>) -> std::io::Result<()> {
        loop {
            let mut request = self.http.recv()?;
            let reply = self.reply(&mut request, page, answer);
            // Who asked may be gone.
            let _ = request.respond(reply);
        }
    }

    fn reply(&self, request: &mut Request, page: &str, answer: &Answer<'_>) -> Reply {
        // A page of somebody else, whose name was made to lead here, names itself.
        if !self.is_own_host(header(request, "Host")) {
            return text(403, "this address is for 127.0.0.1 alone");
        }
        let place = format!("/{}/", self.token);
        let path = request.url().split('?').next().unwrap_or_default();
        let Some(rest) = path.strip_prefix(&place) else {
            return text(403, "the address lacks its token: use the one that was printed");
        };
        match (request.method(), rest) {
            (Method::Get | Method::Head, "") => typed(Response::from_data(page), "text/html; charset=utf-8"),
            (Method::Post, "whatif") => {
                let own = format!("http://127.0.0.1:{}", self.port);
                if header(request, "Origin").is_some_and(|origin| origin != own) {
                    return text(403, "asked from another page");
                }
                let mut asked = Vec::new();
                match request.as_reader().take(LONGEST + 1).read_to_end(&mut asked) {
                    Ok(length) if length as u64 > LONGEST => text(413, "the question is too long"),
                    Ok(_) => match answer(&asked) {
                        Ok(bytes) => typed(Response::from_data(bytes), "application/octet-stream"),
                        Err(reason) => text(422, &reason),
                    },
                    Err(error) => text(400, &error.to_string()),
                }
            }
            (_, "" | "whatif") => text(405, "not so"),
            _ => text(404, "there is nothing here"),
        }
    }

    fn is_own_host(&self, host: Option<String>) -> bool {
        let names = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        host.is_some_and(|host| names.contains(&host) || self.port == 80 && host == "127.0.0.1")
    }
}

fn header(request: &Request, name: &'static str) -> Option<String> {
    let found = request.headers().iter().find(|header| header.field.equiv(name))?;
    Some(found.value.as_str().to_owned())
}

fn text(status: u16, words: &str) -> Reply {
    typed(Response::from_data(format!("{words}\n")), "text/plain; charset=utf-8").with_status_code(status)
}

fn typed(mut reply: Reply, kind: &str) -> Reply {
    for (name, value) in [
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("X-Frame-Options", "DENY"),
    ] {
        if let Ok(header) = Header::from_bytes(name, value) {
            reply.add_header(header);
        }
    }
    reply
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    /// Asks once, and gives the status and the body.
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
        let server = Server::bind(0).expect("a free port");
        let (port, token) = (server.port, server.token.clone());
        assert!(matches!(Server::bind(port), Err(ServeError::Taken { .. })));
        std::thread::spawn(move || {
            let answer = |asked: &[u8]| match asked {
                b"{}" => Ok(b"fine".to_vec()),
                _ => Err("no such change".to_owned()),
            };
            server.run("<p>page", &answer)
        });
        let get = |path: &str, host: &str| {
            ask(port, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
        };
        let own = format!("127.0.0.1:{port}");
        assert_eq!(get(&format!("/{token}/"), &own), (200, "<p>page".to_owned()));
        assert_eq!(get("/", &own).0, 403);
        assert_eq!(get("/0123/", &own).0, 403);
        assert_eq!(get(&format!("/{token}/other"), &own).0, 404);
        assert_eq!(get(&format!("/{token}/"), "evil.example").0, 403);
        let post = |body: &str, more: &str| {
            let length = body.len();
            ask(
                port,
                &format!(
                    "POST /{token}/whatif HTTP/1.1\r\nHost: {own}\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                ),
            )
        };
        assert_eq!(post("{}", ""), (200, "fine".to_owned()));
        assert_eq!(post("[]", ""), (422, "no such change\n".to_owned()));
        assert_eq!(post("{}", "Origin: http://evil.example\r\n").0, 403);
        assert_eq!(post(&" ".repeat(2 << 20), "").0, 413);
    }
}
