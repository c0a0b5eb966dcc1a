//! Possible placements of a table, and their keys.

use std::collections::BTreeMap;

use steptime_eager::{Cache, TableLayout, TableSize};
use steptime_shard::{Cut, Load, Way};

use super::SearchConstraints;
use super::cached::Rows;

/// Minimum width of a group of columns.
const NARROWEST: i64 = 16;
/// Number of elements above which tables are not copied to every GPU, because all their gradients would be exchanged.
const MOST_COPIED: i64 = 1 << 20;
/// Share of a GPU's memory below which a table is not moved to the host's memory.
const CACHED: f64 = 0.01;

/// Placement of one table beside the small one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TableWay {
    Whole,
    Rows,
    /// Its rows split over the GPUs of a node.
    Node,
    Copies,
}

/// Size of a table: rows, columns, lookups.
pub(super) type Size = (i64, i64, i64);
/// Size and placement of a table, with its cache where its rows are in the host's memory.
pub(super) type Key = (Size, TableWay, Option<Cache>);

/// Key of a whole table.
pub(super) fn whole(size: &TableSize) -> Key {
    ((size.rows, size.columns, size.lookups), TableWay::Whole, None)
}

/// Keys of the other placements of a table.
pub(super) fn cut(size: &TableSize, gpus: u32, node: u32) -> Vec<Key> {
    let (rows, columns, lookups) = (size.rows, size.columns, size.lookups);
    let mut all = Vec::new();
    all.extend(
        groups(size, gpus).map(|parts| ((rows, widest(columns, parts), lookups), TableWay::Whole, None)),
    );
    if gpus > 1 {
        all.push(((rows, columns, lookups), TableWay::Rows, None));
        all.extend(
            grids(size, gpus, node)
                .map(|parts| ((rows, widest(columns, parts), lookups), TableWay::Node, None)),
        );
        if rows.saturating_mul(columns) <= MOST_COPIED {
            all.push(((rows, columns, lookups), TableWay::Copies, None));
        }
    }
    all
}

/// Keys of a placement in the host's memory, with caches of several sizes; empty where that is not allowed, or the GPU has enough memory.
pub(super) fn cached(key: &Key, batch: u64, wanted: &SearchConstraints<'_>, node: u32) -> Vec<Key> {
    let &((rows, columns, lookups), beside, _) = key;
    let size = TableSize { rows, columns, lookups };
    let over = over(beside, wanted.gpus, node);
    let bytes = (rows * columns * 4) as f64 / f64::from(over);
    let small = bytes < CACHED * wanted.memory.0 as f64;
    if beside == TableWay::Copies || small || wanted.host_memory.is_none_or(|bytes| bytes.0 == 0) {
        return Vec::new();
    }
    let all = Rows::new(&size, i64::from(over), batch, wanted.indices).caches().into_iter();
    all.map(|cache| (key.0, beside, Some(cache))).collect()
}

/// Possible numbers of column groups of a table.
fn groups(size: &TableSize, gpus: u32) -> impl Iterator<Item = u32> {
    let columns = size.columns;
    (1..6)
        .map(|power| 1 << power)
        .filter(move |&parts| parts <= gpus && columns / i64::from(parts) >= NARROWEST)
}

/// Possible numbers of column groups of a table whose rows are then split over the GPUs of one node each.
fn grids(size: &TableSize, gpus: u32, node: u32) -> impl Iterator<Item = u32> {
    let nodes = if node > 1 && gpus.is_multiple_of(node) { gpus / node } else { 1 };
    let rows = size.rows;
    let all = std::iter::once(1).chain(groups(size, gpus));
    all.filter(move |&parts| nodes > 1 && parts <= nodes && rows >= i64::from(node))
}

/// Number of GPUs over which a placement splits rows.
pub(super) fn over(beside: TableWay, gpus: u32, node: u32) -> u32 {
    match beside {
        TableWay::Whole | TableWay::Copies => 1,
        TableWay::Rows => gpus,
        TableWay::Node => node,
    }
}

/// Width of the widest of `parts` groups of columns.
fn widest(columns: i64, parts: u32) -> i64 {
    let TableLayout::Parts(all) = TableLayout::by_columns(&(0..parts).collect::<Vec<u32>>(), 1, columns)
    else {
        return columns;
    };
    all.iter().map(|part| part.size[1]).max().unwrap_or(columns)
}

/// Possible placements of a table: on GPUs, then in hosts' memory.
pub(super) fn ways(
    size: &TableSize,
    batch: u64,
    wanted: &SearchConstraints<'_>,
    node: u32,
    loads: &BTreeMap<Key, Load>,
) -> Vec<Way> {
    let (rows, columns, lookups) = (size.rows, size.columns, size.lookups);
    let mut cuts = vec![(Cut::Whole, columns, TableWay::Whole)];
    let narrow = |parts: u32| widest(columns, parts);
    cuts.extend(groups(size, wanted.gpus).map(|parts| (Cut::Columns(parts), narrow(parts), TableWay::Whole)));
    cuts.extend(
        grids(size, wanted.gpus, node).map(|parts| (Cut::Grid(parts), narrow(parts), TableWay::Node)),
    );
    cuts.extend([(Cut::Rows, columns, TableWay::Rows), (Cut::Copies, columns, TableWay::Copies)]);
    let way = |cut: Cut, key: &Key| {
        let load = *loads.get(key)?;
        let cached = key.2.map(|cache| cache.rows.unsigned_abs());
        let parts = match cut {
            Cut::Whole => 1,
            Cut::Columns(parts) => parts,
            Cut::Grid(groups) => groups * node,
            Cut::Rows | Cut::Copies => return Some(Way { cut, cached, parts: Vec::new(), each: load }),
        };
        Some(Way { cut, cached, parts: vec![load; parts as usize], each: Load::default() })
    };
    let keys: Vec<(Cut, Key)> = cuts
        .into_iter()
        .map(|(cut, columns, beside)| (cut, ((rows, columns, lookups), beside, None)))
        .collect();
    let behind = keys.iter().flat_map(|(cut, key)| {
        cached(key, batch, wanted, node).into_iter().map(|own| (*cut, own)).collect::<Vec<(Cut, Key)>>()
    });
    keys.iter().copied().chain(behind).filter_map(|(cut, key)| way(cut, &key)).collect()
}
