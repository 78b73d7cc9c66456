"""The row of bench/run that compares this plimsoll with another build of it (`--against BINARY`).
The measures are those that users pay for: CPU time for each request, the median at one connection,
an open loop, memory. Both builds alternate in one run, and the row reports the ratio of their
figures in each round. Not here: other tools, and whether a figure is good in itself (rows.py).
"""

import os
import shutil

import measure
import report
import rows
from measure import Failure, need, run
from rows_connections import Nginx

# The largest accepted ratio of a median to that of the other build; a larger ratio fails the row.
WORSE_MAX = 1.02


def against(settings):
    """Compares plimsoll with another build (`--against BINARY`; `--server` selects a measure)."""
    if not settings.against:
        raise Failure("name the other build: --against BINARY")
    server_cpus, client_cpus = measure.cores(settings.smoke)
    one_cpu, every_cpu = {min(client_cpus)}, server_cpus | client_cpus
    few, seconds = (200, 0.5) if settings.smoke else (5_000, 2)
    many = 500 if settings.smoke else 15_000

    def cpu_us(found, done):
        return measure.cpu_us(done.cpu_s, found["requests"])

    def p50_us(found, done):
        return measure.known(found["response_time_ns"]["p50"]) / 1e3

    def peak_mb(found, done):
        return done.peak_bytes / 1e6

    closed = ["-c", 64, "--spin", "off", "--no-preflight", "--no-probes"]
    binaries = {"this": written_alike(need("plimsoll"), "this"), "that": written_alike(settings.against, "that")}
    # The measures by name. Each value contains the server, the client's cores and flags, the figure
    # and its unit, and the number of repeats.
    measures = {
        "cpu": (lambda: measure.bench_server(server_cpus, "instant"), one_cpu, closed, cpu_us, "us", 11),
        "https": (lambda: Nginx(server_cpus), one_cpu, [*closed, "--insecure"], cpu_us, "us", 7),
        "p50": (lambda: measure.baseline(server_cpus), client_cpus, ["-c", 1, "--spin", "on", "--no-preflight"], p50_us, "us", 9),
        "open": (lambda: measure.baseline(server_cpus), client_cpus, ["--rate", 50_000, "--no-preflight"], p50_us, "us", 9),
        "memory": (lambda: measure.baseline(server_cpus), client_cpus, ["-c", few], peak_mb, "MB", 3),
        "many": (lambda: measure.baseline(server_cpus), every_cpu, ["-c", many, "--timeout", "30s"], peak_mb, "MB", 3),
    }
    for name in settings.servers or []:
        if name not in measures:
            raise Failure(f"no measure is called {name}; there are {', '.join(measures)}")
    measures = {name: measures[name] for name in settings.servers or measures}
    parts, data, notes, holds = [], {}, [], True
    for name, (serve, cpus, flags, figure, unit, usual) in measures.items():
        def side(binary):
            def measured(url):
                command = [binary, "run", url, "-d", rows.duration(settings.seconds(seconds)), "-t", "1", "--json", *map(str, flags)]
                done = run(command, cpus, 90)
                found = done.json()
                measure.need_success(found, f"{name}: failures")
                return {"cpu_s": done.cpu_s, "figure": figure(found, done)}
            return measured

        rows.say(f"  {name}")
        sides = {"this": side(binaries["this"]), "that": side(binaries["that"])}
        with serve() as server:
            rounds = rows.alternate(settings, usual, sides, server, notes, lambda f: f"{f['figure']:.2f} {unit}")
        over = report.ratios(rounds, "figure", "this", "that")
        holds = holds and report.median(over) <= WORSE_MAX
        parts.append(f"{name} {report.spread(over)} ({report.spread(report.values(rounds, 'this', 'figure'))} {unit})")
        data[name] = rounds
    return report.Row("against", f"this build over {settings.against}", f"each <= {WORSE_MAX}", "; ".join(parts), holds, data, notes)


def written_alike(binary, name):
    """Copies a program in small pieces and returns the path of the copy. The size of the pieces in
    which a file was written decides how much of the file the kernel maps at a page fault. Copies of
    one program, written in pieces of different sizes, had 11 MB or 16 MB of resident memory.
    """
    copy = os.path.join(report.OUTPUT, f"plimsoll-{name}")
    os.makedirs(report.OUTPUT, exist_ok=True)
    if os.path.exists(copy):
        os.remove(copy)
    with open(binary, "rb", buffering=0) as source, open(copy, "wb", buffering=0) as made:
        shutil.copyfileobj(source, made, 4096)
    os.chmod(copy, 0o755)
    return copy


ROWS = {"against": against}
