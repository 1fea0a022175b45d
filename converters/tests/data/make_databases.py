"""Makes nsys.sqlite.gz and rocpd.db.gz: the tables of Nsight Systems' export and of rocprofv3's
database, after their published schemas, with made-up rows. The same run gives the same files.

usage: make_databases.py FOLDER
"""

import gzip
import pathlib
import sqlite3
import sys
import tempfile

PID, TID = 4242, 4250
THREAD = PID << 24 | TID
NSYS = """
PRAGMA page_size = 512;
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, -- numbers of texts
    value TEXT NOT NULL);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER);
CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT,
    busLocation TEXT NOT NULL, isDiscrete INTEGER, l2CacheSize INTEGER, totalMemory INTEGER,
    smCount INTEGER, cuDevice INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL,
    eventClass INTEGER NOT NULL, globalTid INTEGER, correlationId INTEGER,
    nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER,
    registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
    gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
    blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
    dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL,
    correlationId INTEGER, globalPid INTEGER, value INTEGER NOT NULL, bytes INTEGER NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER, streamId INTEGER, correlationId INTEGER,
    globalPid INTEGER, syncType INTEGER, eventId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL,
    rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER,
    endGlobalTid INTEGER, textId INTEGER, domainId INTEGER);
"""


def nsys(db):
    db.executescript(NSYS)
    long = "void kernel<" + "a_long_type, " * 100 + "int>(float*)"
    texts = ["", "cudaLaunchKernel_v7000", long, "kernel", "main thread", "step", "cudaMemcpyAsync_v3020"]
    db.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(texts))
    db.execute("INSERT INTO ThreadNames VALUES (4, NULL, ?)", [THREAD])
    db.execute("INSERT INTO PROCESSES VALUES (?, ?, 'train')", [PID << 24, PID])
    db.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1790857026000000000, '', '')")
    db.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 0, 'NVIDIA H200', '0000:18:00.0', 1, 1, 150109880320, 132, 0)")
    for n in range(200):
        at = n * 10_000
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, 1, 0, NULL)",
                   [at, at + 1000, THREAD, 2 * n + 1])
        db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, NULL, 7, ?, ?, 2, 3, NULL, 32, 48, 1, 1, 256, 1, 1, 16, 1024, NULL)",
                   [at + 2000, at + 7000, 2 * n + 1, PID << 24])
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (2000000, 2001000, 0, ?, 1000, 6, 2, NULL)", [THREAD])
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (2002000, 2003000, 0, 1, 7, 1000, ?, 4096, 1)", [PID << 24])
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (2004000, 2005000, 0, 1, 7, 1001, ?, 0, 512)", [PID << 24])
    db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (2005000, 2006000, 0, 1, 7, 1002, ?, 3, 0)", [PID << 24])
    ranges = [(0, 500, 59, None, 5), (100, None, 34, "mark", None), (200, 2006000, 60, "range", None), (0, None, 75, "domain", None)]
    for start, end, kind, text, number in ranges:
        db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, NULL, NULL, NULL, ?, ?, NULL, ?, 0)",
                   [start, end, kind, text, THREAD, number])


ROCPD = """
CREATE TABLE IF NOT EXISTS `rocpd_string_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT DEFAULT "g" NOT NULL, "string" TEXT NOT NULL UNIQUE ON CONFLICT ABORT);
CREATE TABLE IF NOT EXISTS `rocpd_info_node_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, "hash" BIGINT NOT NULL, "machine_id" TEXT NOT NULL, "hostname" TEXT);
CREATE TABLE IF NOT EXISTS `rocpd_info_process_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, "nid" INTEGER NOT NULL, "ppid" INTEGER, "pid" INTEGER NOT NULL,
    "name" TEXT, -- optional user provided name
    "command" TEXT);
CREATE TABLE IF NOT EXISTS `rocpd_info_thread_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, "nid" INTEGER NOT NULL, "ppid" INTEGER, "pid" INTEGER NOT NULL,
    "tid" INTEGER NOT NULL, "name" TEXT);
CREATE TABLE IF NOT EXISTS `rocpd_info_agent_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, "nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL,
    "type" TEXT CHECK ("type" IN ('CPU', 'GPU')), "absolute_index" INTEGER,
    "logical_index" INTEGER, "type_index" INTEGER, "uuid" INTEGER, "name" TEXT,
    "vendor_name" TEXT, "product_name" TEXT);
CREATE TABLE IF NOT EXISTS `rocpd_info_kernel_symbol_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, "kernel_name" TEXT, "display_name" TEXT, "sgpr_count" INTEGER, "arch_vgpr_count" INTEGER);
CREATE TABLE IF NOT EXISTS `rocpd_event_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, "category_id" INTEGER, "stack_id" INTEGER, "parent_stack_id" INTEGER, "correlation_id" INTEGER);
"""
PLACE = {
    "inline": '"nid" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "tid" INTEGER, "agent_id" INTEGER, '
    '"queue_id" INTEGER, "stream_id" INTEGER, "start" BIGINT NOT NULL, "end" BIGINT NOT NULL',
    "rows": '"track_id" INTEGER NOT NULL, "start_id" INTEGER NOT NULL, "end_id" INTEGER NOT NULL',
}
EVENTS = """
CREATE TABLE IF NOT EXISTS `rocpd_region_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, PLACE, "name_id" INTEGER NOT NULL, "event_id" INTEGER,
    FOREIGN KEY (name_id) REFERENCES `rocpd_string_RUN` (id) ON UPDATE CASCADE);
CREATE TABLE IF NOT EXISTS `rocpd_kernel_dispatch_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, PLACE, "kernel_id" INTEGER NOT NULL, "dispatch_id" INTEGER NOT NULL,
    "private_segment_size" INTEGER, "group_segment_size" INTEGER,
    "workgroup_size_x" INTEGER, "workgroup_size_y" INTEGER, "workgroup_size_z" INTEGER,
    "grid_size_x" INTEGER, "grid_size_y" INTEGER, "grid_size_z" INTEGER, "event_id" INTEGER);
CREATE TABLE IF NOT EXISTS `rocpd_memory_copy_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    "guid" TEXT, PLACE, "name_id" INTEGER NOT NULL, "dst_agent_id" INTEGER, "src_agent_id" INTEGER,
    "size" INTEGER NOT NULL, "event_id" INTEGER);
"""


