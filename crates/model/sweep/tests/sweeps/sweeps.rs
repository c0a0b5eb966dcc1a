//! Sweeps as files: good ones, and those that must be refused.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float32Array, Int32Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use steptime_aten::OpSet;
use steptime_aten::kernel::{FusedTable, RowOptimizer};
use steptime_aten::{Kernel, Role, Slot};
use steptime_cost::device::{Context, Indices};
use steptime_sweep::{Row, State, Sweep, SweepMeta, observe, read, read_all, read_table, spec};

/// Temporary folder of a test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("steptime-sweep-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const META: [(&str, &str); 18] = [
    ("steptime_sweep_version", "1"),
    ("device", "Example"),
    ("compute_capability", "9.0"),
    ("sm_count", "132"),
    ("clock_mhz", "1980"),
    ("l2_bytes", "60000000"),
    ("memory_bytes", "150000000000"),
    ("driver", "580"),
    ("cuda", "13.0"),
    ("peak_copy_gb_s", "4230"),
    ("peak_matmul_fp32_tflop_s", "51.5"),
    ("peak_matmul_tf32_tflop_s", "420"),
    ("peak_matmul_bf16_tflop_s", "790"),
    ("peak_h2d_pinned_gb_s", "55"),
    ("peak_h2d_pageable_gb_s", "12"),
    ("peak_d2h_pinned_gb_s", "54"),
    ("peak_d2h_pageable_gb_s", "10"),
    ("seed", "0"),
];

/// A sweep of three rows of one case, with the changes of a test.
struct Example {
    meta: Vec<(String, String)>,
    op: &'static str,
    us: Vec<f32>,
    states: Vec<&'static str>,
    without: &'static str,
}

impl Default for Example {
    fn default() -> Example {
        let meta = META.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let (us, states) = (vec![9.0, 5.0, 7.5], vec!["cold", "warm", "after:50000000"]);
        Example { meta, op: "aten::mm", us, states, without: "" }
    }
}

impl Example {
    fn with(mut self, name: &str, value: &str) -> Example {
        self.meta.retain(|pair| pair.0 != name);
        self.meta.push((name.into(), value.into()));
        self
    }

    fn write(&self, path: &Path) {
        let rows = self.us.len();
        let text = |value: &str| Arc::new(StringArray::from(vec![value; rows])) as ArrayRef;
        let us = || Arc::new(Float32Array::from(self.us.clone())) as ArrayRef;
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("case", Arc::new(Int32Array::from(vec![4; rows]))),
            ("family", text("gemm")),
            ("leaf", Arc::new(Int32Array::from(vec![0; rows]))),
            ("op", text(self.op)),
            ("dims", text("[[64, 32], [32, 16]]")),
            ("strides", text("[[32, 1], [16, 1]]")),
            ("types", text("[\"float\", \"float\"]")),
            ("concrete", text("[\"\", \"\"]")),
            ("devices", text("")),
            ("tf32", Arc::new(BooleanArray::from(vec![true; rows]))),
            ("indices", text("")),
            ("state", Arc::new(StringArray::from(self.states.clone()))),
            ("us", us()),
            ("us_min", us()),
            ("us_max", us()),
            ("kernels", text("[\"gemm\"]")),
            ("a column of later versions", text("x")),
        ];
        let kept = columns.into_iter().filter(|(name, _)| *name != self.without);
        let batch = RecordBatch::try_from_iter(kept).unwrap();
        let meta = self.meta.iter().map(|(k, v)| KeyValue::new(k.clone(), v.clone())).collect();
        let properties = WriterProperties::builder().set_key_value_metadata(Some(meta)).build();
        let mut writer =
            ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }
}

fn refusal(example: &Example) -> String {
    let folder = Folder::new(&format!("refusal-{:p}", example));
    let path = folder.0.join("sweep.parquet");
    example.write(&path);
    read(&path).unwrap_err().to_string()
}

#[test]
fn rows_become_observations() {
    let folder = Folder::new("good");
    let path = folder.0.join("sweep.parquet");
    Example::default().write(&path);
    let sweep = read(&path).unwrap();
    assert_eq!(sweep.rows.len(), 3);
    assert_eq!(sweep.rows[2].state, State::After(50_000_000));
    let sweeps = [sweep];
    let observed = observe(&sweeps, &OpSet::standard());
    assert_eq!(observed.observations.len(), 3);
    let [cold, warm, after] = [0, 1, 2].map(|at| &observed.observations[at]);
    assert_eq!(cold.call.kernel.family(), "gemm");
    assert_eq!(cold.ctx, Context::cold(&cold.call));
    assert_eq!(warm.ctx, Context::warm(&warm.call));
    assert_eq!(after.ctx, Context::after(&after.call, 50_000_000));
    assert_eq!(warm.time.0, 5_000);
    let spec = spec(&sweeps[0], &observed).unwrap();
    assert_eq!(
        (spec.name.as_str(), spec.architecture.as_str(), spec.multiprocessors),
        ("Example", "Hopper", 132)
    );
    assert_eq!(spec.check(), Ok(()));
}

