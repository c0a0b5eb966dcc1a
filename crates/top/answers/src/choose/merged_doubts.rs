//! Doubts of several GPUs as one list.

use super::GpuReport;
use crate::doubts::{DoubtEntry, worst_first};

/// Merges doubts: one with the same text on all GPUs appears once, and of one kind on several GPUs only the worst is kept.
pub(super) fn all(gpus: &[GpuReport]) -> Vec<DoubtEntry> {
    let mut merged: Vec<DoubtEntry> = Vec::new();
    let mut kinds: Vec<(&str, Vec<(&GpuReport, &DoubtEntry)>)> = Vec::new();
    for gpu in gpus {
        for doubt in &gpu.doubts {
            if gpus.iter().all(|gpu| gpu.doubts.iter().any(|other| other.text == doubt.text)) {
                if !merged.iter().any(|known| known.text == doubt.text) {
                    merged.push(doubt.clone());
                }
                continue;
            }
            match kinds.iter_mut().find(|(kind, _)| *kind == doubt.kind) {
                Some((_, of)) => of.push((gpu, doubt)),
                None => kinds.push((doubt.kind, vec![(gpu, doubt)])),
            }
        }
    }
    merged.extend(kinds.into_iter().filter_map(|(_, of)| worst(&of, gpus.len())));
    worst_first(merged)
}

/// The worst doubt of one kind, with the number of other GPUs that have one like it.
fn worst(of: &[(&GpuReport, &DoubtEntry)], all: usize) -> Option<DoubtEntry> {
    let width = |doubt: &DoubtEntry| (doubt.no_estimate, doubt.factor.unwrap_or(1.0));
    let (gpu, doubt) = of.iter().rev().max_by(|a, b| {
        let (a, b) = (width(a.1), width(b.1));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    })?;
    let mut others: Vec<&str> = of.iter().map(|(gpu, _)| gpu.name.as_str()).collect();
    others.dedup();
    let whom = match others.len() {
        1 => gpu.name.clone(),
        count if count == all => format!("every GPU, {} the most", gpu.name),
        count => format!("{} and {} more", gpu.name, count - 1),
    };
    Some(DoubtEntry { text: format!("{whom}: {}", doubt.text), ..(*doubt).clone() })
}
