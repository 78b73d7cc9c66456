"""The intervals of `plimsoll find` on twelve real servers whose load line is known: exact CPU time,
slots, token buckets and random service times, at 50, 500 and 5 000 requests a second.

A simulation or a formula of queueing theory gives the load line of each server. Not here: simulated
servers (the example `truth` of plimsoll-analysis).
"""

import concurrent.futures
import heapq
import json
import math
import os
import random
import threading

import measure
import report
from measure import Failure, need, run

BUDGET_S = 60
# The default SLO of `find`.
BOUND_S, LATE_MAX, FAILED_MAX = 0.5, 0.01, 0.001
# The estimate may exceed the capacity by this share.
ABOVE_MAX = 0.005
# The interval of a search has a probability of 90 %. Of ten searches, eight or fewer contain the
# load line with a probability of 26 %, so nine of ten are wanted over all servers.
COVERED_MIN = 0.9


class Known:
    """A server of a known load line. `cores` says whether a load at the load line uses most of a
    core."""

    def __init__(self, arguments, capacity, line, cores=False):
        self.arguments, self.capacity, self.line, self.cores = arguments, capacity, line, cores


def late_share(rate, slots, service, count, seed=7):
    """Simulates a queue with random arrivals; returns the share of responses after BOUND_S."""
    draw = random.Random(seed)
    free, now, late = [0.0] * slots, 0.0, 0
    for _ in range(count):
        now += draw.expovariate(rate)
        end = max(now, heapq.heappop(free)) + service(draw)
        heapq.heappush(free, end)
        late += end - now > BOUND_S
    return late / count


def rejected_share(rate, refill, burst, count, seed=7):
    """Simulates a token bucket with random arrivals; returns the share of rejected requests."""
    draw = random.Random(seed)
    tokens, rejected = burst, 0
    for _ in range(count):
        tokens = min(burst, tokens + draw.expovariate(rate) * refill)
        if tokens >= 1.0:
            tokens -= 1.0
        else:
            rejected += 1
    return rejected / count


def highest(low, high, meets):
    """Returns the highest rate that meets a condition, by bisection."""
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return low


def queue_line(slots, mean_s, is_random):
    """Returns the load line of a queue. Above 100/s the service time is short, so that Kingman's
    formula for heavy traffic is exact to 0.2 %."""
    capacity = slots / mean_s
    if capacity > 100:
        return capacity - math.log(1 / LATE_MAX) * (2 if is_random else 1) / (2 * BOUND_S)
    service = (lambda draw: draw.expovariate(1 / mean_s)) if is_random else (lambda _: mean_s)
    return highest(0.5 * capacity, capacity, lambda rate: late_share(rate, slots, service, 500_000) <= LATE_MAX)


def bucket_line(refill, burst):
    return highest(0.2 * refill, refill, lambda rate: rejected_share(rate, refill, burst, 1_000_000) <= FAILED_MAX)


def known_servers():
    """Returns the servers by name; the load lines are computed when they are needed."""
    servers = {}
    for capacity, us in ((50, 20_000), (500, 2_000), (5_000, 200)):
        servers[f"cpu-{capacity}"] = Known(("exact-cpu", us), capacity, lambda us=us: queue_line(1, us / 1e6, False), True)
    for capacity, slots, ms in ((50, 4, 80), (500, 5, 10), (5_000, 25, 5)):
        line = lambda slots=slots, ms=ms: queue_line(slots, ms / 1e3, False)
        servers[f"slots-{capacity}"] = Known(("slots", slots, ms), capacity, line, capacity > 1_000)
        line = lambda slots=slots, ms=ms: queue_line(slots, ms / 1e3, True)
        servers[f"random-{capacity}"] = Known(("random", slots, 1000 * ms, 1), capacity, line, capacity > 1_000)
    for rate, burst in ((50, 10), (500, 50), (5_000, 500)):
        line = lambda rate=rate, burst=burst: bucket_line(rate, burst)
        servers[f"bucket-{rate}"] = Known(("token-bucket", rate, burst), rate, line, rate > 1_000)
    return servers


