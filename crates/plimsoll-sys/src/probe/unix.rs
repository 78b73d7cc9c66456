//! Unix sockets that listen, and connections over them, by netlink (`unix_diag`); where the kernel has none of that, those
//! that listen by `/proc/net/unix`. Which process holds one is for [`super::listener`].

use super::sockets::{Asker, states};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const UDIAG_SHOW_NAME: u32 = 0x01;
const UDIAG_SHOW_VFS: u32 = 0x02;
const UDIAG_SHOW_PEER: u32 = 0x04;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_PEER: u16 = 2;
/// Length of the fixed part of an answer.
const MESSAGE: usize = 16;
/// In `/proc/net/unix`: it takes connections.
const ACCEPTS: u32 = 1 << 16;

/// A unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixSocket {
    /// The number in `/proc/PID/fd/N -> socket:[inode]`.
    pub inode: u32,
    /// What it was bound to: a path as it was given then, or, after `@`, a name that is no file's. A connection that was
    /// accepted has its listener's name, one that was opened usually none (empty).
    pub name: Vec<u8>,
    /// The number of its file, where it has one and the kernel tells.
    pub file: Option<u32>,
    /// Of a connection: the other end's number, where the kernel tells.
    pub peer: Option<u32>,
}

/// The sockets that take connections to `path`; `@NAME` is the abstract socket of that name.
pub fn listening_at(path: &str) -> io::Result<Vec<UnixSocket>> {
    let mut found = match Asker::open().and_then(|mut asker| asker.unix_sockets(states::LISTEN)) {
        Ok(found) => found,
        Err(_) => parse_list(&std::fs::read("/proc/net/unix")?),
    };
    let whole = std::path::absolute(path).ok();
    let real = std::fs::canonicalize(path).ok();
    // A file may be bound under a name of another folder, or a link: its number tells, with its own name as a check.
    let file = std::fs::metadata(path).ok().map(|metadata| metadata.ino() as u32);
    let last = |name: &[u8]| name.rsplit(|byte| *byte == b'/').next().map(<[u8]>::to_vec);
    let wanted_last = real.as_deref().unwrap_or(Path::new(path)).file_name().map(|name| name.as_bytes().to_vec());
    found.retain(|socket| {
        let named = |path: &Path| path.as_os_str().as_bytes() == socket.name;
        if path.starts_with('@') {
            return socket.name == path.as_bytes();
        }
        let same_name = named(Path::new(path)) || [&whole, &real].into_iter().flatten().any(|path| named(path));
        // Of a socket that was bound there before, and whose file was replaced, the name alone is left.
        match (socket.file, file) {
            (Some(theirs), Some(file)) => theirs == file && (same_name || last(&socket.name) == wanted_last),
            _ => same_name,
        }
    });
    Ok(found)
}

/// The question for all in one of `states`.
pub(super) fn request_body(states: u32) -> Vec<u8> {
    let mut out = vec![libc::AF_UNIX as u8, 0, 0, 0];
    out.extend_from_slice(&states.to_ne_bytes());
    // Any inode.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_PEER).to_ne_bytes());
    // A cookie that stands for any.
    out.extend_from_slice(&[0xff; 8]);
    out
}

/// A name as it is told: abstract ones begin with a zero.
fn shown(name: &[u8]) -> Vec<u8> {
    match name.strip_prefix(b"\0") {
        Some(rest) => [b"@", rest].concat(),
        None => name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
    }
}

/// One socket of an answer.
pub(super) fn parse_message(payload: &[u8]) -> Option<UnixSocket> {
    let u32_at = |at: usize| Some(u32::from_ne_bytes(payload.get(at..at + 4)?.try_into().ok()?));
    let mut socket = UnixSocket { inode: u32_at(4)?, name: Vec::new(), file: None, peer: None };
    let number = |value: &[u8]| Some(u32::from_ne_bytes(value.get(..4)?.try_into().ok()?));
    let mut rest = payload.get(MESSAGE..)?;
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let kind = u16::from_ne_bytes([rest[2], rest[3]]);
        let value = rest.get(4..length)?;
        match kind {
            UNIX_DIAG_NAME => socket.name = shown(value),
            UNIX_DIAG_VFS => socket.file = number(value),
            UNIX_DIAG_PEER => socket.peer = number(value).filter(|peer| *peer != 0),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(socket)
}

/// The listeners in the text of `/proc/net/unix`.
pub fn parse_list(text: &[u8]) -> Vec<UnixSocket> {
    let line = |line: &[u8]| {
        // Num: RefCount Protocol Flags Type St Inode Path, separated by single or more spaces; the path may hold more.
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
        (flags & ACCEPTS != 0 && !name.is_empty()).then_some(UnixSocket { inode, name, file: None, peer: None })
    };
    text.split(|byte| *byte == b'\n').filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net;

    #[test]
    fn the_list_is_read() {
        let text = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 101 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 102 @abstract\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 103 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 104\n\
            0000: 1 2\n\xff\xfe";
        let expect = [(101, "/run/a b.sock"), (102, "@abstract")];
        let expect = expect.map(|(inode, name)| UnixSocket { inode, name: name.into(), file: None, peer: None });
        assert_eq!(parse_list(text), expect);
    }

    #[test]
    fn answers_are_read_or_passed_over() {
        let mut payload = vec![1, 1, 10, 0];
        payload.extend(77u32.to_ne_bytes());
        payload.extend([0; 8]);
        for (kind, value) in [(UNIX_DIAG_NAME, &b"\0name"[..]), (9, b"??"), (UNIX_DIAG_VFS, &[5, 0, 0, 0, 1, 0, 0, 0])]
        {
            payload.extend((4 + value.len() as u16).to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(value);
            payload.resize(payload.len().next_multiple_of(4), 0);
        }
        let whole = parse_message(&payload).expect("read");
        assert_eq!((whole.inode, whole.name.as_slice()), (77, &b"@name"[..]));
        assert_eq!(whole.file, Some(u32::from_ne_bytes([5, 0, 0, 0])));
        // Cut anywhere, and with any length in an attribute, it is read or not, and never beyond its end.
        for end in 0..payload.len() {
            let _ = parse_message(&payload[..end]);
        }
        for length in 0..40u16 {
            payload[16..18].copy_from_slice(&length.to_ne_bytes());
            let _ = parse_message(&payload);
        }
    }

    #[test]
    fn listeners_are_found_by_their_name() {
        let folder = std::env::temp_dir().join(format!("plimsoll-unix-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("s.sock");
        let bound = net::UnixListener::bind(&path).expect("bound");
        let link = folder.join("link.sock");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let name = format!("plimsoll-{}", std::process::id());
        let address = net::SocketAddr::from_abstract_name(&name).expect("a name");
        let abstract_one = net::UnixListener::bind_addr(&address).expect("bound");
        let found = |path: &str| listening_at(path).expect("asked").len();
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
