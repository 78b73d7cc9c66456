"""The measures of bench/run, one function each: who is loaded with what, and what is made of the figures.

Sides alternate within every round, and the order turns from round to round, because the speed of one and the same
machine moves by more between minutes than the sides differ. A side that is not installed is left out, and said.
"""

import json
import os
import time

import measure
import report
from measure import Failure, need, run, tool


class Settings:
    """How long and how often; `smoke` only looks whether everything still works."""

    def __init__(self, smoke=False, rounds=None, seconds=None, repeats=None, servers=None, fresh=False):
        self.smoke, self.fresh, self.servers = smoke, fresh, servers
        self._rounds, self._seconds = rounds, seconds
        self.repeats = repeats or (1 if smoke else 10)

    def rounds(self, usual):
        return self._rounds or (1 if self.smoke else usual)

    def seconds(self, usual):
        return self._seconds or (0.5 if self.smoke else usual)


def say(text):
    print(text, flush=True)


def duration(seconds):
    """As every side understands it: whole seconds, or ms for ours."""
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
        raise Failure(f"wrk counted {numbers['errors']} errors against the reference server")
    return done, numbers


def bare_run(url, cpus, seconds, connections, spin):
    command = [need("bare-loop"), url, "-c", str(connections), "-d", str(seconds), "--spin", spin]
    done = run(command, cpus, seconds + 60)
    return done, done.json()


def turned(sides, index):
    """The sides, each round beginning with another one."""
    names = list(sides)
    start = index % len(names)
    return [(name, sides[name]) for name in names[start:] + names[:start]]


def absent(name, notes):
    if tool(name):
        return False
    note = f"{name} is not installed: its side is left out"
    say(f"  {note}")
    notes.append(note)
    return True


# -- CPU time a request ------------------------------------------------------------------------------------------------


def cpu(settings):
    """Client CPU a request: closed loop, 64 connections, one thread, no spinning; the server on a core of its own."""
    server_cpus, client_cpus = measure.cores()
    client_cpus = {min(client_cpus)}
    seconds, notes, rounds = settings.seconds(4), [], []

    def ours(url):
        done = plimsoll_run(url, client_cpus, seconds, "-c", 64, "--spin", "off", "--no-preflight")
        return done.cpu_s, done.json()["requests"]

    def bare(url):
        done, numbers = bare_run(url, client_cpus, seconds, 64, "off")
        return done.cpu_s, numbers["requests"]

    def wrk(url):
        done, numbers = wrk_run(url, client_cpus, seconds, 64)
        return done.cpu_s, numbers["requests"]

    sides = {"plimsoll": ours, "bare": bare, "wrk": wrk}
    if absent("wrk", notes):
        del sides["wrk"]
    busiest = 0.0
    with measure.baseline(server_cpus) as server:
        url = server.url("/healthz")
        for index in range(settings.rounds(7)):
            each = {}
            for name, side in turned(sides, index):
                server_before, start = server.cpu_s(), time.monotonic()
                cpu_s, requests = side(url)
                busy = (server.cpu_s() - server_before) / (time.monotonic() - start)
                each[name] = cpu_s * 1e6 / requests
                each[f"{name}_rps"] = requests / seconds
                each[f"{name}_server_busy"] = busy
                busiest = max(busiest, busy)
            rounds.append(each)
            say("  " + ", ".join(
                f"{n} {each[n]:.2f} us (server {each[f'{n}_server_busy']:.0%} busy)" for n in sides))
    if busiest >= 0.95:
        notes.append(f"the server was up to {busiest:.0%} busy: it may have been the limit")
        say(f"  {notes[-1]}")
    over_bare = report.ratios(rounds, "plimsoll", "bare")
    over_wrk = report.ratios(rounds, "plimsoll", "wrk")
    floor = report.ratios(rounds, "bare", "wrk")
    measured = f"{report.spread(over_bare)} of the bare loop, {report.spread(over_wrk)} of wrk ("
    measured += ", ".join(f"{n} {report.spread([r[n] for r in rounds])} us" for n in sides)
    measured += f"; bare loop {report.spread(floor)} of wrk; server at most {busiest:.0%} busy)"
    holds = report.median(over_bare) <= 1.12 and (not over_wrk or report.median(over_wrk) <= 0.80)
    return report.Row(
        "cpu", "client CPU a request, closed, 64 connections, one thread, `--spin off`",
        "<= 1.12 x the bare loop, <= 0.80 of wrk's", measured, holds and busiest < 0.95, rounds, notes)


