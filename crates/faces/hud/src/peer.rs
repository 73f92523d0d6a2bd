//! Whose program is at the other end of a connection.
//!
//! Linux lists the sockets of this machine with their users
//! (<https://docs.kernel.org/networking/proc_net_tcp.html>). On other systems nobody is told apart.

use std::net::{IpAddr, SocketAddr};

/// Both ends of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Who asks.
    pub client: SocketAddr,
    /// The server.
    pub server: SocketAddr,
}

/// Connections by IPv4 and by IPv6.
const LISTS: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// `TCP_ESTABLISHED`.
const OPEN: &str = "01";

impl Ends {
    /// True if the system says that the client is another user of this machine. Root is none: it sees everything anyway, and what a virtual
    /// machine passes on from its host is root's.
    pub fn are_of_others(self) -> bool {
        let Some(own) = own_user() else { return false };
        let lists = LISTS.iter().filter_map(|list| std::fs::read_to_string(list).ok());
        // A socket that its program has closed already is nobody's, and is shown as root's.
        lists
            .filter_map(|list| self.user(&list))
            .any(|(user, is_open)| user != own && (user != 0 || !is_open))
    }

    /// User of the client in such a list, and whether the connection is open.
    fn user(self, list: &str) -> Option<(u32, bool)> {
        let (client, server) = (names(self.client), names(self.server));
        list.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, local, remote, state, _, _, _, user, ..] = fields.as_slice() else { return None };
            let is_it = client.iter().any(|name| name == local) && server.iter().any(|name| name == remote);
            if is_it { Some((user.parse().ok()?, *state == OPEN)) } else { None }
        })
    }
}

/// How the lists name an end: as the address that it is, and as that of a socket of IPv6.
fn names(end: SocketAddr) -> [String; 2] {
    let ip = end.ip().to_canonical();
    let (plain, mapped) = match ip {
        IpAddr::V4(ip) => (ip.octets().to_vec(), ip.to_ipv6_mapped().octets().to_vec()),
        IpAddr::V6(ip) => (ip.octets().to_vec(), ip.octets().to_vec()),
    };
    [plain, mapped].map(|octets| {
        // Words of 32 bits, each as a number of the processor.
        let words =
            octets.chunks_exact(4).map(|word| <[u8; 4]>::try_from(word).map_or(0, u32::from_ne_bytes));
        let text: String = words.map(|word| format!("{word:08X}")).collect();
        format!("{text}:{:04X}", end.port())
    })
}

#[cfg(target_os = "linux")]
fn own_user() -> Option<u32> {
    use std::os::unix::fs::MetadataExt as _;
    Some(std::fs::metadata("/proc/self").ok()?.uid())
}

#[cfg(not(target_os = "linux"))]
fn own_user() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_user_of_a_connection_is_found() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                    0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 1\n\
                    1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 2\n\
                    2: 0000000000000000FFFF00000100007F:C002 0000000000000000FFFF00000100007F:1F90 01 0:0 0:0 0  1001 0 3\n\
                    3: 0100007F:C003 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0        0 0\n\
                    4: broken\n";
        let user = |client: &str| {
            Ends { client: client.parse().unwrap(), server: "127.0.0.1:8080".parse().unwrap() }.user(list)
        };
        assert_eq!(user("127.0.0.1:49153"), Some((1000, true)));
        assert_eq!(user("127.0.0.1:49154"), Some((1001, true)), "a socket of IPv6");
        assert_eq!(user("[::ffff:127.0.0.1]:49153"), Some((1000, true)), "a server of both");
        assert_eq!(user("127.0.0.1:49155"), Some((0, false)));
        assert_eq!(user("127.0.0.1:49156"), None);
    }

    #[test]
    fn our_own_connections_are_ours() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, client) = listener.accept().unwrap();
        let ends = Ends { client, server: server.local_addr().unwrap() };
        assert!(!ends.are_of_others());
        #[cfg(target_os = "linux")]
        {
            let list = std::fs::read_to_string(LISTS[0]).unwrap();
            assert_eq!(ends.user(&list), own_user().map(|own| (own, true)));
        }
        drop(stream);
    }
}
