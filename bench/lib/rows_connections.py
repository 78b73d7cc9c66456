"""The measures of bench/run about connections: TLS, very many connections at once, and many new
connections a second.

The TLS server is nginx with one worker and a certificate made for the run. plimsoll is compared
with wrk if wrk is installed.
"""

import os
import socket
import subprocess
import tempfile
import threading
import time

import measure
import report
from measure import Failure, known, need, run, tool
from rows import alternate, plimsoll_run, without_absent, wrk_run


class Nginx(measure.Server):
    """nginx on a free loopback port, over TLS or as the argument `listen` says."""

    def __init__(self, cpus, listen="ssl", scheme="https"):
        self.listen, self.scheme = listen, scheme
        binary = tool("nginx") or ("/usr/sbin/nginx" if os.path.exists("/usr/sbin/nginx") else None)
        if not binary or not tool("openssl"):
            raise Failure("nginx and openssl are needed for this row: scripts/needs nginx openssl")
        self.folder = tempfile.TemporaryDirectory(prefix="plimsoll-bench-")
        super().__init__([binary, "-p", self.folder.name, "-c", "nginx.conf"], cpus)

    def _address(self, limit_s):
        # nginx does not print its address. nginx is ready when its port accepts connections.
        end = time.monotonic() + limit_s
        while time.monotonic() < end and self.child.poll() is None:
            found = subprocess.run(["ss", "-Hltn", f"sport = :{self.port}"], capture_output=True, text=True)
            if found.stdout.strip():
                return f"127.0.0.1:{self.port}"
            time.sleep(0.05)
        self.__exit__()
        raise Failure("nginx does not start")

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        folder = self.folder.name
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
             "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem", "-subj", "/CN=localhost"],
            check=True, capture_output=True)
        with open(f"{folder}/nginx.conf", "w") as file:
            file.write(
                f"daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n"
                "events { worker_connections 16000; }\n"
                f"http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n"
                f"fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n"
                "keepalive_requests 100000000; default_type text/plain;\n"
                f"{self.configured()} }}\n")
        return super().__enter__()

    def configured(self):
        """Returns the part of nginx's configuration that defines the responses."""
        return (f"server {{ listen 127.0.0.1:{self.port} {self.listen} backlog=4096; ssl_certificate cert.pem;\n"
                "ssl_certificate_key key.pem; location / { return 200 'hello'; } }\n")

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self.folder.cleanup()

    def url(self, path):
        return f"{self.scheme}://{self.address}{path}"


