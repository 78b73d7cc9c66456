"""The measures of bench/run, one function for each measure: the load, the server, and the figures.

The sides (tools) alternate within each round, and their order changes from round to round. The
sides alternate because the speed of one machine changes within minutes by more than the sides
differ. A round is void if other processes use more than OTHERS_MAX of a core during any side. Void
rounds are repeated, up to three times the requested number of rounds; a note says how many rounds
were void. A side whose tool is not installed is left out, with a note.
"""

import gzip
import json
import os
import tempfile
import time

import measure
import prove
import report
from measure import Failure, NoFigure, known, need, run, tool


class Settings:
    """The number and length of the measurements. `smoke` only checks that everything still
    works."""

    def __init__(self, smoke=False, rounds=None, seconds=None, repeats=None, servers=None, fresh=False, against=None,
                 recorded=False, cures=True, record=False, variant=0, disturbed=False):
        self.smoke, self.fresh, self.servers, self.against = smoke, fresh, servers, against
        self.recorded, self.cures = recorded, cures
        self.record, self.variant, self.disturbed = record, variant, disturbed
        self._rounds, self._seconds = rounds, seconds
        self.repeats = repeats or (1 if smoke else 10)

    def cases(self, usual):
        """Returns the cases of a row: in a smoke run only the first one, because all take the same path."""
        return dict(list(usual.items())[:1]) if self.smoke else usual

    def rounds(self, usual):
        return self._rounds or (1 if self.smoke else usual)

    def seconds(self, usual):
        return self._seconds or (0.2 if self.smoke else usual)


def say(text):
    print(text, flush=True)


def duration(seconds):
    """Formats a duration in a form that every tool understands: whole seconds, or ms for plimsoll
    only."""
    return f"{seconds:.0f}s" if seconds == int(seconds) else f"{seconds * 1000:.0f}ms"


def plimsoll_run(url, cpus, seconds, *flags):
    command = [need("plimsoll"), "run", url, "-d", duration(seconds), "-t", "1", "--json", *map(str, flags)]
    return run(command, cpus, seconds + 60)


def wrk_run(url, cpus, seconds, connections):
    whole = max(1, round(seconds))
    command = [tool("wrk"), "-t1", f"-c{connections}", f"-d{whole}s", "--latency", url]
    done = run(command, cpus, whole + 60)
    numbers = measure.wrk_numbers(done.out)
    if numbers["errors"]:
        raise NoFigure(f"wrk counted {numbers['errors']} errors against the reference server")
    return done, numbers


def bare_run(url, cpus, seconds, connections, spin):
    command = [need("bare-loop"), url, "-c", str(connections), "-d", str(seconds), "--spin", spin]
    done = run(command, cpus, seconds + 60)
    return done, done.json()


def turned(sides, index, together=()):
    """Returns the sides in the order of this round; each round begins with another side. Sides in
    one set of `together` are compared with each other. Compared sides run in direct succession, so
    that a slow phase of the machine affects all of them. The order of compared sides is reversed in
    every second round."""
    groups = []
    for name in sides:
        mates = next((mates for mates in together if name in mates), (name,))
        if name == next(mate for mate in sides if mate in mates):
            groups.append([mate for mate in sides if mate in mates])
    start = index % len(groups)
    names = [name for group in groups[start:] + groups[:start] for name in (group[::-1] if index % 2 else group)]
    return [(name, sides[name]) for name in names]


# The largest CPU use of other processes during a valid measurement, in cores.
OTHERS_MAX = 0.15


