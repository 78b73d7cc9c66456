"""Load tools of other projects that rows compare plimsoll with. The tools are installed on this
machine, or built once in bench/run's own folder. Not here: the load that each tool makes (each
row).
"""

import os
import subprocess
import sys

import measure
from measure import Failure, tool

# The tools that Go builds, by their module path and version.
BY_GO = {"ghz": "github.com/bojand/ghz/cmd/ghz@v0.121.0", "k6": "go.k6.io/k6@v1.8.1"}
BY_CARGO = {"oha": "1.16.0"}
BY_PIP = {"locust": "2.47.0"}
# Time limit for building one tool, in seconds: k6 and oha have a few hundred packages each.
MADE_WITHIN = 1_800


def built_by_go(name, arguments, folder, into):
    """Returns the path of a program that Go builds into a folder. The program is built only
    once."""
    path = os.path.join(into, name)
    if not os.access(path, os.X_OK):
        if not tool("go"):
            raise Failure(f"{name} is built with Go, which is not installed")
        os.makedirs(into, exist_ok=True)
        _make(name, ["go", *arguments], folder, {"GOBIN": into})
    return path


def peer(name):
    """Returns the path of a tool, which is built now if it is not installed. Raises `Failure` if it
    cannot be built here."""
    path = tool(name)
    if path is not None:
        return path
    into = os.path.join(measure.PEERS, "bin")
    if name in BY_GO:
        return built_by_go(name, ["install", BY_GO[name]], measure.ROOT, into)
    if name in BY_CARGO:
        _make(name, ["cargo", "install", name, "--version", BY_CARGO[name], "--locked", "--root", measure.PEERS], measure.ROOT)
    elif name in BY_PIP:
        own = os.path.join(measure.PEERS, name)
        _make(name, [sys.executable, "-m", "venv", own], measure.ROOT)
        _make(name, [os.path.join(own, "bin", "pip"), "install", "--quiet", f"{name}=={BY_PIP[name]}"], measure.ROOT)
        os.makedirs(into, exist_ok=True)
        os.symlink(os.path.join(own, "bin", name), os.path.join(into, name))
    if tool(name) is None:
        raise Failure(f"{name} is not installed")
    return tool(name)


def with_peers(sides, peers, smoke, notes):
    """Returns the measured sides by name: all of `sides`, and the sides of `peers` whose tools can
    run here. Missing tools are built, except in a smoke run. A note is added for each side whose
    tool cannot run."""
    sides = dict(sides)
    for name, side in peers.items():
        try:
            if smoke and tool(name) is None:
                raise Failure(f"{name} is not installed")
            peer(name)
            sides[name] = side
        except Failure as failure:
            notes.append(f"{failure}: its side is left out")
    return sides


def _make(name, command, folder, more=None):
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, **(more or {})}, capture_output=True, text=True,
                              timeout=MADE_WITHIN)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failure(f"{name} was not built: {error}") from error
    if done.returncode:
        raise Failure(f"{name} was not built: {(done.stderr or done.stdout).strip()[-300:]}")
