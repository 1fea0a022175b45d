"""What engines of others say is what processes of ours say, value by value."""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

import jobs
import kymograph as ky
from kymograph import _kymograph, scale
from kymograph.scale import _dask, _ranks, _ray

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACES = ROOT / "analysis" / "tests" / "data" / "traces"
METRICS = ["temporal_breakdown", "collectives", "stragglers", "distributed", "kernel_breakdown"]
# More than fit into one task of the tree.
RANKS = scale.FAN_IN + 4

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: apt install default-jre-headless")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("job") / "traces"
    jobs.write(TRACES, folder, RANKS)
    return folder


@pytest.fixture(scope="module")
def local(folder):
    return scale.analyze(METRICS, folder, workers=2)


def same(tables, others):
    assert list(tables) == list(others)
    for name, table in tables.items():
        assert table.about == others[name].about and len(table) > 0
        assert table.to_pydict() == others[name].to_pydict()


class Deadly(_ranks.Task):
    """Kills its worker in the middle of the job, once."""

    def __init__(self, mark):
        super().__init__(["idle_time"], {}, False)
        self.mark = str(mark)

    def __call__(self, item):
        if item[0] == RANKS // 2:
            try:
                os.close(os.open(self.mark, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), 9)
        return super().__call__(item)


def survives(run, folder, mark, session=None):
    """A worker is killed, and the answer is that of all ranks."""
    items = list(enumerate(map(str, sorted(folder.iterdir()))))
    expected = _ranks.gather([_ranks.Task(["idle_time"], {}, False)(item) for item in items])
    given = run(Deadly(mark), items, _ranks.gather, scale.FAN_IN, session, None)
    assert mark.exists(), "no worker was killed"
    assert sorted(given) == sorted(expected)


def refuses(folder, tmp_path, **where):
    """What is wrong has the same words as without an engine."""
    paths = [shutil.copy(path, tmp_path) for path in sorted(folder.iterdir())]
    pathlib.Path(paths[1]).write_text("no trace")
    whys = []
    for engine in ({"workers": 2}, where):
        with pytest.raises(Exception) as caught:
            scale.analyze("idle_time", tmp_path, **engine)
        whys.append((type(caught.value), str(caught.value)))
    assert whys[0] == whys[1]
    for path in paths:
        os.unlink(path)


@pytest.mark.parametrize("workers", [2, 4])
def test_dask(folder, local, tmp_path, workers):
    import distributed

    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        same(scale.analyze(METRICS, folder, engine="dask"), local)
        survives(_dask.run, folder, tmp_path / "mark", client)
        same(scale.analyze(METRICS, folder, engine="dask", session=client), local)
        refuses(folder, tmp_path, engine="dask")


def test_dask_without_a_client():
    with pytest.raises(ValueError, match="there is no Client"):
        scale.analyze("idle_time", "x", engine="dask")


@pytest.mark.parametrize("nodes", [2, 4])
def test_ray(folder, local, tmp_path, nodes):
    import ray
    from ray.cluster_utils import Cluster

    with pytest.raises(ValueError, match="there is no Ray"):
        scale.analyze("idle_time", "x", engine="ray")
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(nodes - 1):
            cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address, log_to_driver=False)
        same(scale.analyze(METRICS, folder, engine="ray"), local)
        survives(_ray.run, folder, tmp_path / "mark")
        refuses(folder, tmp_path, engine="ray")
    finally:
        ray.shutdown()
        cluster.shutdown()


@needs_java
@pytest.mark.parametrize("nodes", [2, 4])
def test_spark(folder, local, tmp_path, nodes):
    from pyspark.sql import SparkSession

    from kymograph.scale import _spark

    with pytest.raises(ValueError, match="there is no SparkSession"):
        scale.analyze("idle_time", "x", engine="spark")
    # As many workers, each with a core and half a gigabyte.
    builder = SparkSession.builder.master(f"local-cluster[{nodes},1,512]")
    builder = builder.config("spark.executor.memory", "512m").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    try:
        same(scale.analyze(METRICS, folder, engine="spark"), local)
        survives(_spark.run, folder, tmp_path / "mark", spark)
        refuses(folder, tmp_path, engine="spark", session=spark)
    finally:
        spark.stop()


@needs_java
def test_spark_reads_a_data_set_as_it_is(folder, tmp_path):
    from pyspark.sql import SparkSession

    program = pathlib.Path(_kymograph.__file__).resolve().parent / "kymo-scale"
    assert program.exists(), "cargo build -p kymograph-scale makes it"
    dataset = tmp_path / "job.set"
    subprocess.run([program, "dataset", "add", dataset, folder], check=True)
    rows = {}
    for manifest in (dataset / "ranks").glob("rank-*.json"):
        for file in json.loads(manifest.read_text())["files"]:
            table = file["path"].split("/ranks=")[0]
            rows[table] = rows.get(table, 0) + file["rows"]
    loaded = ky.load(folder)
    durations = {}
    for rank, dur in zip(loaded.kernels["rank"], loaded.kernels["dur"]):
        durations[rank] = durations.get(rank, 0) + dur
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    try:
        for table, count in rows.items():
            frame = spark.read.parquet(str(dataset / table))
            frame.createOrReplaceTempView(table.replace("/", "_"))
            assert frame.count() == count, table
            assert frame.columns[-1] == "ranks" or count == 0, frame.columns
        sums = spark.sql(
            "SELECT rank, sum(dur) AS dur FROM kernels "
            "WHERE kind IN ('kernel', 'copy', 'fill', 'communication') GROUP BY rank"
        )
        assert {row["rank"]: row["dur"] for row in sums.collect()} == durations
    finally:
        spark.stop()
