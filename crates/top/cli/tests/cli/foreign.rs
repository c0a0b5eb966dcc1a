//! Traces of other profilers: exports of Nsight Systems, and traces that XLA writes for JAX.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::{failure, json, stdout, text, words};

/// The tables of an export as Nsight Systems 2024 writes them: those that the reader uses, and some others.
const SCHEMA: &str = "
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE ThreadNames (nameId INTEGER NOT NULL REFERENCES StringIds(id), priority INTEGER, globalTid INTEGER);
CREATE TABLE TARGET_INFO_GPU (vmId INTEGER, id INTEGER, name TEXT, busLocation TEXT, isDiscrete INTEGER, l2CacheSize INTEGER,
  totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, threadsPerWarp INTEGER,
  computeMajor INTEGER, computeMinor INTEGER, cuDevice INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL,
  shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL,
  blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, registersPerThread INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL,
  dynamicSharedMemory INTEGER NOT NULL, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
  contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, bytes INTEGER NOT NULL,
  copyKind INTEGER NOT NULL, srcKind INTEGER, dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
  globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
  endGlobalTid INTEGER, textId INTEGER REFERENCES StringIds(id), domainId INTEGER);
INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.11.0');
INSERT INTO StringIds VALUES (1, 'cudaLaunchKernel_v7000'), (2, 'cudaMemcpyAsync_v3020'), (3, 'gemm'),
  (4, 'void cutlass::gemm<float>(Params)'), (5, 'pt_main_thread'), (6, 'forward'), (7, 'cudaDeviceSynchronize_v3020');
INSERT INTO TARGET_INFO_GPU VALUES (1, 0, 'NVIDIA A100-SXM4-80GB', '0000:07:00.0', 1, 41943040, 85899345920, 2039000000000, 1410000000,
  108, 32, 8, 0, 0);
";

/// Steps of 1 ms of a process: a copy of 4 KiB, and a kernel of 400 us.
fn nsight(folder: &Path, processes: &[i64]) -> PathBuf {
    let path = folder.join("report.sqlite");
    let database = Connection::open(&path).expect("a database");
    database.execute_batch(SCHEMA).expect("tables");
    for &process in processes {
        let (pid, tid) = (process << 24, (process << 24) | process);
        let mut rows = format!("INSERT INTO ThreadNames VALUES (5, 20, {tid});");
        for step in 0..4_i64 {
            let (at, link) = (1_000_000 * (step + 1), 10 * step + 1);
            let end = at + 990_000;
            let _ = write!(
                rows,
                "INSERT INTO NVTX_EVENTS VALUES ({at}, {end}, 59, 'iteration {step}', {tid}, NULL, NULL, 0);
                 INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, NULL, {tid}, NULL, 6, 0);
                 INSERT INTO NVTX_EVENTS VALUES ({}, {}, 59, 'aten::mm, seq = 7, op_id = 3, sizes = [[512, 512], [512, 512]]', {tid}, NULL, NULL, 0);
                 INSERT INTO NVTX_EVENTS VALUES ({}, NULL, 34, 'a mark', {tid}, NULL, NULL, 0);
                 INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {tid}, {link}, 2, 0);
                 INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES ({}, {}, 0, 1, 7, {link}, {pid}, 4096, 1, 1, 2);
                 INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {tid}, {}, 1, 0);
                 INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({}, {}, 0, 1, 7, {}, {pid}, 4, 3, 16, 16, 1, 128, 1, 1, 64, 1024, 512, NULL);
                 INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({}, {}, 0, {tid}, {}, 7, 0);",
                at + 10_000, at + 100_000,
                at + 30_000, at + 60_000,
                at + 40_000,
                at + 15_000, at + 20_000,
                at + 21_000, at + 25_000,
                at + 40_000, at + 50_000, link + 1,
                at + 55_000, at + 455_000, link + 1,
                at + 110_000, at + 460_000, link + 2,
            );
        }
        database.execute_batch(&rows).expect("rows");
    }
    path
}

