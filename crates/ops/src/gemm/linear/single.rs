//! A layer with one output, the last of a click model: a dot product for each row, gradients of rank one. All of it is
//! bound by reading the inputs once.

use super::super::buffer::lend;
use super::super::kernel::{Loop, Window, multiply_add, widen};
use super::super::{Activation, MatMut, MatRef};
use super::Gradients;
use crate::shared::Shared;
use crate::{Cpu, Isa};

/// Rows of the batch in a part. Sums over the batch are added part by part, so it may not depend on the threads.
const PART: usize = 64;
/// Floats that a loop keeps apart so that they fit vectors.
const LANES: usize = 16;

/// `y = activation(x w + bias)`.
pub(in crate::gemm) fn forward(
    cpu: &Cpu,
    x: MatRef<'_>,
    weight: &[f32],
    bias: f32,
    activation: Activation,
    mut y: MatMut<'_>,
) {
    let window = Window::new(&mut y);
    cpu.run(x.rows().div_ceil(PART), |part| {
        let (first, count) = (part * PART, PART.min(x.rows() - part * PART));
        let mut sums = [0.0_f32; PART];
        let sums = &mut sums[..count];
        widen(cpu.isa(), Dots { x, weight, first, sums });
        sums.iter_mut().for_each(|sum| *sum += bias);
        activation.apply(cpu.isa(), sums);
        // SAFETY: parts have rows of their own.
        let mut y = unsafe { window.part(first, 0, count, 1) };
        sums.iter().enumerate().for_each(|(row, &sum)| y.set(row, 0, sum));
    });
}

/// The dot products of the rows from `first` on with a weight.
struct Dots<'a, 's> {
    x: MatRef<'a>,
    weight: &'a [f32],
    first: usize,
    sums: &'s mut [f32],
}

impl Loop for Dots<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let (fours, rest) = self.sums.as_chunks_mut::<4>();
        let row = |row: usize| self.x.row_part(self.first + row, 0, self.weight.len());
        for (at, sums) in fours.iter_mut().enumerate() {
            *sums = dots::<FUSED, 4>([0, 1, 2, 3].map(|next| row(at * 4 + next)), self.weight);
        }
        let done = fours.len() * 4;
        for (at, sum) in rest.iter_mut().enumerate() {
            *sum = dots::<FUSED, 1>([row(done + at)], self.weight)[0];
        }
    }
}

/// Dot products of some rows with a weight. Several rows at once hide how long an addition takes; the order of each
/// sum does not depend on how many there are.
#[inline(always)]
fn dots<const FUSED: bool, const N: usize>(rows: [&[f32]; N], weight: &[f32]) -> [f32; N] {
    let (weight, weight_rest) = weight.as_chunks::<LANES>();
    let chunks = rows.map(|row| row.as_chunks::<LANES>());
    let rows = chunks.map(|(row, _)| &row[..weight.len()]);
    let mut sums = [[0.0_f32; LANES]; N];
    for (at, weight) in weight.iter().enumerate() {
        for next in 0..N {
            let row = &rows[next][at];
            let mut now = sums[next];
            for lane in 0..LANES {
                now[lane] = multiply_add::<FUSED>(row[lane], weight[lane], now[lane]);
            }
            sums[next] = now;
        }
    }
    let mut dots = [0.0; N];
    for next in 0..N {
        let mut lanes = sums[next];
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                lanes[lane] += lanes[lane + half];
            }
        }
        let rest = chunks[next].1.iter().zip(weight_rest);
        dots[next] = lanes[0] + rest.fold(0.0, |sum, (&x, &weight)| multiply_add::<FUSED>(x, weight, sum));
    }
    dots
}

/// The gradient before the activation, one for each row.
#[derive(Clone, Copy)]
pub(super) struct Slopes<'a> {
    pub(super) dy: MatRef<'a>,
    pub(super) y: MatRef<'a>,
    pub(super) activation: Activation,
}

