"""The zoo: servers with one planted bottleneck each, which plimsoll explains with only a URL. The
true cause is in bench/zoo/truth.json, which is read only after plimsoll has named a cause.

Each case is recorded when it ends (_output/bench/zoo.jsonl), with a digest of plimsoll and of the
case, so an interrupted run continues where it stopped. A case is left out, with a note, if its
runtime or a permission is missing here. Every started process is ended by its own handle, with its
process group.

Not here: how plimsoll finds the cause, and the servers (bench/zoo/servers).
"""

import contextlib
import hashlib
import json
import os
import random
import resource
import signal
import subprocess
import tempfile
import time

import measure
import report
from measure import Failure, need, run, tool

ZOO = os.path.join(measure.ROOT, "bench", "zoo")
BUILT = os.path.join(report.OUTPUT, "zoo")
GROUPS = "/sys/fs/cgroup"


class Absent(Exception):
    """The error for a case that cannot run on this machine. The text names the missing requirement
    in a few words."""


def read_cases(name):
    with open(os.path.join(ZOO, name)) as file:
        return json.load(file)


def _wanted(name):
    path = tool(name)
    if path is None:
        raise Absent(f"there is no {name}")
    return path


def _source(*names):
    return os.path.join(ZOO, "servers", *names)


def _built(name, command, source):
    """Returns the folder of a compiled program of the zoo. The program is compiled once for each
    version of its source."""
    os.makedirs(BUILT, exist_ok=True)
    with open(source, "rb") as file:
        made = os.path.join(BUILT, hashlib.sha256(file.read()).hexdigest()[:12])
    if not os.path.exists(made):
        os.makedirs(made + ".new", exist_ok=True)
        done = subprocess.run(command(made + ".new"), cwd=os.path.dirname(source), capture_output=True, text=True)
        if done.returncode:
            raise Failure(f"the zoo's {name} does not compile: {done.stderr[-500:]}")
        os.rename(made + ".new", made)
    return made


def _command(case, folder):
    """Returns the command of a case's server, and the additional environment variables."""
    app, text = case["app"], json.dumps(case["set"]).replace("{disk}", folder)
    if app == "go":
        go, source = _wanted("go"), _source("go", "main.go")
        made = _built("Go server", lambda to: [go, "build", "-o", os.path.join(to, "app"), "."], source)
        return [os.path.join(made, "app")], {"ZOO": text}
    if app == "sql":
        go, source = _wanted("go"), _source("sql", "main.go")
        made = _built("server of a database", lambda to: [go, "build", "-o", os.path.join(to, "app"), "."], source)
        return [os.path.join(made, "app")], {"ZOO": text}
    if app == "py":
        return [_wanted("python3"), _source("app.py")], {"ZOO": text}
    if app == "node":
        return [_wanted("node"), _source("app.js")], {"ZOO": text}
    if app == "java":
        javac, java, source = _wanted("javac"), _wanted("java"), _source("java", "App.java")
        made = _built("Java server", lambda to: [javac, "-d", to, source], source)
        words = " ".join(f"{name}={value}" for name, value in case["set"].items())
        return [java, *case.get("jvm", []), "-cp", made, "App"], {"ZOO_JAVA": words}
    if app in ("gunicorn", "uvicorn"):
        # These servers do not print the port that they chose.
        port, called = measure.free_port(), {"gunicorn": "web:wsgi", "uvicorn": "web:asgi"}[app]
        place = f"--bind 127.0.0.1:{port}" if app == "gunicorn" else f"--host 127.0.0.1 --port {port} --no-access-log"
        say = f"echo 127.0.0.1:{port}; cd {_source()}; exec {_wanted(app)} {place} {case['words']} {called} >/dev/null 2>&1"
        return ["sh", "-c", say], {"ZOO": text, "PYTHONDONTWRITEBYTECODE": "1"}
    if app == "c":
        cc, source = _wanted("cc"), _source("app.c")
        made = _built("C server", lambda to: [cc, "-O2", "-pthread", "-o", os.path.join(to, "app"), source], source)
        return [os.path.join(made, "app")], {"ZOO_C": case["set"]}
    if app == "nginx":
        nginx, port = _wanted("nginx"), measure.free_port()
        if case.get("bytes"):
            with open(os.path.join(folder, "file"), "wb") as file:
                file.write(b"x" * case["bytes"])
        conf = os.path.join(folder, "server.conf")
        http = case["conf"].replace("{port}", str(port)).replace("{dir}", folder)
        with open(conf, "w") as file:
            file.write(f"daemon off; pid {folder}/pid; error_log stderr crit; worker_processes 1;\n"
                       f"events {{ worker_connections 4096; }}\nhttp {{ access_log off; keepalive_requests 1000000; {http} }}\n")
        say = f"echo 127.0.0.1:{port}; exec {nginx} -p {folder} -c {conf}"
        return ["sh", "-c", say], {}
    raise Failure(f"bench/zoo/cases.json: nobody knows the app '{app}'")


