"""How often the intervals of `plimsoll find` contain the load line of simulated servers: four kinds
of queues, five capacities, quiet and with disturbed trials.

Not here: the simulation (the example `truth` of plimsoll-analysis), and real servers (rows_line.py).
"""

import math
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import report
from measure import RELEASE, ROOT, Failure
from rows import say

MODELS = ("M/D/1", "M/M/1", "H2/1", "M/M/8")
CAPACITIES = (10, 100, 1_000, 12_000, 100_000)
NOISES = ("quiet", "disturbed")
BUDGET_S = 60
# The smallest accepted share of searches whose 90 % interval contains the true load line, and the
# largest accepted share of stated estimates that are more than 3 % too high.
COVERED_MIN, ABOVE_MAX = 0.86, 0.05
# The largest accepted median width of the interval, as a share of the load line. Each key is the
# smallest capacity to which the width applies, in requests a second.
WIDTHS_MAX = {1_000: 0.06, 12_000: 0.02}


def share(text):
    """Returns a percentage as a share; None if no search has a figure."""
    value = float(text.rstrip("%")) / 100
    return value if math.isfinite(value) else None


def beyond_chance(bound, seeds):
    """Returns the distance from a bound that chance exceeds in one of twenty rows."""
    return 1.645 * math.sqrt(bound * (1 - bound) / seeds)


def measure_server(example, model, capacity, noise, seeds):
    command = [example, "find", str(seeds), str(BUDGET_S), model, str(capacity), noise]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"{seeds} searches on {model} at {capacity}/s take more than an hour") from late
    if done.returncode != 0:
        raise Failure(f"the example `truth` failed: {done.stderr.strip()}")
    # The first line has the titles. The other lines begin with model, capacity and noise.
    covers, stated, above, _, width = done.stdout.splitlines()[1].split()[3:8]
    one = {"model": model, "capacity_rps": capacity, "noise": noise, "searches": seeds, "covers": share(covers),
           "stated": share(stated), "above": share(above), "width": share(width)}
    say(f"  {model} {capacity}/s {noise}: covers {covers}, states {stated}, too high {above}, width {width}")
    return one


def width_max(one):
    return min((most for least, most in WIDTHS_MAX.items() if one["capacity_rps"] >= least), default=float("inf"))


def coverage(settings):
    """The intervals of `find` on simulated servers contain the load line."""
    seeds = 2 if settings.smoke else 200
    build = ["cargo", "build", "--release", "-q", "-p", "plimsoll-analysis", "--example", "truth"]
    if subprocess.run(build, cwd=ROOT).returncode != 0:
        raise Failure("the example `truth` of plimsoll-analysis does not build")
    example = os.path.join(ROOT, RELEASE, "examples", "truth")
    servers = [(model, capacity, noise) for capacity in CAPACITIES for model in MODELS for noise in NOISES]
    if settings.smoke:
        servers = servers[:1]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        done = list(pool.map(lambda server: measure_server(example, *server, seeds), servers))
    low = [one for one in done if one["covers"] < COVERED_MIN - beyond_chance(COVERED_MIN, seeds)]
    high = [one for one in done if one["above"] > ABOVE_MAX + beyond_chance(ABOVE_MAX, seeds)]
    wide = [one for one in done if (one["width"] or 0) > width_max(one)]
    covers = [one["covers"] for one in done]
    names = ", ".join(f"{one['model']} at {one['capacity_rps']}/s ({one['noise']})" for one in low + high + wide)
    measured = (f"{min(covers):.1%} to {max(covers):.1%} of the intervals contain the load line; at most "
                f"{max(one['above'] for one in done):.1%} of the estimates are too high; {len(wide)} rows are too wide")
    return report.Row("coverage", f"`find` on {len(done)} simulated servers, {seeds} searches of {BUDGET_S} s each",
                      "intervals contain the load line in >= 86 %; estimates more than 3 % too high in <= 5 %; "
                      "width at 1 000/s <= 6 %, at 12 000/s <= 2 %", measured, not (low or high or wide), done,
                      [f"not reached: {names}"] if names else [])


ROWS = {"coverage": coverage}
