//! Copies of tensors in another type of float, many in one launch, on a GPU.

use half::bf16;
use steptime_aten::Dtype;
use steptime_cuda::cast::{Cast, Matrix};
use steptime_cuda::rearrange::Copy;
use steptime_cuda::{Buffer, Float, SliceMut};
use steptime_tensor::Layout;

use crate::arg::{Arg, SharedMemory};
use crate::binder::{Binder, Built, Refusal};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::slices::Access;
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[runs("aten::_foreach_copy_", foreach)];

/// `_foreach_copy_(self, src)`: each source in the type of its result.
fn foreach(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if b.target != Target::Cuda {
        return Err("it converts types, which a CPU does not: leave out rules that change types".to_owned());
    }
    b.takes_halves = true;
    let from = b.reads_all(1)?;
    let to: Vec<Arg> =
        b.ids(0)?.iter().map(|&tensor| b.tensor(tensor, Access::Write)).collect::<Result<_, _>>()?;
    Ok(Built::Kernel(on_gpu(from.into_iter().zip(to).collect())?))
}

/// Copies of sources to results, all of which have the types of the first.
pub(crate) fn on_gpu(pairs: Vec<(Arg, Arg)>) -> Result<Kernel, Refusal> {
    let types = |(from, to): &(Arg, Arg)| (from.dtype, to.dtype);
    let first = pairs.first().map(types).ok_or("it has no operand")?;
    if let Some(other) = pairs.iter().map(types).find(|&other| other != first) {
        return Err(format!("it converts both {first:?} and {other:?}"));
    }
    match first {
        (Dtype::F32, Dtype::Bf16) => of_types::<f32, bf16>(pairs),
        (Dtype::Bf16, Dtype::F32) => of_types::<bf16, f32>(pairs),
        (one, other) => Err(format!("it converts {} to {}", one.name(), other.name())),
    }
}

fn of_types<T: Float + Send, D: Float>(pairs: Vec<(Arg, Arg)>) -> Result<Kernel, Refusal> {
    let matrices = pairs.iter().map(|(from, to)| matrix(&from.layout, &to.layout));
    let Some(matrices) = matrices.collect::<Option<Vec<Matrix>>>() else { return rearranged::<T, D>(pairs) };
    Ok(Kernel::on_gpu(move |gpu| {
        let cast = Cast::<T, D>::new(gpu.stream.device(), &matrices)?;
        Ok(Box::new(move |gpu| {
            let mut results: Vec<SliceMut<'_, D>> = Vec::with_capacity(pairs.len());
            for (_, to) in &pairs {
                results.push(to.device_mut::<D>(&mut gpu.memory)?.split_at(to.layout.offset()).1);
            }
            let operands = pairs.iter().zip(results).map(|((from, _), to)| {
                let source = gpu.memory.read(from.slot).ok_or(SharedMemory)?.cast::<T>();
                Ok::<_, SharedMemory>((source.slice(from.layout.offset()..source.len()), to))
            });
            Ok(cast.run(gpu.stream, operands.collect::<Result<_, _>>()?)?)
        }))
    }))
}

/// A copy whose source is not a matrix: its elements are put in order first.
fn rearranged<T: Float + Send, D: Float>(pairs: Vec<(Arg, Arg)>) -> Result<Kernel, Refusal> {
    let [(from, to)] = <[(Arg, Arg); 1]>::try_from(pairs)
        .map_err(|_| "it converts several tensors, one of whose rows are not neighbours in memory")?;
    let [source, result] =
        in_order_of_result(&from.layout, &to.layout).ok_or("its layouts differ in shape")?;
    let ordered = Layout::contiguous(source.shape()).map_err(|source| source.to_string())?;
    let matrix = matrix(&ordered, &result).ok_or("the rows of its result are not neighbours in memory")?;
    Ok(Kernel::on_gpu(move |gpu| {
        let device = gpu.stream.device();
        let copy = Copy::<T>::new(device, &source, &ordered)?;
        let cast = Cast::<T, D>::new(device, &[matrix])?;
        let mut buffer = Buffer::<T>::zeros(gpu.stream, ordered.len())?;
        Ok(Box::new(move |gpu| {
            copy.run(gpu.stream, from.device(&gpu.memory)?, &mut buffer.as_mut())?;
            let (_, result) = to.device_mut::<D>(&mut gpu.memory)?.split_at(to.layout.offset());
            Ok(cast.run(gpu.stream, vec![(buffer.as_ref(), result)])?)
        }))
    }))
}

