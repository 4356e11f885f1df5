"""Asks DuckDB and Polars the same questions of traces and prints their answers as JSON.

The argument is a folder with traces in rank=0, rank=1, …: nothing of gapscope is used.
"""

import json
import sys

import duckdb
import polars as pl

folder = sys.argv[1]


def path(table):
    return f"{folder}/rank=*/{table}.parquet"


def with_duckdb():
    def ask(sql):
        return [list(row) for row in duckdb.sql(sql).fetchall()]

    def table(name):
        return f"read_parquet('{path(name)}', hive_partitioning = true)"

    return {
        "kernels": ask(
            f"select d.rank, k.name, count(*), sum(d.duration_ns)::bigint, max(d.duration_ns) from {table('dispatches')} d"
            f" join {table('kernels')} k on k.rank = d.rank and k.id = d.kernel group by all order by 1, 2"
        ),
        "transfers": ask(
            f"select rank, kind, count(*), sum(bytes)::bigint from {table('transfers')} group by all order by 1, 2"
        ),
        "host_calls": ask(
            f"select rank, call, sum(count)::bigint, sum(busy_ns)::bigint from {table('host_calls')} group by all"
            " order by 1, 2"
        ),
        "unknown": ask(f"select count(*) - count(label), count(*) - count(bytes) from {table('transfers')}"),
    }


def with_polars():
    def scan(name):
        return pl.scan_parquet(path(name), hive_partitioning=True)

    def rows(frame):
        return [list(row) for row in frame.collect().rows()]

    def text(column):
        return pl.col(column).cast(pl.String)

    dispatches = scan("dispatches").join(scan("kernels"), left_on=["rank", "kernel"], right_on=["rank", "id"])
    dispatches = dispatches.with_columns(text("name"))
    return {
        "kernels": rows(
            dispatches.group_by("rank", "name")
            .agg(pl.len().alias("n"), pl.sum("duration_ns"), pl.max("duration_ns").alias("longest"))
            .sort("rank", "name")
        ),
        "transfers": rows(
            scan("transfers")
            .with_columns(text("kind"))
            .group_by("rank", "kind")
            .agg(pl.len().alias("n"), pl.sum("bytes"))
            .sort("rank", "kind")
        ),
        "host_calls": rows(
            scan("host_calls")
            .with_columns(text("call"))
            .group_by("rank", "call")
            .agg(pl.col("count").cast(pl.Int64).sum().alias("n"), pl.sum("busy_ns"))
            .sort("rank", "call")
        ),
        "unknown": rows(scan("transfers").select(pl.col("label").null_count(), pl.col("bytes").null_count())),
    }


print(json.dumps({"duckdb": with_duckdb(), "polars": with_polars()}))