#[test]
fn two_sweeps_of_one_gpu_keep_their_cases_apart() {
    let folder = Folder::new("two");
    let paths = ["a.parquet", "b.parquet"].map(|name| folder.0.join(name));
    Example::default().write(&paths[0]);
    Example::default().with("seed", "1").write(&paths[1]);
    let observed = observe(&read_all(&paths).unwrap(), &OpSet::standard());
    let cases: Vec<u32> = observed.observations.iter().map(|row| row.case).collect();
    assert_eq!(cases, [0, 0, 0, 1, 1, 1]);
    Example::default().with("device", "Other").write(&paths[1]);
    let message = read_all(&paths).unwrap_err().to_string();
    assert!(
        message.contains("Example (") && message.contains("Other (") && message.contains("one GPU"),
        "{message}"
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let version = refusal(&Example::default().with("steptime_sweep_version", "7"));
    assert!(version.contains("version 7, and this steptime reads 1"), "{version}");
    for (time, said) in [(f32::NAN, "NaN"), (-1.0, "-1"), (0.0, "0"), (f32::INFINITY, "inf")] {
        let message = refusal(&Example { us: vec![1.0, time, 2.0], ..Example::default() });
        assert!(message.contains(&format!("row 1 (aten::mm): a time of {said} µs")), "{message}");
    }
    let state = refusal(&Example { states: vec!["cold", "warm", "hot"], ..Example::default() });
    assert!(state.contains("row 2 (aten::mm): a state of \"hot\""), "{state}");
    let column = refusal(&Example { without: "dims", ..Example::default() });
    assert!(column.contains("no column dims"), "{column}");
    let empty = refusal(&Example { us: vec![], states: vec![], ..Example::default() });
    assert!(empty.contains("has no rows"), "{empty}");
}

#[test]
fn half_a_file_and_no_file_are_refused() {
    let folder = Folder::new("half");
    let path = folder.0.join("sweep.parquet");
    assert!(read(&path).unwrap_err().to_string().contains("cannot read"));
    Example::default().write(&path);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("is not a whole sweep"));
    fs::write(&path, "case,family\n").unwrap();
    assert!(read(&path).unwrap_err().to_string().contains("is not a whole sweep"));
}

#[test]
fn a_file_that_claims_more_than_it_has_room_for_is_refused() {
    // Equal rows take no bytes: 300,000 would need 100 MB.
    let rows = 300_000;
    let many = refusal(&Example { us: vec![9.0; rows], states: vec!["warm"; rows], ..Example::default() });
    assert!(many.contains("claims 300000 rows") && many.contains("more than it has room for"), "{many}");
    // A text of 20 kB is in the file once, and in each row.
    let (op, rows) = ("x".repeat(20_000).leak(), 2_000);
    let long =
        refusal(&Example { op, us: vec![9.0; rows], states: vec!["warm"; rows], ..Example::default() });
    assert!(long.contains("texts are longer than the file has room for"), "{}", &long[..200]);
}

#[cfg(unix)]
#[test]
fn a_pipe_without_a_writer_is_no_sweep() {
    let folder = Folder::new("pipe");
    let path = folder.0.join("sweep.parquet");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    for error in [read(&path).unwrap_err(), read_table(&path).unwrap_err()] {
        assert!(error.to_string().contains("it is a device or a pipe, not a file"), "{error}");
    }
}

#[test]
fn a_list_without_end_in_the_header_of_a_page_is_refused() {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/sweep/endless_list.parquet");
    assert!(read(&found).unwrap_err().to_string().contains("a column is cut off or damaged"));
}

#[test]
fn a_damaged_file_is_read_or_refused() {
    let folder = Folder::new("damaged");
    let path = folder.0.join("sweep.parquet");
    Example::default().write(&path);
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    let mut try_bytes = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        // A panic would end the test.
        refused += usize::from(read(&path).is_err());
    };
    for at in 0..whole.len() {
        for changed in [whole[at] ^ 0xff, whole[at].wrapping_add(1), whole[at] ^ 0x80] {
            let mut bytes = whole.clone();
            bytes[at] = changed;
            try_bytes(&bytes);
        }
    }
    for cut in (0..whole.len()).step_by(37) {
        try_bytes(&whole[..cut]);
    }
    assert!(refused > whole.len(), "{refused} of {} bytes", whole.len());
}

