//! The gradient of weights with vectors.

use super::Work;
use crate::arch::Code;
use crate::embedding::Element;
use crate::embedding::vector::{BF16, Decode, F16, F32, INT4, INT8, Values};
use crate::simd::prefetch;

/// Bytes on their way from memory ahead of the row in use.
const BYTES_AHEAD: usize = 4096;

/// The products of some bags of one table, whose lookups are in range.
pub(super) fn products<S: Decode>(s: S, work: &Work<'_>, out: &mut [f32]) {
    match work.table.element() {
        Element::F32 => s.compile(Products::<S, F32> { s, work, out }),
        Element::F16 => s.compile(Products::<S, F16> { s, work, out }),
        Element::Bf16 => s.compile(Products::<S, BF16> { s, work, out }),
        Element::Int8(_) => s.compile(Products::<S, INT8> { s, work, out }),
        Element::Int4(_) => s.compile(Products::<S, INT4> { s, work, out }),
    }
}

struct Products<'a, 'b, 'o, S, const E: u8> {
    s: S,
    work: &'b Work<'a>,
    out: &'o mut [f32],
}

impl<S: Decode, const E: u8> Code for Products<'_, '_, '_, S, E> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Products { s, work, out } = self;
        // In local variables, since the compiler assumes of fields that the stores below may change them.
        let (table, lookups) = (work.table, work.lookups);
        let (bytes, pitch, row_bytes, element) =
            (table.bytes(), table.pitch(), table.row_bytes(), table.element());
        let ahead = (BYTES_AHEAD / pitch).clamp(1, 64);
        let mut out = out.iter_mut();
        for bag in work.bags.clone() {
            let places = lookups.bag(bag);
            let grad = work.grad(bag);
            let scale = if work.mean { 1.0 / places.len() as f32 } else { 1.0 };
            for (place, out) in places.zip(&mut out) {
                if place + ahead < lookups.indices.len() {
                    let far = lookups.indices.at(place + ahead) as usize * pitch;
                    for line in (0..row_bytes).step_by(64) {
                        prefetch(bytes.as_ptr().wrapping_add(far + line));
                    }
                }
                let row = &bytes[lookups.indices.at(place) as usize * pitch..][..row_bytes];
                *out = dot::<S, E>(s, element, row, grad) * scale;
            }
        }
    }
}

/// The sum of the products, column `j` in sum `j % 16`, which are then added pairwise.
#[inline(always)]
fn dot<S: Decode, const E: u8>(s: S, element: Element, row: &[u8], grad: &[f32]) -> f32 {
    let (scale, bias, start) = match element {
        Element::Int8(kind) | Element::Int4(kind) => {
            let (scale, bias) = s.scale_and_bias(row, kind);
            (scale, bias, kind.bytes())
        }
        _ => (1.0, 0.0, 0),
    };
    let (scales, biases) = (s.splat(scale), s.splat(bias));
    let values = Values::<S, E>::new(s, &row[start..], scales, biases);
    let terms = Terms { s, grad, values, scales, biases };
    // With eight lanes, `even` is the lower sums and `odd` the upper; with sixteen, `even` is all.
    let two = S::LANES == 8;
    let [mut even, mut odd] = [s.splat(0.0); 2];
    let (mut vector, whole) = (0, grad.len() / S::LANES);
    // SAFETY: the row has as many columns as the gradient, which are `whole` vectors and the rest.
    unsafe {
        while vector + usize::from(two) < whole {
            even = terms.add(vector, even);
            vector += 1;
            if two {
                odd = terms.add(vector, odd);
                vector += 1;
            }
        }
        let rest = grad.len() % S::LANES;
        if vector < whole {
            even = terms.add(vector, even);
            if rest > 0 {
                odd = terms.add_part(whole, rest, odd);
            }
        } else if rest > 0 {
            even = terms.add_part(whole, rest, even);
        }
    }
    s.sum(if two { s.add(even, odd) } else { even })
}

/// The terms of a dot product.
struct Terms<'a, S: Decode, const E: u8> {
    s: S,
    grad: &'a [f32],
    values: Values<S, E>,
    scales: S::V,
    biases: S::V,
}

impl<S: Decode, const E: u8> Terms<'_, S, E> {
    /// Adds the products of a vector.
    ///
    /// # Safety
    ///
    /// The gradient and the row have as many columns as lanes for this vector.
    #[inline(always)]
    unsafe fn add(&self, vector: usize, sum: S::V) -> S::V {
        // SAFETY: the columns can be read, by the caller's promise.
        unsafe {
            let grad = self.s.read(self.grad.as_ptr().add(vector * S::LANES));
            self.s.mul_add(grad, self.finish(self.values.load(vector)), sum)
        }
    }

    /// Adds the products of the first columns of a vector.
    ///
    /// # Safety
    ///
    /// The gradient and the row have `columns` columns, of 1 to all lanes, for this vector.
    #[inline(always)]
    unsafe fn add_part(&self, vector: usize, columns: usize, sum: S::V) -> S::V {
        // SAFETY: the columns can be read, by the caller's promise.
        unsafe {
            let grad = self.s.read_first(self.grad.as_ptr().add(vector * S::LANES), columns);
            self.s.mul_add(grad, self.finish(self.values.load_part(vector, columns)), sum)
        }
    }

    /// Returns the values of a vector.
    #[inline(always)]
    fn finish(&self, value: S::V) -> S::V {
        if E == INT8 { self.s.mul_add(value, self.scales, self.biases) } else { value }
    }
}
