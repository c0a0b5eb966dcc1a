//! Convolutions and their gradients, as products of matrices that are never written down.

use steptime_aten::kernel;
use steptime_aten::{Kernel, KernelCall};

use crate::device::context::Context;
use crate::device::family::Family;
use crate::device::paper::PaperModel;
use crate::device::spec::DeviceSpec;

use super::gemm::precision;
use super::memory::{L2_LATENCY_US, Traffic};
use super::shared::{features, fill, flag, halvings, ln, ln_ratio, push_shared};
use super::tiles::{Cut, Shape, best, on_tensor_cores, wave_features};
use super::times::{instructions_us, overlap};

pub(super) struct Conv;

struct Model {
    traffic: Traffic,
    /// The product of the first pass computed.
    shape: Shape,
    cut: Cut,
    layout_us: f64,
    compute_us: f64,
    total_us: f64,
}

fn volume(sizes: [u64; 3]) -> f64 {
    sizes.iter().map(|&size| size as f64).product::<f64>().max(1.0)
}

/// Elements of one channel of one image: if these do not fill whole vectors, a kernel loads one by one.
fn plane(sizes: [u64; 3]) -> u64 {
    sizes.iter().product()
}

/// Channels of tensor-core kernels: padded to whole vectors.
fn padded(channels: f64, tensor: bool) -> f64 {
    if tensor { (channels / 8.0).ceil() * 8.0 } else { channels.max(1.0) }
}

/// Products of the computed passes: forward, or gradients of input and weight.
fn passes(conv: &kernel::Conv, call: &KernelCall, tensor: bool) -> [Option<Shape>; 2] {
    let groups = (conv.groups as f64).max(1.0);
    let element = call.dtype.size() as f64;
    let input = padded(conv.channels_in as f64 / groups, tensor);
    let output = padded(conv.channels_out as f64 / groups, tensor);
    let filter = volume(conv.filter);
    let (ins, outs) = (volume(conv.input), volume(conv.output));
    // A transposed convolution is a convolution's input gradient.
    let (ins, outs) = if conv.transposed { (outs, ins) } else { (ins, outs) };
    let batch = (conv.batch as f64).max(1.0);
    let of = |m, n, k| Shape { batch: groups, m, n, k, element, precision: conv.precision };
    let forward = of(batch * outs, output, input * filter);
    // Each input position meets only the filter taps that its stride leaves.
    let stride = volume(conv.stride);
    let data = of(batch * ins, input, output * (filter / stride).max(1.0));
    let weight = of(output, input * filter, batch * outs);
    match conv.gradients {
        None if conv.transposed => [Some(data), None],
        None => [Some(forward), None],
        Some([to_input, to_weight, _]) => {
            let first = if conv.transposed { forward } else { data };
            [to_input.then_some(first), to_weight.then_some(weight)]
        }
    }
}

/// Whether each channel has its own filter: such kernels multiply without matrices.
fn depthwise(conv: &kernel::Conv) -> bool {
    conv.groups > 1 && conv.groups == conv.channels_in
}

