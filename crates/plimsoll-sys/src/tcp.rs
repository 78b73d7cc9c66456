//! Non-blocking stream sockets: TCP, and unix sockets for clients.

use crate::error_if_negative;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::mem::size_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A connected (or connecting) socket, which is closed when the value is dropped.
#[derive(Debug)]
pub struct Socket(OwnedFd);

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

fn set_option(fd: RawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` is an int that outlives the call, with its size.
    error_if_negative(unsafe {
        libc::setsockopt(fd, level, name, (&value as *const i32).cast(), size_of::<i32>() as libc::socklen_t)
    })?;
    Ok(())
}

fn get_option(fd: RawFd, level: i32, name: i32) -> io::Result<i32> {
    let mut value = 0i32;
    let mut length = size_of::<i32>() as libc::socklen_t;
    // SAFETY: `value` has room for `length` bytes.
    error_if_negative(unsafe { libc::getsockopt(fd, level, name, (&mut value as *mut i32).cast(), &mut length) })?;
    Ok(value)
}

/// Returns a socket address in the kernel's format, and its length in bytes.
fn to_raw(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all-zero bytes are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = &raw mut storage;
    match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as _,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is at least as large and as aligned as sockaddr_in.
            unsafe { place.cast::<libc::sockaddr_in>().write(raw) };
            (storage, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as _,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: sockaddr_storage is at least as large and as aligned as sockaddr_in6.
            unsafe { place.cast::<libc::sockaddr_in6>().write(raw) };
            (storage, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
    }
}

fn new_socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    new_socket_of_family(if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 })
}

fn new_socket_of_family(family: i32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: no memory is passed; the new descriptor is ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(error_if_negative(libc::socket(family, kind, 0))?) })
}

impl Socket {
    /// Starts to connect, with TCP_NODELAY set. The connection is open when the socket becomes
    /// writable and [`Socket::take_error`] returns no error.
    pub fn connect(address: &SocketAddr) -> io::Result<Socket> {
        Socket::connect_from(None, address)
    }

    /// Starts to connect from a local address, like [`Socket::connect`]. The kernel chooses the
    /// port only when it knows both addresses, so each pair of addresses can use all ports.
    pub fn connect_from(source: Option<IpAddr>, address: &SocketAddr) -> io::Result<Socket> {
        let socket = Socket(new_socket(address)?);
        set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        if let Some(source) = source {
            set_option(socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
            let (raw, length) = to_raw(&SocketAddr::new(source, 0));
            // SAFETY: `raw` is a socket address of `length` bytes.
            error_if_negative(unsafe { libc::bind(socket.as_raw_fd(), (&raw const raw).cast(), length) })?;
        }
        let (raw, length) = to_raw(address);
        // SAFETY: `raw` is a socket address of `length` bytes.
        match error_if_negative(unsafe { libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), length) }) {
            Ok(_) => Ok(socket),
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
            Err(error) => Err(error),
        }
    }

    /// Whether the connection to `address` is open now. An error means that the connection failed.
    pub fn is_connected(&self, address: &SocketAddr) -> io::Result<bool> {
        let (raw, length) = to_raw(address);
        // SAFETY: `raw` is a socket address of `length` bytes.
        match error_if_negative(unsafe { libc::connect(self.as_raw_fd(), (&raw const raw).cast(), length) }) {
            Ok(_) => Ok(true),
            Err(error) => match error.raw_os_error() {
                Some(libc::EISCONN) => Ok(true),
                Some(libc::EALREADY | libc::EINPROGRESS | libc::EINTR) => Ok(false),
                _ => Err(error),
            },
        }
    }

    /// Connects to a unix socket; `@NAME` is the abstract socket of that name. If the backlog of
    /// the listener is full, the error is `WouldBlock`, and no later event reports free space in
    /// the backlog.
    pub fn connect_unix(path: &str) -> io::Result<Socket> {
        // SAFETY: all-zero bytes are a valid sockaddr_un.
        let mut raw: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        if path.is_empty() || path.len() >= raw.sun_path.len() || path.contains('\0') {
            return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
        }
        raw.sun_family = libc::AF_UNIX as _;
        for (to, from) in raw.sun_path.iter_mut().zip(path.bytes()) {
            *to = from as libc::c_char;
        }
        let mut length = size_of::<libc::sockaddr_un>();
        if path.starts_with('@') {
            // An abstract name begins with a zero byte and has no file.
            raw.sun_path[0] = 0;
            length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + path.len();
        }
        let socket = Socket(new_socket_of_family(libc::AF_UNIX)?);
        // SAFETY: `raw` is a socket address of at least `length` bytes. A path ends with zero
        // bytes, and an abstract name ends after `length` bytes.
        error_if_negative(unsafe {
            libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), length as libc::socklen_t)
        })?;
        Ok(socket)
    }

    /// Returns the pending error of the socket; `Ok` if no error is pending.
    pub fn take_error(&self) -> io::Result<()> {
        match get_option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR)? {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Sends as many of the bytes as the socket accepts, and returns the number. A broken
    /// connection is an error, never a signal.
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: `bytes` is valid for its length.
        let sent = unsafe { libc::send(self.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
    }

    /// Receives into `buffer` and returns the number of bytes; 0 if the peer has ended its stream.
    #[inline]
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `buffer` is valid for its length.
        let received = unsafe { libc::recv(self.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        if received < 0 { Err(io::Error::last_os_error()) } else { Ok(received as usize) }
    }

    /// Ends the sending direction of the stream after the bytes sent so far. The receiving
    /// direction stays open.
    pub fn shutdown_send(&self) -> io::Result<()> {
        // SAFETY: no memory is passed.
        error_if_negative(unsafe { libc::shutdown(self.as_raw_fd(), libc::SHUT_WR) })?;
        Ok(())
    }

    /// Makes closing the socket reset the connection instead of leaving it in TIME-WAIT.
    pub fn set_reset_on_close(&self) -> io::Result<()> {
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        // SAFETY: `linger` outlives the call, with its size.
        error_if_negative(unsafe {
            libc::setsockopt(
                self.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const linger).cast(),
                size_of::<libc::linger>() as libc::socklen_t,
            )
        })?;
        Ok(())
    }
}

/// A listening socket, which is closed when the value is dropped.
#[derive(Debug)]
pub struct Listener(OwnedFd);

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl Listener {
    /// Listens on `address` (port 0: any free port). With `shared`, several listeners can have the
    /// same address, and the kernel distributes connections among them (SO_REUSEPORT).
    pub fn bind(address: &SocketAddr, backlog: i32, shared: bool) -> io::Result<Listener> {
        let fd = new_socket(address)?;
        set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
        if shared {
            set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        let (raw, length) = to_raw(address);
        // SAFETY: `raw` is a socket address of `length` bytes.
        error_if_negative(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), length) })?;
        // SAFETY: no memory is passed.
        error_if_negative(unsafe { libc::listen(fd.as_raw_fd(), backlog) })?;
        Ok(Listener(fd))
    }

    /// Returns the address on which the socket listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        std::net::TcpListener::from(self.0.try_clone()?).local_addr()
    }

    /// Accepts a connection and sets TCP_NODELAY. The error is `WouldBlock` if the accept queue is
    /// empty.
    pub fn accept(&self) -> io::Result<Socket> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: null pointers ask for no peer address; the new descriptor is ours alone.
        let fd = unsafe {
            OwnedFd::from_raw_fd(error_if_negative(libc::accept4(
                self.as_raw_fd(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                flags,
            ))?)
        };
        let socket = Socket(fd);
        set_option(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        Ok(socket)
    }
}

/// A port that is bound but not listened on. While this value exists, connections to the port are
/// refused, and no other socket gets the port. Dropping the value frees the port.
#[derive(Debug)]
pub struct ReservedPort {
    _fd: OwnedFd,
    address: SocketAddr,
}

impl ReservedPort {
    /// Binds the port of `address` (port 0: any free port).
    pub fn bind(address: &SocketAddr) -> io::Result<ReservedPort> {
        let fd = new_socket(address)?;
        let (raw, length) = to_raw(address);
        // SAFETY: `raw` is a socket address of `length` bytes.
        error_if_negative(unsafe { libc::bind(fd.as_raw_fd(), (&raw const raw).cast(), length) })?;
        let address = std::net::TcpListener::from(fd.try_clone()?).local_addr()?;
        Ok(ReservedPort { _fd: fd, address })
    }

    /// Returns the address at which connections are refused.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The ports from which [`unused_loopback_address`] chooses. Many services have lower ports, and
/// Kubernetes forwards ports from 30000 on (`NodePort`).
const SERVER_PORTS: Range<u16> = 10_240..30_000;
/// The number of ports that [`unused_loopback_address`] tries.
const SERVER_PORT_TRIES: u16 = 100;

/// Returns the part of [`SERVER_PORTS`] below the range of ports for outgoing connections, which is
/// given in the format of `/proc/sys/net/ipv4/ip_local_port_range`.
fn server_ports(outgoing: &str) -> Range<u16> {
    let outgoing_min = outgoing.split_whitespace().next().and_then(|word| word.parse().ok());
    SERVER_PORTS.start..outgoing_min.unwrap_or(SERVER_PORTS.end).min(SERVER_PORTS.end)
}

/// Returns whether the port is unused: no socket of this machine is bound to the port, at any
/// address.
fn is_port_unused(port: u16) -> bool {
    let is_free = |any: IpAddr| match ReservedPort::bind(&SocketAddr::new(any, port)) {
        Ok(_) => true,
        // On a machine without IPv6, no IPv6 socket uses the port.
        Err(error) => any.is_ipv6() && error.kind() != io::ErrorKind::AddrInUse,
    };
    is_free(Ipv4Addr::UNSPECIFIED.into()) && is_free(Ipv6Addr::UNSPECIFIED.into())
}

/// Returns a loopback address on which nothing listens, for a server that a command starts later.
///
/// The kernel takes ports for outgoing connections, and for servers without a port of their own,
/// from one range. If possible, the returned port is below the range, so that no other socket gets
/// the port before the server starts. If no port below the range is free, the kernel chooses the
/// port.
///
/// # Errors
/// The error of the system if no port is free.
pub fn unused_loopback_address() -> io::Result<SocketAddr> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let ports = server_ports(&range);
    let found = (0..SERVER_PORT_TRIES).filter(|_| !ports.is_empty()).find_map(|_| {
        // A new hasher of the standard library has random keys, so its hash serves as a random
        // number.
        let random = RandomState::new().build_hasher().finish();
        let port = ports.start + (random % ports.len() as u64) as u16;
        is_port_unused(port).then_some(port)
    });
    match found {
        Some(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        None => Ok(ReservedPort::bind(&(Ipv4Addr::LOCALHOST, 0).into())?.address()),
    }
}

/// The error number of a connect that fails because no local port is free.
pub const NO_PORT_LEFT: u16 = libc::EADDRNOTAVAIL as u16;
/// The error numbers of calls that fail because this process or the machine has reached its limit
/// of open files.
pub const NO_FILE_LEFT: [u16; 2] = [libc::EMFILE as u16, libc::ENFILE as u16];
/// The error number of a connect to a unix socket whose listener's backlog is full.
pub const BACKLOG_FULL: u16 = libc::EAGAIN as u16;

/// Whether an error of a failed connect concerns only the tried address, so that another address of
/// the same host name may still accept connections.
pub fn is_address_specific(error: u16) -> bool {
    let codes = [libc::ECONNREFUSED, libc::ECONNRESET, libc::EHOSTUNREACH, libc::ENETUNREACH, libc::ETIMEDOUT];
    codes.contains(&i32::from(error))
}

/// Whether `address` belongs to this machine: a loopback address, or an address to which a socket
/// can be bound.
pub fn is_local(address: &IpAddr) -> bool {
    address.is_loopback() || std::net::UdpSocket::bind((*address, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::Epoll;

    #[test]
    fn tcp_sockets_exchange_data_and_close() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let listener = Listener::bind(&any.parse().expect("an address"), 16, false).expect("binds");
            let address = listener.local_address().expect("has an address");
            let client = Socket::connect(&address).expect("begins");
            let mut epoll = Epoll::new(8).expect("an epoll");
            epoll.add(client.as_raw_fd(), 7).expect("added");
            assert!(epoll.wait(Some(5_000_000_000)).expect("waits").iter().any(|e| e.token() == 7 && e.writable()));
            client.take_error().expect("connected");
            let server = listener.accept().expect("accepted");
            assert_eq!(listener.accept().expect_err("only one").kind(), io::ErrorKind::WouldBlock);
            assert_eq!(client.send(b"hello").expect("sent"), 5);
            let mut buffer = [0; 16];
            let received = loop {
                match server.recv(&mut buffer) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                    other => break other.expect("received"),
                }
            };
            assert_eq!(&buffer[..received], b"hello");
            server.set_reset_on_close().expect("set");
            drop(server);
            let event = epoll.wait(Some(5_000_000_000)).expect("waits")[0];
            assert!(event.is_hung_up() && event.readable());
            assert_eq!(client.recv(&mut buffer).expect_err("reset").kind(), io::ErrorKind::ConnectionReset);
        }
    }

    #[test]
    fn a_half_closed_socket_still_receives() {
        let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), 16, false).expect("binds");
        let mut client =
            std::net::TcpStream::connect(listener.local_address().expect("has an address")).expect("connects");
        let server = listener.accept().expect("accepted");
        server.shutdown_send().expect("ended");
        let mut buffer = [0; 16];
        assert_eq!(std::io::Read::read(&mut client, &mut buffer).expect("read"), 0);
        std::io::Write::write_all(&mut client, b"still here").expect("written");
        let received = loop {
            match server.recv(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
                other => break other.expect("received"),
            }
        };
        assert_eq!(&buffer[..received], b"still here");
    }

    #[test]
    fn a_reserved_port_refuses_connections_and_other_binds() {
        let reserved = ReservedPort::bind(&"127.0.0.1:0".parse().expect("an address")).expect("binds");
        let refused = std::net::TcpStream::connect(reserved.address()).expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let taken = ReservedPort::bind(&reserved.address()).expect_err("taken");
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn ports_of_servers_are_outside_the_range_of_outgoing_connections() {
        for (outgoing, end) in [("32768\t60999\n", 30_000), ("20000 60999", 20_000), ("1024 65535", 1024), ("", 30_000)]
        {
            assert_eq!(server_ports(outgoing), Range { start: 10_240, end }, "{outgoing}");
        }
        let address = unused_loopback_address().expect("a port");
        let taken = std::net::TcpListener::bind(address).expect("the address is free");
        assert!(!is_port_unused(address.port()));
        drop(taken);
    }

    #[test]
    fn a_connection_uses_the_requested_source_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = listener.local_addr().expect("has an address");
        let source: IpAddr = "127.7.8.9".parse().expect("an address");
        let _client = Socket::connect_from(Some(source), &address).expect("begins");
        assert_eq!(listener.accept().expect("accepted").1.ip(), source);
        // An address that is reserved for documentation belongs to no machine.
        let foreign = "192.0.2.1".parse().expect("an address");
        let error = Socket::connect_from(Some(foreign), &address).expect_err("not ours");
        assert_eq!(error.raw_os_error(), Some(i32::from(NO_PORT_LEFT)));
    }

    #[test]
    fn unix_sockets_accept_connections() {
        let path = std::env::temp_dir().join(format!("plimsoll-sys-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let text = path.to_str().expect("text");
        assert_eq!(Socket::connect_unix(text).expect_err("missing").kind(), io::ErrorKind::NotFound);
        let listener = std::os::unix::net::UnixListener::bind(&path).expect("binds");
        let client = Socket::connect_unix(text).expect("connects");
        let mut server = listener.accept().expect("accepted").0;
        client.send(b"hello").expect("sent");
        let mut buffer = [0; 5];
        std::io::Read::read_exact(&mut server, &mut buffer).expect("received");
        assert_eq!(&buffer, b"hello");
        drop(listener);
        assert_eq!(Socket::connect_unix(text).expect_err("refused").kind(), io::ErrorKind::ConnectionRefused);
        std::fs::remove_file(&path).expect("removed");
        for path in ["", "a\0b", &"x".repeat(200)] {
            assert!(Socket::connect_unix(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_closed_port_refuses_connections() {
        let address = {
            let listener = Listener::bind(&"127.0.0.1:0".parse().expect("an address"), 1, false).expect("binds");
            listener.local_address().expect("has an address")
        };
        let refused = match Socket::connect(&address) {
            Err(error) => error,
            Ok(socket) => {
                let mut epoll = Epoll::new(1).expect("an epoll");
                epoll.add(socket.as_raw_fd(), 0).expect("added");
                epoll.wait(Some(5_000_000_000)).expect("waits");
                socket.take_error().expect_err("refused")
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
