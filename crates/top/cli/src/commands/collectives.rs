//! `steptime collectives`.

mod report;

use std::path::Path;
use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use steptime_answers::{CollectivePricesReport, collectives::MeasuredCollective};
use steptime_cost::network::{CollectiveCall, Topology};
use steptime_graph::CollectiveKind;
use steptime_trace::Bytes;

use super::Failure;
use crate::cli::Form;
use crate::commands::usage;
use crate::console::Console;

/// `steptime collectives`.
#[derive(Debug, Args, Deserialize)]
#[command(after_help = "EXAMPLE
    steptime collectives --device h200 --gpus 2,4,8,16
    steptime collectives --device a100 --op all_reduce --bytes 64KiB,1MiB,64MiB
    torchrun --nproc-per-node 4 -m steptime.measure.collectives -o sweep.csv
    steptime collectives --device h200 --against sweep.csv")]
pub struct Collectives {
    /// The GPU, with its usual node and network: `h200`, `a100`, ...
    #[arg(long, value_name = "NAME")]
    pub device: String,
    /// Numbers of participating GPUs; more than a node has are spread over several nodes
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "2,4,8", value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub gpus: Vec<u32>,
    /// GPUs per node [default: the usual number]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub gpus_per_node: Option<u32>,
    /// Operations: `all_reduce`, `reduce_scatter`, `all_gather`, `all_to_all`, `broadcast`, `send_receive`
    #[arg(
        long,
        value_name = "OP,..",
        value_delimiter = ',',
        default_value = "all_reduce,reduce_scatter,all_gather,all_to_all"
    )]
    pub op: Vec<String>,
    /// Sizes of a rank's larger buffer: the output of an all-gather, the input of a reduce-scatter and an all-to-all
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', default_value = "64KiB,1MiB,16MiB,256MiB")]
    pub bytes: Vec<String>,
    /// A sweep by `python -m steptime.measure.collectives` to compare with
    #[arg(long, value_name = "FILE.csv", conflicts_with_all = ["gpus", "op", "bytes"])]
    pub against: Option<PathBuf>,
    /// Output format.
    #[command(flatten)]
    pub form: Form,
}

pub fn run(args: &Collectives, console: &Console<'_>) -> Result<(), Failure> {
    let topology = Topology::find(&args.device).map_err(|error| error.to_string())?;
    let topology = match args.gpus_per_node {
        Some(gpus) => topology.in_nodes_of(gpus),
        None => topology,
    };
    let answer = match &args.against {
        Some(path) => CollectivePricesReport::against(&topology, &read_sweep(path)?),
        None => CollectivePricesReport::price(&topology, &calls(args)?),
    };
    Ok(console.print_answer(args.form, &answer, report::text, report::csv)?)
}

/// Returns the requested calls: each operation among each number of GPUs at each size.
fn calls(args: &Collectives) -> Result<Vec<CollectiveCall>, Failure> {
    let mut calls = Vec::new();
    for op in &args.op {
        let kind =
            kind(op).ok_or_else(|| usage("collectives", &format!("--op {op}: not a known collective")))?;
        for &ranks in &args.gpus {
            for size in &args.bytes {
                let bytes = bytes(size).ok_or_else(|| {
                    usage("collectives", &format!("--bytes {size}: give 4096, 64KiB, 1MiB or 2GiB"))
                })?;
                calls.push(CollectiveCall { kind, ranks, bytes: Bytes(bytes) });
            }
        }
    }
    Ok(calls)
}

fn kind(op: &str) -> Option<CollectiveKind> {
    let kind = CollectiveKind::from_operation(op);
    (kind != CollectiveKind::Other).then_some(kind)
}

/// Reads a size: a number of bytes, or one with a unit.
fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("B", 0)];
    let (digits, shift) =
        units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift))).unwrap_or((text, 0));
    let number: f64 = digits.trim().parse().ok()?;
    let bytes = number * f64::from(1u32 << shift);
    (1.0..=1e15).contains(&bytes).then_some(bytes as u64)
}

/// Maximum size of a sweep of collectives, in bytes.
const LONGEST: u64 = 256 << 20;

/// Reads the rows of a sweep.
fn read_sweep(path: &Path) -> Result<Vec<MeasuredCollective>, Failure> {
    let place = path.display();
    let bytes =
        steptime_trace::read_bytes(path, LONGEST).map_err(|error| format!("cannot read {place}: {error}"))?;
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    let heads = reader.headers().map_err(|error| format!("{place}: {error}"))?.clone();
    let column = |names: &[&str]| heads.iter().position(|head| names.contains(&head));
    let needs = |names: &[&str]| {
        let lacks = || {
            format!(
                "{place} has no column `{}`: is it a sweep of `python -m steptime.measure.collectives`?",
                names[0]
            )
        };
        column(names).ok_or_else(lacks)
    };
    let (op, ranks, size, median) =
        (needs(&["op"])?, needs(&["world", "ranks"])?, needs(&["bytes"])?, needs(&["median_us", "time_us"])?);
    let kernel = column(&["kernel_us"]);
    // Sweeps from before the column for the type count the bytes of an all-gather that one rank sends.
    let by_input = column(&["dtype"]).is_none() && column(&["time_us"]).is_none();
    let mut rows = Vec::new();
    for (at, record) in reader.records().enumerate() {
        let line = at + 2;
        let record = record.map_err(|error| format!("{place}, line {line}: {error}"))?;
        let number = |column: usize| {
            let text = record.get(column).unwrap_or_default();
            let found = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
            found.ok_or_else(|| {
                format!("{place}, line {line}: `{text}` is not a positive number ({})", &heads[column])
            })
        };
        let name = record.get(op).unwrap_or_default();
        let kind =
            kind(name).ok_or_else(|| format!("{place}, line {line}: `{name}` is not a known collective"))?;
        let ranks = number(ranks)? as u32;
        let mut bytes = number(size)? as u64;
        if by_input && kind == CollectiveKind::AllGather {
            bytes = bytes.saturating_mul(u64::from(ranks));
        }
        let of_kernel = kernel.filter(|&column| !record.get(column).unwrap_or_default().is_empty());
        let us = number(of_kernel.unwrap_or(median))?;
        rows.push(MeasuredCollective {
            call: CollectiveCall { kind, ranks, bytes: Bytes(bytes) },
            us,
            kernel: of_kernel.is_some(),
        });
    }
    if rows.is_empty() { Err(format!("{place} has no rows").into()) } else { Ok(rows) }
}
