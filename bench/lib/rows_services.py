"""Six ordinary services (bench/services): comparisons of two copies of one service, and searches,
comparisons and explanations while another process uses half a core to a whole core.

The services get the versions of their libraries from PyPI and npm, once, into _output. Nothing is
pinned to a core, as on a laptop or a CI runner. Each result is stored when it ends, so an
interrupted run continues where it stopped. Not here: servers of a known load line (rows_line.py).
"""

import contextlib
import json
import math
import os
import random
import socket
import statistics
import subprocess
import sys
import time

import measure
import report
from measure import Failure, need, run, tool

SOURCES = os.path.join(measure.ROOT, "bench", "services")
BUILT = os.path.join(report.OUTPUT, "services")
PYTHON_LIBRARIES = ["fastapi==0.115.12", "uvicorn==0.34.0", "flask==3.1.0", "gunicorn==23.0.0"]
NODE_LIBRARIES = ["express@4.21.2", "redis@4.7.0"]

# The setting of each service that decides what a request costs: its name, the value of A, and the
# value of B, whose requests cost more.
COSTS = {
    "fastapi": ("NOTES", 60_000, 90_000),
    "express": ("LOOPS", 60_000, 90_000),
    "mutex": ("WORK_US", 2_000, 3_000),
    "flask": ("WAIT_MS", 20, 28),
    "node": ("ITEMS", 600, 900),
    "java": ("WAIT_MS", 12, 18),
}
# The causes that are right for each service. All threads of the FastAPI service share one connection
# to SQLite, which runs one query at a time. Redis runs one script at a time.
CAUSES = {
    "fastapi": ("one_thread", "lock", "pool"),
    "express": ("downstream",),
    "mutex": ("lock",),
    "flask": ("workers",),
    "node": ("one_thread",),
    "java": ("workers",),
}
# Copies of these five are compared.
COPIES = ["fastapi", "express", "mutex", "node", "java"]
# The largest accepted share of false alarms: comparisons whose verdict tells the copies apart.
ALARMS_MAX = 0.02
RIGHT_MIN = 0.9
# A load at BELOW times the lower end of the interval must meet the default SLO of `find`. A load at
# ABOVE times the upper end must break this SLO. Each load lasts CHECK_S seconds.
BELOW, ABOVE = 0.97, 1.03
CHECK_S = 25

# Uses a share of a core: computes and sleeps in cycles of 100 ms.
NEIGHBOUR = """
import sys, time
share, end = float(sys.argv[1]), time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    start = time.process_time()
    began = time.monotonic()
    while time.process_time() - start < 0.1 * share:
        sum(range(1000))
    time.sleep(max(0.0, 0.1 - (time.monotonic() - began)))
"""


def say(text):
    print(text, flush=True)


