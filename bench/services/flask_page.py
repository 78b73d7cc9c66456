"""An ordinary Flask service for gunicorn: `GET /` waits WAIT_MS milliseconds for something remote and
renders a table. The number of gunicorn's workers limits the service.

Not here: how the service is started and measured (../lib/rows_services.py).
"""

import os
import time

from flask import Flask, render_template_string

PAGE = "<table>{% for row in rows %}<tr><td>{{ row }}</td><td>{{ row * row }}</td></tr>{% endfor %}</table>"
WAIT_S = int(os.environ["WAIT_MS"]) / 1000
app = Flask(__name__)


@app.get("/")
def page():
    time.sleep(WAIT_S)
    return render_template_string(PAGE, rows=range(20))
