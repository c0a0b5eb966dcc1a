//! Tables on several ranks: lookups of each rank for the whole batch, and the exchange of their results.
//!
//! Whole tables and columns: each rank looks up for all samples, and an all-to-all sends each sample's vectors to its rank. Rows over all ranks: each
//! rank pools its rows for all samples, and a reduce-scatter adds these sums. Rows over some ranks: their sums are sent by the all-to-all, too, and
//! each rank adds those of its own samples. (TorchRec's `table_row_wise` and `grid_shard` add them within a node first, which sends less over the
//! network.) Replicated tables need neither.

use steptime_aten::Dtype;

use super::file::{Description, Table};
use super::placement::{Sharding, TableLayout, TableShard};
use crate::eager::Eager;
use crate::ops::arithmetic::add;
use crate::ops::views::{cat, split, view};
use crate::ops::{exchange, index};
use crate::role::{Initial, NamedTensor, Role};
use crate::tensor::Tensor;

/// A rank's part of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// The rank; `None` where each rank has one.
    pub(super) gpu: Option<i64>,
    pub(super) rows: i64,
    pub(super) columns: i64,
    /// Lookups per step, of all ranks together; for a replicated piece, of the rank's own samples.
    pub(super) lookups: i64,
    /// Number of pieces with rows of its columns.
    pub(super) over: i64,
    /// Rows loaded from host memory per step, and the number of rows written back.
    pub(super) moved: i64,
    /// First row and first column.
    pub(super) first: [i64; 2],
    /// The table and the first column: position of its vector.
    place: (usize, i64),
}

impl Piece {
    /// Its table, among those of the ranks.
    pub(super) fn table(&self) -> usize {
        self.place.0
    }
}

/// Tables over the ranks of a job.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    /// Pieces exchanged by the all-to-all, in the order of ranks.
    moved: Vec<Piece>,
    /// Pieces reduced over ranks.
    added: Vec<Piece>,
    /// Replicated pieces.
    copied: Vec<Piece>,
    ranks: i64,
    rank: i64,
    /// Samples per rank.
    share: i64,
    /// The widths of all tables.
    columns: Vec<i64>,
    /// On a rank that sends nothing, an empty parameter that takes the gradient: the backward pass exchanges, too.
    nothing: Option<usize>,
    /// Positions of the received vectors, where these are in another order.
    order: Option<Tensor>,
    /// Whether vectors are returned one by one.
    apart: bool,
}

impl Spread {
    pub(super) fn new(e: &mut Eager, of: &Description, tables: &[(usize, Table)]) -> Spread {
        let (ranks, rank) = e.world.as_ref().map_or((1, 0), |world| (world.ranks, world.rank));
        let homes = of.homes();
        let (mut moved, mut added, mut copied) = (Vec::new(), Vec::new(), Vec::new());
        for (at, &(number, table)) in tables.iter().enumerate() {
            let all = of.batch * table.lookups;
            let whole = Piece {
                gpu: None,
                rows: table.rows,
                columns: table.columns,
                lookups: of.share() * table.lookups,
                over: 1,
                moved: 0,
                first: [0, 0],
                place: (at, 0),
            };
            match &homes[number] {
                TableLayout::Everywhere => copied.push(whole),
                home @ TableLayout::Parts(parts) if home.cutting(of.gpus()) == Sharding::Rows => {
                    let own = parts.iter().find(|part| i64::from(part.gpu) == rank);
                    let rows = own.map_or(1, |part| part.rows_on_gpu().max(1));
                    let lookups = own.map_or(0, |part| part.lookups(all, table.rows));
                    let moved = own.map_or(0, moved_of);
                    let first = own.map_or([0, 0], |part| part.offset);
                    added.push(Piece { rows, lookups, over: ranks, moved, first, ..whole });
                }
                home @ TableLayout::Parts(parts) => moved.extend(parts.iter().filter_map(|part| {
                    // In a model with separate weights, these have one column.
                    let columns = part.size[1].min(table.columns - part.offset[1]);
                    let (gpu, place) = (Some(i64::from(part.gpu)), (at, part.offset[1]));
                    let (rows, over, moved) = (part.rows_on_gpu().max(1), home.over(part), moved_of(part));
                    let lookups = part.lookups(all, table.rows);
                    let first = part.offset;
                    (columns > 0).then_some(Piece { gpu, rows, columns, lookups, over, moved, first, place })
                })),
            }
        }
        moved.sort_by_key(|piece| (piece.gpu, piece.place));
        let columns = tables.iter().map(|(_, table)| table.columns).collect();
        let share = of.share();
        let sends = moved.iter().any(|piece| piece.gpu == Some(rank));
        let nothing =
            (!sends && !moved.is_empty()).then(|| e.own_parameter("nothing", &[0], Initial::Normal));
        let (order, apart) = (None, false);
        let mut spread = Spread { moved, added, copied, ranks, rank, share, columns, nothing, order, apart };
        let pieces = spread.pieces();
        let equal = pieces.windows(2).all(|pair| pair[0].columns == pair[1].columns);
        if equal && !spread.is_in_order() && !spread.has_sums() {
            let order = e.empty(&[pieces.len() as i64], Dtype::I64);
            let mut arrived: Vec<usize> = (0..pieces.len()).collect();
            arrived.sort_by_key(|&at| pieces[at].place);
            let indices = Role::Indices(arrived.into_iter().map(|at| at as i64).collect());
            e.buffers.push(NamedTensor { id: order.id, name: e.path("tables.order"), role: indices });
            spread.order = Some(order);
        }
        spread
    }

    /// The same tables, with vectors returned one by one.
    pub(super) fn separate(self) -> Spread {
        Spread { apart: true, ..self }
    }