def https(settings):
    """Client CPU a request over HTTPS: closed loop, 64 connections, one thread, no spinning, nginx on its own core."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    client_cpus = {min(client_cpus)}
    seconds, notes = settings.seconds(3), []

    def ours(url):
        done = plimsoll_run(url, client_cpus, seconds, "-c", 64, "--spin", "off", "--no-preflight", "--insecure")
        found = done.json()
        measure.need_success(found, "plimsoll counted failures over TLS")
        return {"cpu_s": done.cpu_s, "cpu_us": measure.cpu_us(done.cpu_s, found["requests"]),
                "rps": found["requests"] / found["duration_s"]}

    def wrk(url):
        done, numbers = wrk_run(url, client_cpus, seconds, 64)
        return {"cpu_s": done.cpu_s, "cpu_us": measure.cpu_us(done.cpu_s, numbers["requests"]),
                "rps": numbers["requests"] / numbers["seconds"]}

    sides = without_absent({"plimsoll": ours, "wrk": wrk}, notes)
    with Nginx(server_cpus) as server:
        rounds = alternate(settings, 7, sides, server, notes, lambda f: f"{f['cpu_us']:.2f} us ({f['rps']:.0f}/s)")
    over = report.ratios(rounds, "cpu_us", "plimsoll", "wrk")
    measured = f"{report.spread(over)} of wrk (" + ", ".join(
        f"{name} {report.spread(report.values(rounds, name, 'cpu_us'))} us" for name in sides) + ")"
    holds = report.median(over) <= 0.90 if over else None
    return report.Row("https", "client CPU a request over HTTPS, closed, 64 connections, one thread, `--spin off`",
                      "<= 0.90 of wrk's", measured, holds, rounds, notes)


def handshakes(settings):
    """New TLS connections a second, one request each, one thread, nginx on its own core.

    wrk resumes its TLS session on a new connection, so plimsoll may do so, too. The row also shows
    full handshakes."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    client_cpus = {min(client_cpus)}
    seconds, notes = settings.seconds(3), []

    def ours(*flags):
        def side(url):
            done = plimsoll_run(url, client_cpus, seconds, "-c", 32, "--no-preflight", "--insecure", "--no-keepalive", *flags)
            found = done.json()
            count = found["handshake_ns"]["count"]
            return {"cpu_s": done.cpu_s, "rate": known(found["throughput_rps"]), "resumed": found["handshakes_resumed"] / max(count, 1),
                    "failed": sum(found["ledger"]["failed"].values())}
        return side

    def wrk(url):
        whole = max(1, round(seconds))
        command = [tool("wrk"), "-t1", "-c32", f"-d{whole}s", "--latency", "-H", "Connection: close", url]
        done = run(command, client_cpus, whole + 60)
        numbers = measure.wrk_numbers(done.out)
        return {"cpu_s": done.cpu_s, "rate": numbers["requests"] / numbers["seconds"]}

    def oha(url):
        command = [tool("oha"), "--no-tui", "-z", f"{seconds:g}s", "-c", "32", "--disable-keepalive", "--insecure",
                   "--output-format", "json", url]
        done = run(command, client_cpus, seconds + 60)
        found = done.json()
        return {"cpu_s": done.cpu_s, "rate": sum(found["statusCodeDistribution"].values()) / found["summary"]["total"]}

    def h2load(url):
        # h2load cannot close a connection after each request. Each of its clients therefore opens
        # one connection, all at the same time.
        count = 200 if settings.smoke else 4000
        done = run([tool("h2load"), "--h1", "-t1", f"-n{count}", f"-c{count}", url], client_cpus, 60)
        return {"cpu_s": done.cpu_s, "rate": measure.h2load_rate(done.out)}

    everybody = {"plimsoll": ours(), "plimsoll full": ours("--no-resumption"), "wrk": wrk, "oha": oha, "h2load": h2load}
    sides = without_absent(everybody, notes)
    with Nginx(server_cpus) as server:
        rounds = alternate(settings, 5, sides, server, notes, lambda f: f"{f['rate']:.0f}/s")
    overs = [report.median(report.ratios(rounds, "rate", "plimsoll", peer)) for peer in ("wrk", "oha", "h2load") if peer in sides]
    measured = ", ".join(f"{name} {report.spread(report.values(rounds, name, 'rate'), 0)}/s" for name in sides)
    failed = sum(report.values(rounds, "plimsoll", "failed"))
    holds = (min(overs) >= 1.0 and failed == 0) if overs else None
    return report.Row("handshakes", "new TLS connections a second, one thread, one request each",
                      ">= the best of wrk, oha and h2load, none failed", f"{measured}; {failed} failed", holds, rounds, notes)


def established(address):
    """Returns the number of the server's open connections, as the kernel lists them."""
    port = address.rsplit(":", 1)[1]
    listed = subprocess.run(["ss", "-Htn", "state", "established", f"sport = :{port}"], capture_output=True, text=True)
    return listed.stdout.count("\n")