def _made(name, command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{name}: {done.stderr.strip()[-300:]}")


def prepare():
    """Installs the libraries and compiles the services, where that was not done yet."""
    for name in ("go", "node", "npm", "java", "javac", "redis-server"):
        if tool(name) is None:
            raise Failure(f"{name} is not installed")
    os.makedirs(BUILT, exist_ok=True)
    if not os.path.exists(os.path.join(BUILT, "venv", "bin", "gunicorn")):
        _made("venv", [sys.executable, "-m", "venv", "venv"], BUILT)
        _made("pip", [os.path.join("venv", "bin", "pip"), "install", "--quiet", *PYTHON_LIBRARIES], BUILT)
    if not os.path.exists(os.path.join(BUILT, "node_modules", "redis")):
        _made("npm", ["npm", "install", "--silent", *NODE_LIBRARIES], BUILT)
    _made("go", ["go", "build", "-o", os.path.join(BUILT, "mutex"), "."], os.path.join(SOURCES, "mutex"))
    _made("javac", ["javac", "-d", BUILT, os.path.join(SOURCES, "Pool.java")], BUILT)


def command(name, value, redis_port):
    """Returns the command of a service, as `prove --a` takes it, with {port} for the port."""
    programs = os.path.join(BUILT, "venv", "bin")
    setting = f"env {COSTS[name][0]}={value} PYTHONDONTWRITEBYTECODE=1"
    return {
        "fastapi": f"{setting} {programs}/uvicorn --app-dir {SOURCES} --port {{port}} --log-level warning fastapi_notes:app",
        "flask": f"{setting} {programs}/gunicorn --chdir {SOURCES} --bind 127.0.0.1:{{port}} --workers 3 "
                 "--log-level warning flask_page:app",
        "express": f"{setting} PORT={{port}} REDIS_PORT={redis_port} NODE_PATH={BUILT}/node_modules "
                   f"node {SOURCES}/express_redis.js",
        "node": f"{setting} PORT={{port}} node {SOURCES}/node_json.js",
        "mutex": f"{setting} PORT={{port}} {BUILT}/mutex",
        "java": f"{setting} PORT={{port}} java -cp {BUILT} Pool",
    }[name]


@contextlib.contextmanager
def _process(words, port):
    """A process that listens on a port, until the `with` block ends."""
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 20
        while True:
            with socket.socket() as link:
                if link.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if time.monotonic() > end or child.poll() is not None:
                raise Failure(f"{words[0]} does not listen on port {port}")
            time.sleep(0.05)
        yield
    finally:
        child.terminate()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


@contextlib.contextmanager
def _redis():
    port = measure.free_port()
    with _process(["redis-server", "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"], port):
        yield port


@contextlib.contextmanager
def _service(name, redis_port):
    """A service with the setting of A; returns its URL."""
    port = measure.free_port()
    with _process(command(name, COSTS[name][1], redis_port).replace("{port}", str(port)).split(), port):
        yield f"http://127.0.0.1:{port}/"


@contextlib.contextmanager
def _neighbour(share, limit_s):
    child = subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(share), str(limit_s)], stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def _stored(name, settings):
    """The results that an earlier run has stored, and a function that stores another one."""
    path = os.path.join(report.OUTPUT, f"{name}{'.smoke' if settings.smoke else ''}.jsonl")
    os.makedirs(report.OUTPUT, exist_ok=True)
    if (settings.fresh or settings.smoke) and os.path.exists(path):
        os.remove(path)
    done = [json.loads(text) for text in open(path)] if os.path.exists(path) else []

    def store(one):
        done.append(one)
        with open(path, "a") as file:
            file.write(json.dumps(one) + "\n")
    yield done, store


def _prove(a, b, budget_s, seed):
    everywhere, port = set(os.sched_getaffinity(0)), measure.free_port()
    a, b = (build.replace("{port}", str(port)) for build in (a, b))
    words = [need("plimsoll"), "prove", "--a", a, "--b", b, f"http://127.0.0.1:{port}/", "--json", "--quiet", "--budget", f"{budget_s}s",
             "--seed", str(seed), "-o", os.path.join(BUILT, "comparison.plimsoll")]
    # Exit code 3: the comparison has no verdict.
    proof = run(words, everywhere, budget_s + 90, (0, 1, 3)).json()
    primary = (proof["measures"] or [{}])[0]
    return {"verdict": proof["verdict"], "ratio": primary.get("ratio"), "ci95": primary.get("ci95"),
            "blocks": proof["blocks"], "elapsed_s": proof["elapsed_s"], "warnings": proof["warnings"]}


def _effect(one):
    if one["ratio"] is None:
        return "no figure"
    interval = "" if one["ci95"] is None else f" ({one['ci95'][0] - 1:+.1%} to {one['ci95'][1] - 1:+.1%})"
    return f"{one['ratio'] - 1:+.1%}{interval}"


def _names(settings, names):
    for name in settings.servers or []:
        if name not in COSTS:
            raise Failure(f"no service is called {name}; there are {', '.join(COSTS)}")
    return settings.servers or names


