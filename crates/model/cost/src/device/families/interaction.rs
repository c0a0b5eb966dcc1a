//! Dot products of every pair of a sample's vectors, and their gradient: `interaction.cu`. A block of four warps
//! takes a sample, holds its vectors in shared memory, and is bound by instructions and by reads of shared memory.

use steptime_aten::kernel::{Interaction, Pass};
use steptime_aten::{Kernel, KernelCall};

use crate::device::constants;
use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::memory::Traffic;
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};
use super::streams::{streams_us, written_through};
use super::times::overlap;

pub(super) struct Interactions;

/// Warps of a block.
const WARPS: f64 = 4.0;

/// Most blocks per multiprocessor.
const MOST_BLOCKS: f64 = 16.0;

struct Model {
    traffic: Traffic,
    /// Blocks that a multiprocessor holds.
    held: f64,
    /// The work of all samples, µs.
    work_us: f64,
    /// Share of reads of shared memory in that work.
    shared_share: f64,
    total_us: f64,
}

/// Cycles of a block: instructions, one warp on each of four schedulers, and reads of shared memory.
fn cycles(shape: &Interaction, of: &constants::Interaction) -> [f64; 2] {
    let (features, quads) = (shape.features as f64, (shape.dim as f64 / 4.0).ceil());
    match shape.pass {
        Pass::Forward => {
            // Each warp takes a quarter of the columns; each lane tiles of 4 x 4 pairs.
            let side = (features / 4.0).ceil();
            let tiles = side * (side + 1.0) / 2.0;
            let (rounds, share) = ((tiles / 32.0).ceil(), (quads / WARPS).ceil());
            let read = tiles * share * 8.0 * 16.0 / of.shared_rate;
            [of.forward_begin + rounds * (share * of.forward_quad + of.forward_round), WARPS * read]
        }
        Pass::Backward => {
            // Each warp takes eight vectors at a time, each lane four columns of them.
            let turns = (features / 8.0).ceil() / WARPS;
            let rounds = (quads / 32.0).ceil();
            let read = turns * features * (quads * 16.0 + 64.0 * rounds) / of.shared_rate;
            let fill = features / WARPS * (of.backward_vector + of.backward_vector_round * rounds);
            let round = features * of.backward_feature + of.backward_round;
            [of.backward_begin + fill + turns * rounds * round, WARPS * read]
        }
    }
}

/// Bytes of shared memory per block.
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
    let mut traffic = Traffic::from_call(call, ctx, spec);
    traffic.dram_written = written_through(traffic.written, call.footprint() as f64, spec);
    let constants = &spec.constants.interaction;
    let alone = constants.alone;
    let held = (constants.shared_bytes / shared_bytes(shape).max(1.0)).floor().clamp(1.0, MOST_BLOCKS);
    let [instructions, reads] = cycles(shape, constants);
    let blocks = shape.batch as f64 / f64::from(spec.multiprocessors);
    let block_us = (instructions + reads) / spec.clock_mhz;
    // The first block of a multiprocessor is alone for a while.
    let work_us = block_us * (blocks * (1.0 + alone / held)).max(2.0 * alone);
    let busy = overlap(work_us, streams_us(&traffic, spec));
    let total_us = spec.launch.floor_us + traffic.latency_us() + busy;
    Model { traffic, held, work_us, shared_share: reads / (instructions + reads), total_us }
}

impl Family for Interactions {
    fn name(&self) -> &'static str {
        "interaction"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Interaction(shape) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(shape, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
        }
        "backward" => flag(shape.pass == Pass::Backward),
        "ln_batch" => ln(shape.batch as f64),
        "features" => shape.features as f32,
        "dim" => shape.dim as f32,
        "align_dim" => halvings(shape.dim, 6),
        "ln_pairs" => ln(shape.pairs() as f64),
        "ln_batch_by_sm" => ln_ratio(shape.batch as f64, f64::from(spec.multiprocessors)),
        "blocks_held" => model.held as f32,
        "ln_work" => ln(model.work_us * 1e3),
        "shared_share" => model.shared_share as f32,
    }

    fn published(&self) -> PaperModel {
        PaperModel::None
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
