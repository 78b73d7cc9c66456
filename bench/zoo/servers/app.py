"""An HTTP server with one planted bottleneck. The settings in $ZOO (JSON) choose the bottleneck and
have the same keys as the settings of go/main.go. The server uses threads of one interpreter, or
worker processes that serve one connection at a time each. The server prints its address.

Not here: the true cause of each case (../truth.json).
"""

import json
import mmap
import os
import random
import socket
import socketserver
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

SET = json.loads(os.environ.get("ZOO", "{}"))
SHARED = threading.Lock()
SLOTS = threading.Semaphore(SET.get("slots") or 1_000_000)
BODY = b"x" * max(SET.get("bytes", 2), 2)
PAGES = b"p" * (SET.get("write_kb", 0) * 1024)


def burn(us):
    """Uses `us` microseconds of the thread's CPU time. Waiting for a core or for the interpreter
    lock does not count, so the wall-clock time may be longer."""
    end = time.thread_time() + us / 1e6
    while time.thread_time() < end:
        pass


def mapped(path, mib):
    """Creates a file of `mib` MiB that is not in the page cache, and returns its memory map, or None
    if `mib` is 0."""
    if not mib:
        return None
    with open(path, "w+b") as file:
        for _ in range(mib):
            file.write(os.urandom(1 << 20))
        file.flush()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        pages = mmap.mmap(file.fileno(), mib << 20, prot=mmap.PROT_READ)
    pages.madvise(mmap.MADV_RANDOM)
    return pages


MAPPED = mapped(SET.get("map_file"), SET.get("map_mb", 0))


class Links:
    """A pool of at most `count` connections to the store. If the setting `conns` is 0, each request
    opens its own connection."""

    def __init__(self, count):
        self.free, self.idle = threading.Semaphore(count), []

    def ask(self):
        if not SET.get("conns", 1):
            with self._new() as link:
                self._call(link)
            return
        with self.free:
            link = self.idle.pop() if self.idle else self._new()
            self._call(link)
            self.idle.append(link)

    def _call(self, link):
        link.write(SET["call"].encode() + b"\r\n")
        link.flush()
        line = link.readline()
        if line.startswith(b"$") and not line.startswith(b"$-1"):
            link.readline()

    def _new(self):
        host, port = SET["store"].rsplit(":", 1)
        link = socket.create_connection((host, int(port)))
        with link:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # The file object keeps the socket open after the `with` block.
            return link.makefile("rwb")


LINKS = Links(SET.get("conns", 1)) if "store" in SET else None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1" if SET.get("keep", True) else "HTTP/1.0"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self):
        if not self.path.startswith("/items"):
            self._answer(404, b"no")
            return
        with SLOTS:
            burn(SET.get("cpu_us", 0))
            time.sleep(SET.get("sleep_us", 0) / 1e6)
            if SET.get("shared_us"):
                with SHARED:
                    time.sleep(SET["shared_us"] / 1e6)
            if MAPPED:
                for _ in range(16):
                    MAPPED[random.randrange(len(MAPPED) // 4096) * 4096]
            if LINKS:
                try:
                    LINKS.ask()
                except OSError:
                    self._answer(502, b"no")
                    return
            if SET.get("file"):
                journal = os.open(SET["file"], os.O_CREAT | os.O_WRONLY | (0 if PAGES else os.O_APPEND), 0o600)
                if PAGES:
                    # The writes go to 64 places of the file, so the size of the file is bounded.
                    os.pwrite(journal, PAGES, len(PAGES) * random.randrange(64))
                else:
                    os.write(journal, b"a line of the journal\n")
                os.fsync(journal)
                os.close(journal)
            self._answer(200, BODY)

    do_POST = do_HEAD = do_GET

    def _answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Threads(socketserver.ThreadingMixIn, HTTPServer):
    daemon_threads = True
    request_queue_size = SET.get("backlog", 1024)


class One(HTTPServer):
    request_queue_size = SET.get("backlog", 1024)


def main():
    workers = SET.get("workers", 0)
    server = (One if workers else Threads)(("127.0.0.1", 0), Handler)
    print("%s:%d" % server.server_address, flush=True)
    for _ in range(max(workers - 1, 0)):
        if os.fork() == 0:
            break
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
