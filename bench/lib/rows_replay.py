"""The measure of bench/run about a replayed log: one nginx writes the log under a mixed load, and a
second nginx writes the log of the replay.

Both logs have `$msec` and `$request_time`, so arrivals are known to the millisecond. Requests of
the two logs are paired by method and path, in order. The schedule is that of the first log, and the
median offset is subtracted.
"""

import os
import re
import tempfile

import measure
import report
from measure import Failure, need, run
from rows import duration, known
from rows_connections import Nginx

FORMAT = ('$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" '
          '"$http_user_agent" $msec $request_time')
LINE = re.compile(r'\S+ - \S+ \[[^]]*\] "(\S+) (\S+) [^"]*" (\d+) \d+ "[^"]*" "[^"]*" ([\d.]+) ([\d.]+)$')
MIX = """base = "http://{address}"
[[request]]
weight = 50
get = "/items/{{{{ int(1,200) }}}}"
[[request]]
weight = 20
get = "/static/app.js"
[[request]]
weight = 15
get = "/search?q={{{{ text(4) }}}}&page={{{{ int(1,9) }}}}"
[[request]]
weight = 10
get = "/"
[[request]]
weight = 5
get = "/missing/{{{{ uuid() }}}}"
expect = {{ status = "404" }}
"""
RATE = 300


class Logging(Nginx):
    """An nginx that writes an access log with times."""

    def __init__(self, cpus):
        super().__init__(cpus, listen="", scheme="http")

    def configured(self):
        return (f"log_format timed '{FORMAT}';\n"
                f"server {{ listen 127.0.0.1:{self.port} backlog=4096; access_log {self.log()} timed; location /missing/ {{ return 404; }}\n"
                "location / { return 200 'hello'; } }\n")

    def log(self):
        return f"{self.folder.name}/access.log"


def entries(path):
    """Parses a log to tuples (start in s, request, endpoint, status), in order of time."""
    found = []
    with open(path) as log:
        for line in log:
            parts = LINE.match(line)
            if not parts:
                raise Failure(f"nginx wrote another line than was asked for: {line.strip()[:200]}")
            method, target, status, end, took = parts.groups()
            bare = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "{}", target.split("?")[0])
            found.append((float(end) - float(took), f"{method} {target}", f"{method} {bare}", int(status)))
    return sorted(found)


def shares(log):
    counts = {}
    for _, _, endpoint, _ in log:
        counts[endpoint] = counts.get(endpoint, 0) + 1
    return {endpoint: count / len(log) for endpoint, count in counts.items()}


def compared(first, second):
    """Compares two logs. Returns the largest difference of endpoint shares in percentage points,
    the sorted errors of arrivals in ms, and the number of requests with another status."""
    ours, theirs = shares(first), shares(second)
    points = max(abs(ours.get(name, 0) - theirs.get(name, 0)) * 100 for name in {*ours, *theirs})
    places, offsets, other = {}, [], 0
    for at, request, _, status in second:
        places.setdefault(request, []).append((at - second[0][0], status))
    for at, request, _, status in first:
        if not places.get(request):
            raise Failure(f"the replay did not ask '{request}'")
        found, answered = places[request].pop(0)
        offsets.append(found - (at - first[0][0]))
        other += answered != status
    middle = report.median(offsets)
    return points, sorted(abs(offset - middle) * 1000 for offset in offsets), other


def furthest(rounds):
    """Returns the largest relative difference (0 to 1) between the index of dispersion of a model
    and that of its log."""
    return max((abs(ratio - 1) for windows in rounds for _, ratio in windows if ratio is not None), default=0)


def replay(settings):
    """A real nginx log of a mixed load, replayed at 1x, and the model of the log.

    Compares the shares of endpoints and the arrival times with the log."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    seconds, rounds, notes = settings.seconds(20), [], []
    for number in range(settings.rounds(3)):
        with Logging(server_cpus) as asked, Logging(server_cpus) as again, tempfile.TemporaryDirectory() as folder:
            mix = os.path.join(folder, "mix.toml")
            with open(mix, "w") as file:
                file.write(MIX.format(address=asked.address))
            flags = ["-t", "1", "--json", "--no-preflight", "--seed", str(number + 1)]
            run([need("plimsoll"), "run", "-f", mix, "--rate", str(RATE), "--arrivals", "poisson", "-d", duration(seconds),
                 *flags], client_cpus, seconds + 60)
            done = run([need("plimsoll"), "replay", asked.log(), "--log-format", FORMAT, "--target", again.url("/"), *flags],
                       client_cpus, seconds + 60)
            found = done.json()
            # A smoke run has too few requests for a good model. Exit code 1 then reports a large
            # difference.
            verify = run([need("plimsoll"), "model", asked.log(), "--log-format", FORMAT, "-o", os.path.join(folder, "model.toml"),
                          "--verify", "--json"], client_cpus, 120, codes=(0, 1)).json()["verify"]
            points, errors, other = compared(entries(asked.log()), entries(again.log()))
        at = lambda share: errors[min(len(errors) - 1, int(len(errors) * share))]
        rounds.append({"plimsoll": {
            "requests": len(errors), "points": points, "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": errors[-1],
            "other_status": other, "lag_p99_ms": known(found["generator"]["lag_ns"]["p99"]) / 1e6, "changed": found["replay"]["status_changed"],
            "model_holds": verify["holds"], "mix_tv": verify["mix_tv"],
            "dispersion": [(it["window_s"], it["ratio"]) for it in verify["dispersion"]],
            "lru_points": max((abs(it["points"]) for it in verify["lru"]), default=None), "apart": verify["apart"]}})
    value = lambda name: report.values(rounds, "plimsoll", name)
    measured = (f"shares **{max(value('points')):.2f}** points apart, arrivals p99 **{report.spread(value('p99_ms'))}** ms, p50 "
                f"{report.spread(value('p50_ms'))} ms, lag p99 {report.spread(value('lag_p99_ms'))} ms; "
                f"{min(value('requests'))} requests, {max(value('other_status'))} with another status; its model: mix {report.spread(value('mix_tv'), 4)} apart, "
                f"bursts {furthest(value('dispersion')):.0%}, hits of a cache {report.spread(value('lru_points'))} points")
    apart = sorted({text for texts in value("apart") for text in texts})
    notes += [f"the model lies farther apart than it may: {text}" for text in apart]
    holds = max(value("points")) <= 1.0 and report.median(value("p99_ms")) <= 5.0 and max(value("other_status")) == 0
    holds = holds and all(value("model_holds"))
    return report.Row("replay", f"a log of nginx under a mixed load of {RATE}/s, replayed at 1x",
                      "shares of endpoints within 1 point, arrivals within 5 ms (p99); `model --verify` holds", measured, holds, rounds, notes)


ROWS = {"replay": replay}
