//! Reads listening unix sockets over netlink, or from `/proc/net/unix` if the kernel lacks netlink
//! for unix sockets. Not here: the processes of a socket ([`super::listener`]).

use super::sockets::{SocketDiagnostics, states};
use super::unix_diag::UnixSocket;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The flag in `/proc/net/unix` that marks a socket that accepts connections.
const SOCKET_FLAG_ACCEPTING: u32 = 1 << 16;

/// Returns the sockets that listen at `path`; `@NAME` is the abstract socket of that name.
pub fn unix_listeners_at(path: &str) -> io::Result<Vec<UnixSocket>> {
    let mut found = match SocketDiagnostics::open().and_then(|mut asker| asker.unix_sockets(states::LISTEN)) {
        Ok(found) => found,
        Err(_) => parse_list(&std::fs::read("/proc/net/unix")?),
    };
    let whole = std::path::absolute(path).ok();
    let real = std::fs::canonicalize(path).ok();
    // A unix socket may be bound under another name of the same file, such as through a link to its
    // folder. The search therefore compares the inode of the socket file, and the last part of its
    // name as a check.
    let file = std::fs::metadata(path).ok().map(|metadata| metadata.ino() as u32);
    let last = |name: &[u8]| name.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    let wanted_last = real.as_deref().unwrap_or(Path::new(path)).file_name().map(|name| name.as_bytes().to_vec());
    found.retain(|socket| {
        let named = |path: &Path| path.as_os_str().as_bytes() == socket.name;
        if path.starts_with('@') {
            return socket.name == path.as_bytes();
        }
        let same_name = named(Path::new(path)) || [&whole, &real].into_iter().flatten().any(|path| named(path));
        // If the file at `path` was replaced, the socket of the old file has another inode than
        // `path`. If the inode of a socket file is unknown, only the socket names can be compared.
        match (socket.file_inode, file) {
            (Some(theirs), Some(file)) => theirs == file && (same_name || last(&socket.name) == wanted_last),
            _ => same_name,
        }
    });
    Ok(found)
}

/// Parses the listeners in the text of `/proc/net/unix`.
pub fn parse_list(text: &[u8]) -> Vec<UnixSocket> {
    let line = |line: &[u8]| {
        // Fields: Num RefCount Protocol Flags Type St Inode Path, separated by one or more spaces.
        // The path itself may contain spaces.
        let mut rest = line;
        let mut next = || {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            rest = after;
            std::str::from_utf8(field).ok()
        };
        let fields: Vec<&str> = (0..7).map_while(|_| next()).collect();
        let flags = u32::from_str_radix(fields.get(3)?, 16).ok()?;
        let inode = fields.get(6)?.parse().ok()?;
        let name = rest.strip_prefix(b" ")?.to_vec();
        (flags & SOCKET_FLAG_ACCEPTING != 0 && !name.is_empty()).then_some(UnixSocket {
            inode,
            name,
            file_inode: None,
            peer_inode: None,
            receive_queue: None,
        })
    };
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net;

    #[test]
    fn the_unix_socket_list_is_parsed() {
        let text = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 101 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 102 @abstract\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 103 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 104\n\
            0000: 1 2\n\xff\xfe";
        let expect = [(101, "/run/a b.sock"), (102, "@abstract")];
        let expect = expect.map(|(inode, name)| UnixSocket {
            inode,
            name: name.into(),
            file_inode: None,
            peer_inode: None,
            receive_queue: None,
        });
        assert_eq!(parse_list(text), expect);
    }

    #[test]
    fn unix_listeners_are_found_by_name() {
        let folder = std::env::temp_dir().join(format!("plimsoll-unix-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("s.sock");
        let bound = net::UnixListener::bind(&path).expect("bound");
        let link = folder.join("link.sock");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let name = format!("plimsoll-{}", std::process::id());
        let address = net::SocketAddr::from_abstract_name(&name).expect("a name");
        let abstract_one = net::UnixListener::bind_addr(&address).expect("bound");
        let found = |path: &str| unix_listeners_at(path).expect("asked").len();
        for (path, expect) in [
            (path.to_str().expect("text"), 1),
            (link.to_str().expect("text"), 1),
            (format!("@{name}").as_str(), 1),
            ("/no/such.sock", 0),
            ("@no-such-name-of-plimsoll", 0),
        ] {
            assert_eq!(found(path), expect, "{path}");
        }
        drop((bound, abstract_one));
        assert_eq!((found(path.to_str().expect("text")), found(&format!("@{name}"))), (0, 0));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
