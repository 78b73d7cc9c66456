//! Requests of the reference server: bytes in, what is asked out. No I/O.

/// The most bytes of request line and header fields; more is answered 431.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most bytes in one line of a chunked body (a chunk's size or a trailer).
pub(super) const CHUNK_LINE_BYTES_MAX: u32 = 4096;
/// The longest body of `/bytes/N`.
pub(super) const BODY_BYTES_MAX: u64 = 1 << 30;
/// The longest delay of `/delay/MS`.
pub(super) const DELAY_MS_MAX: u64 = 3_600_000;
/// The most CPU time of `/burn/US`.
pub(super) const BURN_US_MAX: u64 = 60_000_000;
/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Health,
    Bytes(u64),
    Delay(u64),
    Status(u16),
    Burn(u64),
    /// A known route with a number that is none or out of bounds.
    BadNumber,
    Unknown,
}

/// One request, as far as the answer depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) route: Route,
    /// HEAD: the answer has no body.
    pub(super) head: bool,
    /// The client wants to keep the connection.
    pub(super) keep: bool,
    /// HTTP/1.0, which has to be told that the connection is kept.
    pub(super) old: bool,
}

/// What the reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The rest of the request is still to come. Bytes that were not consumed must be offered again with more.
    More,
    /// A request is complete, its body included.
    Request(Request),
    /// The client waits for permission to send its body (`Expect: 100-continue`).
    Continue,
    /// Not HTTP as we know it: answer with this status and close.
    Refuse(u16),
}

/// Where the reader stands between two calls.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reader {
    /// Before or within a head; `scanned` bytes of it hold no end.
    Head { scanned: u32 },
    /// Within a body of known length.
    Length { request: Request, left: u64 },
    /// Within a chunked body.
    Chunked { request: Request, chunk: Chunk },
}

/// Where the reader stands within a chunked body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chunk {
    /// In the digits of a size.
    Size { size: u64, digits: u8 },
    /// After the digits, before the line feed.
    Extension { size: u64, length: u32 },
    /// In the data.
    Data { left: u64 },
    /// After the data, before the line feed.
    DataEnd { carriage: bool },
    /// In the lines after the last chunk; `length` bytes of the line are read (carriage returns not counted).
    Trailer { length: u32 },
}

impl Reader {
    pub(super) const fn new() -> Reader {
        Reader::Head { scanned: 0 }
    }

    /// Reads on in `input`: how many bytes are done with, and what was found.
    pub(super) fn read(&mut self, input: &[u8]) -> (usize, Step) {
        match *self {
            Reader::Head { scanned } => self.read_head(input, scanned as usize),
            Reader::Length { request, left } => {
                let used = left.min(input.len() as u64);
                if used == left {
                    return (used as usize, self.finish(request));
                }
                *self = Reader::Length { request, left: left - used };
                (used as usize, Step::More)
            }
            Reader::Chunked { request, chunk } => self.read_chunks(input, request, chunk),
        }
    }

    pub(super) fn finish(&mut self, request: Request) -> Step {
        *self = Reader::new();
        Step::Request(request)
    }

    pub(super) fn read_head(&mut self, input: &[u8], scanned: usize) -> (usize, Step) {
        // Empty lines before a request are allowed (RFC 9112, 2.2).
        let blank = input.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        if blank > 0 {
            *self = Reader::new();
            return (blank, Step::More);
        }
        let Some(end) = head_end(input, scanned).filter(|end| *end <= HEAD_BYTES_MAX) else {
            if input.len() > HEAD_BYTES_MAX {
                return (input.len(), Step::Refuse(431));
            }
            // The end is at most three bytes long, so two of it may be here already.
            *self = Reader::Head { scanned: input.len().saturating_sub(2) as u32 };
            return (0, Step::More);
        };
        let Some(Head { request, body, expect }) = parse_head(&input[..end]) else {
            return (input.len(), Step::Refuse(400));
        };
        let step = match body {
            Body::Length(0) => return (end, self.finish(request)),
            _ if expect && input.len() == end => Step::Continue,
            _ => Step::More,
        };
        *self = match body {
            Body::Length(left) => Reader::Length { request, left },
            Body::Chunked => Reader::Chunked { request, chunk: Chunk::Size { size: 0, digits: 0 } },
        };
        (end, step)
    }

    pub(super) fn read_chunks(&mut self, input: &[u8], request: Request, mut chunk: Chunk) -> (usize, Step) {
        let mut at = 0;
        while at < input.len() {
            if let Chunk::Data { left } = chunk {
                let used = left.min((input.len() - at) as u64);
                at += used as usize;
                chunk = match left - used {
                    0 => Chunk::DataEnd { carriage: false },
                    left => Chunk::Data { left },
                };
                continue;
            }
            let byte = input[at];
            at += 1;
            let next = match chunk {
                Chunk::Trailer { length: 0 } if byte == b'\n' => return (at, self.finish(request)),
                other => other.next(byte),
            };
            match next {
                Some(next) => chunk = next,
                None => return (input.len(), Step::Refuse(400)),
            }
        }
        *self = Reader::Chunked { request, chunk };
        (at, Step::More)
    }
}

