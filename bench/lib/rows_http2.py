"""The row of bench/run about HTTP/2: what a request costs the client, against h2load, and what connections take. Not here:
HTTP/1.1 (rows.py), what is right (the tests)."""

import measure
import report
from measure import Failure, run, tool
from rows import alternate, plimsoll_run, without_absent
from rows_connections import Nginx


def http2(settings):
    """Client CPU a request over HTTP/2, one thread, no spinning, nginx on its own core: without TLS, 8 connections with 8 streams
    each, and over TLS, 64 connections with one; and the memory that 5 000 connections take."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    client_cpus = {min(client_cpus)}
    seconds, notes = settings.seconds(3), []

    def ours(users, streams):
        def side(url):
            done = plimsoll_run(url, client_cpus, seconds, "-c", users, "--streams", streams, "--http", 2, "--spin", "off",
                                "--no-preflight", "--no-probes", *(["--insecure"] if url.startswith("https") else []))
            found = done.json()
            if found["success_rate"] < 1 or found["protocol"] != "HTTP/2":
                raise Failure(f"plimsoll over {found['protocol']}: {found['ledger']}")
            return {"cpu_s": done.cpu_s, "cpu_us": done.cpu_s * 1e6 / found["requests"],
                    "rps": found["requests"] / found["duration_s"]}
        return side

    def h2load(clients, streams):
        def side(url):
            whole = max(1, round(seconds))
            done = run([tool("h2load"), "-t1", f"-c{clients}", f"-m{streams}", f"-D{whole}", url], client_cpus, whole + 60)
            rate = measure.h2load_rate(done.out)
            return {"cpu_s": done.cpu_s, "cpu_us": done.cpu_s * 1e6 / (rate * whole), "rps": rate}
        return side

    parts, data, holds = [], {}, None
    for name, tls, connections, streams, most in (("h2c 8 x 8", False, 8, 8, 0.80), ("TLS 64 x 1", True, 64, 1, 0.90)):
        sides = {"plimsoll": ours(connections * streams, streams), "h2load": h2load(connections, streams)}
        sides = without_absent(sides, notes)
        with Nginx(server_cpus, "http2" if not tls else "ssl http2", "https" if tls else "http") as server:
            rounds = alternate(settings, 7, sides, server, notes, lambda f: f"{f['cpu_us']:.2f} us ({f['rps']:.0f}/s)")
        over = report.ratios(rounds, "cpu_us", "plimsoll", "h2load")
        parts.append(f"{name}: {report.spread(over)} of h2load ("
                     + ", ".join(f"{side} {report.spread(report.values(rounds, side, 'cpu_us'))} us" for side in sides) + ")")
        data[name] = rounds
        if over:
            holds = (holds is not False) and report.median(over) <= most
    many = 200 if settings.smoke else 5_000
    with Nginx(server_cpus, "http2", "http") as server:
        done = plimsoll_run(server.url("/"), client_cpus, seconds, "-c", many, "--http", 2, "--timeout", "30s")
    peak_mb = done.peak_bytes / 1e6
    parts.append(f"{many} connections: {peak_mb:.1f} MB")
    holds = holds if peak_mb <= 40 else False
    return report.Row("http2", "client CPU a request over HTTP/2, closed, one thread, `--spin off`; memory of 5 000 connections",
                      "h2c <= 0.80, TLS <= 0.90 of h2load's; <= 40 MB", "; ".join(parts), holds, data, notes)


ROWS = {"http2": http2}