fn model(conv: &kernel::Conv, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> Model {
    let traffic = Traffic::from_call(call, ctx, spec);
    let tensor = on_tensor_cores(conv.precision, spec) && !depthwise(conv);
    let all = passes(conv, call, tensor);
    let empty = Shape { batch: 1.0, m: 1.0, n: 1.0, k: 1.0, element: 4.0, precision: conv.precision };
    let shape = all[0].or(all[1]).unwrap_or(empty);
    let memory_us = traffic.move_us(spec, 1.0);
    let count = f64::from(u8::from(all[0].is_some()) + u8::from(all[1].is_some()));
    let mut total_us = traffic.latency_us();
    let mut compute_us = 0.0;
    let cut = best(&shape, spec);
    for pass in all.iter().flatten() {
        let pass_us = if depthwise(conv) {
            // One multiply-add per element and filter tap, with its loads.
            let taps = call.flops as f64 / 2.0 / count.max(1.0);
            instructions_us(taps * 25.0, spec) + 2.0
        } else {
            let cut = if *pass == shape { cut } else { best(pass, spec) };
            cut.compute_us * 1.15 + cut.fixed_us + cut.reduce_us
        };
        compute_us += pass_us;
        total_us += spec.launch.floor_us + L2_LATENCY_US + overlap(pass_us, memory_us / count.max(1.0));
    }
    // Tensor-core kernels need contiguous channels: operands are transposed before and after.
    let mut layout_us = 0.0;
    if tensor && !conv.channels_last && conv.dims >= 2 {
        let turned = 2.0 * traffic.l2();
        let near = Traffic::new(turned / 2.0, 0.0, turned / 2.0, call.footprint() as f64, spec);
        layout_us = near.move_us(spec, 1.5) + spec.launch.floor_us * (1.0 + count);
    }
    total_us = (total_us + layout_us).max(spec.launch.floor_us);
    Model { traffic, shape, cut, layout_us, compute_us, total_us }
}

/// Time of a product per image, its positions by its channels, µs.
fn images_us(conv: &kernel::Conv, call: &KernelCall, spec: &DeviceSpec) -> f64 {
    let groups = conv.groups.max(1);
    let shape = Shape {
        batch: conv.batch as f64 * groups as f64,
        m: volume(conv.output),
        n: (conv.channels_out / groups) as f64,
        k: (conv.channels_in / groups) as f64 * volume(conv.filter),
        element: call.dtype.size() as f64,
        precision: conv.precision,
    };
    best(&shape, spec).compute_us
}

/// Time of a product whose sum is not split, in tiles of 128 x 128 that wait at each step, µs.
fn unsplit_us(shape: &Shape, spec: &DeviceSpec) -> f64 {
    let tiles = (shape.m / 128.0).ceil() * (shape.n / 128.0).ceil() * shape.batch.max(1.0);
    let waves = (tiles / f64::from(spec.multiprocessors)).ceil().max(1.0);
    let kind = &spec.constants.tiles_tensor_wide;
    waves * shape.k / kind.step * kind.step_us
}

impl Family for Conv {
    fn name(&self) -> &'static str {
        "convolution"
    }

    features! {
        shared feature_names, features(self, call, ctx, spec, out) {
            let Kernel::Conv(conv) = &call.kernel else {
                return super::blank(self, out);
            };
            let model = model(conv, call, ctx, spec);
            push_shared(call, ctx, &model.traffic, model.total_us, out);
            let [to_input, to_weight, to_bias] = conv.gradients.unwrap_or([false; 3]);
            let groups = conv.groups.max(1);
            let waves = wave_features(&model.shape, spec);
        }
        "to_input" => flag(to_input),
        "to_weight" => flag(to_weight),
        "to_bias" => flag(to_bias),
        "precision" => precision(conv.precision),
        "channels_last" => flag(conv.channels_last),
        "transposed" => flag(conv.transposed),
        "bias" => flag(conv.bias),
        "dims" => f32::from(conv.dims),
        "ln_batch" => ln(conv.batch as f64),
        "ln_channels_in" => ln(conv.channels_in as f64),
        "ln_channels_out" => ln(conv.channels_out as f64),
        "ln_in" => ln(volume(conv.input)),
        "ln_out" => ln(volume(conv.output)),
        "ln_height" => ln(conv.input[1] as f64),
        "ln_width" => ln(conv.input[2] as f64),
        "filter_h" => conv.filter[1] as f32,
        "filter_w" => conv.filter[2] as f32,
        "ln_filter" => ln(volume(conv.filter)),
        // `stride` is that of the height, but `padding` and `dilation` are those of the width: fitted models use
        // these names, so that only a new fit can make them consistent.
        "stride" => conv.stride[1] as f32,
        "stride_w" => conv.stride[2] as f32,
        "padding" => conv.padding[2] as f32,
        "padding_h" => conv.padding[1] as f32,
        "dilation" => conv.dilation[2] as f32,
        "ln_groups" => ln(groups as f64),
        "depthwise" => flag(depthwise(conv)),
        "align_in" => halvings(conv.channels_in / groups, 6),
        "align_out" => halvings(conv.channels_out / groups, 6),
        "ln_m" => ln(model.shape.m),
        "ln_n" => ln(model.shape.n),
        "ln_k" => ln(model.shape.k),
        "tile" => model.cut.tile as f32,
        "ln_splits" => ln(model.cut.splits),
        "ln_blocks_by_sm" => ln_ratio(model.cut.blocks, f64::from(spec.multiprocessors)),
        "compute_by_memory" => ln_ratio(model.compute_us, model.traffic.move_us(spec, 1.0)),
        "layout_share" => (model.layout_us / model.total_us) as f32,
        "ln_intensity" => ln_ratio(call.flops as f64, model.traffic.l2()),
        "ln_channel_ratio" => ln_ratio(conv.channels_in as f64, conv.channels_out as f64),
        "ln_group_in" => ln(conv.channels_in as f64 / groups as f64),
        "ln_group_out" => ln(conv.channels_out as f64 / groups as f64),
        "align_plane_in" => halvings(plane(conv.input), 4),
        "align_plane_out" => halvings(plane(conv.output), 4),
        "align_filter" => halvings(conv.channels_in / groups * plane(conv.filter), 4),
        "ln_plane_out" => ln(plane(conv.output) as f64),
        "t256x128" => waves[0],
        "w256x128" => waves[1],
        "t128x128" => waves[2],
        "w128x128" => waves[3],
        "t128x64" => waves[4],
        "w128x64" => waves[5],
        "t64x64" => waves[6],
        "w64x64" => waves[7],
        "t32x32" => waves[8],
        "w32x32" => waves[9],
    }

    fn published(&self) -> PaperModel {
        PaperModel::Network
    }

    features! {
        own more_names, more(self, call, ctx, spec, out) {
            let Kernel::Conv(conv) = &call.kernel else { return super::blank_more(self, out) };
            let groups = conv.groups.max(1);
            let reach = conv.dilation[2].saturating_mul(conv.filter[2].saturating_sub(1));
            let weight = (conv.channels_in / groups) as f64 * conv.channels_out as f64 * volume(conv.filter);
            let in_vectors = (padded(conv.channels_in as f64, true) * volume(conv.input)
                + padded(conv.channels_out as f64, true) * volume(conv.output))
                * conv.batch as f64;
            let model = model(conv, call, ctx, spec);
        }
        "dilation_h" => conv.dilation[1] as f32,
        "ln_reach" => ln(reach as f64),
        "fill_in" => fill(conv.channels_in / groups, 8.0),
        "fill_out" => fill(conv.channels_out / groups, 8.0),
        "ln_depth" => ln((conv.channels_in / groups) as f64 * volume(conv.filter)),
        "ln_weight_bytes" => ln(weight * call.dtype.size() as f64),
        "ln_layout_bytes" => ln(in_vectors * call.dtype.size() as f64),
        // Algorithms that cuDNN chooses for some shapes: a product and gradients of weights per image, or no splits of a deep sum.
        "image_weights_share" => ln_ratio(spec.dram_us(2.0 * 4.0 * weight * conv.batch as f64), model.total_us),
        "images_share" => ln_ratio(images_us(conv, call, spec), model.total_us),
        "unsplit_share" => ln_ratio(unsplit_us(&model.shape, spec), model.total_us),
    }

    fn kind(&self, call: &KernelCall) -> &'static str {
        let Kernel::Conv(conv) = &call.kernel else { return "" };
        let dilated = conv.dilation.iter().any(|&gap| gap > 1);
        match (conv.transposed, depthwise(conv), conv.dims == 1) {
            (true, ..) => "transposed",
            (_, true, _) if conv.channels_last => "depthwise channels-last",
            (_, true, _) => "depthwise",
            (_, _, true) if dilated => "1-d dilated",
            (_, _, true) => "1-d",
            _ if conv.dims > 2 => "3-d",
            _ if conv.channels_last => "channels-last",
            _ if dilated => "dilated",
            _ => "",
        }
    }

    fn analytic(&self, call: &KernelCall, ctx: &Context, spec: &DeviceSpec) -> f64 {
        match &call.kernel {
            Kernel::Conv(conv) => model(conv, call, ctx, spec).total_us,
            _ => spec.launch.floor_us,
        }
    }
}
