//! Writes a table of a given size as a checkpoint, verifies it, reads some rows, exports it to ONNX; prints times and
//! the peak of memory.
//!
//!     cargo run --release -p steptime-train --example large_checkpoint -- GIB FOLDER

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use steptime_tensor::DType;
use steptime_train::checkpoint::{Checkpoint, Entry, Options, Source, State, Store};
use steptime_train::onnx::{Dim, OnnxGraph};

const COLUMNS: u64 = 128;

/// A table whose row `r` has the values `r`, made while it is read.
struct Rows;

impl Source for Rows {
    fn read(&self, start: u64, bytes: &mut [u8]) -> io::Result<()> {
        for (position, number) in (start / 4..).zip(bytes.chunks_exact_mut(4)) {
            number.copy_from_slice(&((position / COLUMNS) as f32).to_le_bytes());
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: large_checkpoint GIB FOLDER";
    let gib: f64 = arguments.next().ok_or(usage)?.parse()?;
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let rows = (gib * f64::from(1u32 << 30)) as u64 / (4 * COLUMNS);
    let bytes = (rows * 4 * COLUMNS) as f64;
    let timed = |what: &str, begun: Instant| {
        let seconds = begun.elapsed().as_secs_f64();
        println!("{what}: {seconds:.3} s, {:.2} GB/s, peak {} MB", bytes / seconds / 1e9, peak_megabytes());
    };

    let begun = Instant::now();
    let store =
        Store::open(folder.join("checkpoints"), Options { shard_bytes: 1 << 30, ..Options::default() })?;
    let table = Entry::new("table", DType::F32, &[rows, COLUMNS], Rows);
    let path = store.write(&State::default(), "", &[table])?.path;
    timed("write and flush", begun);

    let begun = Instant::now();
    let checkpoint = Checkpoint::open(&path)?;
    timed("open and verify", begun);

    let begun = Instant::now();
    for step in 0..1000 {
        let row = step * 7919 % rows;
        assert_eq!(checkpoint.read_rows::<f32>("table", row..row + 1)?, [row as f32; COLUMNS as usize]);
    }
    println!("1,000 rows: {:.4} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let mut graph = OnnxGraph::new("table");
    let table = graph.weight(checkpoint.entry("table")?)?;
    let indices = graph.input("indices", DType::I64, &[Dim::batch(), Dim::from(2)])?;
    let bags = graph.embedding_bag(table, indices)?;
    graph.output("bags", bags)?;
    graph.write(&folder.join("table.onnx"))?;
    timed("export to ONNX", begun);
    Ok(())
}

/// Largest resident memory of this process so far; 0 where the system has no `/proc`.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .map_or(0, |kib| kib * 1024 / 1_000_000)
}