/// Both layouts with the dimensions in the order of the result's memory.
fn in_order_of_result(from: &Layout, to: &Layout) -> Option<[Layout; 2]> {
    let mut order: Vec<usize> = (0..to.rank()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(to.strides()[axis]));
    Some([from.permute(&order).ok()?, to.permute(&order).ok()?])
}

/// The matrix that a copy between two layouts of one shape is.
pub(super) fn matrix(from: &Layout, to: &Layout) -> Option<Matrix> {
    let [own, result] = match [rows(from), rows(to)] {
        [Some(own), Some(result)] => [own, result],
        _ => {
            let [from, to] = in_order_of_result(from, to)?;
            [rows(&from)?, rows(&to)?]
        }
    };
    let (shape, strides) = (own.shape, [own.stride, result.stride]);
    match (own.transposed, result.transposed) {
        (false, false) => Some(Matrix { shape, strides, transposed: false }),
        (true, false) => Some(Matrix { shape: [shape[1], shape[0]], strides, transposed: true }),
        (true, true) => Some(Matrix { shape: [shape[1], shape[0]], strides, transposed: false }),
        (false, true) => Some(Matrix { shape, strides, transposed: true }),
    }
}

struct Rows {
    shape: [usize; 2],
    /// Elements from row to row, or from column to column where columns are neighbours.
    stride: usize,
    transposed: bool,
}

/// A layout as a matrix of its last dimension and all before it.
fn rows(layout: &Layout) -> Option<Rows> {
    let (shape, strides) = (layout.shape(), layout.strides());
    let (&columns, leading) = shape.split_last().unwrap_or((&1, &[]));
    let (&step, above) = strides.split_last().unwrap_or((&1, &[]));
    let count: usize = leading.iter().product();
    let mut stride = None;
    let mut inner = 1;
    for (&size, &own) in leading.iter().zip(above).rev().filter(|(size, _)| **size > 1) {
        let first = *stride.get_or_insert(own);
        if own != first * inner {
            return None;
        }
        inner *= size;
    }
    let stride = stride.unwrap_or(columns.max(1));
    let shape = [count, columns];
    if step == 1 || columns == 1 {
        (stride >= columns || count == 1).then_some(Rows { shape, stride, transposed: false })
    } else if stride == 1 || count == 1 {
        (step >= count).then_some(Rows { shape, stride: step, transposed: true })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[usize], strides: &[usize]) -> Layout {
        Layout::new(shape, strides, 0).unwrap()
    }

    #[test]
    fn copies_are_matrices() {
        let plain = |shape: &[usize]| Layout::contiguous(shape).unwrap();
        let of =
            |from: &Layout, to: &Layout| matrix(from, to).map(|one| (one.shape, one.strides, one.transposed));
        assert_eq!(of(&plain(&[5, 3]), &layout(&[5, 3], &[8, 1])), Some(([5, 3], [3, 8], false)));
        assert_eq!(of(&plain(&[2, 5, 3]), &plain(&[2, 5, 3])), Some(([10, 3], [3, 3], false)));
        assert_eq!(of(&layout(&[5, 3], &[1, 5]), &plain(&[5, 3])), Some(([3, 5], [5, 3], true)));
        assert_eq!(of(&layout(&[5, 3], &[1, 5]), &layout(&[5, 3], &[1, 6])), Some(([3, 5], [5, 6], false)));
        assert_eq!(of(&plain(&[7]), &plain(&[7])), Some(([1, 7], [7, 7], false)));
        assert_eq!(of(&plain(&[]), &plain(&[])), Some(([1, 1], [1, 1], false)));
        assert_eq!(of(&layout(&[2, 5, 3], &[40, 4, 1]), &plain(&[2, 5, 3])), None);
    }
}
