//! Embedding bags of one table.

use steptime_aten::Dtype;
use steptime_ops::embedding::{Bounds, Lookups, Pooling, Table, Tables, forward};

use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::gpu::{GpuSingleBag, SingleBagArgs};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] =
    &[runs("aten::embedding_bag", embedding_bag), runs("aten::_embedding_bag", embedding_bag)];

/// `embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx)`: the pooled
/// rows, the bag of each lookup, and the number of lookups of each bag.
fn embedding_bag(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let pooling = pooling(b.int(4)?)?;
    let padded = !b.is_none(8) && b.int(8)? >= 0;
    if b.int(3)? != 0 || !b.is_none(6) || b.int(7)? != 0 || padded {
        return Err("it has frequencies, weights, a last offset or a padding row".to_owned());
    }
    let name = table_name(b, 0)?;
    let (weight, indices, offsets) = (b.floats(0)?, b.reads(1)?, b.reads(2)?);
    for ints in [&indices, &offsets] {
        of_type(ints, Dtype::I64)?;
        in_order(ints)?;
    }
    in_order(&weight)?;
    let [pooled, bag, size] = [b.writes(0)?, b.writes(1)?, b.writes(2)?];
    [&pooled, &bag, &size].into_iter().try_for_each(in_order)?;
    let &[_, width] = weight.shape() else { return Err("its table is not a matrix".to_owned()) };
    if b.target == Target::Cuda {
        let args = SingleBagArgs { weight, indices, offsets, pooled, bag, size };
        return Ok(Built::Kernel(Kernel::Gpu(Box::new(GpuSingleBag::new(args, name, pooling)))));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let table = Table::borrow(&name, weight.row(&run.memory)?, width)?;
        let tables = Tables::new(vec![table], pooling);
        let indices = indices.int_row(&run.memory)?;
        let mut ends = offsets.int_row(&run.memory)?.to_vec();
        let bags = ends.len();
        ends.push(indices.len() as i64);
        let lookups = Lookups::new(bags, indices, &ends[..])?;
        forward(run.cpu, &tables, &lookups, Bounds::Error, pooled.row_mut(&mut run.memory)?, width)?;
        let (mut bag, mut size) = (bag.ints_mut(&mut run.memory)?, size.ints_mut(&mut run.memory)?);
        let (Some(bag), Some(size)) = (bag.as_mut_slice(), size.as_mut_slice()) else { return Ok(()) };
        for (at, ends) in ends.windows(2).enumerate() {
            bag[ends[0] as usize..ends[1] as usize].fill(at as i64);
            size[at] = ends[1] - ends[0];
        }
        Ok(())
    })))
}

/// The pooling of a mode.
pub(super) fn pooling(mode: i64) -> Result<Pooling, Refusal> {
    match mode {
        0 => Ok(Pooling::Sum),
        1 => Ok(Pooling::Mean),
        _ => Err("its bags are pooled by maximum; sum and mean have an implementation".to_owned()),
    }
}

/// Name of the table at an argument, for messages.
fn table_name(b: &Binder<'_, '_>, at: usize) -> Result<String, Refusal> {
    let table = b.id(at)?;
    Ok(b.described().named(table).map_or_else(|| "a table".to_owned(), |(name, _)| name.clone()))
}
