"""One aggregate over the tables of a trace, as JSON: `with_duckdb.py TRACE`. Work and duration by kernel, and idle time without causes."""

import json
import resource
import sys
import time
from pathlib import Path

import duckdb

trace = Path(sys.argv[1])
begin = time.perf_counter()
database = duckdb.connect()
for table in ("dispatches", "transfers", "kernels"):
    database.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{trace / table}.parquet')")
kernels = database.execute(
    "SELECT name, count(*), sum(duration_ns) FROM dispatches JOIN kernels ON kernel = id GROUP BY name ORDER BY 3 DESC"
).fetchall()
(idle_ns,) = database.execute(
    """WITH work AS (SELECT start_ns, start_ns + duration_ns AS end_ns FROM dispatches
                     UNION ALL SELECT start_ns, start_ns + duration_ns FROM transfers),
            ended AS (SELECT start_ns, max(end_ns) OVER (ORDER BY start_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS end_ns FROM work)
       SELECT sum(greatest(start_ns - end_ns, 0)) FROM ended"""
).fetchone()
answers = {"kernels": len(kernels), "idle_ns": int(idle_ns), "seconds": time.perf_counter() - begin}
answers["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(answers))
