"""Checks the result of a study over three agents: check.py find|lost DOCUMENT RPS [AGENT].

find: the peak is within 5 % of the planted RPS, and no agent is lost. lost: AGENT is lost and named,
the others sent all of their share of RPS. In both, each agent's ledger closes.
For scripts/fleet-kubernetes. It prints one line for each check, and exits with 1 if one failed.
"""

import json
import sys

# A pool gives a connection back later than planted where three nodes share two cores: 385 to 392/s of 400 were seen.
PEAK_TOLERANCE = 0.05
SCHEDULE_TOLERANCE = 0.02
NAMES = ["agent-0", "agent-1", "agent-2"]

failures = 0


def check(holds: bool, what: str) -> None:
    global failures
    failures += not holds
    print(("ok      " if holds else "FAILED  ") + what)


def check_ledgers(agents: list) -> None:
    for agent in agents:
        parts = {part: agent[part] for part in ["succeeded", "failed", "unsent", "in_flight"]}
        told = " + ".join(f"{count} {part}" for part, count in parts.items())
        closes = agent["scheduled"] == sum(parts.values()) and agent["scheduled"] > 0
        check(closes, f"{agent['name']}: {agent['scheduled']} scheduled = {told}")


def check_find(document: dict, planted_rps: float) -> None:
    for agent in document["agents"]:
        check(agent["lost"] is None, f"{agent['name']} was there all the time")
    # Whether the search could also confirm the line depends on what else the machine does.
    rps = document["peak"]["rps"]
    check(abs(rps / planted_rps - 1) <= PEAK_TOLERANCE, f"peak {rps:.1f}/s, planted {planted_rps:.0f}/s")


def check_lost(document: dict, rps: float, name: str) -> None:
    others = [agent for agent in document["agents"] if agent["name"] != name]
    lost = next(agent for agent in document["agents"] if agent["name"] == name)
    check(lost["lost"] is not None, f"{name} is lost: {lost['lost']}")
    check(lost["unsent"] > 0 and lost["succeeded"] > 0, f"what {name} did not send is unsent: {lost['unsent']}")
    for agent in others:
        is_whole = agent["lost"] is None and agent["unsent"] == 0
        check(is_whole, f"{agent['name']} sent all of its {agent['scheduled']} requests")
    ledger = document["ledger"]
    duration_s = document["duration_s"]
    check(abs(ledger["scheduled"] / (rps * duration_s) - 1) <= SCHEDULE_TOLERANCE,
          f"{ledger['scheduled']} scheduled in {duration_s} s at {rps:.0f}/s, the lost part too")
    total = ledger["succeeded"] + sum(ledger["failed"].values()) + ledger["unsent"] + ledger["in_flight"]
    check(total == ledger["scheduled"], "the ledger of the whole load closes")


def main(kind: str, path: str, rps: str, name: str = "") -> int:
    with open(path) as file:
        document = json.load(file)
    names = [agent["name"] for agent in document.get("agents", [])]
    check(names == NAMES, f"the table of agents has {', '.join(names)}")
    if names == NAMES:
        check_ledgers(document["agents"])
        if kind == "find":
            check_find(document, float(rps))
        else:
            check_lost(document, float(rps), name)
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
