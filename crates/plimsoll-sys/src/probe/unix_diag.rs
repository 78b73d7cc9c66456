//! Encodes and parses the netlink messages about unix sockets and their connections (`unix_diag`):
//! the request, and the kernel's answers.

const UDIAG_SHOW_NAME: u32 = 0x01;
const UDIAG_SHOW_VFS: u32 = 0x02;
const UDIAG_SHOW_PEER: u32 = 0x04;
const UDIAG_SHOW_RQLEN: u32 = 0x10;
const UNIX_DIAG_NAME: u16 = 0;
const UNIX_DIAG_VFS: u16 = 1;
const UNIX_DIAG_PEER: u16 = 2;
const UNIX_DIAG_RQLEN: u16 = 4;
/// The length of the fixed part of an answer message about one socket, in bytes.
const UNIX_DIAG_MSG_BYTES: usize = 16;
/// A unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnixSocket {
    /// The inode, as in the link `/proc/PID/fd/N -> socket:[inode]`.
    pub inode: u32,
    /// The bound name: a path, or an abstract name after `@`. The accepting end of a connection has
    /// its listener's name. The name of the opening end of a connection is usually empty.
    pub name: Vec<u8>,
    /// The inode of the socket's file, if it has one and the kernel reports it.
    pub file_inode: Option<u32>,
    /// The inode of a connection's peer, if the kernel reports it.
    pub peer_inode: Option<u32>,
    /// For a listener, the number of connections in its accept queue; for a connection, the number
    /// of unread bytes. `None` if the kernel does not report the queue length.
    pub receive_queue: Option<u32>,
}

impl UnixSocket {
    /// Returns the bound name as text for the user.
    pub fn shown_name(&self) -> String {
        shown_name(&self.name)
    }
}

pub(super) fn shown_name(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Encodes the request for all sockets in one of `states`.
pub(super) fn request_body(states: u32) -> Vec<u8> {
    let mut out = vec![libc::AF_UNIX as u8, 0, 0, 0];
    out.extend_from_slice(&states.to_ne_bytes());
    // An inode of zero in the request matches any inode.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN).to_ne_bytes());
    // A cookie of 0xff bytes in the request matches any socket.
    out.extend_from_slice(&[0xff; 8]);
    out
}

/// Converts a name to its display form: an abstract name begins with a zero byte, which becomes
/// `@`.
fn display_name(name: &[u8]) -> Vec<u8> {
    match name.strip_prefix(b"\0") {
        Some(rest) => [b"@", rest].concat(),
        None => name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec(),
    }
}

/// Parses the answer message about one socket.
pub(super) fn parse_message(payload: &[u8]) -> Option<UnixSocket> {
    let u32_at = |at: usize| Some(u32::from_ne_bytes(payload.get(at..at + 4)?.try_into().ok()?));
    let mut socket =
        UnixSocket { inode: u32_at(4)?, name: Vec::new(), file_inode: None, peer_inode: None, receive_queue: None };
    let number = |value: &[u8]| Some(u32::from_ne_bytes(value.get(..4)?.try_into().ok()?));
    let mut rest = payload.get(UNIX_DIAG_MSG_BYTES..)?;
    while rest.len() >= 4 {
        let length = usize::from(u16::from_ne_bytes([rest[0], rest[1]]));
        let kind = u16::from_ne_bytes([rest[2], rest[3]]);
        let value = rest.get(4..length)?;
        match kind {
            UNIX_DIAG_NAME => socket.name = display_name(value),
            UNIX_DIAG_VFS => socket.file_inode = number(value),
            UNIX_DIAG_PEER => socket.peer_inode = number(value).filter(|peer| *peer != 0),
            UNIX_DIAG_RQLEN => socket.receive_queue = number(value),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_diag_responses_are_parsed_or_skipped() {
        let mut payload = vec![1, 1, 10, 0];
        payload.extend(77u32.to_ne_bytes());
        payload.extend([0; 8]);
        let (file, queue) = ([5, 0, 0, 0, 1, 0, 0, 0], [9, 0, 0, 0, 128, 0, 0, 0]);
        let attributes =
            [(UNIX_DIAG_NAME, &b"\0name"[..]), (9, b"??"), (UNIX_DIAG_VFS, &file), (UNIX_DIAG_RQLEN, &queue)];
        for (kind, value) in attributes {
            payload.extend((4 + value.len() as u16).to_ne_bytes());
            payload.extend(kind.to_ne_bytes());
            payload.extend(value);
            payload.resize(payload.len().next_multiple_of(4), 0);
        }
        let whole = parse_message(&payload).expect("read");
        assert_eq!((whole.inode, whole.name.as_slice()), (77, &b"@name"[..]));
        assert_eq!(whole.file_inode, Some(u32::from_ne_bytes([5, 0, 0, 0])));
        assert_eq!(whole.receive_queue, Some(u32::from_ne_bytes([9, 0, 0, 0])));
        // A message that is cut anywhere, or has an invalid attribute length, is either parsed or
        // rejected. The parser never reads beyond the end of the message.
        for end in 0..payload.len() {
            let _ = parse_message(&payload[..end]);
        }
        for length in 0..40u16 {
            payload[16..18].copy_from_slice(&length.to_ne_bytes());
            let _ = parse_message(&payload);
        }
    }
}