def fifty_thousand(settings):
    """50 000 users at once against `plimsoll baseline`, on as many threads as both ends need."""
    connections = 500 if settings.smoke else 50_000
    seconds, notes = settings.seconds(15), []
    cpus = set().union(*measure.cores(settings.smoke))
    command = [need("plimsoll"), "baseline", "--listen", "127.0.0.1:0"]
    with measure.Server(command, cpus) as server:
        seen, over = [], threading.Event()

        def watch():
            while not over.wait(1):
                seen.append(established(server.address))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            load = [need("plimsoll"), "run", server.url("/healthz"), "-c", str(connections), "-d",
                    f"{seconds * 1000:.0f}ms", "--json", "--timeout", "30s"]
            done = run(load, cpus, seconds + 120)
        finally:
            over.set()
            watcher.join()
        server_bytes = measure.peak_bytes(server.child.pid)
    found = done.json()
    most = max(seen, default=0)
    figures = {"most_established": most, "success_rate": found["success_rate"], "peak_bytes": done.peak_bytes,
               "server_peak_bytes": server_bytes, "rps": found["throughput_rps"], "p50_ns": known(found["response_time_ns"]["p50"]),
               "threads": found["threads"], "open_max": found["connections_open_max"]}
    measured = (f"{most} established as `ss` lists them ({found['connections_open_max']} by our count), "
                f"{found['success_rate']:.2%} succeeded, {found['throughput_rps']:.0f}/s, {found['threads']} threads; "
                f"resident {done.peak_bytes / 1e6:.0f} MB (the server {server_bytes / 1e6:.0f} MB)")
    holds = most >= connections and found["success_rate"] == 1 and done.peak_bytes <= 150e6
    return report.Row("fifty", f"`run -c {connections}` against `baseline`, {seconds:g} s",
                      f"{connections} at once, 100 % succeeded, <= 150 MB resident", measured, holds, [figures], notes)


def sweep_all(settings):
    """`sweep` with its own ten levels, 200 to 50 000 users, 5 s each."""
    flags = ["-c", "10,20", "--for", "300ms"] if settings.smoke else ["--for", "5s"]
    cpus = set().union(*measure.cores(settings.smoke))
    with tempfile.TemporaryDirectory(prefix="plimsoll-bench-") as folder:
        with measure.Server([need("plimsoll"), "baseline", "--listen", "127.0.0.1:0"], cpus) as server:
            command = [need("plimsoll"), "sweep", server.url("/healthz"), "--json", "--dir", folder, *flags]
            done = run(command, cpus, 400)
    levels = done.json()["levels"]
    held = [level for level in levels if "error" not in level and level["success_rate"] == 1]
    parts = ", ".join(f"{level['concurrency']}: " + (f"{known(level['throughput_rps']):.0f}/s" if "error" not in level else "-")
                      for level in levels)
    must = 2 if settings.smoke else 10
    return report.Row("sweep", f"`sweep` with {len(levels)} levels", f"all {must} held, 100 % succeeded",
                      f"{len(held)} of {len(levels)} ({parts})", len(held) == must, levels, [])


def short_lived(settings):
    """10 000 new connections a second for a minute, one request each, from and to the loopback."""
    seconds, rate = settings.seconds(60), 500 if settings.smoke else 10_000
    cpus = set().union(*measure.cores(settings.smoke))
    with measure.Server([need("plimsoll"), "baseline", "--threads", "1", "--listen", "127.0.0.1:0"], cpus) as server:
        command = [need("plimsoll"), "run", server.url("/healthz"), "--rate", str(rate), "--no-keepalive", "--json", "-d",
                   f"{seconds * 1000:.0f}ms"]
        done = run(command, cpus, seconds + 60)
    found = done.json()
    opened = found["connections_opened"] / found["duration_s"]
    errors = sum(found["connect_errors"].values())
    measured = (f"{opened:.0f}/s opened, {known(found['success_rate']):.3%} succeeded, {errors} connect errors, "
                f"connect p99 {known(found['connect_ns']['p99']) / 1e6:.2f} ms")
    holds = opened >= 0.999 * rate and errors == 0
    return report.Row("new", f"new connections, HTTP, {seconds:g} s", f">= {rate}/s, no port error", measured, holds,
                      [{k: found[k] for k in ("connections_opened", "duration_s", "success_rate", "connect_errors", "ledger")}])


ROWS = {"https": https, "handshakes": handshakes, "fifty": fifty_thousand, "sweep": sweep_all, "new": short_lived}