    /// The pieces of a rank, in the order of lookups.
    pub(super) fn pieces_on(&self, rank: i64) -> impl Iterator<Item = Piece> {
        let own: Vec<Piece> = self.moved.iter().filter(|piece| piece.gpu == Some(rank)).copied().collect();
        own.into_iter().chain(self.added.clone()).chain(self.copied.clone())
    }

    /// The vectors of a sample, in the order of arrival.
    fn pieces(&self) -> Vec<Piece> {
        self.moved.iter().chain(&self.added).chain(&self.copied).copied().collect()
    }

    /// Whether several received sums make up a vector.
    fn has_sums(&self) -> bool {
        self.moved.iter().any(|piece| piece.over > 1)
    }

    /// The vectors of a rank's samples in the order of tables, with partial sums added.
    fn added_up(&self, e: &mut Eager, came: &[Tensor]) -> Tensor {
        let mut pieces = self.pieces().into_iter().peekable();
        let mut parts: Vec<((usize, i64), Tensor)> = Vec::new();
        for all in came {
            let mut places = Vec::new();
            let mut width = 0;
            while let Some(piece) = pieces.next_if(|piece| width + piece.columns <= all.size(1)) {
                width += piece.columns;
                places.push((piece.place, piece.columns));
            }
            let widths: Vec<i64> = places.iter().map(|(_, columns)| *columns).collect();
            let each = if widths.len() > 1 { split(e, all, &widths, 1) } else { vec![all.clone()] };
            parts.extend(places.into_iter().map(|(place, _)| place).zip(each));
        }
        parts.sort_by_key(|(place, _)| *place);
        let mut vectors: Vec<((usize, i64), Tensor)> = Vec::new();
        for (place, part) in parts {
            match vectors.last_mut() {
                Some((last, sum)) if *last == place => *sum = add(e, sum, &part),
                _ => vectors.push((place, part)),
            }
        }
        let vectors: Vec<Tensor> = vectors.into_iter().map(|(_, vector)| vector).collect();
        side_by_side(e, &vectors)
    }

    fn is_in_order(&self) -> bool {
        self.pieces().windows(2).all(|pair| pair[0].place < pair[1].place)
    }

    /// Converts the pooled rows of a rank's pieces to the vectors of its own samples, concatenated table by table.
    pub(super) fn together(&self, e: &mut Eager, pooled: Vec<Tensor>) -> Vec<Tensor> {
        let mut left = pooled.into_iter();
        let own = self.moved.iter().filter(|piece| piece.gpu == Some(self.rank)).count();
        let moved: Vec<Tensor> = left.by_ref().take(own).collect();
        let added: Vec<Tensor> = left.by_ref().take(self.added.len()).collect();
        let mut all = self.exchanged(e, &moved);
        if !added.is_empty() {
            let sums = side_by_side(e, &added);
            all.push(exchange::reduce_scatter(e, &sums, self.ranks));
        }
        all.extend(left);
        let whole = if self.has_sums() {
            self.added_up(e, &all)
        } else {
            let whole = side_by_side(e, &all);
            self.ordered(e, whole)
        };
        if self.apart { split(e, &whole, &self.columns, 1) } else { vec![whole] }
    }

    /// Sends each sample's vectors to its rank; returns what each rank sent.
    fn exchanged(&self, e: &mut Eager, own: &[Tensor]) -> Vec<Tensor> {
        if self.moved.is_empty() {
            return Vec::new();
        }
        let width = |rank: i64| {
            self.moved.iter().filter(|piece| piece.gpu == Some(rank)).map(|piece| piece.columns).sum()
        };
        let widths: Vec<i64> = (0..self.ranks).map(width).collect();
        let sent = vec![self.share * own.iter().map(|sums| sums.size(1)).sum::<i64>(); self.ranks as usize];
        let received: Vec<i64> = widths.iter().map(|width| self.share * width).collect();
        let flat = match self.nothing {
            Some(nothing) => e.parameters[nothing].tensor.clone(),
            None => {
                let sums = side_by_side(e, own);
                view(e, &sums, &[-1])
            }
        };
        let came = exchange::all_to_all(e, &flat, &sent, &received);
        let parts = split(e, &came, &received, 0);
        let of_rank = parts.iter().zip(&widths).filter(|(_, width)| **width > 0);
        of_rank.map(|(part, &width)| view(e, part, &[self.share, width])).collect()
    }

    /// Vectors in the order of tables.
    fn ordered(&self, e: &mut Eager, whole: Tensor) -> Tensor {
        if self.is_in_order() {
            return whole;
        }
        let pieces = self.pieces();
        if let Some(order) = &self.order {
            let columns = pieces[0].columns;
            let vectors = view(e, &whole, &[self.share, pieces.len() as i64, columns]);
            let ordered = index::reordered(e, &vectors, order);
            return view(e, &ordered, &whole.shape);
        }
        let widths: Vec<i64> = pieces.iter().map(|piece| piece.columns).collect();
        let mut parts: Vec<((usize, i64), Tensor)> =
            pieces.iter().map(|piece| piece.place).zip(split(e, &whole, &widths, 1)).collect();
        parts.sort_by_key(|(place, _)| *place);
        let parts: Vec<Tensor> = parts.into_iter().map(|(_, part)| part).collect();
        cat(e, &parts)
    }
}

fn moved_of(part: &TableShard) -> i64 {
    part.cache.map_or(0, |cache| cache.misses)
}

fn side_by_side(e: &mut Eager, all: &[Tensor]) -> Tensor {
    if let [one] = all { one.clone() } else { cat(e, all) }
}
