//! Waits until file descriptors are ready, with edge-triggered epoll.

use crate::error_if_negative;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The readiness event of one file descriptor.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Event(libc::epoll_event);

impl Event {
    /// Returns the token given to [`Epoll::add`].
    #[inline]
    pub fn token(&self) -> u64 {
        self.0.u64
    }

    /// Whether a read would return bytes, the end of the stream, or an error.
    #[inline]
    pub fn readable(&self) -> bool {
        self.0.events & (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// Whether a write would accept bytes or return an error.
    #[inline]
    pub fn writable(&self) -> bool {
        self.0.events & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// Whether the peer has closed its sending direction, or the connection is broken. If the
    /// result is true, the caller must read until a read returns the end of the stream or the
    /// error.
    #[inline]
    pub fn is_hung_up(&self) -> bool {
        self.0.events & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }
}

/// An epoll instance, with a buffer for the events that one wait returns.
pub struct Epoll {
    fd: OwnedFd,
    events: Box<[Event]>,
    ready: usize,
}

impl Epoll {
    /// Creates an instance that reports up to `capacity` events at a time.
    pub fn new(capacity: usize) -> io::Result<Epoll> {
        // SAFETY: no memory is passed; no other code owns the new descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(error_if_negative(libc::epoll_create1(libc::EPOLL_CLOEXEC))?) };
        let empty = Event(libc::epoll_event { events: 0, u64: 0 });
        Ok(Epoll { fd, events: vec![empty; capacity.max(1)].into_boxed_slice(), ready: 0 })
    }

    /// Watches `fd` for reading and writing, edge-triggered, until `fd` is closed.
    pub fn add(&self, fd: RawFd, token: u64) -> io::Result<()> {
        let flags = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
        self.add_with_flags(fd, token, flags)
    }

    /// Watches `fd` (a listening socket or an event descriptor) for reading, level-triggered.
    pub fn add_level(&self, fd: RawFd, token: u64) -> io::Result<()> {
        self.add_with_flags(fd, token, libc::EPOLLIN as u32)
    }

    fn add_with_flags(&self, fd: RawFd, token: u64, events: u32) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: `event` is valid for the call, which copies it.
        error_if_negative(unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) })?;
        Ok(())
    }

    /// Waits at most `timeout_ns` (0: no wait; `None`: no limit) and returns the events.
    /// Returns no events after an interruption by a signal.
    #[inline]
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> io::Result<&[Event]> {
        let (fd, events, capacity) =
            (self.fd.as_raw_fd(), self.events.as_mut_ptr().cast::<libc::epoll_event>(), self.events.len() as i32);
        let result = match timeout_ns {
            // SAFETY: `events` points to `capacity` events; Event is a transparent epoll_event.
            Some(0) => unsafe { libc::epoll_wait(fd, events, capacity, 0) },
            // SAFETY: `events` points to `capacity` events; Event is a transparent epoll_event.
            None => unsafe { libc::epoll_wait(fd, events, capacity, -1) },
            Some(ns) => wait_with_timeout_ns(fd, events, capacity, ns),
        };
        self.ready = match error_if_negative(result) {
            Ok(ready) => ready as usize,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            Err(error) => return Err(error),
        };
        Ok(&self.events[..self.ready])
    }
}

/// Waits with a timeout in ns (epoll_pwait2, Linux 5.11), or in whole ms on an older kernel.
fn wait_with_timeout_ns(fd: RawFd, events: *mut libc::epoll_event, capacity: i32, ns: u64) -> i32 {
    let timeout = libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ };
    // SAFETY: `events` points to `capacity` events, as the caller guarantees; `timeout` outlives
    // the call; a null signal mask is allowed.
    let result = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            fd,
            events,
            capacity,
            &timeout as *const libc::timespec,
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    } as i32;
    if result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) {
        let ms = ns.div_ceil(1_000_000).min(i32::MAX as u64) as i32;
        // SAFETY: `events` points to `capacity` events, as the caller guarantees.
        return unsafe { libc::epoll_wait(fd, events, capacity, ms) };
    }
    result
}
