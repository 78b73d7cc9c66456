"""A series of commits of the lab's API server, of which one commit makes each request more
expensive. `find` measures each commit, and the history must name the commit with the regression.

The commits are in a repository of their own, below the output folder. Not here: simulated series
(crates/plimsoll-analysis/src/history/change_points.rs).
"""

import json
import os
import random
import shutil
import subprocess

import measure
import report
from measure import Failure, Server, need, run, tool

COMMITS = 20
# The number of the commit with the regression comes from this seed.
SEED = 3
# The regression: hashes in one middleware, about 15 % of the CPU time of each request.
HASHES = 120
MIDDLEWARE = "internal/apiserver/middleware.go"
HEADER = "\t\tid := c.GetHeader(requestIDHeader)\n"


def _git(repository, *words):
    done = subprocess.run(["git", "-C", repository, "-c", "user.name=bench", "-c", "user.email=bench@localhost", *words],
                          capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"git {words[0]}: {done.stderr.strip()[-200:]}")
    return done.stdout


def _make_expensive(path):
    with open(path) as file:
        text = file.read()
    if HEADER not in text:
        raise Failure(f"{path} has no place for the regression")
    text = text.replace(HEADER, f"{HEADER}\t\tfor range {HASHES} {{\n\t\t\tsignature = sha256.Sum256(append(signature[:], id...))\n\t\t}}\n")
    text = text.replace("import (\n", 'import (\n\t"crypto/sha256"\n', 1) + "\nvar signature [32]byte\n"
    with open(path, "w") as file:
        file.write(text)


def _commits(folder, count, regression):
    """Makes the repository, and builds the server of each commit. Returns the commits."""
    repository, commits = os.path.join(folder, "repository"), []
    shutil.copytree(os.path.join(measure.ROOT, "lab"), repository, ignore=shutil.ignore_patterns("bin", "node_modules"))
    _git(repository, "init", "-q", "-b", "main")
    middleware = os.path.join(repository, MIDDLEWARE)
    for number in range(1, count + 1):
        with open(middleware, "a") as file:
            file.write(f"\n// Revision {number}.\n")
        if number == regression:
            _make_expensive(middleware)
        _git(repository, "add", "-A")
        _git(repository, "commit", "-q", "-m", f"change {number}")
        built = subprocess.run(["go", "build", "-o", os.path.join(folder, f"server-{number}"), "./cmd/apiserver"], cwd=repository,
                               capture_output=True, text=True)
        if built.returncode:
            raise Failure(f"commit {number} does not compile: {built.stderr.strip()[-300:]}")
        commits.append(_git(repository, "rev-parse", "HEAD").strip())
    return repository, commits


def series(settings):
    """The history of 20 commits names only the commit with the regression, or its neighbour."""
    if tool("go") is None or tool("git") is None:
        raise Failure("git and go are needed")
    count, budget = (3 if settings.smoke else COMMITS), max(3, settings.seconds(30))
    regression = random.Random(SEED).randint(count // 4 + 1, count - count // 4)
    folder = os.path.join(report.OUTPUT, "series")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    repository, commits = _commits(folder, count, regression)
    store = os.path.join(folder, "store")
    server_cores, client_cores = measure.cores(settings.smoke)
    os.environ["CI_COMMIT_BRANCH"] = "main"
    rows, before = [], os.getcwd()
    os.chdir(repository)
    try:
        for number, commit in enumerate(commits, 1):
            _git(repository, "checkout", "-q", commit)
            command = [os.path.join(folder, f"server-{number}"), "--listen", "127.0.0.1:0", "--log.level", "error",
                       "--server.middlewares", "recovery,requestid,context,nocache,secure,cors,dump"]
            with Server(command, server_cores) as server:
                found = run([need("plimsoll"), "find", f"http://{server.address}/healthz", "--budget", f"{budget:.0f}s", "--store", store,
                             "--tag", "service=api", "--json", "--quiet"], client_cores, budget + 60, measure.SEARCH_CODES).json()
            rows.append({"commit": number, "line_rps": found["load_line_rps"]})
            print(f"  {number}: {found['load_line_rps']}", flush=True)
        history = run([need("plimsoll"), "history", "--store", store, "--by", "commit", "--json"], client_cores, 60).json()
    finally:
        os.chdir(before)
    lanes = [lane for lane in history["lanes"] if lane["measure"] == "load line"]
    changes = [change for lane in lanes for change in lane["changes"]]
    named = [commits.index(next(commit for commit in commits if change["at"][:7] in commit)) + 1 for change in changes]
    with open(os.path.join(folder, "history.json"), "w") as file:
        json.dump(history, file)
    said = ", ".join(f"commit {number}: {change['ratio']:.3f} ({change['ratio_lower']:.3f} to {change['ratio_upper']:.3f})"
                     for number, change in zip(named, changes)) or "no change"
    return report.Row("series", f"{count} commits, the regression in commit {regression}", f"commit {regression}, give or take 1",
                      said, len(named) == 1 and abs(named[0] - regression) <= 1, rows)


ROWS = {"series": series}
