//! Read speed of a Kineto trace: of the file in `STEPTIME_BENCH_TRACE`, or of a synthetic one.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::fmt::Write;
use steptime_trace::{read, read_file, read_from};

fn bench(criterion: &mut Criterion) {
    let bytes = match std::env::var_os("STEPTIME_BENCH_TRACE") {
        Some(path) => std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
        None => synthetic(50_000).into_bytes(),
    };
    let mut group = criterion.benchmark_group("read");
    group.sample_size(20).throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("slice", |bencher| bencher.iter(|| read(&bytes)));
    group.bench_function("stream", |bencher| bencher.iter(|| read_from(&bytes[..])));
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &bytes).expect("written");
    group.bench_function("file", |bencher| bencher.iter(|| read_file(file.path())));
    group.finish();
}

/// Returns a trace of `ops` ops, each with its call, kernel and flow arrows, in Kineto's layout.
fn synthetic(ops: u32) -> String {
    let mut json = String::from("{\n  \"schemaVersion\": 1,\n  \"traceEvents\": [\n");
    for op in 0..ops {
        let (time, kind) = (4_373_858_359_000u64 + u64::from(op) * 20, op % 97);
        let comma = if op == 0 { "" } else { "," };
        let _ = write!(
            json,
            r#"{comma}
  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::op_{kind}", "pid": 520, "tid": 520,
    "ts": {time}.594, "dur": 13.088,
    "args": {{
      "External id": {op},"Record function id": 0, "Ev Idx": {op}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 520, "tid": 520,
    "ts": {time}.994, "dur": 5.384,
    "args": {{
      "External id": {op}, "cbid": 211, "correlation": {op}
    }}
  }},
  {{
    "ph": "s", "id": {op}, "pid": 520, "tid": 520, "ts": {time}.994,
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, functor_{kind}>(int)", "pid": 0, "tid": 7,
    "ts": {time}.999, "dur": 2.115,
    "args": {{
      "External id": {op}, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {op},
      "registers per thread": 32, "shared memory": 0, "blocks per SM": 7.75, "warps per SM": 31.03,
      "grid": [{kind}, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 48
    }}
  }}"#
        );
    }
    json.push_str("\n  ]\n}\n");
    json
}

criterion_group!(benches, bench);
criterion_main!(benches);