# -- the median at one connection --------------------------------------------------------------------------------------


def p50(settings):
    """The median at one connection, closed loop, with a core to spare."""
    server_cpus, client_cpus = measure.cores()
    seconds, notes, rounds = settings.seconds(3), [], []
    every_cpu = server_cpus | client_cpus

    def ours(cpus, *flags):
        def side(url):
            found = plimsoll_run(url, cpus, seconds, "-c", 1, "--no-preflight", *flags).json()
            return found["response_time_ns"]["p50"] / 1e3
        return side

    sides = {
        "plimsoll": ours(client_cpus, "--spin", "on"),
        # As a user would run it: it has to find the idle core by itself.
        "plimsoll, auto": ours(every_cpu),
        "bare": lambda url: bare_run(url, client_cpus, seconds, 1, "on")[1]["p50_us"],
        "bare, asleep": lambda url: bare_run(url, client_cpus, seconds, 1, "off")[1]["p50_us"],
        "wrk": lambda url: wrk_run(url, client_cpus, seconds, 1)[1]["p50_us"],
    }
    if absent("wrk", notes):
        del sides["wrk"]
    with measure.baseline(server_cpus) as server:
        url = server.url("/healthz")
        for index in range(settings.rounds(7)):
            each = {name: side(url) for name, side in turned(sides, index)}
            rounds.append(each)
            say("  " + ", ".join(f"{n} {each[n]:.1f} us" for n in sides))
    over = report.ratios(rounds, "plimsoll", "bare")
    over_auto = report.ratios(rounds, "plimsoll, auto", "bare")
    measured = f"{report.spread(over)} x with `--spin on`, {report.spread(over_auto)} x with `auto` ("
    measured += ", ".join(f"{n} {report.spread([r[n] for r in rounds], 1)} us" for n in sides) + ")"
    holds = max(report.median(over), report.median(over_auto)) <= 1.15
    return report.Row("p50", "p50 at one connection, closed, spare core", "<= 1.15 x the bare spinning loop",
                      measured, holds, rounds, notes)


# -- an open loop at 50 000 a second -----------------------------------------------------------------------------------


def open_loop(settings):
    """50 000 requests a second by the clock, from one thread."""
    server_cpus, client_cpus = measure.cores()
    seconds, notes, rounds = settings.seconds(5), [], []

    def ours(url):
        found = plimsoll_run(url, client_cpus, seconds, "--rate", 50_000, "--no-preflight").json()
        ledger = found["ledger"]
        return {
            "sent": 1 - (ledger["unsent"] / max(1, ledger["scheduled"])),
            "done": found["requests"] / max(1, ledger["scheduled"]),
            "of_plan": ledger["scheduled"] / (50_000 * seconds),
            "unsent": ledger["unsent"],
            "p50_us": found["response_time_ns"]["p50"] / 1e3,
            "p99_us": found["response_time_ns"]["p99"] / 1e3,
            "limited": found["generator"]["limited"],
        }

    def oha(url):
        command = [tool("oha"), "-q", "50000", "-c", "64", "-z", f"{max(1, round(seconds))}s", "--latency-correction",
                   "--no-tui", "--output-format", "json", url]
        found = run(command, client_cpus, seconds + 60).json()
        return {"rps": found["summary"]["requestsPerSec"], "p50_us": found["latencyPercentiles"]["p50"] * 1e6}

    sides = {"plimsoll": ours, "oha": oha}
    if absent("oha", notes):
        del sides["oha"]
    with measure.baseline(server_cpus) as server:
        url = server.url("/healthz")
        for index in range(settings.rounds(5)):
            each = {name: side(url) for name, side in turned(sides, index)}
            rounds.append(each)
            p = each["plimsoll"]
            text = f"  plimsoll: {p['done']:.3%} of the schedule, {p['unsent']} unsent, p50 {p['p50_us']:.0f} us"
            if "oha" in each:
                text += f"; oha: {each['oha']['rps']:.0f}/s, p50 {each['oha']['p50_us']:.0f} us"
            say(text)
    ours_ = [r["plimsoll"] for r in rounds]
    done = [min(1.0, p["of_plan"]) * p["done"] for p in ours_]
    unsent = max(p["unsent"] for p in ours_)
    p50s = [p["p50_us"] for p in ours_]
    measured = f"{report.median(done):.2%} of the schedule (least {min(done):.2%}), at most {unsent} unsent, "
    measured += f"p50 {report.spread([p / 1e3 for p in p50s], 3)} ms"
    if "oha" in sides:
        measured += f"; oha {report.spread([r['oha']['rps'] for r in rounds], 0)}/s, "
        measured += f"p50 {report.spread([r['oha']['p50_us'] / 1e3 for r in rounds], 3)} ms"
    holds = report.median(done) >= 0.999 and unsent == 0 and report.median(p50s) <= 150
    return report.Row("open", "open loop, 50 000/s, one thread, constant arrivals",
                      ">= 99.9 % of the schedule, none unsent, p50 <= 0.15 ms", measured, holds, rounds, notes)


