"""The rows of bench/run on a disturbed machine: four CPU burners switch on and off by a seeded
plan, while `find` searches and `prove` compares. The rows check that plimsoll reports nothing
false, not that it finds a result.

Each burner is started here, ends by itself after its time, and is ended by its handle. Not here:
when plimsoll calls a machine disturbed (crates/plimsoll-analysis/src/interference.rs).
"""

import os
import random
import signal
import subprocess
import sys
import threading

import measure
import report
from measure import known, need, run

BURNERS = 4
# The shortest and the longest phase, in seconds, in which all burners are off, and in which all
# burners are on. The lengths are uniformly distributed.
OFF_S, ON_S = (2.0, 8.0), (1.0, 5.0)
BURN = """
import sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    for _ in range(10_000):
        pass
"""


def say(text):
    print(text, flush=True)


class Burners:
    """Four processes that alternately burn CPU and rest, by a plan that follows from the seed. The
    processes run on any core, until the `with` block ends or `limit_s` seconds have passed."""

    def __init__(self, seed, limit_s):
        self.random, self.limit_s, self.on_s = random.Random(seed), limit_s, 0.0
        self.over = threading.Event()

    def __enter__(self):
        self.children = [subprocess.Popen([sys.executable, "-c", BURN, str(self.limit_s)], stdin=subprocess.DEVNULL)
                         for _ in range(BURNERS)]
        self._tell(signal.SIGSTOP)
        self.switch = threading.Thread(target=self._switch, daemon=True)
        self.switch.start()
        return self

    def _tell(self, number):
        for child in self.children:
            if child.poll() is None:
                child.send_signal(number)

    def _switch(self):
        while not self.over.wait(self.random.uniform(*OFF_S)):
            self._tell(signal.SIGCONT)
            on_s = self.random.uniform(*ON_S)
            self.over.wait(on_s)
            self._tell(signal.SIGSTOP)
            self.on_s += on_s

    def __exit__(self, *_):
        self.over.set()
        self.switch.join()
        for child in self.children:
            child.kill()
            child.wait()


def _search(server, cpus, budget, seed):
    command = [need("plimsoll"), "find", server.url("/"), "--json", "--quiet", "--budget", f"{budget}s", "--seed", str(seed),
               "-o", os.path.join(report.OUTPUT, f"find-disturbed-{seed}.plimsoll")]
    found = run(command, cpus, budget + 60, measure.SEARCH_CODES).json()
    line = found["load_line_rps"]
    return {"lower_rps": line["lower"], "upper_rps": line["upper"], "disturbed": found["disturbed"], "others": found["others"],
            "stopped_by": found["stopped_by"], "elapsed_s": found["elapsed_s"],
            "void": sum(t["verdict"] in ("void", "disturbed") for t in found["trials"]), "trials": len(found["trials"])}


