"""Formats figures: medians with their spread, a Markdown row, and a JSON file with all details."""

import json
import os
import platform
import statistics
import subprocess
import time

from measure import ROOT, program, quotient, tool

OUTPUT = os.path.join(ROOT, "_output", "bench")


def median(values):
    return statistics.median(values)


def spread(values, digits=2):
    """Formats values as `median (least-most)`."""
    values = [v for v in values if v is not None]
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def values(rounds, side, name):
    return [r[side][name] for r in rounds if side in r]


def ratios(rounds, name, over, under):
    """Returns the ratio of the sides `over` and `under` in each round. Changes of the machine that
    affect both sides of a round cancel out."""
    return [quotient(r[over][name], r[under][name]) for r in rounds if over in r and under in r]


def _first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        lines = (done.stdout or done.stderr).strip().splitlines()
        return lines[0] if lines else ""
    except OSError:
        return ""


def environment():
    with open("/proc/cpuinfo") as info:
        models = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    versions = {"plimsoll": _first_line([program("plimsoll"), "--version"]) if program("plimsoll") else None}
    if tool("wrk"):
        versions["wrk"] = _first_line([tool("wrk"), "-v"])
    for name, flag in (("oha", "--version"), ("k6", "version"), ("locust", "--version")):
        if tool(name):
            versions[name] = _first_line([tool(name), flag])
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "versions": versions,
    }


class Row:
    """A row of the report: the goal (`must`) and the result of one measure. `holds` is None if the
    measure has no verdict."""

    def __init__(self, name, measure, must, measured, holds, data, notes=()):
        self.name, self.measure, self.must, self.measured = name, measure, must, measured
        self.holds, self.data, self.notes = holds, data, notes

    def markdown(self):
        verdict = {True: "yes", False: "**no**", None: "-"}[self.holds]
        return f"| {self.measure} | {self.must} | {self.measured} | {verdict} |"

    def save(self, smoke):
        os.makedirs(OUTPUT, exist_ok=True)
        path = os.path.join(OUTPUT, f"{self.name}{'.smoke' if smoke else ''}.json")
        content = {
            "row": self.name,
            "smoke": smoke,
            "environment": environment(),
            "measure": self.measure,
            "must_reach": self.must,
            "measured": self.measured,
            "holds": self.holds,
            "notes": list(self.notes),
            "data": self.data,
        }
        with open(path, "w") as file:
            json.dump(content, file, indent=1)
            file.write("\n")


HEADER = "| measure | must reach | measured | holds |\n|---|---|---|---|"
