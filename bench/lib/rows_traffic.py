"""The row of bench/run about traffic files. The row measures the client's cost of a mix of many
requests, of templates, and of values captured from responses, compared with one URL. The row also
measures the cost of a mix in other tools. Not here: a load of one URL (rows.py).
"""

import csv
import json
import os
import tempfile

import measure
import report
import rows
from measure import Failure, need, run, tool
from peers import with_peers

REQUESTS = 100
MIX = "".join(f'[[request]]\nname = "r{n}"\nweight = {1 + n % 7}\nget = "/items?page={n:02}"\n' for n in range(REQUESTS))


def order(body):
    """Returns a request with a body, as text of a traffic file."""
    return f"""[[request]]
post = "/orders"
headers = {{ content-type = "application/json" }}
body = '{body}'
"""


FILES = {
    "mix": MIX,
    "fixed": order('{"id":"2f1d3c4b-5a69-4788-97a6-b5c4d3e2f101","user":"ann","qty":2}'),
    "filled": order('{"id":"{{ uuid() }}","user":"{{ user.name }}","qty":{{ int(1,3) }}}')
    + '[data.user]\nfile = "users.csv"\n',
    "json": '[[scenario]]\n[[scenario.step]]\nget = "/json"\n',
    "captured": '[[scenario]]\n[[scenario.step]]\nget = "/json"\ncapture = { token = "$.token" }\n',
}
# The pairs of sides that are compared.
PAIRS = (("one URL", "mix"), ("fixed", "filled"), ("json", "captured"))
K6 = """import http from 'k6/http';
export const options = { vus: 64, duration: '%ds', discardResponseBodies: true, noUsageReport: true };
export default function () {
  const page = Math.floor(Math.random() * %d);
  http.get(`%s/items?page=${page}`, { tags: { name: `r${page}` } });
}
"""


LOCUST = """import random
from locust import FastHttpUser, task

class Visitor(FastHttpUser):
    @task
    def page(self):
        page = random.randrange(%d)
        self.client.get(f"/items?page={page}", name=f"r{page}")
"""


def traffic(settings):
    """Client CPU a request with traffic files, compared with one URL, k6, oha and Locust.

    64 users, one thread."""
    server_cpus, client_cpus = measure.cores(settings.smoke)
    client_cpus = {min(client_cpus)}
    seconds, notes = settings.seconds(2), []
    whole = max(1, round(seconds))
    flags = ["-d", rows.duration(seconds), "-t", "1", "-c", "64", "--spin", "off", "--no-preflight", "--no-probes", "--json"]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "users.csv"), "w", encoding="utf-8") as file:
            file.write("name\n" + "".join(f"user{n}\n" for n in range(1000)))
        for name, text in FILES.items():
            with open(os.path.join(folder, f"{name}.toml"), "w", encoding="utf-8") as file:
                file.write(text)

        def base(url):
            return url.removesuffix("/healthz")

        def figures(done, requests):
            return {"cpu_s": done.cpu_s, "cpu_us": measure.cpu_us(done.cpu_s, requests), "rps": requests / whole}

        def ours(*target):
            def measured(url):
                said = [url] if not target else ["-f", os.path.join(folder, f"{target[0]}.toml"), "--target", base(url)]
                done = run([need("plimsoll"), "run", *said, *flags], client_cpus, seconds + 60)
                found = done.json()
                measure.need_success(found, target)
                return figures(done, found["requests"])
            return measured

        def oha(url):
            # For oha a dot in the URL is a dot, and an escaped dot leads to other hosts. The URLs
            # that oha would request are therefore checked first.
            pages = base(url) + "/items[?]page=[0-9]{2}"
            asked = run([tool("oha"), "--rand-regex-url", pages, "--dump-urls", "20"], client_cpus, 20).out.split()
            if not all(a.startswith(f"{base(url)}/items?page=") for a in asked):
                raise Failure(f"oha would ask {asked[0]} instead of pages of {base(url)}")
            line = [tool("oha"), "-z", f"{whole}s", "-c", "64", "--no-tui", "--output-format", "json", "--rand-regex-url", pages]
            done = run(line, client_cpus, whole + 60)
            statuses = done.json()["statusCodeDistribution"]
            return figures(done, statuses["200"])

        def k6(url):
            script = os.path.join(folder, "mix.js")
            with open(script, "w", encoding="utf-8") as file:
                file.write(K6 % (whole, REQUESTS, base(url)))
            done = run([tool("k6"), "run", "--quiet", "--summary-export", os.path.join(folder, "k6.json"), script],
                       client_cpus, whole + 60)
            with open(os.path.join(folder, "k6.json"), encoding="utf-8") as file:
                return figures(done, json.load(file)["metrics"]["http_reqs"]["count"])

        def locust(url):
            script, folder_of_figures = os.path.join(folder, "mix.py"), os.path.join(folder, "locust")
            with open(script, "w", encoding="utf-8") as file:
                file.write(LOCUST % REQUESTS)
            line = [tool("locust"), "-f", script, "--headless", "--only-summary", "-u", "64", "-r", "64", "-t", f"{whole}s",
                    "-H", base(url), "--csv", folder_of_figures]
            done = run(line, client_cpus, whole + 60)
            with open(folder_of_figures + "_stats.csv", encoding="utf-8", newline="") as file:
                total = next(row for row in csv.DictReader(file) if row["Name"] == "Aggregated")
            return figures(done, int(total["Request Count"]) - int(total["Failure Count"]))

        peers = {"oha": oha, "k6": k6, "locust": locust}
        sides = {"one URL": ours(), **{name: ours(name) for name in FILES}}
        sides = with_peers(sides, peers, settings.smoke, notes)
        with measure.bench_server(server_cpus, "instant") as server:
            rounds = rows.alternate(settings, 7, sides, server, notes, lambda f: f"{f['cpu_us']:.2f} us", PAIRS)
    over = report.ratios(rounds, "cpu_us", "mix", "one URL")
    more = {name: [r[name]["cpu_us"] - r[than]["cpu_us"] for r in rounds]
            for name, than in (("filled", "fixed"), ("captured", "json"))}
    measured = f"mix {report.spread(over, 3)} of one URL; filled in {report.spread(more['filled'])} us more; "
    measured += f"captured {report.spread(more['captured'])} us more ("
    measured += ", ".join(f"{name} {report.spread(report.values(rounds, name, 'cpu_us'))} us" for name in sides) + ")"
    for name in peers:
        if name in sides:
            measured += f"; mix {report.spread(report.ratios(rounds, 'cpu_us', 'mix', name))} of {name}"
    holds = report.median(over) <= 1.03 and report.median(more["filled"]) <= 1.5 and report.median(more["captured"]) <= 5
    return report.Row(
        "traffic", f"files of traffic, CPU a request: a mix of {REQUESTS} requests, three values filled in, JSONPath on 1 KB",
        "<= 1.03 of one URL; <= 1.5 us more; <= 5 us more", measured, holds, rounds, notes)


ROWS = {"traffic": traffic}