# -- a server that stalls ----------------------------------------------------------------------------------------------


def stall(settings):
    """1 000 requests a second to a server that stands still for 0.5 s in every 5 s: a tenth of the requests waits, for
    anything between nothing and 0.5 s, so that p95 is 250 ms and p99 450 ms."""
    server_cpus, client_cpus = measure.cores()
    # Whole periods, so that every one of them counts alike.
    seconds, rounds = (5 if settings.smoke else settings.seconds(20)), []
    for _ in range(settings.rounds(3)):
        with measure.bench_server(server_cpus, "stall", 500, 5000) as server:
            found = plimsoll_run(server.url("/"), client_cpus, seconds, "--rate", 1000).json()
        response, service = found["response_time_ns"], found["service_time_ns"]
        rounds.append({
            "p50_ms": response["p50"] / 1e6, "p95_ms": response["p95"] / 1e6, "p99_ms": response["p99"] / 1e6,
            "service_p99_ms": service["p99"] / 1e6, "ledger": found["ledger"],
        })
        say(f"  p50 {rounds[-1]['p50_ms']:.2f}, p95 {rounds[-1]['p95_ms']:.1f}, p99 {rounds[-1]['p99_ms']:.1f} ms")
    p95s, p99s = [r["p95_ms"] for r in rounds], [r["p99_ms"] for r in rounds]
    holds = all(abs(v / 250 - 1) <= 0.03 for v in p95s) and all(abs(v / 450 - 1) <= 0.03 for v in p99s)
    return report.Row("stall", "server that stalls 0.5 s in every 5 s, 1 000/s", "p95 250 ms and p99 450 ms within 3 %",
                      f"p95 {report.spread(p95s, 1)} ms, p99 {report.spread(p99s, 1)} ms", holds, rounds)


# -- memory ------------------------------------------------------------------------------------------------------------


def memory(settings):
    """Peak resident memory with 5 000 connections."""
    server_cpus, client_cpus = measure.cores()
    connections = 500 if settings.smoke else 5_000
    seconds, notes, rounds = settings.seconds(4), [], []
    sides = {
        "plimsoll": lambda url: plimsoll_run(url, client_cpus, seconds, "-c", connections).peak_bytes,
        "wrk": lambda url: wrk_run(url, client_cpus, seconds, connections)[0].peak_bytes,
    }
    if absent("wrk", notes):
        del sides["wrk"]
    with measure.baseline(server_cpus) as server:
        url = server.url("/healthz")
        for index in range(settings.rounds(3)):
            each = {name: side(url) / 1e6 for name, side in turned(sides, index)}
            rounds.append(each)
            say("  " + ", ".join(f"{n} {each[n]:.1f} MB" for n in sides))
    measured = ", ".join(f"{n} {report.spread([r[n] for r in rounds], 1)} MB" for n in sides)
    holds = max(r["plimsoll"] for r in rounds) <= 20
    return report.Row("memory", f"peak resident memory at {connections:,} connections".replace(",", " "),
                      "<= 20 MB", measured, holds, rounds, notes)


