//! Tables of other publishers: read as sweeps, or refused.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use steptime_aten::kernel::Precision;
use steptime_aten::{Dtype, Kernel, OpSet};
use steptime_sweep::{Error, LEFT_OUT, OF_CALLS, State, observe, read_table};

/// Temporary folder of a test, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("steptime-tables-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PRODUCTS: &str = "OPName,Latency,Device,B,M,N,K
bmm,0.25,NVIDIA L4,192,96,196,64
linear,1.1,NVIDIA L4,2,1024,2560,512
bmm,0.05,NVIDIA L4,8,32,32,32
bmm,0.5,Tesla T4,192,96,196,64
";

#[test]
fn a_table_of_products_is_a_sweep_for_each_gpu_and_what_the_host_takes_is_left_out() {
    let folder = Folder::new("products");
    let sweeps = read_table(&folder.file("bmm.csv", PRODUCTS)).unwrap();
    let names: Vec<&str> = sweeps.iter().filter_map(|sweep| sweep.meta.get("device")).collect();
    assert_eq!(names, ["NVIDIA L4", "Tesla T4"]);
    assert!(sweeps[0].meta.get(LEFT_OUT).is_some_and(|text| text.starts_with("1 rows")));
    assert_eq!(sweeps[1].meta.get(LEFT_OUT), None);
    let observed = observe(&sweeps, &OpSet::standard());
    assert!(observed.unread.is_empty() && observed.unknown.is_empty() && observed.unexpected.is_empty());
    let flops: Vec<u64> = observed.observations.iter().map(|row| row.call.flops).collect();
    assert_eq!(flops[0], 2 * 192 * 96 * 196 * 64);
    assert_eq!(flops[1], 2 * 2048 * 2560 * 512);
    assert_eq!(observed.observations[1].time.as_micros(), 1100.0);
}

#[test]
fn every_op_of_rows_and_images_is_known() {
    let folder = Folder::new("ops");
    let ops =
        ["add", "addu", "mul", "mulu", "div", "divu", "pow", "powu", "relu", "gelu", "tanh", "ln", "softmax"];
    let rows: String = ops.iter().map(|op| format!("{op},1.5,NVIDIA L4,4096,1030\n")).collect();
    let pointwise = folder.file("vec.csv", &format!("OPName,Latency,Device,B,H\n{rows}"));
    let observed = observe(&read_table(&pointwise).unwrap(), &OpSet::standard());
    assert_eq!(observed.observations.len(), ops.len());
    assert!(observed.unread.is_empty() && observed.unknown.is_empty(), "{observed:?}");
    let images = "OPName,Latency,Device,B,Input_Channel,Output_Channel,Kernel_Szie,Input_Size,Stride,Padding
conv,0.88,Tesla V100-PCIE-32GB,38,64,32,3,56,1,1
";
    let observed = observe(&read_table(&folder.file("conv.csv", images)).unwrap(), &OpSet::standard());
    let Kernel::Conv(conv) = &observed.observations[0].call.kernel else { panic!("no convolution") };
    assert_eq!((conv.batch, conv.channels_out, conv.output[2]), (38, 32, 56));
    assert_eq!(conv.precision, Precision::F32);
}

#[test]
fn the_kernel_that_a_table_names_tells_whether_a_softmax_reads_rows_again() {
    let folder = Folder::new("kernels");
    let table = "OPName,Latency,Device,Kernel Name,B,H
softmax,1.5,NVIDIA L4,void at::native::(anonymous namespace)::cunn_SoftMaxForward<4>,4096,2048
softmax,1.5,NVIDIA L4,,4096,2048
";
    let sweeps = read_table(&folder.file("softmax.csv", table)).unwrap();
    assert!(sweeps[0].meta.get(OF_CALLS).is_some());
    let observed = observe(&sweeps, &OpSet::standard());
    let again = observed.observations.iter().map(|row| match &row.call.kernel {
        Kernel::Softmax(softmax) => softmax.again,
        other => panic!("{other:?}"),
    });
    assert_eq!(again.collect::<Vec<bool>>(), [true, false]);
}

/// A table of two products in bf16, one in a type that is not read, and one without a time.
fn gemm(path: &Path, ms: [f64; 4]) {
    let text = |values: [&str; 4]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let size = |values: [i64; 4]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
    let columns = [
        ("device", text(["NVIDIA B200"; 4])),
        ("gemm_dtype", text(["bfloat16", "float16", "nvfp4", "bfloat16"])),
        ("m", size([16, 4096, 16, 0])),
        ("n", size([1024; 4])),
        ("k", size([2048; 4])),
        ("latency", Arc::new(Float64Array::from(ms.to_vec())) as ArrayRef),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn products_of_an_inference_engine_find_their_weights_where_five_others_left_them() {
    let folder = Folder::new("engine");
    let path = folder.0.join("gemm.parquet");
    gemm(&path, [0.0066, 0.2, 0.01, 0.0001]);
    let sweeps = read_table(&path).unwrap();
    assert_eq!(sweeps.len(), 1);
    assert_eq!(sweeps[0].rows.len(), 2);
    assert_eq!(sweeps[0].rows[0].state, State::After(5 * 2 * 1024 * (2048 + 16)));
    assert!((sweeps[0].rows[0].us - 6.0).abs() < 1e-3, "without the way from node to node");
    let observed = observe(&sweeps, &OpSet::standard());
    let types: Vec<Dtype> = observed.observations.iter().map(|row| row.call.dtype).collect();
    assert_eq!(types, [Dtype::Bf16, Dtype::F16]);
    gemm(&path, [f64::NAN, 0.2, 0.01, 0.1]);
    assert!(matches!(read_table(&path), Err(Error::Row { row: 0, .. })));
}

#[test]
fn what_is_no_table_is_refused_with_the_place() {
    let folder = Folder::new("refused");
    let refused = |name: &str, text: &str| read_table(&folder.file(name, text)).unwrap_err().to_string();
    assert!(refused("a.csv", "a,b\n1,2\n").contains("no column OPName"));
    assert!(
        refused("b.csv", "OPName,Latency,Device,B,H\nadd,-1,NVIDIA L4,8,8\n")
            .contains("row 0 (add): a time of -1 ms")
    );
    let text = "OPName,Latency,Device,B,H\nadd,1.0,NVIDIA L4,8,8\nfft,1.0,NVIDIA L4,8,8\n";
    assert!(refused("c.csv", text).contains("row 1 (fft)"));
    assert!(refused("d.csv", "OPName,Latency,Device,B\nbmm,1.0,NVIDIA L4,8\n").contains("sizes are missing"));
    assert!(refused("e.csv", "OPName,Latency,Device,B,H\nadd,fast,NVIDIA L4,8,8\n").contains("e.csv"));
    assert!(refused("f.csv", "OPName,Latency,Device,B,H\nadd,0.01,NVIDIA L4,8,8\n").contains("no rows"));
    assert!(refused("g.parquet", "PAR1 and nothing else").contains("g.parquet"));
    assert!(matches!(read_table(&folder.0.join("none.csv")), Err(Error::Read { .. })));
}