/// The same in XLA's format, with a line that repeats the streams'.
fn xla(folder: &Path) -> PathBuf {
    let path = folder.join("host.trace.json");
    let mut events = String::from(
        r#"{"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14(Compute,MemcpyH2D)"}},
{"ph":"M","pid":1,"tid":99,"name":"thread_name","args":{"name":"XLA Ops"}},
{"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
{"ph":"M","pid":701,"tid":5,"name":"thread_name","args":{"name":"python"}},
"#,
    );
    for step in 0..4_i64 {
        let at = 1000 * (step + 1);
        let link = 10 * step + 1;
        let kernel = r#""context_id":"1","hlo_module":"jit_step","hlo_op":"fusion.3","kernel_details":"regs:64 static_shared:1024 dynamic_shared:512 grid:16,16,1 block:128,1,1 occ_pct:50""#;
        let _ = write!(
            events,
            r#"{{"ph":"X","pid":701,"tid":5,"ts":{at},"dur":990.0,"name":"train","args":{{"step_num":"{step}","group_id":"{step}"}}}},
{{"ph":"X","pid":701,"tid":5,"ts":{},"dur":90,"name":"PjitFunction(step)","args":{{}}}},
{{"ph":"X","pid":701,"tid":5,"ts":{},"dur":80,"name":"$train.py:12 step"}},
{{"ph":"X","pid":701,"tid":5,"ts":{},"dur":5,"name":"cuMemcpyHtoDAsync","args":{{"correlation_id":"{link}"}}}},
{{"ph":"X","pid":1,"tid":14,"ts":{},"dur":4,"name":"MemcpyH2D","args":{{"correlation_id":"{link}","memcpy_details":"kind_src:pinned kind_dst:device size:4096 dest:0 async:1"}}}},
{{"ph":"X","pid":701,"tid":5,"ts":{},"dur":10,"name":"cuLaunchKernel","args":{{"correlation_id":"{}"}}}},
{{"ph":"X","pid":1,"tid":14,"ts":{},"dur":400.000,"name":"gemm_fusion","args":{{"correlation_id":"{}",{kernel}}}}},
{{"ph":"X","pid":1,"tid":99,"ts":{},"dur":400.000,"name":"fusion.3","args":{{}}}},
{{"ph":"X","pid":701,"tid":5,"ts":{},"dur":350,"name":"cuStreamSynchronize","args":{{"correlation_id":"{}"}}}},
"#,
            at + 10,
            at + 11,
            at + 15,
            at + 21,
            at + 40,
            link + 1,
            at + 55,
            link + 1,
            at + 55,
            at + 110,
            link + 2,
        );
    }
    events.push_str("{}");
    let whole =
        format!(r#"{{"displayTimeUnit":"ns","metadata":{{"highres-ticks":true}},"traceEvents":[{events}]}}"#);
    std::fs::write(&path, whole).expect("a file");
    path
}

#[test]
fn steps_kernels_and_links_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, kernel) in [
        (nsight(folder.path(), &[77]), "void cutlass::gemm<float>(Params)"),
        (xla(folder.path()), "gemm_fusion"),
    ] {
        let found = json(&["inspect", text(&path)]);
        assert_eq!(found["steps"]["count"], 4, "{found}");
        let ms = |key: &str| found[key].as_f64().expect("a number");
        assert!((ms("period_ms") - 1.0).abs() < 0.02, "{found}");
        assert!((ms("active_ms") - 0.404).abs() < 1e-9, "{found}");
        assert_eq!(found["kernels"][0]["name"], kernel);
        assert_eq!(found["coverage"]["activities_linked_share"], 1.0, "{}", found["coverage"]);
    }
    let gpu = json(&["inspect", text(&nsight(tempfile::tempdir().expect("a folder").path(), &[77]))]);
    assert_eq!(
        (&gpu["device"], &gpu["devices"][0]["multiprocessors"]),
        (&"NVIDIA A100-SXM4-80GB".into(), &108.into()),
        "{gpu}"
    );
}

