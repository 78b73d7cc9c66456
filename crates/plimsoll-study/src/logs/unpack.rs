//! Reads the bytes of a log from a file or standard input. The first bytes show whether a log is
//! plain or compressed (gzip, Zstandard). Decompression runs in its own thread, so that it does not
//! slow the reader down if a core is idle.
//!
//! Not here: parsing lines (`plimsoll_logs`).

use flate2::bufread::MultiGzDecoder;
use plimsoll_model::library_panic;
use plimsoll_sys::system_text;
use ruzstd::decoding::StreamingDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The size of a chunk that the decompressor passes to the reader, bytes.
const CHUNK_BYTES: usize = 256 << 10;
/// The number of chunks by which the decompressor may be ahead of the reader.
const UNPACK_AHEAD_CHUNKS: usize = 8;

/// The largest number of bytes at the start of a file that show its compression (xz).
const FORMAT_MARK_BYTES_MAX: usize = 6;

/// A reader of the decompressed bytes of a log.
pub struct LogBytes {
    source: ByteSource,
    /// The number of bytes read from the disk so far, before decompression.
    pub read: Arc<AtomicU64>,
    /// The size of the file in bytes; `None` if unknown (standard input).
    pub length: Option<u64>,
}

enum ByteSource {
    Plain(Box<dyn Read + Send>),
    Thread { chunks: Receiver<io::Result<Vec<u8>>>, current: Vec<u8>, at: usize },
}

/// A reader that counts the bytes read through it.
struct CountingReader<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(buffer)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

impl Read for LogBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            ByteSource::Plain(inner) => inner.read(buffer),
            ByteSource::Thread { chunks, current, at } => {
                while *at == current.len() {
                    match chunks.recv() {
                        Ok(chunk) => (*current, *at) = (chunk?, 0),
                        Err(_) => return Ok(0),
                    }
                }
                let length = buffer.len().min(current.len() - *at);
                buffer[..length].copy_from_slice(&current[*at..*at + length]);
                *at += length;
                Ok(length)
            }
        }
    }
}

/// Opens a log; the path `-` means standard input. `name` is the name of the log in error messages.
pub fn open(path: &Path, name: &str) -> Result<LogBytes, String> {
    let cannot = |error: io::Error| format!("'{name}' cannot be read: {reason}", reason = system_text(&error));
    let read = Arc::new(AtomicU64::new(0));
    let (inner, length): (Box<dyn Read + Send>, Option<u64>) = if path == Path::new("-") {
        (Box::new(io::stdin()), None)
    } else {
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(format!("'{name}' is a folder"));
        }
        (Box::new(file), metadata.is_file().then_some(metadata.len()))
    };
    let mut inner = CountingReader { inner, read: read.clone() };
    let first = read_format_mark(&mut inner).map_err(cannot)?;
    let packed = match compression(&first) {
        None => None,
        Some(Compression::Gzip) => Some((unpack_gzip as Decompress, "gzip -dc")),
        Some(Compression::Zstandard) => Some((unpack_zstandard as Decompress, "zstd -dc")),
        Some(Compression::Unsupported(kind, unpacker)) => return Err(unsupported_format(name, kind, unpacker)),
    };
    let inner = BufReader::with_capacity(CHUNK_BYTES, io::Cursor::new(first).chain(inner));
    let source = match packed {
        None => ByteSource::Plain(Box::new(inner)),
        Some((unpack, unpacker)) => {
            let (sender, chunks) = sync_channel(UNPACK_AHEAD_CHUNKS);
            let work = move || {
                let unpacked = library_panic::catch_library_panic("packed logs", || unpack(inner, &sender));
                if let Err(error) = unpacked.unwrap_or_else(|panic| Err(io::Error::other(panic.to_string()))) {
                    // A failed send is ignored, because the reader of the log was dropped and needs
                    // no error.
                    let _ = sender.send(Err(unpack_error(&error, unpacker)));
                }
            };
            std::thread::Builder::new().name("unpack".into()).spawn(work).map_err(cannot)?;
            ByteSource::Thread { chunks, current: Vec::new(), at: 0 }
        }
    };
    Ok(LogBytes { source, read, length })
}

/// The compression of a log.
#[derive(Debug, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstandard,
    /// A format that plimsoll cannot read: its name, and the command that decompresses it.
    Unsupported(&'static str, &'static str),
}

