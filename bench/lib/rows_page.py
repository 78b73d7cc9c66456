"""The cost of an open page of `plimsoll serve` to the load that the page shows. Loads run with and
without a reader that requests live data once a second, as the page does.

The reader is a small HTTP client, because a real browser would run on the user's own machine. Not
here: the loads (rows.py).
"""

import json
import os
import re
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
    and its lag."""
    form = {"study": "run", "url": url, "rate": RATE, "duration": f"{seconds}s"}
    name = json.loads(serve.ask("/api/v1/studies", form))["name"]
    began = time.monotonic()
    while time.monotonic() < began + seconds + 30:
        if is_read:
            serve.ask(f"/studies/{name}/progress")
        time.sleep(ASKS_EVERY_S)
        # Without a reader, no request is sent to the page before the load is over.
        if time.monotonic() > began + seconds + 1:
            study = json.loads(serve.ask(f"/api/v1/studies/{name}"))
            if not study["running"]:
                break
    else:
        raise Failure(f"the study {name} did not end")
    found = json.loads(serve.ask(f"/api/v1/runs/{study['run_file']}"))
    lag, cpu_s = found["generator"]["lag_ns"], found["generator"]["cpu_s"]
    return {"cpu_ns": cpu_s * 1e9 / found["requests"], "lag_p99_ns": lag["p99"], "limited": found["generator"]["limited"]}


def page(settings):
    """an open page that asks for live data changes the load's CPU a request and lag p99 by 2 % at most"""
    seconds, rounds = int(max(3, settings.seconds(10))), []
    with measure.baseline(measure.cores(settings.smoke)[0]) as server, Serve() as serve:
        url = f"http://{server.address}/"
        _load(serve, url, 3, True)
        for index in range(settings.rounds(12)):
            order = (True, False) if index % 2 else (False, True)
            found = {is_read: _load(serve, url, seconds, is_read) for is_read in order}
            rounds.append({"open": found[True], "closed": found[False]})
            print(f"  {index + 1}: CPU a request {found[True]['cpu_ns'] / found[False]['cpu_ns']:.3f}, "
                  f"lag p99 {found[True]['lag_p99_ns'] / found[False]['lag_p99_ns']:.3f}", flush=True)
    ratios = {name: [r["open"][name] / r["closed"][name] for r in rounds] for name in ("cpu_ns", "lag_p99_ns")}
    medians = {name: statistics.median(values) for name, values in ratios.items()}
    return report.Row("page", "an open page against none: CPU a request and lag p99 of the load", "within 2 %",
                      f"CPU a request {report.spread(ratios['cpu_ns'], 3)}, lag p99 {report.spread(ratios['lag_p99_ns'], 3)}",
                      all(abs(value - 1) <= 0.02 for value in medians.values()), rounds)


ROWS = {"page": page}