def copies(settings):
    """`plimsoll prove` tells copies of five real services apart in at most 2 of 100 comparisons.

    Each load has fresh processes."""
    prepare()
    budget_s = 4 if settings.smoke else settings.seconds(30)
    names = _names(settings, COPIES)
    repeats = 1 if settings.smoke else 2 * settings.repeats
    with _stored("copies", settings) as (done, store), _redis() as redis_port:
        for repeat in range(1, repeats + 1):
            for name in names:
                if any(one["service"] == name and one["repeat"] == repeat for one in done):
                    continue
                build = command(name, COSTS[name][1], redis_port)
                one = {"service": name, "repeat": repeat, **_prove(build, build, budget_s, repeat)}
                store(one)
                say(f"  {name} {repeat}: {one['verdict']}, {_effect(one)}, {one['blocks']} blocks, {one['elapsed_s']:.0f} s")
    mine = [one for one in done if one["service"] in names]
    alarms = [one for one in mine if one["verdict"] in ("better", "worse")]
    each = []
    for name in names:
        of = [one for one in mine if one["service"] == name]
        same = sum(one["verdict"] == "same" for one in of)
        widths = [50 * (one["ci95"][1] - one["ci95"][0]) for one in of if one["ci95"]]
        width = f", ±{statistics.median(widths):.1f} %" if widths else ""
        each.append(f"{name} {sum(one['service'] == name for one in alarms)} of {len(of)} ({same} same{width})")
    return report.Row("copies", f"`prove` on copies of five services, fresh processes, {budget_s:.0f} s each",
                      "better or worse in at most 2 %", f"{len(alarms)} of {len(mine)}: {'; '.join(each)}",
                      bool(mine) and len(alarms) <= ALARMS_MAX * len(mine), mine)


def _meets_slo(url, rate, seed):
    """Returns whether a load at a steady rate meets the default SLO of `find`."""
    words = [need("plimsoll"), "run", url, "--rate", f"{rate:.2f}", "-d", f"{CHECK_S}s", "--arrivals", "poisson",
             "--seed", str(seed), "--json", "--quiet", "-o", os.path.join(BUILT, "check.plimsoll")]
    load = run(words, set(os.sched_getaffinity(0)), CHECK_S + 90, (0, 1)).json()
    return load["success_rate"] >= 0.999 and (load["response_time_ns"]["p99"] or math.inf) <= 500e6


def _find(url, budget_s, seed):
    words = [need("plimsoll"), "find", url, "--json", "--quiet", "--budget", f"{budget_s}s", "--seed", str(seed),
             "-o", os.path.join(BUILT, "search.plimsoll")]
    found = run(words, set(os.sched_getaffinity(0)), budget_s + 90, measure.SEARCH_CODES).json()
    stated = found["load_line_rps"]
    return {"rps": stated["estimate"], "lower_rps": stated["lower"], "upper_rps": stated["upper"],
            "elapsed_s": found["elapsed_s"], "disturbed": found["disturbed"]}


def _searches(name, settings, redis_port, done, store):
    budget_s = 4 if settings.smoke else settings.seconds(30)
    for repeat in range(1, settings.repeats + 1):
        if any(one["service"] == name and one["repeat"] == repeat and one["kind"] == "find" for one in done):
            continue
        share = random.Random(f"{name} {repeat}").uniform(0.5, 1.0)
        with _service(name, redis_port) as url, _neighbour(share, 600):
            one = {"kind": "find", "service": name, "repeat": repeat, "share": share, **_find(url, budget_s, repeat)}
            # The load line is checked on the same disturbed machine, directly after the search.
            one["meets_below"] = None if not one["lower_rps"] else _meets_slo(url, BELOW * one["lower_rps"], repeat)
            one["meets_above"] = None if one["upper_rps"] is None else _meets_slo(url, ABOVE * one["upper_rps"], repeat)
        one["right"] = one["rps"] is not None and one["meets_below"] is not False and one["meets_above"] is not True
        store(one)
        say(f"  find {name} {repeat}, {share:.2f} cores: {one['rps']} ({one['lower_rps']} to {one['upper_rps']}), "
            f"{'right' if one['right'] else 'WRONG'}, below {one['meets_below']}, above {one['meets_above']}")


