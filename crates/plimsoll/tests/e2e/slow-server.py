"""A server whose end takes long: it ends late, its first thread ends before the others, or its children keep the port."""
import ctypes, os, signal, socket, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, ways = int(sys.argv[1]), sys.argv[2:]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        # A short wait limits the CPU time that a closed loop costs.
        time.sleep(0.005)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self):
        if "reuseport" in ways:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()


def late(*_):
    time.sleep(0.3)
    os._exit(0)


server = Server(("127.0.0.1", port), Handler)
if "slow" in ways:
    signal.signal(signal.SIGTERM, late)
if "fork" in ways and os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, late)
if "headless" in ways:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=server.serve_forever).start()
    ctypes.CDLL(None).syscall(60, 0)  # exit of this thread alone
server.serve_forever()