#[test]
fn ops_that_are_not_known_are_counted() {
    let folder = Folder::new("unknown");
    let path = folder.0.join("sweep.parquet");
    Example { op: "vendor::thing", ..Example::default() }.write(&path);
    let observed = observe(&[read(&path).unwrap()], &OpSet::standard());
    assert_eq!(observed.unknown.get("vendor::thing"), Some(&3));
    let mut meta = Example::default();
    meta.meta.retain(|pair| pair.0 != "peak_copy_gb_s");
    meta.write(&path);
    let sweep = read(&path).unwrap();
    let message =
        spec(&sweep, &observe(std::slice::from_ref(&sweep), &OpSet::standard())).unwrap_err().to_string();
    assert!(message.contains("have no peak_copy_gb_s"), "{message}");
}

/// A row of one of steptime's own ops, all inputs as in Kineto except the list of tables, which the sweep adds.
fn own(op: &str, [dims, types, concrete]: [&str; 3]) -> Row {
    Row {
        case: 7,
        family: "operators".into(),
        leaf: 0,
        op: format!("steptime::{op}"),
        dims: dims.into(),
        strides: String::new(),
        types: types.into(),
        concrete: concrete.into(),
        devices: String::new(),
        tf32: false,
        indices: "zipf:1.05".into(),
        state: State::After(1_000_000),
        us: 21.5,
        us_min: 21.0,
        us_max: 22.0,
        kernels: "[]".into(),
    }
}

#[test]
fn rows_of_our_own_ops_become_observations() {
    let forward = [
        "[[[1000,132],[50,36]],[20480],[1025],[],[],[],[]]",
        r#"["TensorList<unsigned char>","int","int","","Scalar","Scalar","Scalar"]"#,
        r#"["","","","","0","8","3"]"#,
    ];
    let backward = [
        "[[512,144],[[1000,128],[50,16]],[20480],[1025],[20480],[],[]]",
        r#"["float","TensorList<c10::Half>","long int","long int","float","Scalar","Scalar"]"#,
        r#"["","","","","","1","4"]"#,
    ];
    let gather =
        ["[[8192,4096],[1000],[],[]]", r#"["float","long int","Scalar","Scalar"]"#, r#"["","","1024","5"]"#];
    let interaction = ["[[64,27,128],[]]", r#"["float","Scalar"]"#, r#"["","6"]"#];
    let gradient = ["[[64,479],[64,27,128],[]]", r#"["float","float","Scalar"]"#, r#"["","","6"]"#];
    let rows = vec![
        own("embedding_bag", forward),
        own("embedding_bag_backward_adam", backward),
        own("gather", gather),
        own("interaction", interaction),
        own("interaction_backward", gradient),
    ];
    let meta = SweepMeta { entries: Default::default() };
    let observed = observe(&[Sweep { path: "own.parquet".into(), meta, rows }], &OpSet::standard());
    assert!(observed.unknown.is_empty() && observed.unexpected.is_empty() && observed.unread.is_empty());
    let families: Vec<_> = observed.observations.iter().map(|row| row.call.kernel.family()).collect();
    let bags = "fused_embedding_bag";
    assert_eq!(families, [bags, bags, "tiled_gather", "interaction", "interaction"]);
    for row in &observed.observations {
        assert_eq!(row.ctx, Context::after(&row.call, 1_000_000).with_indices(Indices::Zipf(1.05)));
        assert_eq!(row.ctx.reuse.len(), row.call.operands.len());
        assert_eq!(row.time.0, 21_500);
    }
    let [int8, adam] = [0, 1].map(|at| &observed.observations[at].call);
    let (Kernel::FusedBags(forward), Kernel::FusedBags(backward)) = (&int8.kernel, &adam.kernel) else {
        panic!("another kernel")
    };
    assert_eq!(forward.tables[1], FusedTable { rows: 50, dim: 32, row_bytes: 36, lookups: 10_240 });
    assert_eq!((forward.update, forward.bags, forward.index_bytes, forward.weighted), (None, 512, 4, false));
    assert_eq!(backward.tables[1], FusedTable { rows: 50, dim: 16, row_bytes: 32, lookups: 10_240 });
    assert_eq!((backward.update, backward.weighted), (Some(RowOptimizer::Adam), true));
    let first = adam.operands[0];
    assert_eq!((first.slot, first.role, first.bytes), (Slot::Input(1, 0), Role::Update, 1000 * 256));
}
