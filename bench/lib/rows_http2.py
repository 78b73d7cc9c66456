"""The rows of bench/run about HTTP/2 and gRPC: the client's cost of a request, compared with h2load
and ghz, and the cost of connections. Not here: HTTP/1.1 (rows.py), correctness (the tests)."""

import os

import measure
import report
from measure import Failure, NoFigure, known, run, tool
from peers import built_by_go, peer, with_peers
from rows import alternate, plimsoll_run, without_absent
from rows_connections import Nginx


def http2(settings):
    """Client CPU a request over HTTP/2, and the memory of 5 000 connections.

    One thread, no spinning, nginx on its own core. Without TLS, 8 connections have 8 streams each.
    With TLS, 64 connections have one stream each."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    client_cpus = {min(client_cpus)}
    seconds, notes = settings.seconds(3), []

    def ours(users, streams):
        def side(url):
            done = plimsoll_run(url, client_cpus, seconds, "-c", users, "--streams", streams, "--http", 2, "--spin", "off",
                                "--no-preflight", "--no-probes", *(["--insecure"] if url.startswith("https") else []))
            found = done.json()
            measure.need_success(found, f"plimsoll over {found['protocol']}")
            if found["protocol"] != "HTTP/2":
                raise Failure(f"plimsoll used {found['protocol']}")
            return {"cpu_s": done.cpu_s, "cpu_us": measure.cpu_us(done.cpu_s, found["requests"]),
                    "rps": found["requests"] / found["duration_s"]}
        return side

    def h2load(clients, streams):
        def side(url):
            whole = max(1, round(seconds))
            done = run([tool("h2load"), "-t1", f"-c{clients}", f"-m{streams}", f"-D{whole}", url], client_cpus, whole + 60)
            rate = measure.h2load_rate(done.out)
            return {"cpu_s": done.cpu_s, "cpu_us": measure.cpu_us(done.cpu_s, rate * whole), "rps": rate}
        return side

    def oha(connections, streams):
        def side(url):
            whole = max(1, round(seconds))
            command = [tool("oha"), "--no-tui", "--http2", "--insecure", "-z", f"{whole}s", "-c", str(connections),
                       "-p", str(streams), "--output-format", "json", url]
            done = run(command, client_cpus, whole + 60)
            rate = done.json()["summary"]["requestsPerSec"]
            return {"cpu_s": done.cpu_s, "cpu_us": measure.cpu_us(done.cpu_s, rate * whole), "rps": rate}
        return side

    parts, data, holds = [], {}, None
    for name, tls, connections, streams, most in (("h2c 8 x 8", False, 8, 8, 0.80), ("TLS 64 x 1", True, 64, 1, 0.90)):
        sides = without_absent({"plimsoll": ours(connections * streams, streams), "h2load": h2load(connections, streams)}, notes)
        sides = with_peers(sides, {"oha": oha(connections, streams)}, settings.smoke, notes)
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


PROTO = os.path.join(measure.ROOT, "lab", "internal", "ladder", "ladderpb", "ladder.proto")
CALL = "plimsoll.lab.ladder.v1.Ladder"
# A rate in calls a second that every client reaches easily.
PACE = 2_000


class GrpcLadder(measure.Server):
    """The lab's gRPC service. The called method does nothing."""

    def __init__(self, cpus):
        lab = os.path.join(measure.ROOT, "lab")
        into = os.path.join(report.OUTPUT, "go", "ladder")
        ladder = built_by_go("ladder", ["build", "-o", into, "./cmd/ladder"], lab, os.path.dirname(into))
        # The first address that the server prints is for HTTP, which this row does not use.
        super().__init__([ladder, "--grpc-listen", "127.0.0.1:0", "--log-level", "error"], cpus)

    ADDRESS = rb'"grpc":"(127\.0\.0\.1:\d+)"'

    def url(self, _):
        return f"grpc://{self.address}/{CALL}/Empty"


