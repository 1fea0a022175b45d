"""Ray: the cluster of `ray.init()`."""

from __future__ import annotations

import ray

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(
    task: Any, items: list[Any], gather: Any, fan_in: int, session: Any, workers: int | None
) -> Any:
    if not ray.is_initialized():
        raise ValueError("there is no Ray: ray.init(ADDRESS) comes first")
    read = ray.remote(max_retries=3, retry_exceptions=[OSError])(_read)
    join = ray.remote(max_retries=3)(_join)
    shared = ray.put(task)
    level = [read.remote(shared, item) for item in items]
    while len(level) > 1:
        groups = [level[at : at + fan_in] for at in range(0, len(level), fan_in)]
        level = [join.remote(gather, *group) for group in groups]
    try:
        return ray.get(level[0])
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None


def _read(task: Any, item: Any) -> Any:
    return task(item)


def _join(gather: Any, *answers: Any) -> Any:
    return gather(list(answers))
