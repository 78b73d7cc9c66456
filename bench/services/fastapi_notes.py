"""An ordinary FastAPI service: `GET /` counts the notes of one author in an SQLite table without an
index. `uvicorn fastapi_notes:app`; NOTES is the number of rows, which decides what a request costs.

Not here: how the service is started and measured (../lib/rows_services.py).
"""

import os
import random
import sqlite3

from fastapi import FastAPI

AUTHORS = 200

database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("CREATE TABLE note (author INTEGER, text TEXT)")
database.executemany("INSERT INTO note VALUES (?, ?)",
                     ((number % AUTHORS, f"note {number}") for number in range(int(os.environ["NOTES"]))))
app = FastAPI()


@app.get("/")
def notes():
    author = random.randrange(AUTHORS)
    count, = database.execute("SELECT count(*) FROM note WHERE author = ?", (author,)).fetchone()
    return {"author": author, "count": count}
