"""Compares the causes that `explain --watch` names over the network with the causes that `explain`
names on the server's machine. The other machine is simulated: both machines are network
namespaces, joined by a pair of interfaces. plimsoll has its own process namespace, so it sees no
process of the server. A real sshd starts its agent.

Each server of the zoo listens only on 127.0.0.1, so the load's machine routes this address to the
server's machine.

Not here: the servers (zoo.py).
"""

import contextlib
import os
import random
import subprocess
import tempfile
import time

import measure
import report
import zoo
from measure import Failure, need, run, tool

# Cases that cannot be simulated here: their bottleneck needs its own network namespace, or is on
# the machine that generates the load.
LEFT_OUT = ("network", "client", "ports", "neighbour")
SERVERS = 20
# The seed for the random choice of servers.
SEED = 1
ADDRESSES = ("10.77.0.1", "10.77.0.2")


def _sh(within, line):
    done = subprocess.run([*within, "sh", "-ec", line], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"no second machine can be simulated: {done.stderr.strip()[-200:]}")


@contextlib.contextmanager
def _load_machine(server):
    """Creates a machine that reaches 127.0.0.1 of the server's machine; returns the words with
    which a command on that machine begins."""
    child = subprocess.Popen(["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", "echo ready && exec sleep 2000"],
                             stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        with open(f"/proc/{child.pid}/task/{child.pid}/children") as children:
            inside = children.read().split()[0]
        load = ["nsenter", f"--net=/proc/{inside}/ns/net", f"--pid=/proc/{inside}/ns/pid", f"--mount=/proc/{inside}/ns/mnt"]
        here, there = ADDRESSES
        _sh(server, f"ip link add eth0 type veth peer name eth0 netns {inside}; ip addr add {there}/24 dev eth0; ip link set eth0 up;"
                    "sysctl -qw net.ipv4.conf.eth0.route_localnet=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0")
        _sh(load, f"ip addr add {here}/24 dev eth0; ip link set eth0 up; sysctl -qw net.ipv4.conf.eth0.route_localnet=1"
                  " net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.eth0.rp_filter=0;"
                  f"ip link set lo down; ip route add 127.0.0.0/8 via {there} dev eth0 src {here}")
        yield load
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@contextlib.contextmanager
def _login(server, folder):
    """Starts an sshd on the server's machine; returns its port, and the command that logs in."""
    def at(name):
        return os.path.join(folder, name)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", at(name)], check=True)
    os.makedirs(at("bin"))
    os.symlink(os.path.realpath(need("plimsoll")), at("bin/plimsoll"))
    os.makedirs("/run/sshd", exist_ok=True)
    with open(at("config"), "w") as file:
        file.write(f"Port 2222\nListenAddress {ADDRESSES[1]}\nHostKey {at('host')}\nAuthorizedKeysFile {at('user.pub')}\n"
                   f"StrictModes no\nUsePAM no\nPidFile none\nSetEnv PATH={at('bin')}:/usr/bin:/bin\n")
    sshd = subprocess.Popen([*server, "/usr/sbin/sshd", "-D", "-e", "-f", at("config")], stderr=subprocess.DEVNULL)
    try:
        yield 2222, (f"ssh -F none -oBatchMode=yes -oStrictHostKeyChecking=accept-new -oLogLevel=ERROR "
                     f"-oUserKnownHostsFile={at('known')} -i {at('user')} -T")
    finally:
        sshd.terminate()
        sshd.wait()


def _watched(case, name, budget):
    with zoo.serving({**case, "network": "true"}, budget) as (address, server, named), \
            tempfile.TemporaryDirectory() as folder, _load_machine(server) as load, _login(server, folder) as (port, login):
        time.sleep(0.5)
        path = os.path.join(report.OUTPUT, f"watch-{name}.plimsoll")
        command = [*load, "env", f"PLIMSOLL_SSH={login}", need("plimsoll"), "explain", f"--watch=ssh://{ADDRESSES[1]}:{port}",
                   f"http://{address}{case.get('path', '/items')}", "--json", "--quiet", "--budget", f"{budget}s", "--seed", "1",
                   "-o", path, *named, *case.get("flags", [])]
        return zoo.cause_of(run(command, set(os.sched_getaffinity(0)), budget + 90, (0, 1)).json())


def watch(settings):
    """`explain --watch` from another machine names the same cause as local `explain`: 18 of 20."""
    if tool("sshd") is None and not os.path.exists("/usr/sbin/sshd"):
        raise Failure("there is no sshd (scripts/needs sshd)")
    os.makedirs(report.OUTPUT, exist_ok=True)
    budget, cases, truth = settings.seconds(90), zoo.read_cases("cases.json"), zoo.read_cases("truth.json")
    fit = [name for name, case in cases.items()
           if not set(truth[name]["names"]) & set(LEFT_OUT) and not case.get("network") and not case.get("beside")]
    wanted = len(settings.servers) if settings.servers else 1 if settings.smoke else SERVERS
    rows, notes = [], []
    # Some servers cannot run here: the next server of the random order replaces each of them.
    for name in settings.servers or random.Random(SEED).sample(fit, len(fit)):
        if len(rows) == wanted:
            break
        try:
            watched = _watched(cases[name], name, budget)
            local = zoo.explained(cases[name], name, budget)
        except (zoo.Absent, Failure) as missing:
            notes.append(f"{name} was left out: {missing}")
            print(f"  {notes[-1]}", flush=True)
            continue
        rows.append({"case": name, "true": truth[name]["names"], "watched": watched, "local": local})
        print(f"  {name} ({'/'.join(truth[name]['names'])}): watched {watched['cause']}, local {local['cause']}", flush=True)
    same = sum(row["watched"]["cause"] == row["local"]["cause"] for row in rows)
    right = {side: [zoo.verdict(truth[row["case"]], row[side]) for row in rows] for side in ("watched", "local")}
    words = "; ".join(f"{side}: " + ", ".join(f"{said.count(word)} {word}" for word in ("right", "abstained", "wrong"))
                      for side, said in right.items())
    return report.Row("watch", f"cause of {len(rows)} watched servers", "same as local in 18 of 20",
                      f"same {same} of {len(rows)}; {words}", len(rows) > 0 and same >= 0.9 * len(rows), rows, notes)


ROWS = {"watch": watch}
