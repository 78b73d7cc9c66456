"""Starting servers and clients, and reading what they used: the parts that every row of bench/run needs.

Only the standard library, and only Linux (CPU affinity, /proc). Every process is started here, pinned, bounded in time
and ended by its own handle. Not here: what is measured (rows.py) and how it is shown (report.py).
"""

import json
import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RELEASE = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "release")


# Tools of others that were made here (peers.py).
PEERS = os.path.join(ROOT, "_output", "bench", "peers")


class Failure(Exception):
    """Something that the person who runs this has to know, in one sentence."""


def program(name):
    """The path of one of our programs, or None: from $PLIMSOLL (for plimsoll), $PLIMSOLL_BENCH_BIN or target/release."""
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
    """The path of somebody else's program, or None: installed, or made by peers.py."""
    return shutil.which(name) or shutil.which(name, path=os.path.join(PEERS, "bin"))


def cores(smoke=False):
    """The server's cores and the client's: one for the server, the others for the client."""
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        if smoke:
            return set(usable), set(usable)
        raise Failure("a benchmark of client and server needs two cores")
    return {usable[0]}, set(usable[1:])


class Finished:
    """What a client process said and used."""

    def __init__(self, out, err, code, cpu_s, peak_bytes, wall_s):
        self.out, self.err, self.code = out, err, code
        self.cpu_s, self.peak_bytes, self.wall_s = cpu_s, peak_bytes, wall_s

    def json(self):
        try:
            return json.loads(self.out)
        except ValueError as error:
            raise Failure(f"no JSON from a client (exit code {self.code}): {error}; {self.err.strip()[-300:]}") from error


def run(command, cpus, limit_s, codes=(0,)):
    """Runs a client on `cpus` for at most `limit_s`. Its CPU time is that of wait4; its memory the highest VmHWM that
    was seen (rusage would count what this interpreter used before the exec)."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        start = time.monotonic()
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=lambda: os.sched_setaffinity(0, cpus)
        )
        peak, status, killed = 0, None, False
        while status is None:
            pid, code, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                status = os.waitstatus_to_exitcode(code)
                break
            peak = max(peak, peak_bytes(child.pid))
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
        raise Failure(f"{name} did not end within {limit_s:.0f} s")
    if status not in codes:
        raise Failure(f"{name} ended with {status}: {(done.err or done.out).strip()[-300:]}")
    return done


def peak_bytes(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
            return int(found.group(1)) * 1024 if found else 0
    except OSError:
        return 0


class Server:
    """A server process on its own core until the `with` block ends. Its address is what it prints first."""

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
        raise Failure(f"{' '.join(self.command)} did not say where it listens: {said.decode(errors='replace')[-300:]}")

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
        """CPU time of all its threads so far."""
        total = 0
        for thread in os.listdir(f"/proc/{self.child.pid}/task"):
            try:
                with open(f"/proc/{self.child.pid}/task/{thread}/schedstat") as stat:
                    total += int(stat.read().split()[0])
            except OSError:
                pass
        return total / 1e9

    def stats(self):
        """What one of our bench servers says that it did."""
        with urllib.request.urlopen(self.url("/stats"), timeout=10) as reply:
            return json.load(reply)


def machine_s():
    """Time that all cores together have been busy, and idle.

    Neither is exact. Busy time is counted by timer ticks, so that a load in step with them counts for far too much or for
    nothing; idle time is measured, but what it costs to fall asleep and wake is not part of it."""
    with open("/proc/stat") as stat:
        user, nice, system, idle, iowait, irq, softirq, steal = map(int, stat.readline().split()[1:9])
    tick_s = 1 / os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + steal) * tick_s, (idle + iowait) * tick_s


class Meter:
    """How busy the server was during the `with` block, and how much others than server and client took of the machine at
    the least, both in cores. The caller says what the client used."""

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
    """Requests a second that succeeded, of h2load's report."""
    took = re.search(r"finished in ([\d.]+)(us|ms|s|m)\b", text)
    succeeded = re.search(r"(\d+) succeeded", text)
    if not took or not succeeded:
        raise Failure(f"h2load's report was not understood: {text.strip()[-300:]}")
    return int(succeeded.group(1)) / (float(took.group(1)) * {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60}[took.group(2)])


def wrk_numbers(text):
    """Requests, seconds and the median in us of wrk's report (with --latency)."""
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
