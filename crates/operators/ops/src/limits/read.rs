//! Rates at which threads read memory.

use std::hint::black_box;
use std::io;
use std::time::Instant;

use super::{Limit, Way};
use crate::Cpu;
use crate::huge::HugeBuffer;

/// A cache line. Reading one word of it moves the whole line: only memory is measured.
type Line = [u64; 8];

/// Measures bytes per second that threads read, each its share of `bytes` from first to last.
///
/// # Errors
///
/// The memory is not available.
pub fn sequential_read(cpu: &Cpu, bytes: usize, repetitions: usize) -> io::Result<Limit> {
    let buffer = filled(bytes)?;
    let lines: &[Line] = buffer.as_slice();
    let seconds = best(repetitions, || {
        cpu.run(cpu.threads(), |thread| {
            let own = &lines[crate::cpu::share(lines.len(), cpu.threads(), thread)];
            let (blocks, rest) = own.as_chunks::<8>();
            let mut sums = [0_u64; 8];
            for block in blocks {
                sums.iter_mut().zip(block).for_each(|(sum, line)| *sum = sum.wrapping_add(line[0]));
            }
            black_box((sums, rest.iter().fold(0, |sum, line| sum ^ line[0])));
        });
    });
    Ok(Limit { per_second: size_of_val(lines) as f64 / seconds, way: Way::Loads })
}

/// Measures bytes per second that threads read in rows of `row_bytes` (rounded up to whole cache lines) at random
/// places of `working_set` bytes in huge pages: plain loads, and prefetching some rows ahead, whichever is faster.
/// Every repetition has new places, so that rows are not reused.
///
/// # Errors
///
/// The memory is not available.
pub fn random_rows(cpu: &Cpu, row_bytes: usize, working_set: usize, repetitions: usize) -> io::Result<Limit> {
    let row_lines = row_bytes.div_ceil(64).max(1);
    let buffer = filled(working_set.max(row_lines * 64))?;
    let lines: &[Line] = buffer.as_slice();
    let rows = lines.len() / row_lines;
    // Enough for about a millisecond.
    let lookups = (32 << 20 >> 6) / row_lines.min(1 << 10);
    let ways = [2048, 4096, 8192, 12288, 16384].map(|bytes| Way::Ahead((bytes / (row_lines * 64)).max(1)));
    let mut best_of_all = Limit { per_second: 0.0, way: Way::Loads };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for repetition in 0..repetitions.max(1) {
        for way in [Way::Loads].into_iter().chain(ways) {
            let ahead = if let Way::Ahead(rows) = way { rows } else { 0 };
            let starts: Vec<usize> =
                (0..lookups).map(|_| next(&mut state) as usize % rows * row_lines).collect();
            let seconds = best(1, || {
                cpu.run(cpu.threads(), |thread| {
                    let own = &starts[crate::cpu::share(lookups, cpu.threads(), thread)];
                    black_box(match (row_lines, ahead) {
                        (1, _) => read::<1>(lines, own, ahead),
                        (2, _) => read::<2>(lines, own, ahead),
                        (4, _) => read::<4>(lines, own, ahead),
                        (8, _) => read::<8>(lines, own, ahead),
                        (16, _) => read::<16>(lines, own, ahead),
                        _ => read_any(lines, own, ahead, row_lines),
                    });
                });
            });
            let per_second = (lookups * row_lines * 64) as f64 / seconds;
            // The first round warms up the machine.
            if per_second > best_of_all.per_second && (repetition > 0 || repetitions < 2) {
                best_of_all = Limit { per_second, way };
            }
        }
    }
    Ok(best_of_all)
}

/// Reads rows of `N` lines.
#[inline]
fn read<const N: usize>(lines: &[Line], starts: &[usize], ahead: usize) -> u64 {
    read_any(lines, starts, ahead, N)
}

#[inline(always)]
fn read_any(lines: &[Line], starts: &[usize], ahead: usize, row_lines: usize) -> u64 {
    let mut sum = 0_u64;
    let own = |sum: u64, start: usize| {
        let (fours, rest) = lines[start..start + row_lines].as_chunks::<4>();
        let sum =
            fours.iter().fold(sum, |sum, four| four.iter().fold(sum, |sum, line| sum.wrapping_add(line[0])));
        rest.iter().fold(sum, |sum, line| sum.wrapping_add(line[0]))
    };
    // Four lines at a time: loops over single ones were a third slower than the memory.
    let ask = |start: usize| {
        let (fours, rest) = lines[start..start + row_lines].as_chunks::<4>();
        fours.iter().for_each(|four| four.iter().for_each(fetch));
        rest.iter().for_each(fetch);
    };
    if ahead == 0 || ahead >= starts.len() {
        return starts.iter().fold(0, |sum, &start| own(sum, start));
    }
    for (&start, &far) in starts.iter().zip(&starts[ahead..]) {
        ask(far);
        sum = own(sum, start);
    }
    starts[starts.len() - ahead..].iter().fold(sum, |sum, &start| own(sum, start))
}

/// Prefetches a line without waiting for it.
#[inline(always)]
fn fetch(line: &Line) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch never faults; the instruction is part of every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    black_box(line);
}

/// Memory with all pages mapped: pages that were never written all share one page of zeros.
fn filled(bytes: usize) -> io::Result<HugeBuffer> {
    let mut buffer = HugeBuffer::zeroed(bytes.next_multiple_of(64))?;
    buffer.as_mut_slice::<u64>().iter_mut().step_by(512).for_each(|word| *word = 1);
    Ok(buffer)
}

fn best(repetitions: usize, mut work: impl FnMut()) -> f64 {
    let mut once = || {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..repetitions.max(1)).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Xorshift: random enough for places.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;

    #[test]
    fn every_line_of_every_row_is_read() {
        let mut lines = vec![[0_u64; 8]; 96];
        lines.iter_mut().enumerate().for_each(|(at, line)| line[0] = 1 << (at % 32));
        let starts = [3, 40, 80, 0, 16];
        for row_lines in [1, 3, 8, 16] {
            let sum: u64 =
                starts.iter().flat_map(|&start| &lines[start..start + row_lines]).map(|line| line[0]).sum();
            for ahead in [0, 1, 4, 5, 100] {
                assert_eq!(read_any(&lines, &starts, ahead, row_lines), sum);
            }
        }
    }

    #[test]
    fn rates_are_positive() {
        for threads in [1, 2] {
            let cpu = Cpu::with_isa(Isa::best(), threads).unwrap();
            assert!(sequential_read(&cpu, 1 << 20, 2).unwrap().per_second > 1e6);
            assert!(random_rows(&cpu, 100, 1 << 20, 2).unwrap().per_second > 1e6);
        }
    }
}
