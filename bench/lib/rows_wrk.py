"""The row of bench/run that compares `plimsoll wrk` with wrk: the client's cost of a request under
a script without functions, under a script that writes each request, and under a script that
reads each response. Not here: a load without a script (rows.py).
"""

import os
import re
import tempfile

import measure
import report
import rows
from measure import Failure, NoFigure, need, run, tool

# The scripts, each with the largest accepted ratio of plimsoll's cost of a request to wrk's cost.
SCRIPTS = {
    "static": ("wrk.headers['X-Kind'] = 'static'", 1.0),
    "request": ("local n = 0\nfunction request() n = n + 1; return wrk.format(nil, '/healthz?n=' .. n) end", 1.02),
    "response": ("local n = 0\nfunction response(status, headers, body) if status == 200 then n = n + 1 end end", 1.02),
}
DONE = re.compile(r"^ +(\d+) requests in ", re.M)


def wrk(settings):
    """Client CPU a request under a script, of `plimsoll wrk` over wrk: 64 connections, one thread."""
    if not tool("wrk"):
        raise Failure("wrk is not installed")
    server_cpus, client_cpus = measure.cores(settings.smoke)
    client_cpus = {min(client_cpus)}
    whole = max(1, round(settings.seconds(2)))
    notes, parts, data, holds = [], [], {}, True
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, most) in SCRIPTS.items():
            path = os.path.join(folder, f"{name}.lua")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

            def side(command):
                def measured(url):
                    line = [*command, "-t1", "-c64", f"-d{whole}s", "-s", path, url]
                    done = run(line, client_cpus, whole + 60)
                    found = DONE.search(done.out)
                    if not found or "Socket errors" in done.out:
                        raise NoFigure(f"{name}: {done.out}")
                    return {"cpu_s": done.cpu_s, "cpu_us": measure.cpu_us(done.cpu_s, int(found[1]))}
                return measured

            rows.say(f"  {name}")
            sides = {"plimsoll": side([need("plimsoll"), "wrk"]), "wrk": side([tool("wrk")])}
            with measure.bench_server(server_cpus, "instant") as server:
                rounds = rows.alternate(settings, 9, sides, server, notes, lambda f: f"{f['cpu_us']:.2f} us")
            over = report.ratios(rounds, "cpu_us", "plimsoll", "wrk")
            holds = holds and report.median(over) <= most
            parts.append(f"{name} {report.spread(over)} ({report.spread(report.values(rounds, 'plimsoll', 'cpu_us'))} us)")
            data[name] = rounds
    wanted = ", ".join(f"{name} <= {most}" for name, (_, most) in SCRIPTS.items())
    return report.Row("wrk", "plimsoll wrk over wrk, CPU a request", wanted, "; ".join(parts), holds, data, notes)


ROWS = {"wrk": wrk}
