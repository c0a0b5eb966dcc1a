//! The dot products of every pair of a sample's vectors, and their gradient: `interaction.cu`. A block of four warps
//! takes a sample, holds its vectors in shared memory, and is bound by instructions and by what it reads of that.

use steptime_aten::kernel::{Interaction, Pass};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::Published;
use crate::device::spec::DeviceSpec;

use super::memory::Traffic;
use super::shared::{flag, halvings, ln, ln_ratio, names, overlap, push_shared};
use super::streams::{streams_us, written_through};

/// The family.
pub(super) struct Interactions;

/// Warps of a block.
const WARPS: f64 = 4.0;

/// Shared memory of a multiprocessor, bytes, and what it reads in a cycle.
const SHARED: f64 = 227.0 * 1024.0;
const SHARED_RATE: f64 = 128.0;

/// Blocks of a multiprocessor, at most.
const MOST_BLOCKS: f64 = 16.0;

/// How much longer work takes where one block is alone: nothing hides its waiting (H200).
const ALONE: f64 = 1.5;

struct Model {
    traffic: Traffic,
    /// Blocks that a multiprocessor holds.
    held: f64,
    /// The work of all samples, µs.
    work_us: f64,
    /// Of which reads of shared memory.
    shared_share: f64,
    total_us: f64,
}

/// Cycles of a block: instructions, one warp on each of four schedulers, and reads of shared memory. Fitted to three
/// shapes of DLRM on an H200.
fn cycles(shape: &Interaction) -> [f64; 2] {
    let (features, quads) = (shape.features as f64, (shape.dim as f64 / 4.0).ceil());
    match shape.pass {
        Pass::Forward => {
            // Each warp takes a quarter of the columns; each lane tiles of 4 x 4 pairs.
            let side = (features / 4.0).ceil();
            let tiles = side * (side + 1.0) / 2.0;
            let (rounds, share) = ((tiles / 32.0).ceil(), (quads / WARPS).ceil());
            let read = tiles * share * 8.0 * 16.0 / SHARED_RATE;
            [160.0 + rounds * (share * 88.0 + 470.0), WARPS * read]
        }
        Pass::Backward => {
            // Each warp takes eight vectors at a time, each lane four columns of them.
            let turns = (features / 8.0).ceil() / WARPS;
            let rounds = (quads / 32.0).ceil();
            let read = turns * features * (quads * 16.0 + 64.0 * rounds) / SHARED_RATE;
            let fill = features / WARPS * (32.0 + 18.0 * rounds);
            [230.0 + fill + turns * rounds * (features * 50.0 + 120.0), WARPS * read]
        }
    }
}

/// Bytes of shared memory of a block.
fn shared_bytes(shape: &Interaction) -> f64 {
    let features = shape.features as f64;
    let vectors = features * ((shape.dim as f64 / 4.0).ceil() + 1.0) * 16.0;
    vectors
        + match shape.pass {
            Pass::Forward => shape.pairs() as f64 * 4.0 * WARPS,
            Pass::Backward => features * (features / 8.0).ceil() * 32.0,
        }
}

fn model(shape: &Interaction, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let mut traffic = Traffic::of(call, ctx, spec);
    traffic.dram_written = written_through(traffic.written, call.footprint() as f64, spec);
    let held = (SHARED / shared_bytes(shape).max(1.0)).floor().clamp(1.0, MOST_BLOCKS);
    let [instructions, reads] = cycles(shape);
    let blocks = shape.batch as f64 / f64::from(spec.multiprocessors);
    let block_us = (instructions + reads) / spec.clock_mhz;
    // The first block of a multiprocessor is alone for a while.
    let work_us = block_us * (blocks * (1.0 + ALONE / held)).max(2.0 * ALONE);
    let busy = overlap(work_us, streams_us(&traffic, spec));
    let total_us = spec.launch.floor_us + traffic.latency_us() + busy;
    Model { traffic, held, work_us, shared_share: reads / (instructions + reads), total_us }
}

impl Family for Interactions {
    fn name(&self) -> &'static str {
        "interaction"
    }

    fn feature_names(&self) -> &'static [&'static str] {
        names![
            "backward",
            "ln_batch",
            "features",
            "dim",
            "align_dim",
            "ln_pairs",
            "ln_batch_by_sm",
            "blocks_held",
            "ln_work",
            "shared_share",
        ]
    }

    fn features(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec, out: &mut Vec<f32>) {
        let Kernel::Interaction(shape) = &call.kernel else {
            return super::blank(self, out);
        };
        let model = model(shape, call, ctx, spec);
        push_shared(call, ctx, &model.traffic, model.total_us, out);
        out.extend_from_slice(&[
            flag(shape.pass == Pass::Backward),
            ln(shape.batch as f64),
            shape.features as f32,
            shape.dim as f32,
            halvings(shape.dim, 6),
            ln(shape.pairs() as f64),
            ln_ratio(shape.batch as f64, f64::from(spec.multiprocessors)),
            model.held as f32,
            ln(model.work_us * 1e3),
            model.shared_share as f32,
        ]);
    }

    fn published(&self) -> Published {
        Published::None
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Interaction(shape) => model(shape, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::families::fixture::{call, near, shipped};

    /// Times of `benches/peers/results/h200.txt`, µs, in a CUDA graph.
    #[test]
    fn shapes_of_dlrm_on_an_h200() {
        let spec = shipped("h200");
        let measured = [(9, 64, 10.9, 6.7), (27, 128, 21.7, 28.0), (9, 128, 15.5, 8.7)];
        for (features, dim, forward, backward) in measured {
            let batch = 2048;
            for (pass, measured) in [(Pass::Forward, forward), (Pass::Backward, backward)] {
                let shape = Interaction { pass, batch, features, dim };
                let vectors = 4 * batch * features * dim;
                let pooled = 4 * batch * (dim + shape.pairs());
                let one = match pass {
                    Pass::Forward => call(Kernel::Interaction(shape), &[vectors], &[pooled], 0),
                    Pass::Backward => call(Kernel::Interaction(shape), &[pooled, vectors], &[vectors], 0),
                };
                near(Interactions.analytic(&one, &Context::cold(&one), &spec), measured, 0.25);
            }
        }
    }
}
