//! Correction of impossible durations: a stream runs in order, so an activity ends before the next one does.

use rustc_hash::FxHashMap;

use super::{Activities, StreamId};
use crate::repairs::{Note, Notes};
use crate::units::Nanos;

/// Rounding error of a start and a duration in whole microseconds.
const ROUNDING: Nanos = Nanos(2_000);

/// Cuts an activity that ends after the end of the next one on its stream: to the start of the next one. The kernel of
/// a programmatic dependent launch begins before its predecessor ends, and ends after it; the kernels of a CUDA graph
/// run concurrently. Both stay unchanged.
pub(super) fn cut(activities: &mut Activities, notes: &mut Notes) {
    let mut streams: FxHashMap<StreamId, Vec<u32>> = FxHashMap::default();
    for (row, &stream) in activities.stream.iter().enumerate() {
        streams.entry(stream).or_default().push(row as u32);
    }
    for rows in streams.values_mut() {
        if !rows.is_sorted_by_key(|&row| activities.start[row as usize]) {
            rows.sort_by_key(|&row| activities.start[row as usize]);
        }
        // From the last to the first: the next one already has its final end.
        for pair in rows.windows(2).rev() {
            let (row, next) = (pair[0] as usize, pair[1] as usize);
            if activities.end(row) > activities.end(next) + ROUNDING && !is_graph(activities, row, next) {
                activities.dur[row] = activities.start[next] - activities.start[row];
                notes.add(Note::Overlap, 0);
            }
        }
    }
}

/// Whether either belongs to a CUDA graph: by its node, or because both have the same launch.
fn is_graph(activities: &Activities, row: usize, next: usize) -> bool {
    let one_launch = activities.correlation[row] == activities.correlation[next];
    activities.graph_node[row] != 0
        || activities.graph_node[next] != 0
        || one_launch && activities.correlation[row] != 0
}
