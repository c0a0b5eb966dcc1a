//! Conversion of one row to floats, and back.

use half::{bf16, f16};

use super::{Element, Scale, Table};

/// Scale and bias at the start of a quantized row.
#[inline]
pub(super) fn scale_and_bias(row: &[u8], scale: Scale) -> (f32, f32) {
    match scale {
        Scale::F16 => {
            let at = |byte| f16::from_ne_bytes([row[byte], row[byte + 1]]).to_f32();
            (at(0), at(2))
        }
        Scale::F32 => {
            let at = |byte| f32::from_ne_bytes([row[byte], row[byte + 1], row[byte + 2], row[byte + 3]]);
            (at(0), at(4))
        }
    }
}

/// The integers of an int4 row, two in each byte.
#[inline]
pub(super) fn nibbles(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.iter().flat_map(|&byte| [f32::from(byte & 15), f32::from(byte >> 4)])
}

/// The values of an f32, f16 or bf16 row.
#[inline]
pub(super) fn each_f32(row: &[u8]) -> impl Iterator<Item = f32> {
    row.as_chunks::<4>().0.iter().map(|&bytes| f32::from_ne_bytes(bytes))
}

#[inline]
pub(super) fn each_f16(row: &[u8]) -> impl Iterator<Item = f32> {
    row.as_chunks::<2>().0.iter().map(|&bytes| f16::from_ne_bytes(bytes).to_f32())
}

#[inline]
pub(super) fn each_bf16(row: &[u8]) -> impl Iterator<Item = f32> {
    row.as_chunks::<2>().0.iter().map(|&bytes| bf16::from_ne_bytes(bytes).to_f32())
}

/// Writes the values of a row, given as bytes, to `out`. A quantized value is `fma(q, scale, bias)`.
pub(super) fn decode(element: Element, row: &[u8], out: &mut [f32]) {
    fn write(out: &mut [f32], values: impl Iterator<Item = f32>) {
        out.iter_mut().zip(values).for_each(|(out, value)| *out = value);
    }
    match element {
        Element::F32 => write(out, each_f32(row)),
        Element::F16 => write(out, each_f16(row)),
        Element::Bf16 => write(out, each_bf16(row)),
        Element::Int8(kind) => {
            let (scale, bias) = scale_and_bias(row, kind);
            write(out, row[kind.bytes()..].iter().map(|&q| f32::from(q).mul_add(scale, bias)));
        }
        Element::Int4(kind) => {
            let (scale, bias) = scale_and_bias(row, kind);
            write(out, nibbles(&row[kind.bytes()..]).map(|q| q.mul_add(scale, bias)));
        }
    }
}

/// Writes values to a row: rounded to the nearest, or quantized between their smallest and their largest.
fn encode(element: Element, values: &[f32], row: &mut [u8]) {
    match element {
        Element::F32 => {
            row.as_chunks_mut().0.iter_mut().zip(values).for_each(|(to, value)| *to = value.to_ne_bytes());
        }
        Element::F16 => row
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(values)
            .for_each(|(to, &value)| *to = f16::from_f32(value).to_ne_bytes()),
        Element::Bf16 => row
            .as_chunks_mut()
            .0
            .iter_mut()
            .zip(values)
            .for_each(|(to, &value)| *to = bf16::from_f32(value).to_ne_bytes()),
        Element::Int8(kind) => {
            let number = quantizer(values, 255.0, kind, row);
            row[kind.bytes()..].iter_mut().zip(values).for_each(|(to, &value)| *to = number(value));
        }
        Element::Int4(kind) => {
            let number = quantizer(values, 15.0, kind, row);
            for (to, pair) in row[kind.bytes()..].iter_mut().zip(values.chunks(2)) {
                *to = number(pair[0]) | pair.get(1).map_or(0, |&value| number(value)) << 4;
            }
        }
    }
}

/// Writes scale and bias to the row, and returns the function from values to integers `0..=most`.
fn quantizer(values: &[f32], most: f32, kind: Scale, row: &mut [u8]) -> impl Fn(f32) -> u8 + use<> {
    let least = values.iter().copied().fold(f32::INFINITY, f32::min);
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let round = |value: f32| match kind {
        Scale::F16 => f16::from_f32(value).to_f32(),
        Scale::F32 => value,
    };
    let bias = round(least);
    let scale = match round((largest - bias) / most) {
        scale if scale > 0.0 && scale.is_finite() => scale,
        _ => 1.0,
    };
    match kind {
        Scale::F16 => {
            row[..2].copy_from_slice(&f16::from_f32(scale).to_ne_bytes());
            row[2..4].copy_from_slice(&f16::from_f32(bias).to_ne_bytes());
        }
        Scale::F32 => {
            row[..4].copy_from_slice(&scale.to_ne_bytes());
            row[4..8].copy_from_slice(&bias.to_ne_bytes());
        }
    }
    move |value| ((value - bias) / scale).round_ties_even().clamp(0.0, most) as u8
}

impl Table<'_> {
    /// Writes the values of a row to `out`, `[dim]`.
    ///
    /// # Panics
    ///
    /// The row does not exist, or `out` does not have D elements.
    pub fn read_row(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.dim(), "places for the columns of {:?}", self.name());
        decode(self.element(), self.row(row), out);
    }

    /// Sets a row to values, `[dim]`, rounded to the element type; a quantized row gets the scale and the bias that
    /// span its values. Returns `false`, and changes nothing, where the table is read-only.
    ///
    /// # Panics
    ///
    /// The row does not exist, or there are not D values.
    pub fn write_row(&mut self, row: usize, values: &[f32]) -> bool {
        assert_eq!(values.len(), self.dim(), "values for the columns of {:?}", self.name());
        let element = self.element();
        self.row_mut(row).map(|bytes| encode(element, values, bytes)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_written_but_for_rounding() {
        for element in Element::ALL {
            for dim in [1, 2, 7, 64, 65] {
                let mut table = Table::zeros("t", [3, dim], element).unwrap();
                let values: Vec<f32> = (0..dim).map(|at| (at as f32 * 0.7).sin()).collect();
                assert!(table.write_row(1, &values));
                let mut read = vec![9.0; dim];
                table.read_row(1, &mut read);
                let most = match element {
                    Element::F32 => 0.0,
                    Element::F16 | Element::Int8(Scale::F32) => 0.005,
                    Element::Bf16 | Element::Int8(Scale::F16) => 0.01,
                    Element::Int4(_) => 0.08,
                };
                for (read, value) in read.iter().zip(&values) {
                    assert!((read - value).abs() <= most, "{element} {dim}: {read} for {value}");
                }
                table.read_row(0, &mut read);
                assert!(read.iter().all(|&value| value == 0.0));
            }
        }
    }

    #[test]
    fn a_constant_row_is_exact_where_its_value_is() {
        for element in Element::ALL {
            let mut table = Table::zeros("t", [1, 5], element).unwrap();
            table.write_row(0, &[1.5; 5]);
            let mut read = [0.0; 5];
            table.read_row(0, &mut read);
            assert_eq!(read, [1.5; 5], "{element}");
        }
    }
}
