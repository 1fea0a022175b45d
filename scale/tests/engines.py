"""Reads a data set with DuckDB, Polars and pyarrow, as it is, and compares what they say.

usage: engines.py DATASET
"""

import json
import pathlib
import sys

import duckdb
import polars
import pyarrow.parquet

TABLES = ("kernels calls operators annotations collectives steps counters memory flows names "
          "quality").split()
root = pathlib.Path(sys.argv[1])
manifests = [json.loads(path.read_text()) for path in sorted(root.glob("ranks/rank-*.json"))]


def stated(table):
    """The rows that manifests state."""
    files = (file for manifest in manifests for file in manifest["files"])
    return sum(file["rows"] for file in files if file["path"].startswith(f"{table}/"))


def of_duckdb(table, what):
    return duckdb.sql(f"SELECT {what} FROM '{root}/{table}/*/*.parquet' GROUP BY ALL ORDER BY ALL").fetchall()


def of_polars(table, by, column):
    frame = polars.scan_parquet(f"{root}/{table}/*/*.parquet")
    keys = [polars.col(name).cast(polars.String) if name in ("class", "kind") else polars.col(name) for name in by]
    grouped = frame.with_columns(keys).group_by(by).agg(polars.col(column).sum().alias("sum"))
    return grouped.sort(by).collect().rows()


for table in TABLES:
    rows = stated(table)
    assert of_duckdb(table, "count(*)") == [(rows,)], table
    frame = polars.scan_parquet(f"{root}/{table}/*/*.parquet")
    assert frame.select(polars.len()).collect().item() == rows, table
    for path in root.glob(f"{table}/*/*.parquet"):
        file = pyarrow.parquet.ParquetFile(path)
        about = file.metadata.metadata
        assert about[b"kymograph.schema"] == b"1" and about[b"kymograph.table"].decode() == table
        columns = file.read().to_pydict()
        if "ts" in columns:
            assert columns["ts"] == sorted(columns["ts"]), path
        for group in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(group)
            for number in range(group.num_columns):
                column = group.column(number)
                assert column.compression == "ZSTD", (path, column)
                assert column.statistics is not None, (path, column)
                if column.physical_type == "BYTE_ARRAY":
                    assert "RLE_DICTIONARY" in column.encodings, (path, column)

assert stated("kernels") > 0 and stated("operators") > 0 and stated("flows") > 0

# The same sums, and a join by what joins launches with work.
for table, by, column in (("kernels", ["rank", "class"], "dur"), ("steps", ["rank", "step"], "compute"),
                          ("calls", ["rank", "kind"], "dur")):
    ours = of_duckdb(table, ", ".join(by) + f", sum({column})")
    ours = [row[:-1] + (int(row[-1]),) for row in ours]
    assert ours == of_polars(table, by, column), table
    assert sum(row[-1] for row in ours) > 0, table
joined = duckdb.sql(f"""
    SELECT count(*), count(*) FILTER (w.ts >= c.ts) FROM '{root}/calls/*/*.parquet' c
    JOIN '{root}/kernels/*/*.parquet' w USING (rank, correlation)""").fetchone()
launches = of_duckdb("flows", "kind, count(*)")
assert joined[0] == joined[1] == dict(launches)["launch"], (joined, launches)
# Partitions are a column, by which files are left out.
partitions = duckdb.sql(f"""
    SELECT DISTINCT ranks FROM read_parquet('{root}/steps/*/*.parquet', hive_partitioning = true)""")
assert partitions.fetchall() == [("000000-000063",)]
# A metric's table, as it was left.
ranks = duckdb.sql(f"SELECT count(DISTINCT rank) FROM '{root}/metrics/temporal_breakdown/*/*.parquet'")
assert ranks.fetchone() == (len(manifests),)
print(f"{len(manifests)} ranks read by DuckDB {duckdb.__version__} and Polars {polars.__version__}")
