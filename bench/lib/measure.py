"""Starts servers and clients, and reads the CPU time and memory that they used. Every row of
bench/run uses this module.

The module needs only the standard library, and Linux (CPU affinity, /proc). Every process is
started here, pinned to cores, limited in time, and ended by its own handle. Not here: the measures
(rows.py) and their presentation (report.py).
"""

import ctypes
import json
import math
import os
import re
import selectors
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASE = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release")


# The folder of other projects' tools that were built here (peers.py).
PEERS = os.path.join(ROOT, "_output", "bench", "peers")


class Failure(Exception):
    """An error that bench/run shows to its user. The text of the error is one sentence."""


class NoFigure(Failure):
    """The error for a measurement that gave no figure, perhaps because the machine was busy."""


class MissingFeature(Failure):
    """plimsoll was built without a feature that the row needs."""


# The exit codes of a search: 0 if it found a load line, 1 if no rate met the SLO, and 3 if it could
# not decide.
SEARCH_CODES = (0, 1, 3)
# Whether a load without a figure is tolerated, as in the short loads of a smoke run.
may_lack_figures = False


def program(name):
    """Returns the path of one of our programs, or None. Searches $PLIMSOLL (for plimsoll),
    $PLIMSOLL_BENCH_BIN and target/release."""
    if name == "plimsoll" and "PLIMSOLL" in os.environ:
        return os.environ["PLIMSOLL"]
    path = os.path.join(os.environ.get("PLIMSOLL_BENCH_BIN", RELEASE), name)
    return path if os.access(path, os.X_OK) else None


def need(name):
    path = program(name)
    if path is None:
        raise Failure(f"{name} is not built: cargo build --release --workspace")
    return path


def tool(name):
    """Returns the path of another project's program, installed or built by peers.py; None if it is
    missing."""
    return shutil.which(name) or shutil.which(name, path=os.path.join(PEERS, "bin"))


def free_port():
    """Returns a port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def cores(smoke=False):
    """Returns the cores for the server and for the client: one core for the server, the others for
    the client."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        if smoke:
            return set(usable), set(usable)
        raise Failure("a benchmark of client and server needs two cores")
    return {usable[0]}, set(usable[1:])


class Finished:
    """The output of an ended client process, and the resources that it used."""

    def __init__(self, out, err, code, cpu_s, peak_bytes, wall_s):
        self.out, self.err, self.code = out, err, code
        self.cpu_s, self.peak_bytes, self.wall_s = cpu_s, peak_bytes, wall_s

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Failure(f"no JSON from a client (exit code {self.code}): {error}; {self.err.strip()[-300:]}") from error


# Constants of <sys/ptrace.h>.
PTRACE_CONT, PTRACE_SEIZE, PTRACE_O_TRACEEXIT = 7, 0x4206, 0x40


def _ptrace(request, pid, data):
    libc = ctypes.CDLL(None)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace(request, pid, None, data)


def run(command, cpus, limit_s, codes=(0,)):
    """Runs a client on the cores `cpus` for at most `limit_s` seconds. The client's CPU time comes
    from wait4. The client's memory is its VmHWM (peak resident memory) when it exits, because a
    client may need most memory in its last milliseconds. The peak in rusage would include the
    memory of this interpreter before the exec."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=lambda: os.sched_setaffinity(0, cpus)
        )
        _ptrace(PTRACE_SEIZE, child.pid, PTRACE_O_TRACEEXIT)
        peak, status, killed = 0, None, False
        while status is None:
            pid, code, usage = os.wait4(child.pid, os.WNOHANG)
            if pid and not os.WIFSTOPPED(code):
                status = os.waitstatus_to_exitcode(code)
                break
            peak = max(peak, peak_bytes(child.pid))
            if pid:
                # Tracing stopped the client, either at its exit or before a signal. The signal is
                # passed on to the client.
                is_event = code >> 16
                _ptrace(PTRACE_CONT, pid, 0 if is_event else os.WSTOPSIG(code))
                continue
            if time.monotonic() - start > limit_s and not killed:
                child.kill()
                killed = True
            time.sleep(0.02)
        child.returncode = status
        wall = time.monotonic() - start
        out.seek(0)
        err.seek(0)
        done = Finished(out.read(), err.read(), status, usage.ru_utime + usage.ru_stime, peak, wall)
    name = os.path.basename(command[0])
    if killed:
        raise NoFigure(f"{name} did not end within {limit_s:.0f} s")
    if status not in codes:
        # Exit code 1 of plimsoll means that an SLO or a check failed. Exit code 3 means that
        # plimsoll could not decide.
        kind = NoFigure if status in (1, 3) else Failure
        if "this plimsoll was built without" in done.err:
            kind = MissingFeature
        raise kind(f"{name} ended with {status}: {(done.err or done.out).strip()[-300:]}")
    return done


def peak_bytes(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
            return int(found.group(1)) * 1024 if found else 0
    except OSError:
        return 0


class Server:
    """A server process on its own core, which runs until the `with` block ends. The first line that
    the server prints is its address."""

    ADDRESS = rb"(127\.0\.0\.1:\d+)\D"

    def __init__(self, command, cpus):
        self.command, self.cpus = command, cpus

    def __enter__(self):
        self.child = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cpus),
        )
        self.address = self._address(10)
        return self

    def _address(self, limit_s):
        said, end = b"", time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            while time.monotonic() < end and self.child.poll() is None:
                if selector.select(0.1):
                    said += os.read(self.child.stdout.fileno(), 4096)
                    found = re.search(self.ADDRESS, said)
                    if found:
                        return found.group(1).decode()
        self.__exit__()
        raise NoFigure(f"{' '.join(self.command)} did not say where it listens: {said.decode(errors='replace')[-300:]}")

    def __exit__(self, *_):
        self.child.terminate()
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()

    def url(self, path):
        return f"http://{self.address}{path}"

    def cpu_s(self):
        """Returns the CPU time of all the server's threads so far, in seconds."""
        return process_cpu_s(self.child.pid)

    def stats(self):
        """Returns the counts that one of our bench servers reports about itself."""
        with urllib.request.urlopen(self.url("/stats"), timeout=10) as reply:
            return json.load(reply)


