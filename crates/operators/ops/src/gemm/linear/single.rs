//! A layer with one output, such as the last of a click model: a dot product for each row, gradients of rank one. Its
//! time is that of reading the inputs once.

use super::super::buffer::with_buffer;
use super::super::kernel::{Loop, Window, multiply_add, widen};
use super::super::{Activation, MatMut, MatRef};
use super::Gradients;
use crate::Cpu;
use crate::arch::Arch;
use crate::shared::Shared;
use crate::simd::{Kernel, LANES, Simd, dispatch};

/// Number of rows of the batch in a part. Sums over the batch are added part by part, so it must not depend on the
/// threads.
const PART: usize = 64;

/// Computes `y = activation(x w + bias)`.
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
        dispatch(cpu.arch(), Dots { x, weight, first, sums });
        sums.iter_mut().for_each(|sum| *sum += bias);
        activation.apply(cpu.arch(), sums);
        // SAFETY: part `i` has the rows from `i * PART` to those of the next, and is done once.
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

impl Kernel for Dots<'_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (at, sum) in self.sums.iter_mut().enumerate() {
            *sum = dot(simd, self.x.row_part(self.first + at, 0, self.weight.len()), self.weight);
        }
    }
}

/// A dot product. One row after the other, in the order of memory, each in two independent sums.
#[inline(always)]
fn dot<S: Simd>(simd: S, row: &[f32], weight: &[f32]) -> f32 {
    let (row, row_rest) = row.as_chunks::<LANES>();
    let (weight, weight_rest) = weight.as_chunks::<LANES>();
    let [mut even, mut odd] =
        [simd.mul(simd.load_part(row_rest), simd.load_part(weight_rest)), simd.splat(0.0)];
    let (row_pairs, row) = row.as_chunks::<2>();
    let (weight_pairs, weight) = weight.as_chunks::<2>();
    for (row, weight) in row_pairs.iter().zip(weight_pairs) {
        even = simd.add(even, simd.mul(simd.load(&row[0]), simd.load(&weight[0])));
        odd = simd.add(odd, simd.mul(simd.load(&row[1]), simd.load(&weight[1])));
    }
    if let ([row], [weight]) = (row, weight) {
        even = simd.add(even, simd.mul(simd.load(row), simd.load(weight)));
    }
    simd.sum(simd.add(even, odd))
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

/// Computes all gradients in one pass over the inputs: `dx[b] = dz[b] w`, `dw = sum of dz[b] x[b]`, `db = sum of
/// dz[b]`.
pub(super) fn backward(cpu: &Cpu, dz: Slopes<'_>, x: MatRef<'_>, weight: &[f32], gradients: Gradients<'_>) {
    let Gradients { x: mut dx, weight: mut dw, bias: db } = gradients;
    let (batch, inputs) = (x.rows(), x.cols());
    let parts = batch.div_ceil(PART);
    let windows = dx.as_mut().map(Window::new);
    let wants_weight = dw.is_some();
    with_buffer(if wants_weight { parts * inputs } else { 0 }, |sums| {
        let shared = Shared::new(sums);
        cpu.run(parts, |part| {
            let (first, count) = (part * PART, PART.min(batch - part * PART));
            let mut slopes = [0.0_f32; PART];
            slopes.iter_mut().take(count).enumerate().for_each(|(row, slope)| *slope = dz.at(first + row));
            let slopes = &slopes[..count];
            if let Some(window) = windows {
                // SAFETY: part `i` has the rows from `i * PART` to those of the next, and is done once.
                let mut dx = unsafe { window.part(first, 0, count, inputs) };
                for (row, &slope) in slopes.iter().enumerate() {
                    widen(cpu.arch(), Scale { slope, weight, out: dx.row_mut(row) });
                }
            }
            if wants_weight {
                // SAFETY: part `i` has the `i`-th row of the sums, and is done once.
                let sums = unsafe { shared.range(part * inputs, inputs) };
                sums.fill(0.0);
                add_rows(cpu.arch(), slopes, |row| x.row_part(first + row, 0, inputs), sums);
            }
        });
        if let Some(dw) = dw.as_mut() {
            let mut window = Window::new(dw);
            let out = window.row_mut(0);
            out.fill(0.0);
            add_rows(cpu.arch(), &vec![1.0; parts], |part| &sums[part * inputs..][..inputs], out);
        }
    });
    if let Some(db) = db {
        db[0] = (0..batch).map(|row| dz.at(row)).sum();
    }
}

/// Computes `out = slope * weight`.
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

/// Computes `out += sum of factors[i] * row(i)`, four rows at a time.
fn add_rows<'a>(arch: Arch, factors: &[f32], row: impl Fn(usize) -> &'a [f32], out: &mut [f32]) {
    let (fours, rest) = factors.as_chunks::<4>();
    for (at, factors) in fours.iter().enumerate() {
        let rows = [0, 1, 2, 3].map(|next| row(at * 4 + next));
        widen(arch, AddRows { factors: *factors, rows, out });
    }
    for (at, &factor) in rest.iter().enumerate() {
        widen(arch, AddRows { factors: [factor], rows: [row(fours.len() * 4 + at)], out });
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
