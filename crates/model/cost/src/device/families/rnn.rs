//! Recurrent networks by cuDNN.

use steptime_aten::kernel::{self, Pass};
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::gemm::precision;
use super::memory::{DRAM_LATENCY_US, L2_LATENCY_US, Traffic};
use super::shared::{features, flag, halvings, ln, ln_ratio, push_shared};
use super::tiles::{Shape, best};
use super::times::overlap;

pub(super) struct Rnn;

struct Model {
    traffic: Traffic,
    step_us: f64,
    inputs_us: f64,
    total_us: f64,
}

fn model(rnn: &kernel::Rnn, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let (gates, hidden) = (rnn.gates.max(1) as f64, rnn.hidden.max(1) as f64);
    let (steps, batch) = (rnn.steps.max(1) as f64, rnn.batch.max(1) as f64);
    let (layers, directions) = (rnn.layers.max(1) as f64, rnn.directions.max(1) as f64);
    let element = call.dtype.size() as f64;
    let of = |m, n, k| Shape { batch: 1.0, m, n, k, element, precision: rnn.precision };
    // The contribution of the inputs to the gates is one product for all steps; that of the state waits for the step before.
    let above = hidden * directions;
    let deeper = (layers - 1.0) / layers;
    let width = rnn.input as f64 * (1.0 - deeper) + above * deeper;
    let inputs = best(&of(batch * steps, gates * hidden, width), spec);
    let state = best(&of(batch, gates * hidden, hidden), spec);
    let weights = spec.l2_us(gates * hidden * hidden * element);
    let step_us = 0.5 * spec.launch.floor_us
        + DRAM_LATENCY_US
        + overlap(state.compute_us + 0.5 * state.fixed_us + state.reduce_us, weights)
        + L2_LATENCY_US;
    let passes = if rnn.pass == Pass::Backward { 2.0 } else { 1.0 };
    let inputs_us = layers
        * directions
        * passes
        * (inputs.compute_us + inputs.fixed_us + inputs.reduce_us + spec.launch.floor_us);
    // Layers run along a diagonal, half of them at once.
    let chain = steps * (layers + 1.0) / 2.0 * directions * step_us * passes.sqrt();
    let total_us =
        spec.launch.floor_us + traffic.latency_us() + inputs_us + overlap(chain, traffic.move_us(spec, 1.0));
    Model { traffic, step_us, inputs_us, total_us }
}

impl Family for Rnn {
    fn name(&self) -> &'static str {
        "rnn"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Rnn(rnn) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(rnn, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
        }
        "backward" => flag(rnn.pass == Pass::Backward),
        "gates" => rnn.gates as f32,
        "precision" => precision(rnn.precision),
        "ln_steps" => ln(rnn.steps as f64),
        "ln_batch" => ln(rnn.batch as f64),
        "ln_input" => ln(rnn.input as f64),
        "ln_hidden" => ln(rnn.hidden as f64),
        "layers" => rnn.layers as f32,
        "directions" => rnn.directions as f32,
        "align_hidden" => halvings(rnn.hidden, 6),
        "ln_step_us" => ln(model.step_us * 1e3),
        "inputs_share" => (model.inputs_us / model.total_us) as f32,
        "ln_state_by_sm" => ln_ratio(rnn.batch as f64 * rnn.hidden as f64, f64::from(spec.multiprocessors)),
    }

    fn published(&self) -> PaperModel {
        PaperModel::None
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Rnn(rnn) => model(rnn, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }
}
