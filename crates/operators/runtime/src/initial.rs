//! Initial elements of parameters: random numbers that depend on seed, parameter and position alone.

use std::ops::Range;

use steptime_eager::Initial;
use steptime_launch::SplitMix;
use steptime_ops::Cpu;

use crate::kept::TensorPart;

/// Elements of one part, each with its own generator.
pub(crate) const PART: usize = 16 << 10;

/// Key of a parameter: the hash FNV-1a of its name, so that rules, which change the order of parameters, leave their elements.
pub(crate) fn key(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Fills a parameter. `number` is its key among all parameters.
pub(crate) fn fill(cpu: &Cpu, initial: Initial, seed: u64, number: u64, elements: &mut [f32]) {
    fill_parts(cpu, initial, [seed, number], 0, elements);
}

/// Fills the elements of a parameter from a part on. `keys` are the seed and the key of the parameter.
pub(crate) fn fill_parts(cpu: &Cpu, initial: Initial, keys: [u64; 2], first: usize, elements: &mut [f32]) {
    let [seed, number] = keys;
    let mut parts: Vec<&mut [f32]> = elements.chunks_mut(PART).collect();
    cpu.run_with(&mut parts, |part, elements| {
        let mut random = Random(SplitMix::from_keys(&[seed, number, (first + part) as u64]));
        match initial {
            Initial::Uniform { bound } => {
                elements.iter_mut().for_each(|x| *x = ((2.0 * random.uniform() - 1.0) * bound) as f32);
            }
            Initial::Normal => elements.chunks_mut(2).for_each(|pair| {
                let normal = random.normal_pair();
                pair.iter_mut().zip(normal).for_each(|(x, value)| *x = value as f32);
            }),
        }
    });
}

/// The elements of rows of a part of a table: those that the whole table has there.
pub(crate) fn rows_of_part(
    cpu: &Cpu,
    initial: Initial,
    keys: [u64; 2],
    part: TensorPart,
    columns: usize,
    rows: Range<usize>,
) -> Vec<f32> {
    let [[row, column], [_, width]] = [part.offset, part.whole];
    let elements = (row + rows.start) * width..(row + rows.end) * width;
    let first = elements.start / PART;
    let mut whole = vec![0.0; elements.end - first * PART];
    fill_parts(cpu, initial, keys, first, &mut whole);
    let own = whole[elements.start - first * PART..].chunks_exact(width.max(1));
    own.flat_map(|row| &row[column..column + columns]).copied().collect()
}

/// Random numbers of one part.
struct Random(SplitMix);

impl Random {
    /// A number in 0..1 with 53 bits.
    fn uniform(&mut self) -> f64 {
        (self.0.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Two independent normal numbers, by the method of Box and Muller.
    fn normal_pair(&mut self) -> [f64; 2] {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        let (sine, cosine) = (std::f64::consts::TAU * self.uniform()).sin_cos();
        [radius * cosine, radius * sine]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(initial: Initial, len: usize) -> (f64, f64) {
        let mut elements = vec![0.0; len];
        fill(&Cpu::new(1).expect("one thread"), initial, 7, 3, &mut elements);
        let mean = elements.iter().map(|&x| f64::from(x)).sum::<f64>() / len as f64;
        let square = elements.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / len as f64;
        (mean, square)
    }

    #[test]
    fn distributions_have_their_moments() {
        let (mean, square) = moments(Initial::Normal, 1 << 20);
        assert!(mean.abs() < 5e-3 && (square - 1.0).abs() < 5e-3, "{mean} {square}");
        let (mean, square) = moments(Initial::Uniform { bound: 0.5 }, 1 << 20);
        assert!(mean.abs() < 2e-3 && (square - 0.25 / 3.0).abs() < 5e-4, "{mean} {square}");
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        let cpu = Cpu::new(1).expect("one thread");
        let mut whole = vec![0.0; 3 * PART + 7];
        fill(&cpu, Initial::Normal, 1, 2, &mut whole);
        let mut end = vec![0.0; PART + 7];
        fill_parts(&cpu, Initial::Normal, [1, 2], 2, &mut end);
        assert_eq!(end, whole[2 * PART..]);
    }

    #[test]
    fn a_part_of_a_table_has_the_elements_of_the_whole() {
        let cpu = Cpu::new(1).expect("one thread");
        let (rows, width) = (3000, 12);
        let mut whole = vec![0.0; rows * width];
        fill(&cpu, Initial::Normal, 1, 2, &mut whole);
        let part = TensorPart { offset: [1000, 4], whole: [rows, width] };
        let own = rows_of_part(&cpu, Initial::Normal, [1, 2], part, 8, 500..2000);
        let wanted = whole.chunks(width).skip(1500).take(1500).flat_map(|row| &row[4..]);
        assert!(own.iter().eq(wanted));
    }

    #[test]
    fn elements_do_not_depend_on_the_number_of_threads() {
        let of = |threads| {
            let mut elements = vec![0.0; 100_001];
            fill(&Cpu::new(threads).expect("threads"), Initial::Normal, 1, 2, &mut elements);
            elements
        };
        assert_eq!(of(1), of(3));
    }
}
