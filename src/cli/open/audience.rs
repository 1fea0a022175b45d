//! Whose requests are answered.
//!
//! Every user of the machine can connect to 127.0.0.1, and read the link in the arguments of
//! the command that starts the browser. But the kernel's table of TCP sockets says which user
//! each end of a connection belongs to.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// The tables: connections by IPv4, and by IPv6, which may lead to the same place.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
/// A table is read piece by piece while connections come and go: one may be missed.
const ATTEMPTS: usize = 5;

/// The users who may have the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Audience {
    me: u32,
    /// For whom root runs `kymo`.
    behind: Option<u32>,
    /// Whether the browser may be outside of this system, on Windows.
    outside: bool,
}

impl Audience {
    /// This user, root, and the user that runs `kymo` by `sudo`.
    pub(super) fn here() -> Audience {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        // SAFETY: no arguments, cannot fail.
        let me = unsafe { libc::geteuid() };
        let behind = || set("SUDO_UID")?.to_str()?.parse().ok();
        let outside = set("WSL_DISTRO_NAME").is_some();
        Audience { me, behind: if me == 0 { behind() } else { None }, outside }
    }

    /// Whether the kernel tells whose connections are, on this machine.
    pub(super) fn can_be_told() -> bool {
        File::open(TABLES[0]).is_ok()
    }

    /// Whether the other end of a connection is one of them; else whose it is, for people.
    pub(super) fn includes(&self, stream: &TcpStream) -> Result<(), String> {
        let theirs = stream.peer_addr().and_then(|peer| user(peer, stream.local_addr()?));
        match theirs {
            Ok(Some(user)) if user == self.me || user == 0 || Some(user) == self.behind => Ok(()),
            Ok(Some(user)) => Err(format!("of user {user}")),
            Ok(None) if self.outside => Ok(()),
            Ok(None) => Err("of an unknown user".to_owned()),
            // Looked for at the start: then the link alone has to do.
            Err(_) if !Audience::can_be_told() => Ok(()),
            Err(error) => Err(format!("of a user that cannot be determined: {error}")),
        }
    }
}

/// The user whose socket has the address `end` and is connected to `other`.
fn user(end: SocketAddr, other: SocketAddr) -> io::Result<Option<u32>> {
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(Duration::from_millis(10));
        }
        for table in TABLES {
            let Ok(table) = File::open(table) else {
                // A system without IPv6 has only one.
                continue;
            };
            if let Some(user) = find(BufReader::new(table), end, other)? {
                return Ok(Some(user));
            }
        }
    }
    Ok(None)
}

/// Looks a connection up in one of the tables (Documentation/networking/proc_net_tcp.rst).
fn find(table: impl BufRead, end: SocketAddr, other: SocketAddr) -> io::Result<Option<u32>> {
    for line in table.lines().skip(1) {
        let line = line?;
        let mut fields = line.split_ascii_whitespace().skip(1);
        let ends = [fields.next(), fields.next()];
        if !(is(ends[0], end) && is(ends[1], other)) {
            continue;
        }
        // After the state, two queues, a timer and a count.
        let user = fields.nth(4).and_then(|user| user.parse().ok());
        let inode = fields.nth(1);
        // Without an inode no process has the socket any more, and the user is root's number.
        if let (Some(user), true) = (user, inode.is_some_and(|inode| inode != "0")) {
            return Ok(Some(user));
        }
    }
    Ok(None)
}

/// Whether a field of a table is this address.
fn is(field: Option<&str>, address: SocketAddr) -> bool {
    let Some((found, port)) = field.and_then(|field| field.split_once(':')) else {
        return false;
    };
    let IpAddr::V4(ip) = address.ip() else {
        return false;
    };
    u16::from_str_radix(port, 16) == Ok(address.port())
        && (found == words(&ip.octets()) || found == words(&mapped(ip)))
}

fn mapped(ip: Ipv4Addr) -> [u8; 16] {
    ip.to_ipv6_mapped().octets()
}

/// Bytes in the order of the network, as the kernel prints them: words of this machine.
fn words(bytes: &[u8]) -> String {
    let words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
    words.map(|word| format!("{word:08X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    const HEAD: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
                        retrnsmt   uid  timeout inode\n";

    #[test]
    fn a_connection_has_two_ends_and_each_a_user() {
        let table = format!(
            "{HEAD}   0: {local}:2329 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 5 1\n\
             \x20  1: {local}:2329 {local}:B2C1 01 00000000:00000000 00:00000000 00000000  1000        0 6 1\n\
             \x20  2: {local}:B2C1 {local}:2329 01 00000000:00000000 00:00000000 00000000  1001        0 7 1\n\
             \x20  3: {six}:B2C2 {six}:2329 01 00000000:00000000 00:00000000 00000000  1002        0 8 1\n\
             \x20  4: {local}:B2C3 {local}:2329 04 00000000:00000000 01:00000019 00000000     0        0 0 1\n\
             \x20  5: nonsense\n",
            local = words(&[127, 0, 0, 1]),
            six = words(&mapped(Ipv4Addr::LOCALHOST)),
        );
        let at = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let user = |from, to| find(table.as_bytes(), at(from), at(to)).unwrap();
        assert_eq!(user(0xb2c1, 0x2329), Some(1001));
        assert_eq!(user(0x2329, 0xb2c1), Some(1000));
        assert_eq!(user(0xb2c2, 0x2329), Some(1002), "by IPv6");
        assert_eq!(user(0xb2c3, 0x2329), None, "nobody's any more");
        assert_eq!(user(1, 0x2329), None);
    }

    #[test]
    fn this_machine_says_whose_connection_is() {
        if !Audience::can_be_told() {
            println!("skipped: there is no table of TCP sockets");
            return;
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let here = Audience::here();
        assert_eq!(here.includes(&server), Ok(()));
        let other = Audience { me: here.me + 1, behind: None, outside: false };
        // SAFETY: no arguments, cannot fail.
        let me = unsafe { libc::geteuid() };
        let expected = if me == 0 { Ok(()) } else { Err(format!("of user {me}")) };
        assert_eq!(other.includes(&server), expected);
        drop(client);
    }
}