def _comparisons(name, settings, redis_port, done, store):
    budget_s = 4 if settings.smoke else settings.seconds(60)
    for repeat in range(1, settings.repeats + 1):
        if any(one["service"] == name and one["repeat"] == repeat and one["kind"] == "prove" for one in done):
            continue
        # In every second comparison, B is the build whose requests cost more CPU time.
        values = COSTS[name][1:] if repeat % 2 else COSTS[name][:0:-1]
        share = random.Random(f"{name} {repeat}").uniform(0.5, 1.0)
        a, b = (command(name, value, redis_port) for value in values)
        with _neighbour(share, 600):
            one = {"kind": "prove", "service": name, "repeat": repeat, "share": share, **_prove(a, b, budget_s, repeat)}
        right = "worse" if repeat % 2 else "better"
        one["right"], one["wrong"] = one["verdict"] == right, one["verdict"] not in (right, "inconclusive")
        store(one)
        say(f"  prove {name} {repeat}, {share:.2f} cores: {one['verdict']}, {_effect(one)}, "
            f"{'right' if one['right'] else 'WRONG' if one['wrong'] else 'not known'}")


def _explanations(name, settings, redis_port, done, store):
    budget_s = 6 if settings.smoke else settings.seconds(60)
    if any(one["service"] == name and one["kind"] == "explain" for one in done):
        return
    share = random.Random(name).uniform(0.5, 1.0)
    with _service(name, redis_port) as url, _neighbour(share, 600):
        words = [need("plimsoll"), "explain", url, "--json", "--quiet", "--budget", f"{budget_s}s",
                 "-o", os.path.join(BUILT, f"explain-{name}.plimsoll")]
        # Exit code 1: no cause is named.
        found = run(words, set(os.sched_getaffinity(0)), budget_s + 90, (0, 1)).json()
    one = {"kind": "explain", "service": name, "repeat": 1, "share": share, "cause": None if found["abstained"] else found["cause"],
           "sentence": found["sentence"], "predicted": found["predicted"], "warnings": found["warnings"]}
    one["right"], one["wrong"] = one["cause"] in CAUSES[name], one["cause"] not in (None, *CAUSES[name])
    store(one)
    say(f"  explain {name}, {share:.2f} cores: {one['cause'] or 'not known'}, "
        f"{'right' if one['right'] else 'WRONG' if one['wrong'] else 'not known'}: {one['sentence']}")


def shared(settings):
    """`plimsoll find`, `prove` and `explain` on six services while another process uses CPU.

    The other process uses 0.5 to 1 core. Intervals contain the load line and verdicts are right in
    9 of 10. No verdict or cause is wrong."""
    prepare()
    names = _names(settings, list(COSTS))
    with _stored("shared", settings) as (done, store), _redis() as redis_port:
        for name in names:
            _comparisons(name, settings, redis_port, done, store)
            _searches(name, settings, redis_port, done, store)
            _explanations(name, settings, redis_port, done, store)
    mine = [one for one in done if one["service"] in names]
    found, compared, explained = ([one for one in mine if one["kind"] == kind] for kind in ("find", "prove", "explain"))
    right, wrong = (lambda of: sum(one["right"] for one in of)), (lambda of: sum(one["wrong"] for one in of))
    missed = ", ".join(f"{one['kind']} {one['service']} {one['repeat']}" for one in mine if not one["right"])
    holds = all(of and right(of) >= RIGHT_MIN * len(of) for of in (found, compared))
    holds = holds and wrong(compared) + wrong(explained) == 0
    return report.Row("shared", "`find`, `prove` and `explain` on six services while another process uses 0.5 to 1 core",
                      "intervals and verdicts right in 9 of 10, no verdict or cause wrong",
                      f"find {right(found)} of {len(found)}; prove {right(compared)} of {len(compared)}, {wrong(compared)} wrong; "
                      f"explain {right(explained)} of {len(explained)}, {wrong(explained)} wrong"
                      + (f"; not right: {missed}" if missed else ""), holds, mine)


ROWS = {"copies": copies, "shared": shared}
