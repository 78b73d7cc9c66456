"""The rows of bench/run that compare builds with `plimsoll prove`: two real servers of known cost,
and simulated servers.

Each real comparison is stored when it ends, so an interrupted run continues where it stopped. Not
here: how builds are compared (crates/plimsoll-analysis/src/prove).
"""

import json
import os

import measure
import report
from measure import known, need, run


def say(text):
    print(text, flush=True)


def _written(path):
    """Returns the comparisons that an earlier run has stored."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        done = [json.loads(line) for line in file if line.endswith("\n")]
    if done:
        say(f"  going on with {len(done)} comparisons of an earlier run (--fresh begins anew)")
    return done


# The comparisons by name. Each value contains the CPU time of a request of A and of B in us. Then
# follow the comparisons for each repeat, the budget in s, and the right verdicts.
COMPARED = {
    "copies": ((100, 100), 2, 30, ("same", "small", "inconclusive")),
    "slower": ((100, 105), 1, 60, ("worse",)),
}


def prove(settings):
    """`plimsoll prove` on two real servers: copies, and 5 % more CPU time a request.

    Each comparison is stored when it ends, so an interrupted run continues where it stopped
    (`--fresh` starts again)."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    path = os.path.join(report.OUTPUT, f"prove{'.smoke' if settings.smoke else ''}.jsonl")
    os.makedirs(report.OUTPUT, exist_ok=True)
    if (settings.fresh or settings.smoke) and os.path.exists(path):
        os.remove(path)
    done = _written(path)
    cases = settings.cases(COMPARED)
    for index in range(2 * settings.repeats):
        for name, (costs, times, budget, right) in cases.items():
            if index >= times * settings.repeats or sum(d["case"] == name for d in done) > index:
                continue
            budget = 2 if settings.smoke else budget
            with measure.bench_server(server_cpus, "exact-cpu", costs[0]) as a, \
                 measure.bench_server(server_cpus, "exact-cpu", costs[1]) as b:
                command = [need("plimsoll"), "prove", a.url("/"), b.url("/"), "--json", "--quiet", "--budget", f"{budget}s",
                           "-o", os.path.join(report.OUTPUT, f"prove-{name}-{index + 1}.plimsoll")]
                # Exit code 3: the comparison has no verdict.
                proof = run(command, client_cpus, budget + 30, (0, 3)).json()
            primary = (proof["measures"] or [{"ratio": 1.0, "ci95": None, "margin": None}])[0]
            one = {
                "case": name, "repeat": index + 1, "budget_s": budget, "verdict": proof["verdict"], "right": proof["verdict"] in right,
                "ratio": primary["ratio"], "ci95": primary["ci95"], "margin": primary["margin"], "spread": proof["spread"],
                "blocks": proof["blocks"], "elapsed_s": proof["elapsed_s"], "warnings": proof["warnings"],
            }
            done.append(one)
            with open(path, "a") as file:
                file.write(json.dumps(one) + "\n")
            ci = "-" if primary["ci95"] is None else f"{primary['ci95'][0] - 1:+.1%} to {primary['ci95'][1] - 1:+.1%}"
            say(f"  {name} {index + 1}: {one['verdict']}, {known(primary['ratio']) - 1:+.1%} ({ci}), {one['blocks']} blocks, {one['elapsed_s']:.0f} s")
    parts, holds = [], True
    for name, (costs, _, budget, _) in cases.items():
        mine = [d for d in done if d["case"] == name]
        wrong = sum(not d["right"] for d in mine)
        holds = holds and bool(mine) and (wrong <= len(mine) / 20 if name == "copies" else wrong <= len(mine) / 10)
        verdicts = sorted({d["verdict"] for d in mine})
        counted = ", ".join(f"{verdict} {sum(d['verdict'] == verdict for d in mine)}" for verdict in verdicts)
        parts.append(f"{name} ({costs[0]} and {costs[1]} us, {budget} s): {counted}")
    return report.Row("prove", "`prove` on two real servers of known cost",
                      "copies: better or worse in at most 1 of 20; 5 % slower: worse in 9 of 10 within 60 s",
                      "; ".join(parts), holds, done)


def prove_simulated(settings):
    """`prove` on 1 000 simulated comparisons of each kind."""
    count = 4 if settings.smoke else 1000
    finished = run([need("prove-simulated"), str(count)], measure.cores(settings.smoke)[1], 600)
    worlds = finished.json()
    share = {name: {verdict: n / count for verdict, n in world.items()} for name, world in worlds.items()}
    told_apart = {name: world["better"] + world["worse"] for name, world in share.items() if "copies" in name}
    found, same = share["slower"]["worse"], share["copies"]["same"]
    holds = max(told_apart.values()) <= 0.05 and found >= 0.95 and same >= 0.8
    measured = (f"told apart: {', '.join(f'{name} {value:.1%}' for name, value in told_apart.items())}; 5 % slower found: {found:.1%}; "
                f"copies the same: {same:.1%} in 60 s, {share['copies for 2 min']['same']:.1%} in 2 min")
    return report.Row("prove-simulated", f"`prove` on {count} simulated comparisons of each kind",
                      "copies told apart <= 5 %, 5 % slower found >= 95 %, copies the same >= 80 %", measured, holds, worlds)


ROWS = {"prove": prove, "prove-simulated": prove_simulated}