def alternate(settings, usual, sides, server, notes, show, together=()):
    """Runs rounds of all sides and returns the valid rounds. A side gets the server's URL and
    returns its figures, including `cpu_s`. `show` formats these figures in a few words.
    `together` is the argument of `turned`."""
    wanted, rounds = settings.rounds(usual), []
    for index in range(wanted if settings.smoke else 3 * wanted):
        each = {}
        for name, side in turned(sides, index, together):
            with measure.Meter(server) as meter:
                each[name] = side(server.url("/healthz"))
                meter.client_cpu_s = each[name]["cpu_s"]
            each[name]["server_busy"], each[name]["others"] = meter.server_busy, meter.others
        others = max(each[name]["others"] for name in sides)
        rounds.append((others <= OTHERS_MAX, each))
        text = "; ".join(f"{name} {show(each[name])}" for name in sides)
        say(f"  {text}" + ("" if others <= OTHERS_MAX else f" -- void, others took {others:.2f} of a core"))
        if sum(quiet for quiet, _ in rounds) == wanted:
            break
    good = [each for quiet, each in rounds if quiet]
    if len(good) < len(rounds):
        notes.append(f"{len(rounds) - len(good)} of {len(rounds)} rounds were disturbed by others")
    if 2 * len(good) < wanted:
        notes.append("fewer than half of the rounds were quiet: all were taken")
        good = [each for _, each in rounds]
    return good


def without_absent(sides, notes):
    """Returns the sides that can be measured here: plimsoll, and the tools that are installed."""
    for name in ("wrk", "oha", "h2load"):
        if name in sides and not tool(name):
            notes.append(f"{name} is not installed: its side is left out")
            say(f"  {notes[-1]}")
            sides = {other: side for other, side in sides.items() if other != name}
    return sides


# -- CPU time a request ------------------------------------------------------------------------------------------------


def cpu(settings):
    """Client CPU a request: closed loop, 64 connections, one thread, no spinning; the server is never the limit.

    A server that sleeps when it is idle would distort the CPU time of the client. A sleeping server
    must be woken by the client, with an interrupt to another core. The faster a client is, the more
    often it must wake the server, until client and server alternate at half the speed. The server
    of this row therefore never sleeps, and the figure counts only if the client was busy all the
    time."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    client_cpus = {min(client_cpus)}
    seconds, notes = settings.seconds(2), []

    def side(load):
        def measured(url):
            done, requests, measured_s = load(url)
            return {"cpu_s": done.cpu_s, "cpu_us": measure.cpu_us(done.cpu_s, requests), "rps": requests / measured_s,
                    "client_busy": done.cpu_s / measured_s}
        return measured

    def ours(url):
        # plimsoll runs without probes, so that this row compares only the engines. The row `probes`
        # measures the cost of the probes.
        done = plimsoll_run(url, client_cpus, seconds, "-c", 64, "--spin", "off", "--no-preflight", "--no-probes")
        found = done.json()
        return done, found["requests"], found["duration_s"]

    def bare(url):
        done, numbers = bare_run(url, client_cpus, seconds, 64, "off")
        return done, numbers["requests"], numbers["duration_s"]

    def wrk(url):
        done, numbers = wrk_run(url, client_cpus, seconds, 64)
        return done, numbers["requests"], numbers["seconds"]

    sides = without_absent({"plimsoll": side(ours), "bare": side(bare), "wrk": side(wrk)}, notes)
    with measure.bench_server(server_cpus, "instant") as server:
        rounds = alternate(settings, 11, sides, server, notes,
                           lambda f: f"{f['cpu_us']:.2f} us ({f['rps']:.0f}/s, client {f['client_busy']:.0%} busy)")
    idlest = min(min(report.values(rounds, name, "client_busy")) for name in sides)
    if idlest < 0.95:
        notes.append(f"a client was only {idlest:.0%} busy: the server or others may have been the limit")
    over_bare = report.ratios(rounds, "cpu_us", "plimsoll", "bare")
    over_wrk = report.ratios(rounds, "cpu_us", "plimsoll", "wrk")
    floor = report.ratios(rounds, "cpu_us", "bare", "wrk")
    measured = f"{report.spread(over_bare)} of the bare loop, {report.spread(over_wrk)} of wrk ("
    measured += ", ".join(f"{name} {report.spread(report.values(rounds, name, 'cpu_us'))} us" for name in sides)
    measured += f"; bare loop {report.spread(floor)} of wrk; clients at least {idlest:.0%} busy)"
    holds = report.median(over_bare) <= 1.12 and (not over_wrk or report.median(over_wrk) <= 0.80)
    return report.Row(
        "cpu", "client CPU a request, closed, 64 connections, one thread, `--spin off`",
        "<= 1.12 x the bare loop, <= 0.80 of wrk's", measured, holds, rounds, notes)


# -- the median at one connection --------------------------------------------------------------------------------------


def p50(settings):
    """The median at one connection, closed loop, with an idle core."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    seconds, notes = settings.seconds(2), []
    every_cpu = server_cpus | client_cpus

    def ours(cpus, *flags):
        def side(url):
            done = plimsoll_run(url, cpus, seconds, "-c", 1, "--no-preflight", *flags)
            return {"cpu_s": done.cpu_s, "p50_us": known(done.json()["response_time_ns"]["p50"]) / 1e3}
        return side

    def bare(spin):
        def side(url):
            done, numbers = bare_run(url, client_cpus, seconds, 1, spin)
            return {"cpu_s": done.cpu_s, "p50_us": numbers["p50_us"]}
        return side

    def wrk(url):
        done, numbers = wrk_run(url, client_cpus, seconds, 1)
        return {"cpu_s": done.cpu_s, "p50_us": numbers["p50_us"]}

    sides = without_absent({
        "plimsoll": ours(client_cpus, "--spin", "on"),
        # This side runs plimsoll as users do, so plimsoll must find the idle core by itself.
        "plimsoll auto": ours(every_cpu),
        "bare": bare("on"),
        "bare asleep": bare("off"),
        "wrk": wrk,
    }, notes)
    with measure.baseline(server_cpus) as server:
        rounds = alternate(settings, 7, sides, server, notes, lambda f: f"{f['p50_us']:.1f} us")
    over = report.ratios(rounds, "p50_us", "plimsoll", "bare")
    over_auto = report.ratios(rounds, "p50_us", "plimsoll auto", "bare")
    measured = f"{report.spread(over)} x with `--spin on`, {report.spread(over_auto)} x with `auto` ("
    measured += ", ".join(f"{name} {report.spread(report.values(rounds, name, 'p50_us'), 1)} us" for name in sides) + ")"
    holds = max(report.median(over), report.median(over_auto)) <= 1.15
    return report.Row("p50", "p50 at one connection, closed, spare core", "<= 1.15 x the bare spinning loop",
                      measured, holds, rounds, notes)


