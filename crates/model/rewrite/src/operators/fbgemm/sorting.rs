//! Workspace for the sort in FBGEMM's backward op.

use steptime_aten::{Arg, Dtype};
use steptime_step::NewOp;

use super::{FusedTables, like, tensor, zeroed};
use crate::new_ops::{ints, op};
use crate::operators::views::Views;

/// Lookups of one row per block in the reduction.
const BLOCK: i64 = 1024;

impl FusedTables<'_> {
    /// Ops that allocate memory to sort `count` indices, and to reduce gradients of frequently looked-up rows.
    pub(super) fn sorting(&self, views: &mut Views<'_>, count: i64) -> Vec<NewOp> {
        let keys = [Dtype::I32, Dtype::I32, Dtype::I64, Dtype::I64].map(|dtype| {
            let to = tensor(views, &[count], dtype);
            like("aten::empty_like", self.indices, to, views)
        });
        let mut empty = |length: i64, dtype| {
            let to = tensor(views, &[length], dtype);
            (op("aten::empty", vec![ints(&[length])], to), to)
        };
        let (room, _) = empty(count.saturating_mul(12), Dtype::I8);
        let (places, _) = empty(count, Dtype::I64);
        let scans = [0; 2].map(|_| empty(BLOCK, Dtype::I8).0);
        let (begins, first) = empty(count.saturating_add(1), Dtype::I32);
        let long = [0; 2].map(|_| empty(count, Dtype::I32).0);
        let blocks = (count / BLOCK).max(1);
        let (of_blocks, _) = empty(blocks, Dtype::I32);
        let mut zeros = |shape: &[i64], dtype| {
            let to = tensor(views, shape, dtype);
            let memory = op("aten::empty", vec![ints(shape)], to);
            op("aten::zeros", vec![ints(shape)], to).with(vec![memory, zeroed(to)])
        };
        let runs = [zeros(&[count], Dtype::I32), zeros(&[1], Dtype::I32)];
        let found = [0; 2].map(|_| zeros(&[1], Dtype::I32));
        let sums = zeros(&[blocks, self.widest()], Dtype::F32);
        let start = tensor(views, &[], Dtype::I32);
        let strided = vec![Arg::Tensor(first), ints(&[]), ints(&[]), Arg::Int(0)];
        let select = vec![Arg::Tensor(first), Arg::Int(0), Arg::Int(0)];
        let select = op("aten::select", select, start).with(vec![op("aten::as_strided", strided, start)]);
        let of_tables = tensor(views, &[self.group.members.len() as i64], Dtype::I32);
        let inside = vec![like("aten::empty_like", self.places, of_tables, views), zeroed(of_tables)];
        let of_tables = op("aten::zeros_like", vec![Arg::Tensor(self.places)], of_tables).with(inside);
        let ([scan, scan_long], [long, longer], [found, found_longer]) = (scans, long, found);
        let mut ops: Vec<NewOp> = keys.into_iter().chain([room, places]).chain(runs).collect();
        ops.extend([scan, begins, select, zeroed(start), scan_long, of_tables]);
        ops.extend([long, found, longer, found_longer, of_blocks, sums]);
        ops
    }
}
