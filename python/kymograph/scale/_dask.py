"""Dask: the cluster of a `distributed.Client`."""

from __future__ import annotations

from distributed import get_client

# As in `typing`, which takes long to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(
    task: Any, items: list[Any], gather: Any, fan_in: int, session: Any, workers: int | None
) -> Any:
    client = session or _current()
    # Not pure: a file may have other contents the next time.
    level = client.map(task, items, pure=False, retries=2)
    all_of_them = list(level)
    try:
        while len(level) > 1:
            groups = [level[at : at + fan_in] for at in range(0, len(level), fan_in)]
            level = [client.submit(gather, group, pure=False) for group in groups]
            all_of_them += level
        return level[0].result()
    finally:
        client.cancel(all_of_them)


def _current() -> Any:
    try:
        return get_client()
    except ValueError as error:
        raise ValueError("there is no Client: distributed.Client(ADDRESS) makes one") from error
