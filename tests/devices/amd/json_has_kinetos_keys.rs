//! A trace of HIP, converted, has what readers of Kineto's JSON look for in a trace of ROCm:
//! categories, arguments by their names and types, and arrows.

use amd::Machine;
use harness::{amd, kymo};
use serde_json::Value;

const SCRIPT: &str = "\
    kernel _Z4gemmPfi.kd grid=4,2,1 block=128,2 dynamic=256 stream=13\n\
    copy htod 4096 dur=3us\n\
    set 64\n\
    call hipMalloc:8192\n\
    sync\n";

fn json(version: &str, options: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let recorded = Machine::with(version).record(SCRIPT, options);
    recorded.ended(0);
    let path = folder.path().join("t.json");
    let mut command = kymo::kymo();
    let output = command.arg("convert").arg(recorded.path()).arg(&path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}

/// The only event of this name that lasts.
fn event<'a>(json: &'a Value, name: &str) -> &'a Value {
    let events = json["traceEvents"].as_array().unwrap();
    let mut found = events.iter().filter(|event| event["ph"] == "X" && event["name"] == name);
    let event = found.next().unwrap_or_else(|| panic!("no {name}"));
    assert!(found.next().is_none(), "several {name}");
    event
}

fn has(event: &Value, expected: &Value) {
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&event["args"][key], value, "{key} of {event:#}");
    }
}

#[test]
fn device_work_and_calls() {
    for version in amd::VERSIONS {
        let json = json(version, &["--", "--set", "ALL_ARGS=1"]);
        let kernel = event(&json, "gemm(float*, int)");
        assert_eq!((&kernel["cat"], &kernel["dur"]), (&"kernel".into(), &1.0.into()));
        has(
            kernel,
            &serde_json::json!({
                "device": 0, "stream": 1, "hsa_queue": 1, "correlation": 1,
                "kind": "Dispatch Kernel", "grid": [4, 2, 1], "block": [128, 2, 1],
            }),
        );
        let copy = event(&json, "Memcpy HtoD (Host -> Device)");
        assert_eq!(copy["cat"], "gpu_memcpy");
        has(
            copy,
            &serde_json::json!({
                "device": 0, "stream": 0, "hsa_queue": 0, "correlation": 2, "kind": "HtoD",
                "bytes": 4096, "memory bandwidth (GB/s)": 4096.0 / 3000.0,
            }),
        );
        let set = event(&json, "Memset (Device)");
        assert_eq!(set["cat"], "gpu_memset");
        has(set, &serde_json::json!({ "stream": 0, "hsa_queue": 3, "bytes": 64 }));
        let launch = event(&json, "hipLaunchKernel");
        assert_eq!(launch["cat"], "cuda_runtime");
        has(
            launch,
            &serde_json::json!({
                "correlation": 1, "grid": [4, 2, 1], "block": [128, 2, 1], "shared memory": 256,
            }),
        );
        assert!(launch["args"]["cid"].is_u64());
        let copied = serde_json::json!({
            "bytes": 4096, "src": "0x7d0000000000", "dst": "0x7e0000000000",
        });
        has(event(&json, "hipMemcpyAsync"), &copied);
        has(event(&json, "hipMalloc"), &serde_json::json!({ "bytes": 8192, "ptr": "0x60000000" }));
    }
}

#[test]
fn what_identifies_work_is_there_without_asking() {
    let json = json("1.0", &[]);
    has(
        event(&json, "gemm(float*, int)"),
        &serde_json::json!({
            "device": 0, "stream": 1, "hsa_queue": 1, "correlation": 1,
            "kind": "Dispatch Kernel", "grid": [4, 2, 1], "block": [128, 2, 1],
        }),
    );
    let copy = serde_json::json!({
        "device": 0, "stream": 0, "hsa_queue": 0, "correlation": 2, "kind": "HtoD", "bytes": 4096,
        "memory bandwidth (GB/s)": 4096.0 / 3000.0,
    });
    has(event(&json, "Memcpy HtoD (Host -> Device)"), &copy);
    // An arrow from each call that asked for work to what it asked for.
    let events = json["traceEvents"].as_array().unwrap();
    let ends = |ph: &str| events.iter().filter(|e| e["ph"] == ph && e["cat"] == "ac2g").count();
    assert_eq!((ends("s"), ends("f")), (3, 3));
    assert_eq!(json["deviceProperties"][0]["name"], "Fake Instinct");
}