# -- an open loop at 50 000 a second -----------------------------------------------------------------------------------


def open_loop(settings):
    """50 000 requests a second by the clock, from one thread."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    seconds, notes = settings.seconds(4), []

    def ours(url):
        done = plimsoll_run(url, client_cpus, seconds, "--rate", 50_000, "--no-preflight")
        found = done.json()
        ledger = found["ledger"]
        return {
            "cpu_s": done.cpu_s,
            # The share divides by the intended number of requests (50 000/s for the whole time),
            # and not by the number of requests in the plan.
            "share": found["requests"] / (50_000 * seconds),
            "unsent": ledger["unsent"],
            "p50_us": known(found["response_time_ns"]["p50"]) / 1e3,
            "p99_us": known(found["response_time_ns"]["p99"]) / 1e3,
            "limited": found["generator"]["limited"],
        }

    def oha(url):
        whole = max(1, round(seconds))
        command = [tool("oha"), "-q", "50000", "-c", "64", "-z", f"{whole}s", "--latency-correction", "--no-tui",
                   "--output-format", "json", url]
        done = run(command, client_cpus, whole + 60)
        found = done.json()
        rps = found["summary"]["requestsPerSec"]
        return {"cpu_s": done.cpu_s, "share": rps / 50_000, "p50_us": found["latencyPercentiles"]["p50"] * 1e6}

    sides = without_absent({"plimsoll": ours, "oha": oha}, notes)
    with measure.baseline(server_cpus) as server:
        rounds = alternate(settings, 5, sides, server, notes,
                           lambda f: f"{f['share']:.2%} of the schedule, p50 {f['p50_us']:.0f} us")
    shares = report.values(rounds, "plimsoll", "share")
    unsent = max(report.values(rounds, "plimsoll", "unsent"))
    p50s_ms = [us / 1e3 for us in report.values(rounds, "plimsoll", "p50_us")]
    measured = f"{report.median(shares):.2%} of the schedule (least {min(shares):.2%}), at most {unsent} unsent, "
    measured += f"p50 {report.spread(p50s_ms, 3)} ms"
    if "oha" in sides:
        theirs = [us / 1e3 for us in report.values(rounds, "oha", "p50_us")]
        measured += f"; oha {report.median(report.values(rounds, 'oha', 'share')):.2%}, p50 {report.spread(theirs, 3)} ms"
    holds = report.median(shares) >= 0.999 and unsent == 0 and report.median(p50s_ms) <= 0.15
    return report.Row("open", "open loop, 50 000/s, one thread, constant arrivals",
                      ">= 99.9 % of the schedule, none unsent, p50 <= 0.15 ms", measured, holds, rounds, notes)


# -- a server that stalls ----------------------------------------------------------------------------------------------


def stall(settings):
    """1 000 requests a second to a server that stalls for 0.5 s in every 5 s.

    A tenth of the requests waits for a time between 0 and 0.5 s. The true p95 is therefore 250 ms,
    and the true p99 450 ms."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    notes = []
    # The load lasts whole stall periods, so that all periods have the same weight.
    seconds = settings.seconds(20)

    def ours(url):
        done = plimsoll_run(url, client_cpus, seconds, "--rate", 1000)
        found = done.json()
        response, service = found["response_time_ns"], found["service_time_ns"]
        return {
            "cpu_s": done.cpu_s, "p50_ms": known(response["p50"]) / 1e6, "p95_ms": known(response["p95"]) / 1e6,
            "p99_ms": known(response["p99"]) / 1e6, "service_p99_ms": known(service["p99"]) / 1e6, "ledger": found["ledger"],
        }

    with measure.bench_server(server_cpus, "stall", 500, 5000) as server:
        rounds = alternate(settings, 3, {"plimsoll": ours}, server, notes,
                           lambda f: f"p50 {f['p50_ms']:.2f}, p95 {f['p95_ms']:.1f}, p99 {f['p99_ms']:.1f} ms")
    p95s, p99s = (report.values(rounds, "plimsoll", name) for name in ("p95_ms", "p99_ms"))
    holds = abs(report.median(p95s) / 250 - 1) <= 0.03 and abs(report.median(p99s) / 450 - 1) <= 0.03
    return report.Row("stall", "server that stalls 0.5 s in every 5 s, 1 000/s", "p95 250 ms and p99 450 ms within 3 %",
                      f"p95 {report.spread(p95s, 1)} ms, p99 {report.spread(p99s, 1)} ms", holds, rounds, notes)


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(settings):
    """Peak resident memory with 5 000 connections."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    connections = 500 if settings.smoke else 5_000
    seconds, notes = settings.seconds(4), []

    def side(load):
        def measured(url):
            done = load(url)
            return {"cpu_s": done.cpu_s, "peak_mb": done.peak_bytes / 1e6}
        return measured

    sides = without_absent({
        "plimsoll": side(lambda url: plimsoll_run(url, client_cpus, seconds, "-c", connections)),
        "wrk": side(lambda url: wrk_run(url, client_cpus, seconds, connections)[0]),
    }, notes)
    with measure.baseline(server_cpus) as server:
        rounds = alternate(settings, 3, sides, server, notes, lambda f: f"{f['peak_mb']:.1f} MB")
    measured = ", ".join(f"{name} {report.spread(report.values(rounds, name, 'peak_mb'), 1)} MB" for name in sides)
    holds = max(report.values(rounds, "plimsoll", "peak_mb")) <= 20
    return report.Row("memory", f"peak resident memory at {connections} connections", "<= 20 MB", measured, holds,
                      rounds, notes)


# -- probes ------------------------------------------------------------------------------------------------------------


def probes(settings):
    """The cost of the probes on a server of 200 threads with 5 000 connections."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    threads, connections = (20, 200) if settings.smoke else (200, 5_000)
    seconds, notes = settings.seconds(10), []

    def ours(url):
        # The rate leaves client and server idle time, so the probes' cost is measured.
        done = plimsoll_run(url, client_cpus, seconds, "-c", connections, "--spin", "off")
        server = done.json()["server"]
        if server["reason"]:
            raise NoFigure(f"the server was not seen: {server['reason']}")
        samples = {probe["name"]: probe["samples"] for probe in server["probes"]}
        return {"cpu_s": done.cpu_s, "share": server["probes_cpu_share"], "threads": server["threads_max"],
                "hz": samples["server.cpu"] / seconds, "series": len(samples)}

    with measure.baseline(server_cpus, threads) as server:
        rounds = alternate(settings, 3, {"plimsoll": ours}, server, notes,
                           lambda f: f"{f['share']:.2%} of a core, {f['hz']:.1f} samples/s, {f['threads']} threads")
    shares = [100 * share for share in report.values(rounds, "plimsoll", "share")]
    hz = report.values(rounds, "plimsoll", "hz")
    holds = max(shares) <= 1 and min(hz) >= 9
    return report.Row("probes", f"probes on a server of {threads} threads and {connections} connections, 10 Hz",
                      "<= 1 % of a core", f"{report.spread(shares)} % of a core at {report.spread(hz, 1)} samples/s",
                      holds, rounds, notes)


