//! Encoding of models as bytes.

use std::collections::BTreeMap;

use super::FamilyModels;
use super::codec::{Reader, Writer};
use super::error::ModelsError;
use crate::device::correction::{Kind, Stage};
use crate::device::learn::conformal::Interval;
use crate::device::learn::descent::Network;
use crate::device::learn::mlp::{Dense, Mlp};
use crate::device::learn::packed::{self, PackedTrees};
use crate::device::learn::trees::Trees;

/// First version with stages.
const WITH_STAGES: u32 = 3;

/// Largest accepted number of inputs, outputs or layers of a network.
const LARGEST: usize = 1 << 16;

/// Encodes the models of one family.
pub fn write(family: &FamilyModels) -> Vec<u8> {
    let mut out = Writer::default();
    optional(&mut out, family.trees.as_ref(), write_trees);
    optional(&mut out, family.network.as_ref(), write_network);
    for interval in &family.intervals {
        optional(&mut out, interval.as_ref(), write_interval);
    }
    out.u8(family.stages.len().min(usize::from(u8::MAX)) as u8);
    family.stages.iter().for_each(|stage| write_stage(&mut out, stage));
    out.0
}

/// Decodes the models of one family, in the format of a version.
pub fn read(bytes: &[u8], version: u32) -> Result<FamilyModels, ModelsError> {
    let mut from = Reader(bytes);
    let trees = present(&mut from, read_trees)?;
    let network = present(&mut from, read_network)?;
    let mut intervals = [None, None, None];
    for interval in &mut intervals {
        *interval = present(&mut from, read_interval)?;
    }
    let mut stages = Vec::new();
    if version >= WITH_STAGES {
        for _ in 0..from.u8()? {
            stages.push(read_stage(&mut from)?);
        }
    }
    if from.0.is_empty() {
        Ok(FamilyModels { trees, network, intervals, stages })
    } else {
        Err(ModelsError::Spare)
    }
}

fn optional<T>(out: &mut Writer, value: Option<&T>, write: impl Fn(&mut Writer, &T)) {
    out.u8(u8::from(value.is_some()));
    value.iter().for_each(|value| write(out, value));
}

fn present<T>(
    from: &mut Reader,
    read: impl Fn(&mut Reader) -> Result<T, ModelsError>,
) -> Result<Option<T>, ModelsError> {
    match from.u8()? {
        0 => Ok(None),
        1 => read(from).map(Some),
        _ => Err(ModelsError::Present),
    }
}

fn write_trees(out: &mut Writer, trees: &Trees) {
    let packed = packed::pack(trees);
    out.f32s(&[packed.base, packed.step]);
    out.u32(packed.trees);
    out.u16(packed.thresholds.len() as u16);
    for thresholds in &packed.thresholds {
        out.u16(thresholds.len() as u16);
        out.f32s(thresholds);
    }
    out.u32(packed.features.len() as u32);
    packed.features.iter().for_each(|&feature| out.u8(feature));
    // Low halves, then high ones: these are nearly all the same, and compress to little.
    packed.values.iter().for_each(|&value| out.u8(value.to_le_bytes()[0]));
    packed.values.iter().for_each(|&value| out.u8(value.to_le_bytes()[1]));
}

fn read_trees(from: &mut Reader) -> Result<Trees, ModelsError> {
    let head = from.f32s(2)?;
    let trees = from.u32()?;
    let columns = from.u16()?;
    let mut thresholds = Vec::new();
    for _ in 0..columns {
        let count = from.u16()?;
        thresholds.push(from.f32s(usize::from(count))?);
    }
    let nodes = from.u32()? as usize;
    let features = from.bytes(nodes)?.to_vec();
    let (low, high) = (from.bytes(nodes)?, from.bytes(nodes)?);
    let values = low.iter().zip(high).map(|(&low, &high)| u16::from_le_bytes([low, high])).collect();
    Ok(packed::unpack(&PackedTrees { base: head[0], step: head[1], trees, thresholds, features, values })?)
}

fn write_network(out: &mut Writer, network: &Network) {
    out.u32(network.inputs.len() as u32);
    network.inputs.iter().for_each(|scale| out.f32s(scale));
    out.f32s(&network.output);
    out.u32(network.mlp.layers.len() as u32);
    for layer in &network.mlp.layers {
        out.u32(layer.inputs as u32);
        out.u32(layer.outputs as u32);
        out.f32s(&layer.weights);
        out.f32s(&layer.bias);
    }
}

fn read_network(from: &mut Reader) -> Result<Network, ModelsError> {
    let count = from.u32()? as usize;
    let inputs: Vec<[f32; 2]> = from.f32s(count.saturating_mul(2))?.as_chunks::<2>().0.to_vec();
    let output = from.f32s(2)?;
    let mut layers: Vec<Dense> = Vec::new();
    for _ in 0..from.u32()? {
        let (rows, outputs) = (from.u32()? as usize, from.u32()? as usize);
        let expected = layers.last().map_or(count, |below| below.outputs);
        if rows != expected || rows > LARGEST || outputs == 0 || outputs > LARGEST {
            return Err(ModelsError::Layers);
        }
        let weights = from.f32s(rows * outputs)?;
        layers.push(Dense { inputs: rows, outputs, weights, bias: from.f32s(outputs)? });
    }
    Ok(Network { inputs, output: [output[0], output[1]], mlp: Mlp { layers } })
}

fn write_interval(out: &mut Writer, interval: &Interval) {
    let numbers = [interval.multiple, interval.shared, interval.inside, interval.half_width];
    numbers.iter().for_each(|&number| out.f64(number));
    write_trees(out, &interval.scale);
}

fn read_interval(from: &mut Reader) -> Result<Interval, ModelsError> {
    let mut next = || from.f64();
    let (multiple, shared, inside, half_width) = (next()?, next()?, next()?, next()?);
    Ok(Interval { scale: read_trees(from)?, multiple, shared, inside, half_width })
}

fn write_stage(out: &mut Writer, stage: &Stage) {
    write_trees(out, &stage.trees);
    write_interval(out, &stage.interval);
    out.u8(u8::from(stage.in_steps));
    stage.by_step.iter().for_each(|&end| out.f64(end));
    out.u32(stage.kinds.len() as u32);
    for (name, kind) in &stage.kinds {
        let name = &name.as_bytes()[..name.len().min(usize::from(u16::MAX))];
        out.u16(name.len() as u16);
        out.0.extend(name);
        out.f32s(&[kind.share]);
        out.u16(kind.ranges.len() as u16);
        kind.ranges.iter().for_each(|range| out.f32s(range));
    }
}

fn read_stage(from: &mut Reader) -> Result<Stage, ModelsError> {
    let trees = read_trees(from)?;
    let interval = read_interval(from)?;
    let in_steps = from.u8()? != 0;
    let by_step = [from.f64()?, from.f64()?];
    if !(by_step[0] <= by_step[1] && by_step.iter().all(|end| end.is_finite())) {
        return Err(ModelsError::Range);
    }
    let mut kinds = BTreeMap::new();
    for _ in 0..from.u32()? {
        let length = from.u16()?;
        let name = String::from_utf8(from.bytes(usize::from(length))?.to_vec())?;
        let share = from.f32s(1)?[0];
        let columns = from.u16()?;
        let ranges = from.f32s(2 * usize::from(columns))?.as_chunks::<2>().0.to_vec();
        kinds.insert(name, Kind { share, ranges });
    }
    Ok(Stage { trees, interval, in_steps, by_step, kinds })
}
