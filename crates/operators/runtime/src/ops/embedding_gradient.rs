//! The dense gradient of a table.

use steptime_aten::Dtype;
use steptime_ops::embedding::backward::{Gradient, sparse_gradients};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Element, Lookups, Table, Tables};

use super::embedding_bag::pooling;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::gpu::GpuDenseGradient;
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[runs("aten::_embedding_bag_dense_backward", dense)];

/// `_embedding_bag_dense_backward(grad, indices, offset2bag, bag_size, maximum_indices, num_weights, scale_grad_by_freq, mode,
/// per_sample_weights, padding_idx)`.
fn dense(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let pooling = pooling(b.int(7)?)?;
    if b.int(6)? != 0 || !b.is_none(8) {
        return Err("it has frequencies or weights".to_owned());
    }
    let (grad, indices, size) = (b.floats(0)?, b.reads(1)?, b.reads(3)?);
    for ints in [&indices, &size] {
        of_type(ints, Dtype::I64)?;
        in_order(ints)?;
    }
    in_order(&grad)?;
    let to = b.writes(0)?;
    of_type(&to, Dtype::F32)?;
    in_order(&to)?;
    let &[rows, width] = to.shape() else { return Err("its table is not a matrix".to_owned()) };
    if b.target == Target::Cuda {
        let work = GpuDenseGradient { gradient: grad, indices, sizes: size, to, pooling, work: None };
        return Ok(Built::Kernel(Kernel::Gpu(Box::new(work))));
    }
    let mut grouping = Grouping::new();
    Ok(Built::Kernel(Kernel::new(move |run| {
        let indices = indices.int_row(&run.memory)?;
        let mut ends = vec![0];
        ends.extend(size.int_row(&run.memory)?.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        let lookups = Lookups::new(ends.len() - 1, indices, &ends[..])?;
        let gradient = Gradient::new(grad.row(&run.memory)?, width);
        let to = to.row_mut(&mut run.memory)?;
        let mut parts: Vec<&mut [f32]> = to.chunks_mut(PART).collect();
        run.cpu.run_with(&mut parts, |_, part| part.fill(0.0));
        // Only the shape of the table matters: its gradient has the same.
        let bytes = bytemuck::cast_slice(to);
        let table =
            Table::borrow_bytes("the gradient of a table", bytes, [rows, width], Element::F32, 4 * width)?;
        let tables = Tables::new(vec![table], pooling);
        grouping.group(run.cpu, &tables, &lookups, Bounds::Error)?;
        let sparse = sparse_gradients(run.cpu, &tables, &lookups, &grouping, Bounds::Error, &gradient)?;
        drop(tables);
        for table in &sparse {
            for (&row, values) in table.rows.iter().zip(table.values.chunks(width)) {
                to[row * width..][..width].copy_from_slice(values);
            }
        }
        Ok(())
    })))
}

/// Elements of one part of the work.
const PART: usize = 64 << 10;