# -- find against known capacities -------------------------------------------------------------------------------------

# Name: the server, its path, and its capacity by construction.
KNOWN = {
    "exact-cpu": (("exact-cpu", 100), 10_000),
    "token-bucket": (("token-bucket", 3000, 100), 3_000),
    "slots": (("slots", 20, 5), 4_000),
}


def find(settings):
    """`plimsoll find` on real servers of known capacity. Every search is written down as it ends, so that a run that
    was cut short goes on where it stopped (`--fresh` begins anew)."""
    server_cpus, client_cpus = measure.cores()
    path = os.path.join(report.OUTPUT, f"find{'.smoke' if settings.smoke else ''}.jsonl")
    os.makedirs(report.OUTPUT, exist_ok=True)
    if (settings.fresh or settings.smoke) and os.path.exists(path):
        os.remove(path)
    chosen = settings.servers or list(KNOWN)
    for name in chosen:
        if name not in KNOWN:
            raise Failure(f"no server is called {name}; there are {', '.join(KNOWN)}")
    budget = 4 if settings.smoke else 60
    done = _earlier(path, budget)
    # In turn, not one after the other: what the machine does at some hour then meets all of them.
    for index in range(settings.repeats):
        for name in chosen:
            if sum(d["server"] == name for d in done) > index:
                continue
            arguments, nominal = KNOWN[name]
            with measure.bench_server(server_cpus, *arguments) as server:
                command = [need("plimsoll"), "find", server.url("/"), "--json", "--budget", f"{budget}s",
                           "--seed", str(index + 1)]
                finished = run(command, client_cpus, budget + 60)
                found, stats = finished.json(), server.stats()
            # What a request cost that server in CPU time is its capacity as it really was.
            truth = stats["requests"] / stats["cpu_s"] if name == "exact-cpu" else nominal
            line = found["load_line_rps"]
            one = {
                "server": name, "repeat": index + 1, "truth_rps": truth, "nominal_rps": nominal,
                "busy_over_cpu": stats["busy_s"] / stats["cpu_s"], "budget_s": budget,
                "lower_rps": line["lower"], "upper_rps": line["upper"], "elapsed_s": found["elapsed_s"],
                "wall_s": finished.wall_s, "stopped_by": found["stopped_by"], "warnings": found["warnings"],
                "voided": sum(t["verdict"] == "void" for t in found["trials"]), "trials": len(found["trials"]),
            }
            one["error"] = (line["lower"] or 0) / truth - 1
            done.append(one)
            with open(path, "a") as file:
                file.write(json.dumps(one) + "\n")
            say(f"  {name} {index + 1}: {line['lower']} of {truth:.0f} ({one['error']:+.1%}), "
                f"{one['elapsed_s']:.1f} s, {one['trials']} trials, {one['voided']} void, {one['stopped_by']}")
    parts, holds = [], True
    for name in chosen:
        mine = [d for d in done if d["server"] == name]
        good = [d for d in mine if abs(d["error"]) <= 0.03 and d["elapsed_s"] <= 60]
        holds = holds and len(good) >= 0.9 * len(mine)
        parts.append(f"{name} {len(good)} of {len(mine)} (error {report.spread([100 * d['error'] for d in mine], 1)} %, "
                     f"longest {max(d['elapsed_s'] for d in mine):.0f} s)")
    return report.Row("find", "`find` on real servers of known capacity", "within 3 % in 60 s, 9 of 10",
                      "; ".join(parts), holds, done)


def _earlier(path, budget):
    """Searches of an earlier run with the same budget."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        done = [json.loads(line) for line in file if line.endswith("\n")]
    done = [one for one in done if one["budget_s"] == budget]
    if done:
        say(f"  going on with {len(done)} searches of an earlier run (--fresh begins anew)")
    return done


ROWS = {"cpu": cpu, "p50": p50, "open": open_loop, "stall": stall, "memory": memory, "find": find}
