"""An application with one planted bottleneck, for gunicorn (`wsgi`) and uvicorn (`asgi`). The
settings in $ZOO (JSON) choose the bottleneck and have the same keys as the settings of go/main.go.

Not here: the true cause of each case (../truth.json).
"""

import asyncio
import json
import os
import time

SET = json.loads(os.environ.get("ZOO", "{}"))


def burn(us):
    """Uses `us` microseconds of the thread's CPU time. Waiting for a core or for the interpreter
    lock does not count, so the wall-clock time may be longer."""
    end = time.thread_time() + us / 1e6
    while time.thread_time() < end:
        pass


def wsgi(environ, start):
    if not environ["PATH_INFO"].startswith("/items"):
        start("404 Not Found", [("Content-Length", "2")])
        return [b"no"]
    burn(SET.get("cpu_us", 0))
    time.sleep(SET.get("sleep_us", 0) / 1e6)
    start("200 OK", [("Content-Length", "2")])
    return [b"ok"]


async def asgi(scope, receive, send):
    if scope["type"] != "http":
        return
    status, body = 404, b"no"
    if scope["path"].startswith("/items"):
        status, body = 200, b"ok"
        burn(SET.get("cpu_us", 0))
        time.sleep(SET.get("blocking_us", 0) / 1e6)
        await asyncio.sleep(SET.get("sleep_us", 0) / 1e6)
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": body})