/// Reads the first bytes of a log, which show its compression. A pipe may pass on one byte at a
/// time.
fn read_format_mark(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut mark = Vec::with_capacity(FORMAT_MARK_BYTES_MAX);
    from.take(FORMAT_MARK_BYTES_MAX as u64).read_to_end(&mut mark)?;
    Ok(mark)
}

/// Returns the compression of a log that begins with `mark`; `None` for plain text.
fn compression(mark: &[u8]) -> Option<Compression> {
    Some(match mark {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstandard,
        [b'B', b'Z', b'h', ..] => Compression::Unsupported("bzip2", "bzip2 -dc"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Unsupported("xz", "xz -dc"),
        [b'P', b'K', 3, 4, ..] => Compression::Unsupported("zip", "unzip -p"),
        _ => return None,
    })
}

fn unsupported_format(name: &str, kind: &str, unpacker: &str) -> String {
    format!(
        "'{name}' is compressed with {kind}, which plimsoll does not read; unpack the log: {unpacker} LOG | plimsoll \
         traffic -"
    )
}

/// Returns the error for a truncated or damaged compressed log, and how to recover its readable
/// part.
fn unpack_error(error: &io::Error, unpacker: &str) -> io::Error {
    let text = format!(
        "{reason}; unpack the readable part of the log with {unpacker}, and read this part from standard input (-)",
        reason = system_text(error)
    );
    io::Error::new(error.kind(), text)
}

type Chunks = SyncSender<io::Result<Vec<u8>>>;
/// A function that decompresses its whole input and sends the result in chunks.
type Decompress = fn(PackedReader, &Chunks) -> io::Result<()>;
type PackedReader = BufReader<io::Chain<io::Cursor<Vec<u8>>, CountingReader<Box<dyn Read + Send>>>>;

/// Sends the bytes of `from` in chunks until the input ends. Returns false if the receiver of the
/// chunks was dropped.
fn send_chunks(mut from: impl Read, to: &Chunks) -> io::Result<bool> {
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut length = 0;
        while length < chunk.len() {
            match from.read(&mut chunk[length..])? {
                0 => break,
                more => length += more,
            }
        }
        let whole = length == chunk.len();
        chunk.truncate(length);
        if length > 0 && to.send(Ok(chunk)).is_err() {
            return Ok(false);
        }
        if !whole {
            return Ok(true);
        }
    }
}

/// Decompresses gzip. A file may have several gzip members.
fn unpack_gzip(packed: PackedReader, to: &Chunks) -> io::Result<()> {
    send_chunks(MultiGzDecoder::new(packed), to).map(|_| ())
}

/// Decompresses Zstandard. A file may have several Zstandard frames, some of them without data.
fn unpack_zstandard(mut packed: PackedReader, to: &Chunks) -> io::Result<()> {
    let cannot = |why: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, why.to_string());
    while !packed.fill_buf()?.is_empty() {
        match StreamingDecoder::new(&mut packed) {
            Ok(frame) => {
                if !send_chunks(frame, to)? {
                    return Ok(());
                }
            }
            Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                io::copy(&mut (&mut packed).take(u64::from(length)), &mut io::sink())?;
            }
            Err(error) => return Err(cannot(&error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe that passes on one byte at a time.
    struct SlowPipe(&'static [u8]);

    impl Read for SlowPipe {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.0.len()).min(1);
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    #[test]
    fn the_first_bytes_show_the_compression_however_slowly_they_come() {
        for (bytes, expect) in [
            (&b"\x1f\x8b\x08\0\0\0\0\0"[..], Some(Compression::Gzip)),
            (b"\x28\xb5\x2f\xfd\x04\0\0", Some(Compression::Zstandard)),
            (b"\x50\x2a\x4d\x18\0\0\0", Some(Compression::Zstandard)),
            (b"BZh91AY&SY", Some(Compression::Unsupported("bzip2", "bzip2 -dc"))),
            (b"\xfd7zXZ\0\0\x04", Some(Compression::Unsupported("xz", "xz -dc"))),
            (b"PK\x03\x04\x14\0", Some(Compression::Unsupported("zip", "unzip -p"))),
            (b"127.0.0.1 - -", None),
            (b"{", None),
            (b"", None),
        ] {
            let mark = read_format_mark(&mut SlowPipe(bytes)).expect("reads");
            assert_eq!(compression(&mark), expect, "{bytes:?}");
        }
    }
}