impl Chunk {
    /// The state after one byte that is not data; `None` if it cannot stand there.
    pub(super) fn next(self, byte: u8) -> Option<Chunk> {
        let after_size = |size| if size == 0 { Chunk::Trailer { length: 0 } } else { Chunk::Data { left: size } };
        match (self, byte) {
            (Chunk::Size { size, digits: 1.. }, b'\n') => Some(after_size(size)),
            (Chunk::Size { size, digits: 1.. }, b'\r' | b';' | b' ' | b'\t') => {
                Some(Chunk::Extension { size, length: 0 })
            }
            (Chunk::Size { size, digits: digits @ 0..15 }, _) => {
                let digit = (byte as char).to_digit(16)?;
                Some(Chunk::Size { size: size * 16 + u64::from(digit), digits: digits + 1 })
            }
            (Chunk::Extension { size, .. }, b'\n') => Some(after_size(size)),
            (Chunk::Extension { size, length }, _) if length < CHUNK_LINE_BYTES_MAX => {
                Some(Chunk::Extension { size, length: length + 1 })
            }
            (Chunk::DataEnd { carriage: false }, b'\r') => Some(Chunk::DataEnd { carriage: true }),
            (Chunk::DataEnd { .. }, b'\n') => Some(Chunk::Size { size: 0, digits: 0 }),
            (Chunk::Trailer { .. }, b'\n') => Some(Chunk::Trailer { length: 0 }),
            (Chunk::Trailer { length }, b'\r') => Some(Chunk::Trailer { length }),
            (Chunk::Trailer { length }, _) if length < CHUNK_LINE_BYTES_MAX => {
                Some(Chunk::Trailer { length: length + 1 })
            }
            _ => None,
        }
    }
}

/// How a request's body ends.
#[derive(Clone, Copy)]
pub(super) enum Body {
    Length(u64),
    Chunked,
}

/// A head, parsed.
pub(super) struct Head {
    pub(super) request: Request,
    pub(super) body: Body,
    /// `Expect: 100-continue`.
    pub(super) expect: bool,
}

/// Where the head ends (after its empty line); the first `scanned` bytes hold no beginning of that end.
pub(super) fn head_end(input: &[u8], scanned: usize) -> Option<usize> {
    let mut at = scanned;
    loop {
        at += input[at..].iter().position(|b| *b == b'\n')? + 1;
        match &input[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
}

pub(super) fn parse_head(head: &[u8]) -> Option<Head> {
    let mut lines = head.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut words = lines.next()?.split(|b| *b == b' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    if !is_token(method) || !is_text(target) || target.is_empty() || words.next().is_some() {
        return None;
    }
    let old = match version {
        b"HTTP/1.1" => false,
        b"HTTP/1.0" => true,
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => false,
        _ => return None,
    };
    let (mut length, mut chunked, mut close, mut keep, mut expect) = (None, false, false, false, false);
    for line in lines.take_while(|line| !line.is_empty()) {
        let colon = line.iter().position(|b| *b == b':')?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if !is_token(name) || !is_text(value) {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let said = number(value)?;
            if length.is_some_and(|other| other != said) {
                return None;
            }
            length = Some(said);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return None;
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case(b"connection") {
            for option in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case(b"expect") {
            expect = value.eq_ignore_ascii_case(b"100-continue");
        }
    }
    let body = match (length, chunked) {
        // Both at once is how requests are smuggled past proxies.
        (Some(_), true) => return None,
        (None, true) => Body::Chunked,
        (length, false) => Body::Length(length.unwrap_or(0)),
    };
    let request = Request { route: route(target), head: method == b"HEAD", keep: !close && (!old || keep), old };
    Some(Head { request, body, expect: expect && !old })
}

/// The bytes of methods and field names.
pub(super) const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let marks = b"!#$%&'*+-.^_`|~";
    let mut at = 0;
    while at < marks.len() {
        table[marks[at] as usize] = true;
        at += 1;
    }
    table
};

pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|b| TOKEN[*b as usize])
}

/// Without control characters, except the tab.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().any(|b| (*b < b' ' && *b != b'\t') || *b == 0x7f)
}

pub(super) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

pub(super) fn route(target: &[u8]) -> Route {
    let path = match target.strip_prefix(b"http://") {
        Some(rest) => rest.iter().position(|b| *b == b'/').map_or(&rest[..0], |slash| &rest[slash..]),
        None => target,
    };
    let path = path.split(|b| matches!(b, b'?' | b'#')).next().unwrap_or_default();
    if path == b"/healthz" {
        return Route::Health;
    }
    let bounded = |digits, max: u64, route: fn(u64) -> Route| match number(digits) {
        Some(value) if value <= max => route(value),
        _ => Route::BadNumber,
    };
    if let Some(digits) = path.strip_prefix(b"/bytes/") {
        bounded(digits, BODY_BYTES_MAX, Route::Bytes)
    } else if let Some(digits) = path.strip_prefix(b"/delay/") {
        bounded(digits, DELAY_MS_MAX, Route::Delay)
    } else if let Some(digits) = path.strip_prefix(b"/burn/") {
        bounded(digits, BURN_US_MAX, Route::Burn)
    } else if let Some(digits) = path.strip_prefix(b"/status/") {
        // Interim statuses (1xx) are no answer, so they cannot be asked for.
        match number(digits) {
            Some(status @ 200..=599) => Route::Status(status as u16),
            _ => Route::BadNumber,
        }
    } else {
        Route::Unknown
    }
}
