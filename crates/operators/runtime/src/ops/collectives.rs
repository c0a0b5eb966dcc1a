//! Exchanges between the ranks of a job, and the buckets of their gradients.
//!
//! The gradient of a rank's loss begins at one over the number of ranks, so that sums over ranks are gradients of the mean over the whole batch.
//! Gradients are therefore added, and copied to their buckets as they are.

use steptime_aten::Dtype;

use super::copy;
use crate::arg::Arg;
use crate::binder::{Binder, Built, Refusal, in_order, of_type};
use crate::error::{Error, Failure};
use crate::gpu::{GpuAllReduce, GpuAllToAll};
use crate::group::Rank;
use crate::kernel::Kernel;
use crate::row::{Row, missing, runs};
use crate::run::Run;
use crate::slices::Access;
use crate::target::Target;

/// The remedy for tables whose rows are on several ranks.
const BY_ROWS: &str = "tables cut by rows have no implementation: place whole tables, or cut them by columns";

pub(super) const ROWS: &[Row] = &[
    runs("c10d::allreduce_", all_reduce),
    runs("c10d::alltoall_base_", all_to_all),
    runs("c10d::broadcast_", broadcast),
    runs("torch::distributed::reducer::mul_out", to_bucket),
    missing("c10d::_allgather_base_", BY_ROWS),
    missing("c10d::_reduce_scatter_base_", BY_ROWS),
];

/// `allreduce_(tensors, ...)`: the sum over all ranks, in place.
fn all_reduce(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let &[bucket] = b.ids(0)? else { return Err("it adds several tensors".to_owned()) };
    let values = b.tensor(bucket, Access::Change)?;
    in_order(&values)?;
    of_type(&values, Dtype::F32)?;
    if b.target == Target::Cuda {
        return Ok(Built::Kernel(Kernel::Gpu(Box::new(GpuAllReduce::new(values)))));
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let group = group(run)?;
        let to = values.row_mut(&mut run.memory)?;
        let all = group.gather(to.to_vec(), None)?;
        to.fill(0.0);
        for part in &all {
            same(part.len(), to.len())?;
            to.iter_mut().zip(&**part).for_each(|(to, from)| *to += from);
        }
        Ok(())
    })))
}

/// `alltoall_base_(output, input, group, output_split_sizes, input_split_sizes, ...)`: each rank receives its part of every rank's tensor.
fn all_to_all(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let parts = |sizes: Vec<i64>| -> Result<Vec<usize>, Refusal> {
        sizes.into_iter().map(|size| usize::try_from(size).map_err(|error| error.to_string())).collect()
    };
    let (received, sent) = (parts(b.sizes(3)?)?, parts(b.sizes(4)?)?);
    let ranks = b.described().ranks();
    if received.len() != ranks || sent.len() != ranks {
        return Err(format!("it has other parts than one for each of {ranks} ranks"));
    }
    b.takes_halves = true;
    let from = b.reads(1)?;
    let to = b.overwrites(0)?;
    let dtype = if b.target == Target::Cuda && to.dtype == Dtype::Bf16 { Dtype::Bf16 } else { Dtype::F32 };
    for (arg, parts) in [(&from, &sent), (&to, &received)] {
        in_order(arg)?;
        // A rank without tables sends nothing, of any type.
        if arg.len() > 0 {
            of_type(arg, dtype)?;
        }
        if arg.len() != parts.iter().sum::<usize>() {
            return Err("its parts are not the whole tensor".to_owned());
        }
    }
    if b.target == Target::Cuda {
        let exchange = GpuAllToAll::from_flat((from, sent), (to, received))?;
        return Ok(Built::Kernel(Kernel::Gpu(Box::new(exchange))));
    }
    Ok(Built::Kernel(Kernel::new(move |run| exchanged(run, (&from, &sent), (&to, &received)))))
}

/// The exchange on a CPU.
fn exchanged(
    run: &mut Run<'_, '_>,
    (from, sent): (&Arg, &[usize]),
    (to, received): (&Arg, &[usize]),
) -> Result<(), Failure> {
    let group = group(run)?;
    let mut rest = from.row(&run.memory)?;
    let mut parts = Vec::with_capacity(sent.len());
    for &size in sent {
        let (part, after) = rest.split_at(size);
        parts.push(part.to_vec());
        rest = after;
    }
    let all = group.gather(parts, None)?;
    let mut rest = to.row_mut(&mut run.memory)?;
    for (rank, &size) in all.iter().zip(received) {
        let (part, after) = rest.split_at_mut(size);
        let own = rank.get(group.rank()).map_or(&[][..], |part| &part[..]);
        same(own.len(), size)?;
        part.copy_from_slice(own);
        rest = after;
    }
    Ok(())
}

/// `broadcast_(tensors, ...)` of constants, which all ranks have.
fn broadcast(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    match b.ids(0)? {
        [values] if b.value(*values).dtype == Dtype::I64 => Ok(Built::Nothing),
        _ => Err("it sends something else than constant indices".to_owned()),
    }
}

/// The copy of a gradient to its bucket: inside it `mul(gradient, share, bucket)`.
fn to_bucket(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let step = b.step();
    let calls = b.row().children.iter().filter(|&&op| step.ops[op].name == "aten::mul");
    let call = calls.filter_map(|&op| step.ops[op].call.as_deref()).next();
    let args = call.map(|call| [0, 2].map(|at| call.inputs.get(at).and_then(|arg| arg.tensors().first())));
    let Some([Some(&gradient), Some(&bucket)]) = args else {
        return Err("its gradient and its bucket are not recorded".to_owned());
    };
    if b.places.memory_of(gradient).is_some() && b.places.memory_of(gradient) == b.places.memory_of(bucket) {
        return Ok(Built::Nothing);
    }
    b.takes_halves = true;
    let from = b.tensor(gradient, Access::Read)?;
    let to = b.tensor(bucket, Access::Write)?;
    copy::copied(b.target, from, to)
}

fn group(run: &Run<'_, '_>) -> Result<Rank, Failure> {
    run.group.cloned().ok_or_else(no_group)
}

fn no_group() -> Failure {
    "it exchanges with other ranks, and the session has none: make it with `Session::in_group`".into()
}

fn same(found: usize, needed: usize) -> Result<(), Failure> {
    if found == needed {
        return Ok(());
    }
    Err(Error::Order { why: format!("a rank gives {found} elements, and {needed} are needed") }.into())
}
