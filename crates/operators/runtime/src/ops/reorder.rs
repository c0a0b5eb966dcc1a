//! Vectors of each sample in another order, `x[:, order]` of `[samples, vectors, columns]`, and their gradient. The order is a constant permutation.

use steptime_aten::Dtype;
use steptime_cuda::rearrange::Concat;
use steptime_eager::Role;
use steptime_step::TensorId;
use steptime_tensor::Layout;

use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal};
use crate::kernel::Kernel;
use crate::target::Target;

/// The order of an op that takes vectors in another order: for each vector of the result its position in the source; `None` for other indices.
pub(super) fn order(b: &Binder<'_, '_>) -> Result<Option<Vec<usize>>, Refusal> {
    let &[all, order] = b.ids(1)? else { return Ok(None) };
    let Some((_, Role::Indices(order))) = b.described().named(order) else { return Ok(None) };
    let order: Vec<usize> = order.iter().map(|&at| usize::try_from(at).unwrap_or(usize::MAX)).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    let is_permutation = sorted.iter().copied().eq(0..order.len());
    Ok((is_permutation && !b.places.is_placed(all)).then_some(order))
}

/// `index(self, [None, order])`.
pub(super) fn index(b: &mut Binder<'_, '_>, order: &[usize]) -> Result<Built, Refusal> {
    let from = b.reads(0)?;
    let to = b.writes(0)?;
    reordered(b.target, from, to, order)
}

/// `_index_put_impl_(self, [None, order], values, ...)` on zeros: the inverse order.
pub(super) fn index_put(b: &mut Binder<'_, '_>, order: &[usize]) -> Result<Built, Refusal> {
    if !is_zero(b, b.id(0)?) {
        return Err("it adds vectors to others than zeros".to_owned());
    }
    let from = b.reads(2)?;
    let to = b.changes(0)?;
    let mut inverse = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &place)| inverse[place] = at);
    reordered(b.target, from, to, &inverse)
}

/// Whether a tensor is made of zeros, by the op that makes it.
fn is_zero(b: &Binder<'_, '_>, tensor: TensorId) -> bool {
    let mut makers = b.step().ops.iter().filter(|op| op.name == "aten::new_zeros");
    makers.any(|op| op.call.as_deref().is_some_and(|call| call.gives().any(|given| given == tensor)))
}

fn reordered(target: Target, from: Arg, to: Arg, order: &[usize]) -> Result<Built, Refusal> {
    if from.shape() != to.shape() || from.shape().len() != 3 || from.shape()[1] != order.len() {
        return Err("it takes one vector for each of a sample".to_owned());
    }
    if from.dtype != to.dtype {
        return Err("its result has another type".to_owned());
    }
    let vector = |&at: &usize| from.layout.slice(1, at..at + 1, 1).map_err(|error| error.to_string());
    let parts = order.iter().map(vector).collect::<Result<Vec<_>, _>>()?;
    if target == Target::Cuda {
        return match from.dtype {
            Dtype::F32 => Ok(Built::Kernel(on_gpu::<u32>(parts, from, to))),
            Dtype::Bf16 => Ok(Built::Kernel(on_gpu::<u16>(parts, from, to))),
            other => Err(format!("it reorders vectors of {}", other.name())),
        };
    }
    if from.dtype != Dtype::F32 {
        return Err(format!("it reorders vectors of {}", from.dtype.name()));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let parts = parts.iter().map(|layout| Arg { layout: layout.clone(), ..from.clone() });
        let all = parts.map(|part| part.floats(&run.memory)).collect::<Result<Vec<_>, _>>()?;
        Ok(steptime_ops::rearrange::concat(run.cpu, &all, 1, to.floats_mut(&mut run.memory)?)?)
    })))
}

fn on_gpu<T: bytemuck::Pod>(parts: Vec<Layout>, from: Arg, to: Arg) -> Kernel {
    Kernel::on_gpu(move |gpu| {
        let work = Concat::<T>::new(gpu.stream.device(), &parts, 1, &to.layout)?;
        let count = parts.len();
        Ok(Box::new(move |gpu| {
            let all = vec![from.device(&gpu.memory)?; count];
            Ok(work.run(gpu.stream, &all, &mut to.device_mut(&mut gpu.memory)?)?)
        }))
    })
}
