//! A small template for those who have no trace at hand: three steps of a made training.

use serde_json::{Value, json};

/// Its trace, as PyTorch's profiler would write it.
pub fn trace() -> Value {
    let mut events = vec![json!({
        "ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 0, "args": {"name": "python"},
    })];
    let mut id = 1;
    for step in 0..3 {
        let from = f64::from(step) * 3000.0;
        events.push(json!({
            "ph": "X", "cat": "user_annotation", "name": format!("ProfilerStep#{step}"),
            "pid": 7, "tid": 7, "ts": from, "dur": 2900.0, "args": {},
        }));
        for n in 0..48 {
            let ts = from + 20.0 + f64::from(n) * 58.0;
            // Each sixth is a collective.
            let collective = n % 6 == 5;
            let (operator, kernel, stream) = match n % 3 {
                _ if collective => {
                    ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20)
                }
                0 => ("aten::mm", "sm90_xmma_gemm_f32f32", 7),
                _ => ("aten::add", "void at::native::vectorized_elementwise_kernel<4>", 7),
            };
            let of = |cat: &str, name: &str, (tid, ts, dur): (i64, f64, f64), args: Value| {
                let pid = if cat == "kernel" { 0 } else { 7 };
                json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args})
            };
            let args = json!({"External id": id, "Input Dims": [[64, 64]]});
            events.push(of("cpu_op", operator, (7, ts, 50.0), args));
            let args = json!({"External id": id, "correlation": id});
            events.push(of("cuda_runtime", "cudaLaunchKernel", (7, ts + 10.0, 8.0), args));
            let mut args =
                json!({"External id": id, "correlation": id, "stream": stream, "device": 0});
            if collective {
                args["Collective name"] = json!("allreduce");
                args["In msg nelems"] = json!(500_000);
                args["Out msg nelems"] = json!(500_000);
                args["Group size"] = json!(4);
                args["dtype"] = json!("Float");
                args["Process Group Name"] = json!("0");
                args["Process Group Ranks"] = json!("[0, 1, 2, 3]");
            }
            events.push(of("kernel", kernel, (stream, ts + 30.0, 25.0), args));
            for (ph, pid, tid, ts) in [("s", 7, 7, ts + 10.0), ("f", 0, stream, ts + 30.0)] {
                events.push(json!({
                    "ph": ph, "cat": "ac2g", "name": "ac2g", "id": id, "pid": pid, "tid": tid,
                    "ts": ts, "bp": "e",
                }));
            }
            id += 1;
        }
    }
    json!({"traceEvents": events, "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}]})
}
