//! A request of HTTP/1: its head, and, after the head is admitted, its body.

use std::io::Read;

/// Maximum size of a head, in bytes. Those of browsers have a tenth.
const LONGEST_HEAD: usize = 16 << 10;
/// Maximum size of a body, in bytes.
const LONGEST_BODY: usize = 1 << 20;
/// Maximum bytes of a body that is too long to read and drop, so that the client receives the refusal.
const MOST_DRAINED: u64 = 8 << 20;

/// Reasons why a part of a request was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadError {
    /// The connection ended, took too long, or holds something else.
    Broken,
    /// The body is too long.
    TooLong,
    /// The body does not say its length.
    NoLength,
}

/// The used fields of a head.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub method: String,
    pub target: String,
    pub host: Option<String>,
    pub origin: Option<String>,
    length: Option<u64>,
    in_chunks: bool,
}

impl Head {
    /// Reads a head, and the beginning of the body that arrived with it.
    pub(super) fn read(from: &mut impl Read) -> Result<(Head, Vec<u8>), ReadError> {
        let mut read = Vec::new();
        loop {
            let begun = read.len();
            read.resize(begun + 2048, 0);
            let count = from.read(&mut read[begun..]).map_err(|_| ReadError::Broken)?;
            read.truncate(begun + count);
            let from = begun.saturating_sub(3);
            if let Some(end) = read[from..].windows(4).position(|four| four == b"\r\n\r\n") {
                let body = read.split_off(from + end + 4);
                let text = std::str::from_utf8(&read).map_err(|_| ReadError::Broken)?;
                return Ok((Head::parse(text).ok_or(ReadError::Broken)?, body));
            }
            if count == 0 || read.len() > LONGEST_HEAD {
                return Err(ReadError::Broken);
            }
        }
    }

    fn parse(text: &str) -> Option<Head> {
        let mut lines = text.split("\r\n");
        let mut first = lines.next()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
        first.next().filter(|version| version.starts_with("HTTP/1."))?;
        let mut head = Head { method, target, ..Head::default() };
        for line in lines.take_while(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':')?;
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                // A repeated field is ambiguous.
                "host" if head.host.is_some() => return None,
                "host" => head.host = Some(value.to_owned()),
                "origin" if head.origin.is_some() => return None,
                "origin" => head.origin = Some(value.to_owned()),
                "content-length" if head.length.is_some() => return None,
                "content-length" => head.length = Some(value.parse().ok()?),
                "transfer-encoding" => head.in_chunks = true,
                _ => {}
            }
        }
        Some(head)
    }

    /// Reads the body, whose beginning `begun` has been read already.
    pub(super) fn body(&self, begun: Vec<u8>, from: &mut impl Read) -> Result<Vec<u8>, ReadError> {
        let length = self.length.filter(|_| !self.in_chunks).ok_or(ReadError::NoLength)?;
        let left = length.saturating_sub(begun.len() as u64);
        if length > LONGEST_BODY as u64 {
            let _ = std::io::copy(&mut from.take(left.min(MOST_DRAINED)), &mut std::io::sink());
            return Err(ReadError::TooLong);
        }
        let mut body = begun;
        from.take(left).read_to_end(&mut body).map_err(|_| ReadError::Broken)?;
        if (body.len() as u64) < length {
            return Err(ReadError::Broken);
        }
        body.truncate(length as usize);
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_however_they_arrive() {
        let text = "POST /t/whatif HTTP/1.1\r\nHost: 127.0.0.1:1\r\nCONTENT-LENGTH: 2\r\nX: y\r\n\r\n{}more";
        let (head, begun) = Head::read(&mut text.as_bytes()).expect("a head");
        assert_eq!((head.method.as_str(), head.target.as_str()), ("POST", "/t/whatif"));
        assert_eq!(head.host.as_deref(), Some("127.0.0.1:1"));
        assert_eq!(head.body(begun, &mut &b""[..]).expect("a body"), b"{}");
        // A byte at a time.
        struct SlowReader<'a>(&'a [u8]);
        impl Read for SlowReader<'_> {
            fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
                let Some((&first, rest)) = self.0.split_first() else { return Ok(0) };
                (bytes[0], self.0) = (first, rest);
                Ok(1)
            }
        }
        let mut slowly = SlowReader(text.as_bytes());
        let (again, begun) = Head::read(&mut slowly).expect("a head");
        assert_eq!((again, begun.len()), (head, 0));
    }

    #[test]
    fn what_is_no_head_is_not_read_to_its_end() {
        let endless = &mut std::io::repeat(b'A');
        assert_eq!(Head::read(endless), Err(ReadError::Broken));
        for bad in ["", "GET\r\n\r\n", "GET / FTP/1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"]
        {
            assert_eq!(Head::read(&mut bad.as_bytes()), Err(ReadError::Broken), "{bad}");
        }
        let lengths = "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n";
        assert_eq!(Head::read(&mut lengths.as_bytes()), Err(ReadError::Broken));
        let head = Head { length: Some(u64::MAX), ..Head::default() };
        assert_eq!(head.body(Vec::new(), &mut &b"x"[..]), Err(ReadError::TooLong));
        let head = Head { length: Some(5), ..Head::default() };
        assert_eq!(head.body(Vec::new(), &mut &b"x"[..]), Err(ReadError::Broken));
        assert_eq!(Head::default().body(Vec::new(), &mut &b"x"[..]), Err(ReadError::NoLength));
    }
}
