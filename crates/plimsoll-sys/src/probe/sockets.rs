//! Reads TCP sockets over netlink (`sock_diag`, as `ss` does): the accept queues of listeners, and
//! the addresses, queues, owners and send limits of connections.

use super::unix_diag::{self, UnixSocket};
use crate::error_if_negative;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The states of a TCP socket that a request to the kernel can select, as bits.
pub mod states {
    /// An open connection.
    pub const ESTABLISHED: u32 = 1 << 1;
    /// A closed connection whose port stays occupied for a minute at the end that closed first (RFC
    /// 9293, 3.6.1).
    pub const TIME_WAIT: u32 = 1 << 6;
    /// A listening socket.
    pub const LISTEN: u32 = 1 << 10;
}

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
const INET_DIAG_INFO: u16 = 2;
const NETLINK_SOCK_DIAG: libc::c_int = 4;
const NETLINK_HEADER_BYTES: usize = 16;
const INET_DIAG_MSG_BYTES: usize = 72;

/// How long a connection had data to send since it was opened, and how long sending was blocked, by
/// cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SendLimitTimes {
    /// The time in which there was data to send, us.
    pub busy_us: u64,
    /// The time in which the receiver's window was full because the receiver did not read, us.
    pub window_limited_us: u64,
    /// The time in which the sender's own send buffer was full, us.
    pub buffer_limited_us: u64,
    /// The number of segments that were retransmitted.
    pub retransmits: u32,
}

impl SendLimitTimes {
    /// Adds the difference between two readings of one connection.
    pub fn add_since(&mut self, now: &SendLimitTimes, before: &SendLimitTimes) {
        self.busy_us += now.busy_us.saturating_sub(before.busy_us);
        self.window_limited_us += now.window_limited_us.saturating_sub(before.window_limited_us);
        self.buffer_limited_us += now.buffer_limited_us.saturating_sub(before.buffer_limited_us);
        self.retransmits += now.retransmits.saturating_sub(before.retransmits);
    }
}

/// A TCP socket as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketRow {
    /// The IP version of the kernel's socket table that contains the socket. A socket for both IP
    /// versions is in the table of IPv6, even if its addresses are IPv4.
    pub version: IpVersion,
    /// The local address.
    pub local: SocketAddr,
    /// The remote address; zeros for a listener.
    pub remote: SocketAddr,
    /// For a listener, the number of connections in its accept queue; for a connection, the number
    /// of unread bytes.
    pub receive_queue: u32,
    /// For a listener, its backlog (longest accept queue); for a connection, the number of sent
    /// bytes that are not acknowledged yet.
    pub send_queue: u32,
    /// The user id of the owner.
    pub user: u32,
    /// The inode, as in the link `/proc/PID/fd/N -> socket:[inode]`; 0 until the connection is
    /// accepted.
    pub inode: u32,
    /// The times in which sending was limited. The times are set only for a connection, if the
    /// caller requests them and the kernel provides them.
    pub send_limit_times: Option<SendLimitTimes>,
    /// Whether a response is pending, because data was sent after the last received data. The value
    /// is set only for a connection, if the caller requests it and the kernel provides it. If a
    /// response comes within one kernel tick (up to 10 ms) after its request, the value is exact
    /// only for messages of one segment.
    pub awaits_answer: Option<bool>,
    /// The number of data segments sent, modulo 2^32. The number is set only for a connection, if
    /// the caller requests it and the kernel provides it (Linux 4.6).
    pub segments_sent: Option<u32>,
    /// The time since data last arrived, in ms and rounded to kernel ticks; `None` if data was sent
    /// after the last arrival. The time is set only for a connection, if the caller requests it and
    /// the kernel provides it.
    pub ms_since_data: Option<u32>,
    /// The number of bytes received over the life of a connection, if requested and available
    /// (Linux 4.1).
    pub bytes_received: Option<u64>,
}

/// Selects the connections that the kernel reports. The kernel itself filters, so that thousands of
/// other connections are not transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketFilter {
    /// All connections.
    Any,
    /// Sockets with this local port.
    LocalPort(u16),
    /// Sockets that have this port neither locally nor remotely.
    NeitherPort(u16),
}

/// The IP version whose socket table is read. The kernel has a table for each version, and
/// searching a table takes time even if it is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "they say it themselves")]
pub enum IpVersion {
    V4,
    V6,
}

