//! HTTP to a `trace_processor_shell server http`, as little of it as that takes.
//!
//! By hand and not by a library: a trace processor that was started again has forgotten
//! what it was sent, and all that tells is that the connection broke. Libraries mend that
//! behind one's back.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How long the server may take to accept; and to answer, which after the last byte of a
/// large trace may be minutes.
const CONNECT: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(600);
/// More than any answer to what is posted.
const MAX_LENGTH: u64 = 1 << 20;

/// Where a server is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Server {
    host: String,
    port: u16,
}

impl Server {
    /// Reads `http://HOST[:PORT]`, with or without the scheme. The port is 9001 unless it
    /// is given, as trace_processor's is.
    pub(super) fn parse(url: &str) -> Result<Server, String> {
        let rest = url.strip_prefix("http://").unwrap_or(url).trim_end_matches('/');
        let expected =
            || format!("{url}: expected http://HOST:PORT, such as http://127.0.0.1:9001");
        if rest.is_empty() || rest.contains('/') || rest.chars().any(char::is_whitespace) {
            return Err(expected());
        }
        let (host, port) = match rest.rsplit_once(':') {
            // `[::1]` has colons of its own.
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| expected())?)
            }
            _ => (rest, 9001),
        };
        Ok(Server { host: host.to_owned(), port })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}:{}", self.host, self.port)
    }

    pub(super) fn connect(&self) -> io::Result<Connection> {
        let host = self.host.trim_start_matches('[').trim_end_matches(']');
        let mut refused = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in (host, self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(ANSWER))?;
                    stream.set_write_timeout(Some(ANSWER))?;
                    stream.set_nodelay(true)?;
                    return Ok(Connection { stream, host: format!("{}:{}", self.host, self.port) });
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }
}

/// A connection, kept for as long as it lasts.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    host: String,
}

impl Connection {
    /// Posts `body` to `path` and returns what is answered.
    pub(super) fn post(&mut self, path: &str, body: &[u8]) -> io::Result<Vec<u8>> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: keep-alive\r\n\
             Content-Type: application/octet-stream\r\nContent-Length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        self.stream.write_all(head.as_bytes())?;
        self.stream.write_all(body)?;
        let head = self.head()?;
        let mut lines = head.lines();
        let status = lines.next().unwrap_or_default().to_owned();
        let length = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>())
        });
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let length = match length {
            Some(Ok(length)) if length <= MAX_LENGTH => length,
            _ => return Err(wrong(format!("no trace processor answers like that: {status}"))),
        };
        let mut answer = vec![0; length as usize];
        self.stream.read_exact(&mut answer)?;
        match status.split(' ').nth(1) {
            Some("200") => Ok(answer),
            _ => Err(wrong(format!("{path}: {status}"))),
        }
    }

    /// Status line and headers.
    fn head(&mut self) -> io::Result<String> {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() > 16 << 10 {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        Ok(String::from_utf8_lossy(&head).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let parsed = |url: &str| Server::parse(url).map(|server| server.url());
        assert_eq!(parsed("http://127.0.0.1:9001").unwrap(), "http://127.0.0.1:9001");
        assert_eq!(parsed("localhost/").unwrap(), "http://localhost:9001");
        assert_eq!(parsed("[::1]").unwrap(), "http://[::1]:9001");
        assert_eq!(parsed("http://[::1]:80").unwrap(), "http://[::1]:80");
        for bad in ["", "http://", "host:port", "host:99999", "http://host/parse", "a b"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