def run(db, name, layout):
    """One run, in one of the two layouts."""
    tables = ROCPD + EVENTS.replace("PLACE", PLACE[layout])
    if layout == "rows":
        tables += """
            CREATE TABLE `rocpd_timestamp_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT, "value" BIGINT NOT NULL);
            CREATE TABLE `rocpd_track_RUN` ("id" INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "guid" TEXT, "nid" INTEGER,
                "pid" INTEGER, "tid" INTEGER, "agent_id" INTEGER, "queue_id" INTEGER, "stream_id" INTEGER);"""
    db.executescript(tables.replace("RUN", name))

    def put(table, **cells):
        keys, marks = ", ".join(f'"{key}"' for key in cells), ", ".join("?" * len(cells))
        made = db.execute(f"INSERT INTO `rocpd_{table}_{name}` ({keys}) VALUES ({marks})", list(cells.values()))
        return made.lastrowid

    def event(table, start, end, tid, agent, stream, **cells):
        if layout == "rows":
            track = put("track", nid=1, pid=1, tid=tid, agent_id=agent, stream_id=stream)
            place = {"track_id": track, "start_id": put("timestamp", value=start), "end_id": put("timestamp", value=end)}
        else:
            place = {"nid": 1, "pid": 1, "tid": tid, "agent_id": agent, "stream_id": stream, "start": start, "end": end}
        put(table, **place, **cells)

    api, call, copy, dispatch = (put("string", string=text) for text in
        ("HIP_RUNTIME_API_EXT", "hipLaunchKernel", "MEMORY_COPY_HOST_TO_DEVICE", "KERNEL_DISPATCH"))
    put("info_node", hash=1, machine_id="m", hostname="node7")
    put("info_process", nid=1, ppid=1, pid=PID, command="/usr/bin/train --fast")
    thread = put("info_thread", nid=1, pid=1, tid=TID, name="main")
    put("info_agent", nid=1, pid=1, type="CPU", type_index=0, logical_index=0)
    gpu = put("info_agent", nid=1, pid=1, type="GPU", type_index=0, logical_index=1, name="gfx942",
              vendor_name="AMD", product_name="AMD Instinct MI300X")
    kernel = put("info_kernel_symbol", kernel_name="_Z3addPf.kd", display_name="add(float*)", sgpr_count=16, arch_vgpr_count=24)
    for n in range(3):
        at = 1_000_000_000 + n * 10_000
        stack = 10 + n
        launch = put("event", category_id=api, stack_id=stack, parent_stack_id=0, correlation_id=0)
        event("region", at, at + 2000, thread, None, None, name_id=call, event_id=launch)
        launched = put("event", category_id=dispatch, stack_id=stack, parent_stack_id=stack, correlation_id=0)
        event("kernel_dispatch", at + 3000, at + 8000, thread, gpu, 2, kernel_id=kernel, dispatch_id=n,
              private_segment_size=0, group_segment_size=512, workgroup_size_x=256, workgroup_size_y=1,
              workgroup_size_z=1, grid_size_x=4096, grid_size_y=1, grid_size_z=1, event_id=launched)
    event("memory_copy", 1_000_050_000, 1_000_060_000, thread, gpu, 2, name_id=copy, dst_agent_id=gpu, src_agent_id=1, size=4096)


def rocpd(db):
    db.execute("PRAGMA page_size = 1024")
    run(db, "0000_one", "inline")
    run(db, "0000_two", "rows")


folder = pathlib.Path(sys.argv[1])
for name, fill in (("nsys.sqlite", nsys), ("rocpd.db", rocpd)):
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch, name)
        db = sqlite3.connect(path)
        fill(db)
        db.commit()
        db.close()
        (folder / f"{name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