impl IpVersion {
    /// The tables of both IP versions.
    pub const BOTH: &[IpVersion] = &[IpVersion::V4, IpVersion::V6];

    fn address_family(self) -> u8 {
        match self {
            IpVersion::V4 => libc::AF_INET as u8,
            IpVersion::V6 => libc::AF_INET6 as u8,
        }
    }
}

/// A netlink socket that queries the kernel about the sockets of one network namespace.
#[derive(Debug)]
pub struct SocketDiagnostics {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
}

/// Returns the identity of a process's network namespace: the device and inode of the namespace
/// file.
pub(super) fn network_namespace_of(pid: u32) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(format!("/proc/{pid}/ns/net")).map(|it| (it.dev(), it.ino()))
}

/// Calls a function in the network namespace of the process `pid`. A separate thread enters the
/// namespace and ends there, so that all other threads stay in their namespace.
pub(super) fn run_in_network_of<T: Send + 'static>(
    pid: u32,
    task: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let there = move || {
        let network = std::fs::File::open(format!("/proc/{pid}/ns/net"))?;
        // SAFETY: no memory is passed; the descriptor is open until after the call.
        error_if_negative(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) })?;
        task()
    };
    std::thread::spawn(there).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

impl SocketDiagnostics {
    /// Opens access to plimsoll's own network namespace. Fails if netlink is not available.
    pub fn open() -> io::Result<SocketDiagnostics> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no memory is passed.
        let socket = error_if_negative(unsafe { libc::socket(libc::AF_NETLINK, kind, NETLINK_SOCK_DIAG) })?;
        // SAFETY: the call above created the descriptor, and no other code owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        // The kernel responds to a netlink request at once. The receive timeout of the netlink
        // socket is a safeguard against a blocked probe.
        let limit = libc::timeval { tv_sec: 1, tv_usec: 0 };
        let (place, length) = ((&raw const limit).cast(), size_of::<libc::timeval>() as libc::socklen_t);
        // SAFETY: `limit` is a timeval of the given length.
        error_if_negative(unsafe {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, place, length)
        })?;
        Ok(SocketDiagnostics { socket, buffer: vec![0; 64 << 10], sequence: 0 })
    }

    /// Opens access to the network namespace of the process `pid`, or to plimsoll's own namespace
    /// if the process's namespace is not permitted. The two namespaces differ if the process is in
    /// a container. A netlink socket belongs to the network namespace in which it was created.
    pub fn open_process_or_own_namespace(pid: u32) -> io::Result<SocketDiagnostics> {
        SocketDiagnostics::open_namespace_of_process(pid).or_else(|_| SocketDiagnostics::open())
    }

    /// Opens access to the network namespace of the process `pid`, or fails.
    pub fn open_namespace_of_process(pid: u32) -> io::Result<SocketDiagnostics> {
        if network_namespace_of(std::process::id())? == network_namespace_of(pid)? {
            return SocketDiagnostics::open();
        }
        run_in_network_of(pid, SocketDiagnostics::open)
    }

    /// Opens access to the network namespace of the process `pid`, and to plimsoll's own namespace
    /// if the two namespaces differ.
    pub fn open_process_and_own_namespaces(pid: u32) -> io::Result<Vec<SocketDiagnostics>> {
        let beside = SocketDiagnostics::open_process_or_own_namespace(pid)?;
        let is_ours = network_namespace_of(std::process::id()).ok() == network_namespace_of(pid).ok();
        Ok([beside].into_iter().chain(if is_ours { None } else { SocketDiagnostics::open().ok() }).collect())
    }

    /// Calls `tell` for each TCP socket of the IP `versions` in one of `states`. With
    /// `with_send_time`, connections also have the values of `struct tcp_info`, such as
    /// [`SocketRow::send_limit_times`], which costs more time.
    pub fn for_each_socket(
        &mut self,
        versions: &[IpVersion],
        states: u32,
        filter: SocketFilter,
        with_send_time: bool,
        tell: &mut dyn FnMut(&SocketRow),
    ) -> io::Result<()> {
        for version in versions {
            self.sequence = self.sequence.wrapping_add(1);
            let request = encode_dump_request(version.address_family(), states, filter, with_send_time, self.sequence);
            self.send(&request)?;
            loop {
                let received = self.receive()?;
                match parse(&self.buffer[..received], self.sequence, tell) {
                    DumpProgress::More => {}
                    DumpProgress::Done => break,
                    // The errors ENOENT and EAFNOSUPPORT mean that the machine lacks the requested
                    // IP version, so it has no such sockets.
                    DumpProgress::Refused(libc::ENOENT | libc::EAFNOSUPPORT) => break,
                    DumpProgress::Refused(error) => return Err(io::Error::from_raw_os_error(error)),
                }
            }
        }
        Ok(())
    }

    /// Finds the listening socket for `address`: a socket that is bound to this address, or to
    /// every address. If several listening sockets share the port, any one of them is returned.
    pub fn listener_at(&mut self, address: SocketAddr) -> io::Result<Option<SocketRow>> {
        let anywhere = SocketAddr::new(
            if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() },
            0,
        );
        self.find_socket(states::LISTEN, address, anywhere)
    }

    /// Finds the open connection from `local` to `remote`, with the values of `struct tcp_info`.
    pub fn connection_at(&mut self, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<SocketRow>> {
        let found = self.find_socket(states::ESTABLISHED, local, remote)?;
        // Without such a connection, the kernel finds a listener of the local port. A connection
        // that its program has closed has no inode.
        Ok(found.filter(|socket| (socket.local, socket.remote) == (local, remote) && socket.inode != 0))
    }

    /// Finds one socket by its addresses. The kernel looks the socket up in its hash tables, as for
    /// an incoming packet. The cost of a lookup does not depend on the number of sockets.
    fn find_socket(&mut self, states: u32, local: SocketAddr, remote: SocketAddr) -> io::Result<Option<SocketRow>> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = encode_lookup_request(states, local, remote, self.sequence);
        self.send(&request)?;
        let mut found = None;
        loop {
            let received = self.receive()?;
            match parse(&self.buffer[..received], self.sequence, &mut |socket| found = Some(*socket)) {
                DumpProgress::Refused(libc::ENOENT | libc::EAFNOSUPPORT) => return Ok(None),
                DumpProgress::Refused(error) => return Err(io::Error::from_raw_os_error(error)),
                // If no socket was found yet, the received message belongs to an earlier request,
                // whose answer was abandoned.
                DumpProgress::More if found.is_none() => {}
                DumpProgress::More | DumpProgress::Done => return Ok(found),
            }
        }
    }

    /// Returns all unix sockets in one of `states`.
    pub fn unix_sockets(&mut self, states: u32) -> io::Result<Vec<UnixSocket>> {
        self.sequence = self.sequence.wrapping_add(1);
        let body = unix_diag::request_body(states);
        let mut request =
            encode_netlink_header(NLM_F_REQUEST | NLM_F_DUMP, NETLINK_HEADER_BYTES + body.len(), self.sequence);
        request.extend_from_slice(&body);
        self.send(&request)?;
        let mut found = Vec::new();
        loop {
            let received = self.receive()?;
            let mut tell = |payload: &[u8]| found.extend(unix_diag::parse_message(payload));
            match for_each_message(&self.buffer[..received], self.sequence, &mut tell) {
                DumpProgress::More => {}
                DumpProgress::Done => return Ok(found),
                DumpProgress::Refused(error) => return Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    fn send(&self, request: &[u8]) -> io::Result<()> {
        // SAFETY: the pointer and length are those of `request`.
        let sent = unsafe { libc::send(self.socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Receives messages into the buffer, and returns the number of bytes.
    fn receive(&mut self) -> io::Result<usize> {
        let room = self.buffer.len();
        loop {
            // SAFETY: the buffer is writable over the given length.
            let received = unsafe { libc::recv(self.socket.as_raw_fd(), self.buffer.as_mut_ptr().cast(), room, 0) };
            match usize::try_from(received) {
                Ok(received) => return Ok(received),
                Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Err(io::Error::last_os_error()),
            }
        }
    }
}

/// Encodes the header of a netlink message of `length` bytes.
fn encode_netlink_header(flags: u16, length: usize, sequence: u32) -> Vec<u8> {
    let mut out = Vec::with_capacity(length);
    out.extend_from_slice(&(length as u32).to_ne_bytes());
    out.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    out.extend_from_slice(&flags.to_ne_bytes());
    out.extend_from_slice(&sequence.to_ne_bytes());
    out.extend_from_slice(&[0; 4]);
    out
}

/// Encodes the beginning of a request about TCP sockets: the netlink header, and all fields before
/// the addresses.
fn encode_request_start(family: u8, states: u32, extensions: u8, flags: u16, length: usize, sequence: u32) -> Vec<u8> {
    let mut out = encode_netlink_header(flags, length, sequence);
    out.extend_from_slice(&[family, libc::IPPROTO_TCP as u8, extensions, 0]);
    out.extend_from_slice(&states.to_ne_bytes());
    out
}

/// Encodes the request for the socket with two addresses of one IP version. For a listening socket,
/// `remote` is zero. A connection has the values of `struct tcp_info`.
fn encode_lookup_request(states: u32, local: SocketAddr, remote: SocketAddr, sequence: u32) -> Vec<u8> {
    let version = if local.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
    let extensions = if states == states::LISTEN { 0 } else { 1 << (INET_DIAG_INFO - 1) };
    let length = NETLINK_HEADER_BYTES + 56;
    let mut out = encode_request_start(version.address_family(), states, extensions, NLM_F_REQUEST, length, sequence);
    out.extend_from_slice(&local.port().to_be_bytes());
    out.extend_from_slice(&remote.port().to_be_bytes());
    for address in [local, remote] {
        match address.ip() {
            IpAddr::V4(ip) => out.extend_from_slice(&[&ip.octets()[..], &[0; 12]].concat()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    }
    // The interface is zero, and the cookie matches any socket.
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[0xff; 8]);
    out
}

fn encode_dump_request(family: u8, states: u32, filter: SocketFilter, with_send_time: bool, sequence: u32) -> Vec<u8> {
    let code = encode_filter(filter);
    let attribute = if code.is_empty() { 0 } else { 4 + code.len() };
    let extensions = if with_send_time { 1 << (INET_DIAG_INFO - 1) } else { 0 };
    let length = NETLINK_HEADER_BYTES + 56 + attribute;
    let mut out = encode_request_start(family, states, extensions, NLM_F_REQUEST | NLM_F_DUMP, length, sequence);
    out.extend_from_slice(&[0; 48]);
    if !code.is_empty() {
        out.extend_from_slice(&(attribute as u16).to_ne_bytes());
        out.extend_from_slice(&INET_DIAG_REQ_BYTECODE.to_ne_bytes());
        out.extend_from_slice(&code);
    }
    out
}

/// Encodes the filter in the kernel's bytecode: operations that jump ahead by `yes` or `no` bytes.
/// A jump to exactly the end of the bytecode accepts the socket, and a jump to four bytes beyond
/// the end rejects the socket.
fn encode_filter(filter: SocketFilter) -> Vec<u8> {
    const JMP: u8 = 1;
    const LOCAL_GE: u8 = 2;
    const LOCAL_LE: u8 = 3;
    const REMOTE_GE: u8 = 4;
    const REMOTE_LE: u8 = 5;
    let operation = |out: &mut Vec<u8>, code: u8, yes: u8, no: u16| {
        out.extend_from_slice(&[code, yes]);
        out.extend_from_slice(&no.to_ne_bytes());
    };
    let mut out = Vec::new();
    match filter {
        SocketFilter::Any => {}
        SocketFilter::LocalPort(port) => {
            // Reject the socket unless its local port equals the wanted port, tested as at least
            // and at most the wanted port.
            operation(&mut out, LOCAL_GE, 8, 20);
            operation(&mut out, 0, 0, port);
            operation(&mut out, LOCAL_LE, 8, 12);
            operation(&mut out, 0, 0, port);
        }
        SocketFilter::NeitherPort(port) => {
            // If the socket's port is lower or higher than the unwanted port, skip the jump that
            // rejects the socket.
            for (at_least, at_most, out_by) in [(LOCAL_GE, LOCAL_LE, 28), (REMOTE_GE, REMOTE_LE, 8)] {
                operation(&mut out, at_least, 8, 20);
                operation(&mut out, 0, 0, port);
                operation(&mut out, at_most, 8, 12);
                operation(&mut out, 0, 0, port);
                operation(&mut out, JMP, 4, out_by);
            }
        }
    }
    out
}

/// The progress of receiving the kernel's answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpProgress {
    /// More messages follow.
    More,
    /// The answer is complete.
    Done,
    /// The kernel refused the request with this error number.
    Refused(i32),
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Parses the netlink messages about TCP sockets in one received block of bytes. Truncated or
/// unknown messages are skipped.
pub fn parse(bytes: &[u8], sequence: u32, tell: &mut dyn FnMut(&SocketRow)) -> DumpProgress {
    for_each_message(bytes, sequence, &mut |payload| {
        if let Some(socket) = parse_socket(payload) {
            tell(&socket);
        }
    })
}

/// Splits netlink messages of any socket family, and calls `tell` with each message body.
fn for_each_message(mut bytes: &[u8], sequence: u32, tell: &mut dyn FnMut(&[u8])) -> DumpProgress {
    while let (Some(length), Some(kind), Some(theirs)) = (u32_at(bytes, 0), u16_at(bytes, 4), u32_at(bytes, 8)) {
        let length = length as usize;
        if length < NETLINK_HEADER_BYTES || length > bytes.len() {
            break;
        }
        // Messages with another sequence number belong to an earlier request that was abandoned.
        if theirs == sequence {
            let payload = &bytes[NETLINK_HEADER_BYTES..length];
            match kind {
                NLMSG_DONE => return DumpProgress::Done,
                NLMSG_ERROR => {
                    return DumpProgress::Refused(u32_at(payload, 0).map_or(0, |code| (code as i32).wrapping_neg()));
                }
                SOCK_DIAG_BY_FAMILY => tell(payload),
                _ => {}
            }
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    DumpProgress::More
}

fn parse_socket(payload: &[u8]) -> Option<SocketRow> {
    let family = libc::c_int::from(*payload.first()?);
    let address = |at: usize| {
        let bytes: [u8; 16] = payload.get(at..at + 16)?.try_into().ok()?;
        if family == libc::AF_INET {
            return Some(IpAddr::V4(Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])));
        }
        let v6 = Ipv6Addr::from(bytes);
        // A socket for both IP versions shows IPv4 addresses as mapped IPv6 addresses.
        Some(v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4))
    };
    let port = |at: usize| Some(u16::from_be_bytes(payload.get(at..at + 2)?.try_into().ok()?));
    let mut socket = SocketRow {
        version: if family == libc::AF_INET { IpVersion::V4 } else { IpVersion::V6 },
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        receive_queue: u32_at(payload, 56)?,
        send_queue: u32_at(payload, 60)?,
        user: u32_at(payload, 64)?,
        inode: u32_at(payload, 68)?,
        send_limit_times: None,
        awaits_answer: None,
        segments_sent: None,
        ms_since_data: None,
        bytes_received: None,
    };
    let mut attributes = payload.get(INET_DIAG_MSG_BYTES..)?;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let length = usize::from(length);
        if length < 4 || length > attributes.len() {
            break;
        }
        if kind == INET_DIAG_INFO {
            socket.send_limit_times = parse_send_time(&attributes[4..length]);
            let info = &attributes[4..length];
            socket.awaits_answer = parse_awaits_answer(info);
            socket.segments_sent = u32_at(info, 156);
            socket.ms_since_data = u32_at(info, 52).filter(|_| socket.awaits_answer == Some(false));
            socket.bytes_received = u64_at(info, 128);
        }
        attributes = &attributes[length.next_multiple_of(4).min(attributes.len())..];
    }
    Some(socket)
}

/// Parses the send times from `struct tcp_info`, which is shorter on older kernels.
fn parse_send_time(info: &[u8]) -> Option<SendLimitTimes> {
    Some(SendLimitTimes {
        retransmits: u32_at(info, 100)?,
        busy_us: u64_at(info, 168)?,
        window_limited_us: u64_at(info, 176)?,
        buffer_limited_us: u64_at(info, 184)?,
    })
}

/// The longest time for which an acknowledgement without data may be delayed, ms.
const DELAYED_ACK_MS_MAX: u32 = 300;

/// Returns whether a connection waits for a response. The function compares the time since the last
/// send with the time since the last receive, both in ms from `struct tcp_info`.
///
/// If the last send and the last receive are in one kernel tick, `tcp_info` does not show which
/// came first. The response may have come within the tick, so that no response is pending. Or the
/// connection sent its next request within the tick of a response, so that a response is pending.
///
/// In this case, a response is pending if at least one of these conditions is true:
/// - The peer acknowledged the last send within [`DELAYED_ACK_MS_MAX`], but sent no data. (A
///   keep-alive probe also gets an acknowledgement without data, but long after the last send.)
/// - More data segments were sent than received. This condition is exact only if each request and
///   each response has one segment.
fn parse_awaits_answer(info: &[u8]) -> Option<bool> {
    let (sent_ms, came_ms, acknowledged_ms) = (u32_at(info, 44)?, u32_at(info, 52)?, u32_at(info, 56)?);
    let by_itself = acknowledged_ms < sent_ms && sent_ms - acknowledged_ms <= DELAYED_ACK_MS_MAX;
    let more_sent = || {
        let (came, sent) = (u32_at(info, 152)?, u32_at(info, 156)?);
        Some(sent.wrapping_sub(came).cast_signed() > 0)
    };
    Some(came_ms > sent_ms || came_ms == sent_ms && (by_itself || more_sent().unwrap_or(false)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn list_sockets(asker: &mut SocketDiagnostics, states: u32, filter: SocketFilter) -> Vec<SocketRow> {
        let mut sockets = Vec::new();
        asker
            .for_each_socket(IpVersion::BOTH, states, filter, states == states::ESTABLISHED, &mut |socket| {
                sockets.push(*socket)
            })
            .expect("asked");
        sockets
    }

    #[test]
    fn queues_of_a_real_listener_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let other = TcpListener::bind("127.0.0.1:0").expect("bound");
        let elsewhere = TcpStream::connect(other.local_addr().expect("an address")).expect("connected");
        let mut clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).expect("connected")).collect();
        let (mut accepted, _) = listener.accept().expect("accepted");
        let mut asker = SocketDiagnostics::open().expect("netlink");

        let listening = list_sockets(&mut asker, states::LISTEN, SocketFilter::LocalPort(address.port()));
        assert_eq!(listening.len(), 1, "{listening:?}");
        assert_eq!((listening[0].local, listening[0].receive_queue), (address, 2), "two wait to be accepted");
        assert!(listening[0].send_queue >= 2 && listening[0].inode > 0, "{listening:?}");

        clients[0].write_all(b"hello").expect("written");
        std::thread::sleep(std::time::Duration::from_millis(5));
        let connections = list_sockets(&mut asker, states::ESTABLISHED, SocketFilter::LocalPort(address.port()));
        assert_eq!(connections.len(), 3);
        let first = connections.iter().find(|c| c.remote == clients[0].local_addr().expect("an address"));
        let first = first.expect("the accepted one");
        assert_eq!((first.receive_queue, first.local), (5, address));
        assert!(first.send_limit_times.is_some());
        let mut five = [0; 5];
        accepted.read_exact(&mut five).expect("read");

        let others = list_sockets(&mut asker, states::ESTABLISHED, SocketFilter::NeitherPort(address.port()));
        assert!(others.iter().all(|c| c.local.port() != address.port() && c.remote.port() != address.port()));
        assert!(others.iter().any(|c| c.local == elsewhere.local_addr().expect("an address")), "{others:?}");
        // Other programs open and close connections during this test, so the test counts only its
        // own connections.
        let all = list_sockets(&mut asker, states::ESTABLISHED, SocketFilter::Any);
        assert!(all.iter().any(|c| c.local == elsewhere.local_addr().expect("an address")), "{all:?}");
        let ends = all.iter().filter(|c| c.local.port() == address.port() || c.remote.port() == address.port());
        assert_eq!(ends.count(), 6, "both ends of three connections");
    }

    #[test]
    fn sockets_that_await_a_response_are_detected() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let mut client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
        let own = client.local_addr().expect("an address");
        let (mut server, _) = listener.accept().expect("accepted");
        let mut asker = SocketDiagnostics::open().expect("netlink");
        // The pause is longer than a kernel tick.
        let pass = || std::thread::sleep(std::time::Duration::from_millis(40));
        let mut awaits = || {
            let rows = list_sockets(&mut asker, states::ESTABLISHED, SocketFilter::LocalPort(own.port()));
            let row = rows.iter().find(|row| row.local == own).expect("the client's");
            (row.awaits_answer, row.segments_sent)
        };
        let mut byte = [0];
        for sent in 1..3 {
            pass();
            client.write_all(b"?").expect("written");
            pass();
            assert_eq!(awaits(), (Some(true), Some(sent)));
            server.read_exact(&mut byte).expect("read");
            server.write_all(b"!").expect("written");
            client.read_exact(&mut byte).expect("read");
            assert_eq!(awaits(), (Some(false), Some(sent)));
        }
        // The client sends each next request within the kernel tick in which the previous response
        // came.
        for sent in 3..20 {
            client.write_all(b"?").expect("written");
            assert_eq!(awaits(), (Some(true), Some(sent)));
            server.read_exact(&mut byte).expect("read");
            server.write_all(b"!").expect("written");
            client.read_exact(&mut byte).expect("read");
        }
        // In this part of the test, each response has several segments, and the client again sends
        // each next request at once. After responses of several segments, only an acknowledgement
        // without data shows that a response is pending.
        for _ in 0..3 {
            client.write_all(b"?").expect("written");
            server.read_exact(&mut byte).expect("read");
            server.set_nodelay(true).expect("set");
            for _ in 0..4 {
                server.write_all(b"!").expect("written");
                client.read_exact(&mut byte).expect("read");
            }
        }
        client.write_all(b"?").expect("written");
        std::thread::sleep(std::time::Duration::from_millis(250));
        assert_eq!(awaits().0, Some(true), "nobody has answered");
        server.read_exact(&mut byte).expect("read");
        server.write_all(b"!").expect("written");
        client.read_exact(&mut byte).expect("read");
        std::thread::sleep(std::time::Duration::from_millis(250));
        assert_eq!(awaits().0, Some(false), "somebody has");
    }

    #[test]
    fn an_ipv6_listener_shows_its_ipv4_connections() {
        let Ok(listener) = TcpListener::bind("[::]:0") else { return };
        let port = listener.local_addr().expect("an address").port();
        let client = TcpStream::connect(("127.0.0.1", port)).expect("connected");
        let mut asker = SocketDiagnostics::open().expect("netlink");
        let connections = list_sockets(&mut asker, states::ESTABLISHED, SocketFilter::LocalPort(port));
        assert!(connections.iter().any(|c| c.remote == client.local_addr().expect("an address")), "{connections:?}");
    }

    #[test]
    fn a_listener_is_queried_by_address() {
        let mut asker = SocketDiagnostics::open().expect("netlink");
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(bound) else { continue };
            let port = listener.local_addr().expect("an address").port();
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).expect("connected")).collect();
            let found = asker.listener_at(address).expect("asked").expect("found");
            let listed = list_sockets(&mut asker, states::LISTEN, SocketFilter::LocalPort(port));
            assert_eq!(listed, [found], "as the list has it");
            assert_eq!(found.receive_queue, 3, "{bound}: all wait to be accepted");
            let wanted = if bound.starts_with('[') { IpVersion::V6 } else { IpVersion::V4 };
            assert_eq!(found.version, wanted, "{bound}");
            drop((clients, listener));
            assert_eq!(asker.listener_at(address).expect("asked"), None, "{bound}: closed");
        }
        if let Ok(listener) = TcpListener::bind("[::1]:0") {
            let address = listener.local_addr().expect("an address");
            assert_eq!(asker.listener_at(address).expect("asked").expect("found").local, address);
        }
    }

    #[test]
    fn a_connection_is_found_by_its_addresses() {
        let mut asker = SocketDiagnostics::open().expect("netlink");
        for bound in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(bound) else { continue };
            let server = listener.local_addr().expect("an address");
            let mut client = TcpStream::connect(server).expect("connected");
            let own = client.local_addr().expect("an address");
            client.write_all(b"?").expect("written");
            let found = asker.connection_at(own, server).expect("asked").expect("found");
            assert_eq!((found.local, found.remote, found.awaits_answer), (own, server, Some(true)));
            let unused = SocketAddr::new(own.ip(), 1);
            assert_eq!(asker.connection_at(server, unused).expect("asked"), None, "{bound}: a listener is none");
            drop(client);
            assert_eq!(asker.connection_at(own, server).expect("asked"), None, "{bound}: closed");
        }
    }

    #[test]
    fn truncated_netlink_messages_are_skipped() {
        let mut message = vec![0u8; NETLINK_HEADER_BYTES + INET_DIAG_MSG_BYTES];
        message[..4].copy_from_slice(&((NETLINK_HEADER_BYTES + INET_DIAG_MSG_BYTES) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        message[8..12].copy_from_slice(&7u32.to_ne_bytes());
        message[NETLINK_HEADER_BYTES] = libc::AF_INET as u8;
        let mut count = 0;
        assert_eq!(parse(&message, 7, &mut |_| count += 1), DumpProgress::More);
        assert_eq!(parse(&message, 8, &mut |_| count += 100), DumpProgress::More, "an answer to another question");
        for cut in 0..message.len() {
            assert_eq!(parse(&message[..cut], 7, &mut |_| count += 1000), DumpProgress::More);
        }
        assert_eq!(count, 1);
    }
}