def _search(name, known, line, repeat, budget_s, cpus):
    with measure.bench_server(cpus[0], *known.arguments) as server:
        command = [need("plimsoll"), "find", server.url("/"), "--json", "--quiet", "--budget", f"{budget_s}s",
                   "--seed", str(repeat)]
        found = run(command, cpus[1], budget_s + 60, measure.SEARCH_CODES).json()
        stats = server.stats()
    capacity = known.capacity
    if known.arguments[0] == "exact-cpu":
        # The CPU time that a request really cost gives the server's true capacity.
        true = measure.quotient(stats["requests"], stats["cpu_s"])
        capacity, line = true, line * true / capacity
    stated = found["load_line_rps"]
    return {"server": name, "repeat": repeat, "budget_s": budget_s, "capacity_rps": capacity, "line_rps": line,
            "rps": stated["estimate"], "lower_rps": stated["lower"], "upper_rps": stated["upper"],
            "elapsed_s": found["elapsed_s"], "disturbed": found["disturbed"],
            # A quotient above 1 means that the server waited for its core, so its real capacity was
            # lower than its CPU time suggests.
            "busy_over_cpu": measure.quotient(stats["busy_s"], stats["cpu_s"])}


def _holds(one):
    upper = one["upper_rps"] if one["upper_rps"] is not None else math.inf
    return (one["lower_rps"] or 0.0) <= one["line_rps"] <= upper


def line(settings):
    """The intervals of `find` on twelve real servers contain the load line in 9 of 10 searches.

    No estimate is more than 0.5 % above the capacity."""
    servers, cpus = known_servers(), measure.cores(settings.smoke)
    chosen = settings.servers or list(servers)
    for name in chosen:
        if name not in servers:
            raise Failure(f"no server is called {name}; there are {', '.join(servers)}")
    path = os.path.join(report.OUTPUT, f"line{'.smoke' if settings.smoke else ''}.jsonl")
    os.makedirs(report.OUTPUT, exist_ok=True)
    if (settings.fresh or settings.smoke) and os.path.exists(path):
        os.remove(path)
    done = [json.loads(text) for text in open(path)] if os.path.exists(path) else []
    budget_s = 3 if settings.smoke else BUDGET_S
    lines = {name: servers[name].line() for name in chosen}
    writing = threading.Lock()

    def search(name, repeat):
        one = _search(name, servers[name], lines[name], repeat, budget_s, cpus)
        with writing, open(path, "a") as file:
            done.append(one)
            file.write(json.dumps(one) + "\n")
            upper = "-" if one["upper_rps"] is None else f"{one['upper_rps']:.1f}"
            estimate = "-" if one["rps"] is None else f"{one['rps']:.1f}"
            print(f"  {name} {repeat}: {estimate} ({one['lower_rps'] or 0:.1f} to {upper}) of {one['line_rps']:.1f}, "
                  f"{one['elapsed_s']:.0f} s{'' if _holds(one) else ', MISSED'}", flush=True)

    for repeat in range(1, settings.repeats + 1):
        left = [name for name in chosen if not any(one["server"] == name and one["repeat"] == repeat for one in done)]
        # Servers that hardly use CPU time do not disturb each other.
        together = [name for name in left if not servers[name].cores]
        with concurrent.futures.ThreadPoolExecutor(max(1, len(together))) as pool:
            for searching in [pool.submit(search, name, repeat) for name in together]:
                searching.result()
        for name in left:
            if servers[name].cores:
                search(name, repeat)
    mine = [one for one in done if one["server"] in chosen]
    covered = sum(map(_holds, mine))
    above = max((one["rps"] / one["capacity_rps"] - 1 for one in mine if one["rps"]), default=0.0)
    each = []
    for name in chosen:
        of = [one for one in mine if one["server"] == name]
        widths = [one["upper_rps"] / one["lower_rps"] - 1 for one in of if one["upper_rps"] and one["lower_rps"]]
        width = f"{report.spread([100 * wide for wide in widths], 1)} % wide" if widths else "no interval"
        each.append(f"{name} {sum(map(_holds, of))} of {len(of)} ({width})")
    holds = bool(mine) and covered >= COVERED_MIN * len(mine) and above <= ABOVE_MAX
    measured = f"{covered} of {len(mine)}; the highest estimate is {100 * above:+.2f} % from the capacity; " + "; ".join(each)
    return report.Row("line", "intervals of `find` that contain the load line of a real server",
                      "9 of 10, and at most 0.5 % above the capacity", measured, holds, mine)


ROWS = {"line": line}
