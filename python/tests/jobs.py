"""A job of several ranks, of the two that there are, for tests of `kymograph.scale`."""

import gzip
import json

RANKS = 6


def write(traces, folder, ranks=RANKS, world_size=None):
    """Writes the traces of all ranks, and says where they are."""
    folder.mkdir(exist_ok=True)
    given = [json.loads(gzip.open(path).read()) for path in sorted(traces.glob("*.json.gz"))]
    paths = []
    for rank in range(ranks):
        trace = given[rank % len(given)]
        trace["distributedInfo"].update(rank=rank, world_size=world_size or ranks)
        paths.append(folder / f"rank{rank}.json")
        paths[-1].write_text(json.dumps(trace))
    return paths