def server_cpu(settings):
    """The server's CPU time a request, compared with the kernel's CPU time of its threads."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    seconds, notes = settings.seconds(10), []
    with measure.baseline(server_cpus) as server:
        def ours(url):
            before_s = server.cpu_s()
            # Each request costs enough to outweigh the server's work outside the load.
            done = plimsoll_run(server.url("/burn/100"), client_cpus, seconds, "-c", 16, "--no-preflight")
            kernel_s = server.cpu_s() - before_s
            found = done.json()
            ledger = found["ledger"]
            kernel_us = measure.cpu_us(kernel_s, ledger["succeeded"] + ledger["failed"]["status"])
            told_us = known(found["server"]["cpu_us_per_request"])
            return {"cpu_s": done.cpu_s, "told_us": told_us, "kernel_us": kernel_us}

        rounds = alternate(settings, 5, {"plimsoll": ours}, server, notes,
                           lambda f: f"{f['told_us']:.2f} us a request, by the kernel {f['kernel_us']:.2f} us")
    percent = [100 * (measure.quotient(f["plimsoll"]["told_us"], f["plimsoll"]["kernel_us"]) - 1) for f in rounds]
    return report.Row("server-cpu", "server CPU a request against the kernel's account at the end of the run", "within 2 %",
                      f"{report.spread(percent)} %", max(map(abs, percent)) <= 2, rounds, notes)


# -- a large profile ---------------------------------------------------------------------------------------------------


def profile(settings):
    """A CPU profile of 50 MB, compressed and uncompressed, rendered as a flame graph."""
    megabytes = 2 if settings.smoke else 50
    rounds, notes, every_cpu = [], [], os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory() as folder:
        plain, packed, drawn = (os.path.join(folder, name) for name in ("big.pb", "big.pb.gz", "flame.html"))
        run([need("big-profile"), plain, str(megabytes)], every_cpu, 60)
        with open(plain, "rb") as file, gzip.open(packed, "wb", 6) as out:
            out.write(file.read())
        sizes = {path: os.path.getsize(path) / 1e6 for path in (plain, packed)}
        for _ in range(settings.rounds(5)):
            each = {}
            for side, path in (("plain", plain), ("gzip", packed)):
                done = run([need("plimsoll"), "profile", path, "-o", drawn], every_cpu, 60)
                each[side] = {"cpu_s": done.cpu_s, "wall_s": done.wall_s, "peak_mb": done.peak_bytes / 1e6,
                              "html_mb": os.path.getsize(drawn) / 1e6}
            rounds.append(each)
            say("  " + "; ".join(f"{side} {f['wall_s']:.2f} s, {f['peak_mb']:.0f} MB" for side, f in each.items()))
    walls = {side: report.values(rounds, side, "wall_s") for side in ("plain", "gzip")}
    measured = f"{report.spread(walls['plain'])} s; packed ({sizes[packed]:.0f} MB) {report.spread(walls['gzip'])} s; "
    measured += f"the page has {rounds[0]['plain']['html_mb']:.1f} MB"
    holds = all(report.median(seconds) <= 2 for seconds in walls.values())
    return report.Row("profile", f"a profile of {sizes[plain]:.0f} MB read, summed up and drawn", "<= 2 s", measured, holds,
                      rounds, notes)


# -- find against known capacities -------------------------------------------------------------------------------------

# The servers by name. Each value contains the arguments of bench-server, and the known capacity in
# requests a second.
KNOWN = {
    "exact-cpu": (("exact-cpu", 100), 10_000),
    "token-bucket": (("token-bucket", 3000, 100), 3_000),
    "slots": (("slots", 20, 5), 4_000),
}


def find(settings):
    """`plimsoll find` on real servers of known capacity.

    Each search is stored when it ends, so an interrupted run continues where it stopped (`--fresh`
    starts again)."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    path = os.path.join(report.OUTPUT, f"find{'.smoke' if settings.smoke else ''}.jsonl")
    os.makedirs(report.OUTPUT, exist_ok=True)
    if (settings.fresh or settings.smoke) and os.path.exists(path):
        os.remove(path)
    chosen = settings.servers or list(settings.cases(KNOWN))
    for name in chosen:
        if name not in KNOWN:
            raise Failure(f"no server is called {name}; there are {', '.join(KNOWN)}")
    budget = 2 if settings.smoke else 60
    done = _earlier(path, budget)
    # The servers are searched in turn, so that a slow phase of the machine affects all of them.
    for index in range(settings.repeats):
        for name in chosen:
            if sum(d["server"] == name for d in done) > index:
                continue
            arguments, nominal = KNOWN[name]
            with measure.bench_server(server_cpus, *arguments) as server:
                command = [need("plimsoll"), "find", server.url("/"), "--json", "--budget", f"{budget}s",
                           "--seed", str(index + 1)]
                with measure.Meter(server) as meter:
                    finished = run(command, client_cpus, budget + 60, measure.SEARCH_CODES)
                    meter.client_cpu_s = finished.cpu_s
                found, stats = finished.json(), server.stats()
            # The CPU time that a request really cost gives the server's true capacity.
            truth = measure.quotient(stats["requests"], stats["cpu_s"]) if name == "exact-cpu" else nominal
            line = found["load_line_rps"]
            one = {
                "server": name, "repeat": index + 1, "truth_rps": truth, "nominal_rps": nominal,
                "busy_over_cpu": measure.quotient(stats["busy_s"], stats["cpu_s"]), "budget_s": budget,
                "lower_rps": line["lower"], "upper_rps": line["upper"], "elapsed_s": found["elapsed_s"],
                "wall_s": finished.wall_s, "others": meter.others, "stopped_by": found["stopped_by"], "warnings": found["warnings"],
                "voided": sum(t["verdict"] in ("void", "disturbed") for t in found["trials"]), "trials": len(found["trials"]),
            }
            one["error"] = (line["lower"] or 0) / truth - 1
            done.append(one)
            with open(path, "a") as file:
                file.write(json.dumps(one) + "\n")
            say(f"  {name} {index + 1}: {line['lower']} of {truth:.0f} ({one['error']:+.1%}), "
                f"{one['elapsed_s']:.1f} s, {one['trials']} trials, {one['voided']} void, {one['stopped_by']}, others took {one['others']:.2f} of a core")
    parts, holds = [], True
    for name in chosen:
        mine = [d for d in done if d["server"] == name]
        good = [d for d in mine if abs(d["error"]) <= 0.03 and d["elapsed_s"] <= 60]
        holds = holds and len(good) >= 0.9 * len(mine)
        parts.append(f"{name} {len(good)} of {len(mine)} (error {report.spread([100 * d['error'] for d in mine], 1)} %, "
                     f"longest {max(d['elapsed_s'] for d in mine):.0f} s)")
    disturbed = sum(d["others"] > OTHERS_MAX for d in done)
    # Searches that other processes disturbed count too, because a search must cope with other
    # processes. A note states how many searches were disturbed.
    notes = [f"others took more than {OTHERS_MAX} of a core during {disturbed} of {len(done)} searches"] if disturbed else []
    return report.Row("find", "`find` on real servers of known capacity", "within 3 % in 60 s, 9 of 10",
                      "; ".join(parts), holds, done, notes)