def known(figure):
    """Returns a figure of a load. If the load had too few requests for the figure (None), raises
    `NoFigure`, or returns NaN in a smoke run."""
    if figure is None and not may_lack_figures:
        raise NoFigure("a load had too few requests for a figure of this row")
    return math.nan if figure is None else figure


def need_success(found, what):
    """Raises `NoFigure` if a request of a load failed. `found` is the JSON document of the load."""
    if known(found["success_rate"]) < 1:
        raise NoFigure(f"{what}: {found['ledger']}")


def quotient(above, below):
    """Returns `above / below`. If `above` is None, or `below` is None or 0 (a short load without a
    response), raises `NoFigure`, or returns NaN in a smoke run."""
    return known(above / below if above is not None and below else None)


def cpu_us(cpu_s, requests):
    """Returns the CPU time of a request in us."""
    return quotient(cpu_s * 1e6, requests)


def process_cpu_s(pid):
    """Returns the CPU time of all threads of a process so far, in seconds. Child processes do
    not count."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/schedstat") as stat:
                total += int(stat.read().split()[0])
        except OSError:
            pass
    return total / 1e9


def machine_s():
    """Returns the busy time and the idle time of all cores together, in seconds.

    Neither the busy time nor the idle time is exact. Busy time is counted by timer ticks. A load
    that runs in step with the ticks may therefore seem far too large, or absent. Idle time is
    measured, but does not include the time in which a core falls asleep and wakes up."""
    with open("/proc/stat") as stat:
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + steal) * tick_s, (idle + iowait) * tick_s


class Meter:
    """Measures the server's CPU use during the `with` block, and a lower bound of the CPU use of
    other processes, both in cores. The caller must set `client_cpu_s`, the CPU time of the client,
    before the block ends."""

    def __init__(self, server):
        self.server, self.client_cpu_s = server, 0.0

    def __enter__(self):
        self.before = (*machine_s(), self.server.cpu_s(), time.monotonic())
        return self

    def __exit__(self, *_):
        busy, idle, server, wall = (
            after - before for after, before in zip((*machine_s(), self.server.cpu_s(), time.monotonic()), self.before))
        self.server_busy = server / wall
        used = min(busy, os.cpu_count() * wall - idle)
        self.others = (used - server - self.client_cpu_s) / wall


def baseline(cpus, threads=1):
    return Server([need("plimsoll"), "baseline", "--threads", str(threads), "--listen", "127.0.0.1:0"], cpus)


def bench_server(cpus, *arguments):
    return Server([need("bench-server"), *map(str, arguments)], cpus)


def h2load_rate(text):
    """Returns the rate of successful requests, in requests a second, from h2load's report."""
    took = re.search(r"finished in ([\d.]+)(us|ms|s|m)\b", text)
    succeeded = re.search(r"(\d+) succeeded", text)
    if not took or not succeeded:
        raise Failure(f"h2load's report was not understood: {text.strip()[-300:]}")
    return int(succeeded.group(1)) / (float(took.group(1)) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[took.group(2)])


def wrk_numbers(text):
    """Returns the number of requests, the seconds and the median in us from wrk's report (with
    --latency)."""
    done = re.search(r"(\d+) requests in ([\d.]+)(us|ms|s|m)\b", text)
    if not done:
        raise Failure(f"wrk's report was not understood: {text.strip()[-300:]}")
    unit_us = {"us": 1, "ms": 1e3, "s": 1e6, "m": 60e6}
    median = re.search(r"50%\s+([\d.]+)(us|ms|s|m)\b", text)
    return {
        "requests": int(done.group(1)),
        "seconds": float(done.group(2)) * unit_us[done.group(3)] / 1e6,
        "p50_us": float(median.group(1)) * unit_us[median.group(2)] if median else None,
        "errors": sum(int(n) for line in re.findall(r"(?:Socket errors|Non-2xx).*", text) for n in re.findall(r"\d+", line)),
    }