def grpc(settings):
    """Client CPU a unary gRPC call, compared with ghz.

    64 calls are in flight on 8 connections, one thread, no spinning. The Go server has its own
    core."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    client_cpus = {min(client_cpus)}
    seconds, notes = settings.seconds(3), []
    # A smoke run does not download and build ghz.
    ghz_program = tool("ghz") if settings.smoke else peer("ghz")

    def ours(*load):
        def side(url):
            done = plimsoll_run(url, client_cpus, seconds, "--proto", PROTO, *load, "--streams", 8, "--spin", "off",
                                "--no-preflight", "--no-probes")
            found = done.json()
            measure.need_success(found, f"calls failed with {found['grpc_statuses']}")
            # ghz measures from the send on, so the service time is compared.
            times = found["service_time_ns"]
            return {"cpu_s": done.cpu_s, "calls": found["requests"], "wall_s": done.wall_s,
                    "rps": found["requests"] / found["duration_s"], "p50_us": known(times["p50"]) / 1e3, "p99_us": known(times["p99"]) / 1e3}
        return side

    def ghz(*load):
        def side(url):
            whole = max(1, round(seconds))
            command = [ghz_program, "--insecure", "--proto", PROTO, "--call", f"{CALL}/Empty", "-d", "{}", "-c", "64", *load,
                       "--connections", "8", "--cpus", "1", "-z", f"{whole}s", "--duration-stop", "wait", "-O", "json",
                       url.split("/")[2]]
            done = run(command, client_cpus, whole + 60)
            found = done.json()
            if set(found["statusCodeDistribution"]) != {"OK"}:
                raise NoFigure(f"ghz: {found['statusCodeDistribution']}")
            at = {each["percentage"]: each["latency"] / 1e3 for each in found["latencyDistribution"]}
            return {"cpu_s": done.cpu_s, "calls": found["count"], "wall_s": done.wall_s, "rps": found["rps"],
                    "p50_us": at[50], "p99_us": at[99]}
        return side

    def measured(side):
        def of(url):
            figures = side(url)
            return {**figures, "cpu_us": measure.cpu_us(figures["cpu_s"], figures["calls"])}
        return of

    def alternated(server, rounds, our_load, their_load):
        sides = {"plimsoll": measured(ours(*our_load)), **({"ghz": measured(ghz(*their_load))} if ghz_program else {})}
        rounds = alternate(settings, rounds, sides, server, notes,
                           lambda f: f"{f['cpu_us']:.1f} us ({f['rps']:.0f}/s, p50 {f['p50_us']:.0f} us, p99 {f['p99_us']:.0f} us)")
        for each in rounds:
            for figures in each.values():
                figures["server_us"] = measure.cpu_us(figures["server_busy"] * figures["wall_s"], figures["calls"])
        return sides, rounds

    if not ghz_program:
        notes.append("ghz is not installed: its side is left out")
    with GrpcLadder(server_cpus) as server:
        sides, rounds = alternated(server, 7, ("-c", 64), ())
        # Both clients run at the same rate, which both reach easily, so the server gets equal loads
        # from them.
        _, paced = alternated(server, 3, ("--rate", PACE), ("--rps", str(PACE)))
    over = report.ratios(rounds, "cpu_us", "plimsoll", "ghz")
    server_over = report.ratios(rounds, "server_us", "plimsoll", "ghz")
    text = f"{report.spread(over)} of ghz ("
    text += ", ".join(f"{side} {report.spread(report.values(rounds, side, 'cpu_us'), 1)} us, "
                      f"{report.spread(report.values(rounds, side, 'rps'), 0)}/s" for side in sides)
    text += f"); CPU a call of the server {report.spread(server_over)} of that under ghz; at {PACE}/s: "
    text += ", ".join(f"{side} {report.spread(report.values(paced, side, 'rps'), 0)}/s, p50 "
                      f"{report.spread(report.values(paced, side, 'p50_us'), 0)} us, p99 "
                      f"{report.spread(report.values(paced, side, 'p99_us'), 0)} us" for side in sides)
    text += f", CPU a call of the server {report.spread(report.ratios(paced, 'server_us', 'plimsoll', 'ghz'))}"
    return report.Row("grpc", "client CPU a unary call of gRPC, closed, 64 in flight on 8 connections, one thread, `--spin off`",
                      "<= 0.25 of ghz's", text, report.median(over) <= 0.25 if over else None,
                      {"closed": rounds, "paced": paced}, notes)


ROWS = {"http2": http2, "grpc": grpc}