# The limits of a control group: the file of version 1 and that of version 2, each with its content.
LIMITS = {
    "cpu_max": (("cpu", "cpu.cfs_quota_us", "{}"), ("cpu.max", "{} 100000"), lambda cores: int(cores * 100_000)),
    "memory_max": (("memory", "memory.limit_in_bytes", "{}"), ("memory.max", "{}"), int),
}


@contextlib.contextmanager
def _group(case):
    """Creates control groups for the limits of a case, if it has any; returns their folders."""
    made = []

    def make():
        for limit, ((kind, first, first_words), (second, words), number) in LIMITS.items():
            if case.get(limit) is None:
                continue
            above = os.path.join(GROUPS, kind)
            name, text = (first, first_words) if os.path.exists(os.path.join(above, "cgroup.procs")) else (second, words)
            folder = os.path.join(above if name == first else GROUPS, f"plimsoll-zoo-{os.getpid()}")
            os.makedirs(folder, exist_ok=True)
            made.append(folder)
            # The control file must exist already, because a file that this write creates would
            # limit nothing.
            with open(os.path.join(folder, name), "r+") as file:
                file.write(text.format(number(case[limit])))
    try:
        try:
            make()
        except OSError as error:
            raise Absent(f"no control group of one's own ({error.strerror})") from error
        yield sorted(set(made))
    finally:
        for folder in set(made):
            for _ in range(50):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
                    break
                time.sleep(0.1)


