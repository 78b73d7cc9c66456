"""The cost of an open page of `plimsoll serve` to the load that the page shows. Loads run with and
without a reader that requests live data once a second, as the page does.

The reader is one connection that costs about 0.1 ms a second, because a real browser would run on
the user's own machine. Not here: the loads (rows.py).
"""

import json
import os
import re
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request

import measure
import report
from measure import Failure, need

RATE = 5000
# The interval at which a page requests live data, in seconds (plimsoll-web, app.js).
ASKS_EVERY_S = 1.0
# The largest accepted effect of an open page: the change of the CPU time a request, and the
# increase of the lag p99 as a share of the response time p50. The lag p99 of this load is a few
# microseconds, and a clock cannot show 2 % of such a lag.
DIFFERENCE_MAX = 0.02


class Reader:
    """One connection that requests live data, as an open page does."""

    def __init__(self, serve, path):
        host, port = serve.address.split(":")
        self.connection = socket.create_connection((host, int(port)), timeout=20)
        self.request = (f"GET {path} HTTP/1.1\r\nHost: {serve.address}\r\n"
                        f"Authorization: Bearer {serve.token}\r\n\r\n").encode()

    def ask(self):
        self.connection.sendall(self.request)
        answer = self.connection.recv(1 << 20)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise Failure(f"the page did not show the load: {answer[:100]!r}")

    def close(self):
        self.connection.close()


class Serve:
    """`plimsoll serve` on its own store; returns the server's address and token."""

    def __enter__(self):
        self.store = tempfile.TemporaryDirectory()
        self.child = subprocess.Popen([need("plimsoll"), "serve", "--store", self.store.name, "--listen", "127.0.0.1:0"],
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        said = b""
        while b"token=" not in said:
            line = self.child.stdout.readline()
            if not line:
                raise Failure(f"plimsoll serve did not start: {said.decode()[-200:]}")
            said += line
        found = re.search(r"http://(127\.0\.0\.1:\d+)\S*token=(\w+)", said.decode())
        self.address, self.token = found.groups()
        return self

    def ask(self, path, form=None):
        data = urllib.parse.urlencode(form).encode() if form else None
        request = urllib.request.Request(f"http://{self.address}{path}", data, {"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read()

    def __exit__(self, *_):
        self.child.terminate()
        self.child.wait()
        self.child.stdout.close()
        self.store.cleanup()


def _load(serve, url, seconds, is_read):
    """Runs one load that is started from the page; returns the load's CPU time for each request,
    its lag and response time, and the CPU time of the server of the pages."""
    form = {"study": "run", "url": url, "rate": RATE, "duration": f"{seconds}s"}
    name = json.loads(serve.ask("/api/v1/studies", form))["name"]
    reader = Reader(serve, f"/studies/{name}/progress") if is_read else None
    began, cpu_s = time.monotonic(), measure.process_cpu_s(serve.child.pid)
    while time.monotonic() < began + seconds:
        if reader:
            reader.ask()
        time.sleep(ASKS_EVERY_S)
    serve_cpu_s = (measure.process_cpu_s(serve.child.pid) - cpu_s) / (time.monotonic() - began)
    if reader:
        reader.close()
    while time.monotonic() < began + seconds + 30:
        study = json.loads(serve.ask(f"/api/v1/studies/{name}"))
        if not study["running"]:
            break
        time.sleep(ASKS_EVERY_S)
    else:
        raise Failure(f"the study {name} did not end")
    found = json.loads(serve.ask(f"/api/v1/runs/{study['run_file']}"))
    generator = found["generator"]
    return {"cpu_ns": generator["cpu_s"] * 1e9 / found["requests"], "lag_p99_ns": generator["lag_ns"]["p99"],
            "response_p50_ns": found["response_time_ns"]["p50"], "serve_cpu": serve_cpu_s, "limited": generator["limited"]}


def page(settings):
    """An open page that requests live data hardly changes the load.

    The CPU time a request changes by 2 % at most, and the lag p99 by 2 % of the response time at
    most."""
    seconds, rounds = int(max(3, settings.seconds(10))), []
    with measure.baseline(measure.cores(settings.smoke)[0]) as server, Serve() as serve:
        url = server.url("/healthz")
        _load(serve, url, 3, True)
        for index in range(settings.rounds(20)):
            order = (True, False) if index % 2 else (False, True)
            found = {is_read: _load(serve, url, seconds, is_read) for is_read in order}
            rounds.append({"open": found[True], "closed": found[False]})
            print(f"  {index + 1}: CPU a request {found[True]['cpu_ns'] / found[False]['cpu_ns']:.3f}, lag p99 "
                  f"{found[True]['lag_p99_ns'] / 1e3:.1f} us and {found[False]['lag_p99_ns'] / 1e3:.1f} us", flush=True)
    cpu = report.ratios(rounds, "cpu_ns", "open", "closed")
    lag_us = {side: [ns / 1e3 for ns in report.values(rounds, side, "lag_p99_ns")] for side in ("open", "closed")}
    added_us = statistics.median(lag_us["open"]) - statistics.median(lag_us["closed"])
    response_us = statistics.median(report.values(rounds, "closed", "response_p50_ns")) / 1e3
    serve_cpu = statistics.median(report.values(rounds, "open", "serve_cpu"))
    # The lag differs more between equal loads than a page could lower it, so only an increase counts.
    holds = abs(statistics.median(cpu) - 1) <= DIFFERENCE_MAX and added_us <= DIFFERENCE_MAX * response_us
    return report.Row(
        "page", "an open page against none: CPU a request and lag p99 of the load",
        "2 % of the CPU and of the response time",
        f"CPU a request {report.spread(cpu, 3)}; lag p99 {report.spread(lag_us['open'], 1)} us with the page, "
        f"{report.spread(lag_us['closed'], 1)} us without, response time p50 {response_us:.0f} us; the pages' server "
        f"used {serve_cpu * 1e3:.1f} ms of CPU a second", holds, rounds)


ROWS = {"page": page}
