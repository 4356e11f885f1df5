"""The query of docs/fleet.md on DuckDB: prints its rows as JSON. The arguments are the folder of the traces and the SQL."""

import json
import sys

import duckdb

folder, sql = sys.argv[1:]
for table in ("dispatches", "kernels"):
    duckdb.sql(f"create view {table} as select * from read_parquet('{folder}/rank=*/{table}.parquet', hive_partitioning = true)")
rows = duckdb.sql(sql)
print(json.dumps([dict(zip(rows.columns, row)) for row in rows.fetchall()], default=float))