impl Slopes<'_> {
    fn at(&self, row: usize) -> f32 {
        let mut dz = [self.dy.at(row, 0)];
        self.activation.scale(&mut dz, &[self.y.at(row, 0)]);
        dz[0]
    }
}

/// All gradients in one pass over the inputs: `dx[b] = dz[b] w`, `dw = sum of dz[b] x[b]`, `db = sum of dz[b]`.
pub(super) fn backward(cpu: &Cpu, dz: Slopes<'_>, x: MatRef<'_>, weight: &[f32], gradients: Gradients<'_>) {
    let Gradients { x: mut dx, weight: mut dw, bias: db } = gradients;
    let (batch, inputs) = (x.rows(), x.cols());
    let parts = batch.div_ceil(PART);
    let windows = dx.as_mut().map(Window::new);
    let wants_weight = dw.is_some();
    lend(if wants_weight { parts * inputs } else { 0 }, |sums| {
        let shared = Shared::new(sums);
        cpu.run(parts, |part| {
            let (first, count) = (part * PART, PART.min(batch - part * PART));
            let mut slopes = [0.0_f32; PART];
            slopes.iter_mut().take(count).enumerate().for_each(|(row, slope)| *slope = dz.at(first + row));
            let slopes = &slopes[..count];
            if let Some(window) = windows {
                // SAFETY: parts have rows of their own.
                let mut dx = unsafe { window.part(first, 0, count, inputs) };
                for (row, &slope) in slopes.iter().enumerate() {
                    widen(cpu.isa(), Scale { slope, weight, out: dx.row_mut(row) });
                }
            }
            if wants_weight {
                // SAFETY: parts have sums of their own.
                let sums = unsafe { shared.range(part * inputs, inputs) };
                sums.fill(0.0);
                add_rows(cpu.isa(), slopes, |row| x.row_part(first + row, 0, inputs), sums);
            }
        });
        if let Some(dw) = dw.as_mut() {
            let mut window = Window::new(dw);
            let out = window.row_mut(0);
            out.fill(0.0);
            add_rows(cpu.isa(), &vec![1.0; parts], |part| &sums[part * inputs..][..inputs], out);
        }
    });
    if let Some(db) = db {
        db[0] = (0..batch).map(|row| dz.at(row)).sum();
    }
}

/// `out = slope * weight`.
struct Scale<'a> {
    slope: f32,
    weight: &'a [f32],
    out: &'a mut [f32],
}

impl Loop for Scale<'_> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        self.out.iter_mut().zip(self.weight).for_each(|(out, &weight)| *out = self.slope * weight);
    }
}

/// `out += sum of factors[i] * row(i)`, four rows at a time.
fn add_rows<'a>(isa: Isa, factors: &[f32], row: impl Fn(usize) -> &'a [f32], out: &mut [f32]) {
    let (fours, rest) = factors.as_chunks::<4>();
    for (at, factors) in fours.iter().enumerate() {
        let rows = [0, 1, 2, 3].map(|next| row(at * 4 + next));
        widen(isa, AddRows { factors: *factors, rows, out });
    }
    for (at, &factor) in rest.iter().enumerate() {
        widen(isa, AddRows { factors: [factor], rows: [row(fours.len() * 4 + at)], out });
    }
}

struct AddRows<'a, 'o, const N: usize> {
    factors: [f32; N],
    rows: [&'a [f32]; N],
    out: &'o mut [f32],
}

impl<const N: usize> Loop for AddRows<'_, '_, N> {
    type Out = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let len = self.out.len();
        let rows = self.rows.map(|row| &row[..len]);
        for (at, out) in self.out.iter_mut().enumerate() {
            let mut sum = *out;
            for (&factor, row) in self.factors.iter().zip(&rows) {
                sum = multiply_add::<FUSED>(factor, row[at], sum);
            }
            *out = sum;
        }
    }
}