# The stalling servers by name. Each value contains the shortest and the longest stall, the time
# between stalls in ms, and the distribution of this time.
STALLING = {
    "1/4-1 s after 1.2 s": (250, 1000, 1200, "fixed"),
    "1 s after 4 s": (1000, 1000, 4000, "fixed"),
    "0.8 s at random after 3 s": (800, 800, 3000, "random"),
    "0.1-0.4 s at random after 2 s": (100, 400, 2000, "random"),
}


def find_stall(settings):
    """`plimsoll find` on servers that stall: a steady load of 25 s must confirm each load line."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    budgets = [2] if settings.smoke else [20, 60]
    steady = settings.seconds(25)
    done = []
    for index in range(1 if settings.smoke else settings.repeats):
        for name, (from_ms, to_ms, gap_ms, kind) in settings.cases(STALLING).items():
            for budget in budgets:
                with measure.bench_server(server_cpus, "stalls", from_ms, to_ms, gap_ms, kind, index + 1) as server:
                    command = [need("plimsoll"), "find", server.url("/"), "--json", "--budget", f"{budget}s",
                               "--seed", str(index + 1)]
                    found = run(command, client_cpus, budget + 60, measure.SEARCH_CODES).json()
                    line = found["load_line_rps"]
                    one = {"server": name, "repeat": index + 1, "budget_s": budget, "lower_rps": line["lower"],
                           "confirmed": line["confirmed"], "stopped_by": found["stopped_by"],
                           "stalls": found["stalls"], "warnings": found["warnings"], "disturbed": found["disturbed"]}
                    if line["lower"]:
                        load = plimsoll_run(server.url("/"), client_cpus, steady, "--rate", line["lower"]).json()
                        ledger = load["ledger"]
                        # The share of all scheduled requests that succeeded.
                        one["success"] = ledger["succeeded"] / max(1, ledger["scheduled"])
                        one["p99_ms"] = known(load["response_time_ns"]["p99"]) / 1e6
                    one["holds"] = not line["lower"] or one["success"] >= 0.999 and one["p99_ms"] <= 500
                    done.append(one)
                    stated = f"{line['lower']:.0f}/s, then p99 {one['p99_ms']:.0f} ms" if line["lower"] else "no line"
                    say(f"  {name}, {budget} s, {index + 1}: {stated} ({one['stopped_by']})")
    parts = []
    for budget in budgets:
        mine = [d for d in done if d["budget_s"] == budget]
        stated = [d for d in mine if d["lower_rps"]]
        parts.append(f"{budget} s: {len(stated)} of {len(mine)} state a line, {sum(d['holds'] for d in stated)} of them hold")
    return report.Row("find-stall", "`find` on real servers that stall", "no stated line that a steady load of 25 s breaks",
                      "; ".join(parts), all(d["holds"] for d in done), done, [])


def _earlier(path, budget):
    """Returns the searches of an earlier run with the same budget."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        done = [json.loads(line) for line in file if line.endswith("\n")]
    done = [one for one in done if one["budget_s"] == budget]
    if done:
        say(f"  going on with {len(done)} searches of an earlier run (--fresh begins anew)")
    return done


ROWS = {"cpu": cpu, "p50": p50, "open": open_loop, "stall": stall, "memory": memory, "probes": probes,
        "server-cpu": server_cpu, "profile": profile, "find": find, "find-stall": find_stall, **prove.ROWS}
