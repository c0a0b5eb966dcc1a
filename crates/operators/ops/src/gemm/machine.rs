//! Sizes that decide the partition of a product: registers, arithmetic units, caches.

use std::fs;
use std::path::Path;

use crate::Isa;

/// One level of cache, as seen by one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Cache {
    /// Size in bytes.
    pub bytes: usize,
    /// Associativity: the number of places that a line may take in it.
    pub ways: usize,
    /// Number of cores that share it.
    pub sharers: usize,
}

/// Properties of a processor for the planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Machine {
    /// Number of floats in a vector register.
    pub lanes: usize,
    /// Number of vector registers.
    pub registers: usize,
    /// Latency of a multiply-add in cycles.
    pub fma_latency: usize,
    /// Number of multiply-adds started per cycle.
    pub fma_rate: usize,
    /// Number of vector loads started per cycle.
    pub load_rate: usize,
    /// Data caches of the first, second and last level.
    pub caches: [Cache; 3],
}

impl Machine {
    /// Detects this machine, with these instructions. Cache sizes come from the operating system; without that
    /// information, they are those of a small processor.
    #[must_use]
    pub fn detect(isa: Isa) -> Machine {
        static CACHES: std::sync::OnceLock<[Cache; 3]> = std::sync::OnceLock::new();
        let caches = *CACHES.get_or_init(|| caches(Path::new("/sys/devices/system/cpu/cpu0/cache")));
        Machine::with_caches(isa, caches)
    }

    /// A machine with these instructions and caches.
    #[must_use]
    pub fn with_caches(isa: Isa, caches: [Cache; 3]) -> Machine {
        // Processors of 64-bit ARM have twice as many units of half the width, and three loads for four multiply-adds.
        let (fma_rate, load_rate) = if isa == Isa::Neon { (4, 3) } else { (2, 2) };
        // Portable code gets vectors of four floats and sixteen registers on common processors.
        let (lanes, registers) = match isa {
            Isa::Scalar => (4, 16),
            Isa::Neon => (4, 32),
            Isa::Avx2 => (8, 16),
            Isa::Avx512 => (16, 32),
        };
        Machine { lanes, registers, fma_latency: 4, fma_rate, load_rate, caches }
    }
}

/// Reads Linux's folder of a processor's caches.
fn caches(folder: &Path) -> [Cache; 3] {
    let mut found = [
        Cache { bytes: 32 << 10, ways: 8, sharers: 1 },
        Cache { bytes: 256 << 10, ways: 8, sharers: 1 },
        Cache { bytes: 4 << 20, ways: 16, sharers: 1 },
    ];
    for index in 0..8 {
        let folder = folder.join(format!("index{index}"));
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<usize>().ok();
        let (Some(level), Some(kind), Some(size)) = (number("level"), read("type"), read("size")) else {
            continue;
        };
        if kind.trim() == "Instruction" || !(1..=3).contains(&level) {
            continue;
        }
        let ways = number("ways_of_associativity").filter(|&ways| ways > 0);
        let sharers = read("shared_cpu_list").map_or(1, |list| count_list(list.trim()));
        if let Some(bytes) = parse_size(size.trim()) {
            found[level - 1] = Cache { bytes, ways: ways.unwrap_or(8), sharers };
        }
    }
    found
}

/// Converts `32K`, `1M` or `512` to bytes.
fn parse_size(text: &str) -> Option<usize> {
    let (digits, scale) = match text.as_bytes().last()? {
        b'K' => (&text[..text.len() - 1], 1 << 10),
        b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(scale).filter(|&bytes| bytes > 0)
}

/// Number of processors in a list such as `0-3,8`.
fn count_list(list: &str) -> usize {
    let count = |part: &str| match part.split_once('-') {
        Some((from, to)) => match (from.parse::<usize>(), to.parse::<usize>()) {
            (Ok(from), Ok(to)) if to >= from => to - from + 1,
            _ => 1,
        },
        None => 1,
    };
    list.split(',').map(count).sum::<usize>().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_lists_are_read() {
        assert_eq!(parse_size("32K"), Some(32768));
        assert_eq!(parse_size("2M"), Some(2 << 20));
        assert_eq!(parse_size("K"), None);
        assert_eq!(count_list("0-3,8"), 5);
        assert_eq!(count_list("nonsense-"), 1);
    }

    #[test]
    fn a_missing_folder_gives_a_small_machine() {
        assert_eq!(caches(Path::new("/nowhere"))[1].bytes, 256 << 10);
    }
}