#[test]
fn predictions_say_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, by) in
        [(nsight(folder.path(), &[77]), "Nsight Systems"), (xla(folder.path()), "XLA's profiler")]
    {
        let said = words(&stdout(&["predict", text(&path)]));
        assert!(
            said.contains(&format!("recorded by {by}: host times include its cost, which is not known")),
            "{said}"
        );
        let answer = json(&["predict", text(&path)]);
        let step = answer["step_ms"].as_f64().expect("a number");
        assert!((step - 1.0).abs() < 0.05, "{step}");
        let refused = failure(&["whatif", text(&path), "--dtype", "bf16"]);
        assert!(refused.starts_with("error: "), "{refused}");
        let same = json(&["compare", text(&path), text(&path)]);
        assert_eq!(same["longer"], 0.0, "{same}");
    }
}

#[test]
fn a_roofline_is_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in [nsight(folder.path(), &[77]), xla(folder.path())] {
        let answer = json(&["roofline", text(&path)]);
        assert!(answer["attainable_ms"].is_null() && answer["device_ms"].as_f64() > Some(0.4), "{answer}");
        let rows = answer["kernels"].as_array().expect("kernels");
        let of = |family: &str| rows.iter().find(|row| row["family"] == family).expect("a row");
        let (gemm, copy) = (of("kernel"), of("copy"));
        assert!(gemm["kernel"].as_str().is_some_and(|name| name.contains("gemm")), "{gemm}");
        assert_eq!((&gemm["count"], &gemm["time_us"]), (&1.into(), &400.0.into()));
        assert!(gemm["flops"].is_null() && gemm["bound"].is_null() && gemm["share"].is_null(), "{gemm}");
        // 4 KiB in 4 us.
        assert_eq!((&copy["bytes"], &copy["gb_s"]), (&4096.into(), &1.024.into()), "{copy}");
        assert!(words(&stdout(&["roofline", text(&path)])).contains("the work of kernels is not known"));
        assert!(failure(&["roofline", text(&path), "--device", "h200"]).contains("no arguments"));
        let svg = folder.path().join("roof.svg");
        let drawn = failure(&["roofline", text(&path), "--plot", text(&svg)]);
        assert!(drawn.contains("leave --plot out") && !svg.exists(), "{drawn}");
    }
}

#[test]
fn a_lake_takes_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let lake = folder.path().join("lake");
    for path in [nsight(folder.path(), &[77]), xla(folder.path())] {
        let found = json(&["ingest", text(&path), "-o", text(&lake)]);
        let run = &found["runs"][0];
        assert_eq!((&run["steps"], &run["kernels"]), (&4.into(), &4.into()), "{found}");
    }
}

#[test]
fn what_is_no_export_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let several = failure(&["inspect", text(&nsight(folder.path(), &[77, 78]))]);
    assert!(several.contains("2 processes (77, 78)") && several.contains("nsys profile -o"), "{several}");
    let report = folder.path().join("report.nsys-rep");
    std::fs::write(&report, b"\0\0report").expect("a file");
    let said = failure(&["inspect", text(&report)]);
    assert!(said.contains("nsys export --type sqlite"), "{said}");
    let other = folder.path().join("other.sqlite");
    Connection::open(&other).and_then(|db| db.execute_batch("CREATE TABLE t (a)")).expect("a database");
    assert!(
        failure(&["inspect", text(&other)]).contains("none of the tables of"),
        "a database of something else"
    );
    std::fs::write(&other, [b"SQLite format 3\0".as_slice(), &[0xff; 200]].concat()).expect("a file");
    assert!(failure(&["inspect", text(&other)]).contains("cannot be read as an export"), "damage");
}

#[test]
fn calls_that_newer_xla_names_after_what_they_launch_are_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = xla(folder.path());
    let answer = |path: &Path| {
        let answer = json(&["predict", text(path), "--keep-profiler"]);
        (
            answer["step_ms"].clone(),
            answer["active_ms"].clone(),
            answer["coverage"]["activities_linked"].clone(),
        )
    };
    let named = answer(&path);
    let older = std::fs::read_to_string(&path).expect("the trace");
    let newer = older
        .replace(r#""name":"cuMemcpyHtoDAsync""#, r#""name":"MemcpyH2D""#)
        .replace(r#""name":"cuLaunchKernel""#, r#""name":"gemm_fusion""#);
    assert_ne!(older, newer);
    std::fs::write(&path, newer).expect("written");
    assert_eq!(answer(&path), named);
    assert_eq!(named.2, 8);
}
