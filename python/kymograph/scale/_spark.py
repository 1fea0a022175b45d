"""Spark: the cluster of a `SparkSession`."""

from __future__ import annotations

from pyspark.sql import SparkSession

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(
    task: Any, items: list[Any], gather: Any, fan_in: int, session: Any, workers: int | None
) -> Any:
    spark = session or SparkSession.getActiveSession()
    if spark is None:
        raise ValueError("there is no SparkSession: SparkSession.builder makes one")
    answers = spark.sparkContext.parallelize(items, len(items)).map(task)
    depth = 1
    while fan_in**depth < len(items):
        depth += 1
    return answers.treeReduce(lambda one, other: gather([one, other]), depth)