@contextlib.contextmanager
def _beside(count):
    """Runs `count` CPU-bound processes that do not belong to the server (noisy neighbours)."""
    burners = [subprocess.Popen([_wanted("python3"), "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


# A program of another user: it computes half of the time, at a low priority, for at most the time
# in seconds that it gets.
OTHER_USER = """
import random, sys, time
draw, end = random.Random(1), time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    on_s = draw.uniform(0.5, 3)
    until = time.monotonic() + on_s
    while time.monotonic() < until:
        pass
    time.sleep(on_s)
"""


@contextlib.contextmanager
def _other_user(limit_s):
    """Runs the program of another user for at most `limit_s` seconds; none for 0."""
    if not limit_s:
        yield
        return
    words = [_wanted("nice"), "-n", "10", _wanted("python3"), "-c", OTHER_USER, str(limit_s)]
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def _network(words):
    """Creates a network namespace whose loopback the shell commands `words` set up. Returns the
    words with which a command in that namespace begins."""
    if words is None:
        yield []
        return
    shape = f"ip link set lo up && {words} && echo ready && exec sleep 1000"
    child = subprocess.Popen([_wanted("unshare"), "--net", "sh", "-c", shape], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
    try:
        if child.stdout.readline() != b"ready\n":
            raise Absent("no network of one's own")
        yield [_wanted("nsenter"), f"--net=/proc/{child.pid}/ns/net"]
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@contextlib.contextmanager
def _started(command, environment, groups=(), files=None, within=()):
    """Starts a process in its own process group, which ends with the block. Returns the address
    that the process prints, and its process id."""
    def before():
        os.setsid()
        for group in groups:
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))
        if files:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    child = subprocess.Popen([*within, *command], env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, preexec_fn=before)
    try:
        said = child.stdout.readline().decode(errors="replace").strip()
        if not said.startswith("127.0.0.1:"):
            raise Failure(f"a server of the zoo did not start: {command[0]} said '{said[-200:]}'")
        _answers(said, within)
        yield said, child.pid
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(3)
                break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()


def _answers(address, within=(), limit_s=20):
    host, port = address.rsplit(":", 1)
    connect = f"import socket; socket.create_connection(('{host}', {int(port)}), 1).close()"
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if subprocess.run([*within, _wanted("python3"), "-c", connect], stderr=subprocess.DEVNULL).returncode == 0:
            return
        time.sleep(0.05)
    raise Failure(f"a server of the zoo does not listen on {address}")


def _mariadb(folder):
    """Returns the command of a private MariaDB, which is empty and needs no login."""
    data, port = os.path.join(folder, "data"), measure.free_port()
    user = ["--user=root"] if os.geteuid() == 0 else []
    install = [_wanted("mariadb-install-db"), "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal",
               "--skip-test-db", *user]
    done = subprocess.run(install, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise Absent(f"no MariaDB of one's own ({(done.stderr or done.stdout).strip()[-200:]})")
    words = " ".join([f"--no-defaults --datadir={data} --port={port} --bind-address=127.0.0.1 --socket={data}/s --skip-grant-tables",
                      "--skip-log-bin --innodb-buffer-pool-size=64M --innodb-flush-log-at-trx-commit=0 --max-connections=500", *user])
    return ["sh", "-c", f"echo 127.0.0.1:{port}; exec {_wanted('mariadbd')} {words} >/dev/null 2>&1"]


@contextlib.contextmanager
def _store(kind, folder, within):
    """Starts the store that the server calls: our own store, Redis, or MariaDB. Returns the address
    of the store."""
    if kind is None:
        yield None
    elif kind == "redis":
        port = measure.free_port()
        words = f"--port {port} --bind 127.0.0.1 --save '' --dir {folder}"
        with _started(["sh", "-c", f"echo 127.0.0.1:{port}; exec {_wanted('redis-server')} {words} >/dev/null"], {}, within=within) as (address, _):
            yield address
    elif kind == "mariadb":
        with _started(_mariadb(folder), {}, within=within) as (address, _):
            yield address
    else:
        with _started([_wanted("python3"), _source("store.py")], {"ZOO": json.dumps(kind)}, within=within) as (address, _):
            yield address


@contextlib.contextmanager
def _front(kind, address, within):
    """Starts the relay in front of a server, if the case has one. Returns the address to send
    requests to."""
    if kind is None:
        yield address
    else:
        relay = [_wanted("python3"), _source("relay.py")]
        with _started(relay, {"ZOO": json.dumps({**kind, "to": address})}, within=within) as (front, _):
            yield front


@contextlib.contextmanager
def serving(case, budget):
    """Starts the server of a case on all cores. Returns the address to send requests to, the words
    with which a command that reaches this address begins, and flags that name the server's
    process if the case wants that. A warm-up of the server lasts a share of the budget."""
    if "warm_part" in case:
        case = {**case, "set": {**case["set"], "warm_s": round(case["warm_part"] * budget)}}
    with (tempfile.TemporaryDirectory(dir=report.OUTPUT) as folder, _network(case.get("network")) as within,
          _store(case.get("store"), folder, within) as store):
        # Servers that drop root privileges must read this folder, too.
        os.chmod(folder, 0o755)
        if store:
            case = {**case, "set": {**case["set"], "store": store}}
        command, environment = _command(case, folder)
        with (_group(case) as groups,
              _started(command, environment, groups, case.get("files"), within) as (address, pid),
              _front(case.get("front"), address, within) as asked,
              _beside(case.get("beside", 0)), _other_user(case.get("other_user_s", 0))):
            yield asked, within, ["--pid", str(pid)] if case.get("named") else []


# The settings that a variant scales. Another size gives another server with the same cause.
SIZES = ("sleep_us", "cpu_us", "conns", "threads", "workers", "slots", "shared_us", "answer_us", "rate", "pace", "write_kb")


def _variant(name, case, number):
    """Returns a case whose sizes are scaled by random factors of 0.6 to 1.6, which depend on the
    number of the variant. Number 0 leaves the case unchanged."""
    draw = random.Random(f"{name}/{number}")

    # A single worker would be a different bottleneck than several workers.
    def sized(sizes):
        return {key: max(2 if key == "workers" else 1, round(value * draw.uniform(0.6, 1.6))) if number and key in SIZES and value > 1 else value
                for key, value in sizes.items()}
    changed = {**case, "set": sized(case["set"]) if isinstance(case["set"], dict) else case["set"]}
    if isinstance(case.get("store"), dict):
        changed["store"] = sized(case["store"])
    return changed


def _record(name, case, truth, is_disturbed):
    """Adds the recorded loads of a case to the corpus."""
    path = os.path.join(report.OUTPUT, f"zoo-{name}.plimsoll")
    words = [name, case["app"], ",".join(truth["names"]), *(["disturbed"] if is_disturbed else [])]
    done = subprocess.run(["cargo", "run", "--quiet", "-p", "plimsoll-analysis", "--example", "corpus", "--", "record", path, *words],
                          cwd=measure.ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"{name} cannot be recorded: {(done.stdout + done.stderr).strip()[-300:]}")


def _digest(case):
    with open(need("plimsoll"), "rb") as file:
        built = hashlib.sha256(file.read())
    built.update(json.dumps(case, sort_keys=True).encode())
    for folder, _, names in sorted(os.walk(_source())):
        for name in sorted(names):
            with open(os.path.join(folder, name), "rb") as file:
                built.update(file.read())
    return built.hexdigest()[:16]


def explained(case, name, budget):
    with serving(case, budget) as (address, within, named):
        path = os.path.join(report.OUTPUT, f"zoo-{name}.plimsoll")
        command = [*within, need("plimsoll"), "explain", f"http://{address}{case.get('path', '/items')}", "--json", "--quiet", "--budget",
                   f"{budget}s", "--seed", "1", "-o", path, *named, *case.get("flags", [])]
        began = time.monotonic()
        # Exit code 1 means that plimsoll names no cause, which is an accepted result.
        found = run(command, set(os.sched_getaffinity(0)), budget + 60, (0, 1)).json()
    return {**cause_of(found), "wall_s": time.monotonic() - began}


def _explained_anew(name):
    """Explains the recorded loads of a case with this plimsoll; no load is made."""
    path = os.path.join(report.OUTPUT, f"zoo-{name}.plimsoll")
    if not os.path.exists(path):
        raise Absent("it was not recorded")
    return cause_of(run([need("plimsoll"), "explain", path, "--json", "--quiet"], set(os.sched_getaffinity(0)), 60, (0, 1)).json())


def _is_void(warning):
    """Whether a warning says that other processes or the host disturbed a steady load or most of
    the search. A result with only a few disturbed trials is valid."""
    by = ("disturbed: other processes used", "disturbed: the host of this machine")
    steady = any(words in warning for words in by) and not warning.startswith("the machine")
    return steady or warning.startswith("Others disturbed most of the trials")


def cause_of(found):
    predicted = found["predicted"] or {}
    return {"cause": found["cause"], "abstained": found["abstained"], "sentence": found["sentence"], "causes": found["causes"],
            "line_rps": found["load_line_rps"]["lower"], "doubled_rps": predicted.get("doubled_rps"),
            "disturbed": [warning for warning in found["warnings"] if _is_void(warning)],
            "interventions": found["interventions"]}


def _cured_line(case, cure, budget):
    """Measures the load line without the planted limit, in a search of its own."""
    with serving({**case, **cure}, budget) as (address, within, _):
        command = [*within, need("plimsoll"), "find", f"http://{address}{case.get('path', '/items')}", "--json", "--quiet", "--budget",
                   f"{budget}s", "--seed", "1", *case.get("flags", [])]
        return run(command, set(os.sched_getaffinity(0)), budget + 60, measure.SEARCH_CODES).json()["load_line_rps"]["lower"]


def verdict(truth, found):
    """Returns `right`, `abstained` or `wrong`."""
    if found["abstained"]:
        return "right" if "unknown" in truth["names"] else "abstained"
    return "right" if found["cause"] in truth["names"] else "wrong"


def _kept(path):
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        rows = [json.loads(line) for line in file if line.endswith("}\n")]
    return {(row["case"], row["digest"]): row for row in rows}


def matrix(done, truth):
    """Formats the numbers of right, abstained and wrong results by cause, as lines of Markdown."""
    by = {}
    for name, row in done.items():
        cell = by.setdefault(truth[name]["names"][0], {"right": 0, "abstained": 0, "wrong": 0, "said": []})
        word = verdict(truth[name], row["found"])
        cell[word] += 1
        if word != "right":
            cell["said"].append(f"{name}: {row['found']['cause']}")
    lines = ["| cause | right | abstained | wrong | not right |", "|---|---|---|---|---|"]
    for cause, cell in sorted(by.items()):
        lines.append(f"| `{cause}` | {cell['right']} | {cell['abstained']} | {cell['wrong']} | {'; '.join(cell['said'])} |")
    return lines


def _shares(done, truth):
    words = [verdict(truth[name], row["found"]) for name, row in done.items()]
    return {word: words.count(word) for word in ("right", "abstained", "wrong")}


def zoo(settings):
    """`explain` names the planted bottleneck of a server: right in 90 %, wrong in 3 % at most."""
    budget = settings.seconds(180)
    os.makedirs(report.OUTPUT, exist_ok=True)
    path = os.path.join(report.OUTPUT, "zoo.jsonl")
    kept, done, notes = ({} if settings.fresh else _kept(path)), {}, []
    suffix = (f"v{settings.variant}" if settings.variant else "") + ("-disturbed" if settings.disturbed else "")
    other = {"other_user_s": budget + 60} if settings.disturbed else {}
    cases = {name + suffix: {**_variant(name, case, settings.variant), **other} for name, case in read_cases("cases.json").items()
             if not settings.servers or name in settings.servers}
    truth = {name + suffix: true for name, true in read_cases("truth.json").items()}
    for name, case in cases.items():
        key = (name, _digest(case))
        if key not in kept:
            try:
                if settings.recorded:
                    before = [row for (other, _), row in kept.items() if other == name][-1:]
                    if before:
                        done[name] = {**before[0], "found": {**before[0]["found"], **_explained_anew(name)}}
                        print(f"  {name}: {done[name]['found']['cause']}: {done[name]['found']['sentence']}", flush=True)
                    continue
                row = {"case": name, "digest": key[1], "budget_s": budget, "found": explained(case, name, budget)}
                if settings.record:
                    _record(name, case, truth[name], row["found"]["disturbed"] or settings.disturbed)
                if row["found"]["disturbed"] and not case.get("beside") and not settings.disturbed:
                    notes.append(f"{name} is void, and made again next time: {'; '.join(row['found']['disturbed'])}")
                    continue
            except (Absent, Failure) as missing:
                notes.append(f"{name} was left out: {missing}")
                continue
            cure = truth[name].get("cure")
            if cure and row["found"]["doubled_rps"] and settings.cures:
                row["cured_rps"] = _cured_line({**case, "other_user_s": 0}, cure, min(budget, 60))
            with open(path, "a") as file:
                file.write(json.dumps(row) + "\n")
            kept[key] = row
        done[name] = kept[key]
        print(f"  {name}: {done[name]['found']['cause']}: {done[name]['found']['sentence']}", flush=True)
    parts = {"known": {n: r for n, r in done.items() if not truth[n]["held_back"]},
             "held back": {n: r for n, r in done.items() if truth[n]["held_back"]}}
    for part, rows in parts.items():
        print(f"\n{part}:")
        print("\n".join(matrix(rows, truth)))
    near = [abs(r["cured_rps"] / r["found"]["doubled_rps"] - 1) <= 0.15 for r in done.values()
            if r.get("cured_rps") and r["found"]["doubled_rps"]]
    shares, count = _shares(done, truth), max(len(done), 1)
    text = "; ".join(f"{part}: {', '.join(f'{n} {word}' for word, n in _shares(rows, truth).items())}" for part, rows in parts.items())
    beside = ", beside another program that computes half of the time" if settings.disturbed else ""
    in_time = all(row["found"]["wall_s"] <= row["budget_s"] + 15 for row in done.values())
    holds = shares["right"] >= 0.9 * count and shares["wrong"] <= 0.03 * count and in_time
    if near:
        notes.append(f"the line with twice as much of what held it was predicted within 15 % in {sum(near)} of {len(near)} cases")
        holds = holds and sum(near) >= 0.8 * len(near)
    return report.Row("zoo" + suffix, f"cause of {len(done)} servers{beside}", "right >= 90 %, wrong <= 3 %", text, holds, list(done.values()), notes)


ROWS = {"zoo": zoo}