def find_disturbed(settings):
    """`plimsoll find` ten times on one endpoint while burners switch on and off.

    Before the burners start, `find` measures the load line on the quiet machine."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    budget = 2 if settings.smoke else 60
    os.makedirs(report.OUTPUT, exist_ok=True)
    done = []
    with measure.bench_server(server_cpus, "exact-cpu", 100) as server:
        # The quiet line is the load line on a quiet machine, from three undisturbed searches.
        quiet = []
        for seed in range(1, 2 if settings.smoke else 8):
            one = _search(server, client_cpus, budget, seed)
            say(f"  quiet: {one['lower_rps']} to {one['upper_rps']}{', disturbed' if one['disturbed'] else ''}")
            if not one["disturbed"] or settings.smoke:
                quiet.append(one)
            if len(quiet) == (1 if settings.smoke else 3):
                break
        if len(quiet) < (1 if settings.smoke else 3):
            raise measure.NoFigure("the machine is not quiet: others disturb it without our burners")
        low, high = min(known(q["lower_rps"]) for q in quiet), max(q["upper_rps"] or known(q["lower_rps"]) for q in quiet)
        for index in range(settings.repeats):
            with Burners(index + 1, budget + 70) as burners:
                one = _search(server, client_cpus, budget, 100 + index)
            one["burners_on_s"] = burners.on_s
            # The load lines of undisturbed searches also differ by some percent. So an interval is
            # right if it overlaps the range of these load lines.
            one["holds"] = one["lower_rps"] is not None and one["lower_rps"] <= high and (
                one["upper_rps"] is None or one["upper_rps"] >= low)
            one["right"] = one["holds"] or one["disturbed"]
            done.append(one)
            say(f"  {index + 1}: {one['lower_rps']} to {one['upper_rps']} ({'holds' if one['holds'] else 'does not hold'} the line), "
                f"{'disturbed' if one['disturbed'] else 'not called disturbed'}, {one['void']} of {one['trials']} trials void, "
                f"burners on for {one['burners_on_s']:.0f} of {one['elapsed_s']:.0f} s")
    right, held = sum(d["right"] for d in done), sum(d["holds"] for d in done)
    measured = (f"{right} of {len(done)}: {held} hold the quiet line ({low:.0f} to {high:.0f}/s), "
                f"{sum(d['disturbed'] for d in done)} are called disturbed")
    return report.Row("find-disturbed", "`find` while four burners go on and off",
                      "every bracket holds the quiet line or is called disturbed", measured, right == len(done), quiet + done)


def prove_disturbed(settings):
    """`plimsoll prove` on ten pairs of copies while burners go on and off."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    budget, asked = 2 if settings.smoke else 30, 0.02
    os.makedirs(report.OUTPUT, exist_ok=True)
    done = []
    for index in range(settings.repeats):
        with measure.bench_server(server_cpus, "exact-cpu", 100) as a, measure.bench_server(server_cpus, "exact-cpu", 100) as b, \
             Burners(200 + index, budget + 40) as burners:
            command = [need("plimsoll"), "prove", a.url("/"), b.url("/"), "--json", "--quiet", "--budget", f"{budget}s",
                       "-o", os.path.join(report.OUTPUT, f"prove-disturbed-{index + 1}.plimsoll")]
            # Exit code 3: the comparison has no verdict.
            proof = run(command, client_cpus, budget + 30, (0, 3)).json()
        told_apart = proof["verdict"] in ("better", "worse")
        primary = (proof["measures"] or [{}])[0]
        # The verdict `same` needs the shown interval to lie inside the requested margin.
        low, high = primary.get("ci90") or (0.0, float("inf"))
        too_wide = proof["verdict"] == "same" and not (1 - asked <= low and high <= 1 + asked)
        done.append({"verdict": proof["verdict"], "margin": proof["margin"],
                     "ratio": primary.get("ratio"), "ci90": primary.get("ci90"), "ci95": primary.get("ci95"),
                     "disturbed": proof["disturbed"], "others": proof["others"], "blocks": proof["blocks"],
                     "blocks_void": proof["blocks_void"], "burners_on_s": burners.on_s, "warnings": proof["warnings"],
                     "right": not told_apart and not too_wide})
        say(f"  {index + 1}: {proof['verdict']}, {proof['blocks']} blocks, {proof['blocks_void']} void, "
            f"{'disturbed' if proof['disturbed'] else 'not called disturbed'}, burners on for {burners.on_s:.0f} s")
    right = sum(d["right"] for d in done)
    verdicts = sorted({d["verdict"] for d in done})
    counted = ", ".join(f"{verdict} {sum(d['verdict'] == verdict for d in done)}" for verdict in verdicts)
    return report.Row("prove-disturbed", "`prove` on copies while four burners go on and off",
                      "none better or worse, none the same within more than was asked",
                      f"{right} of {len(done)}: {counted}; {sum(d['disturbed'] for d in done)} are called disturbed",
                      right == len(done), done)


ROWS = {"find-disturbed": find_disturbed, "prove-disturbed": prove_disturbed}
