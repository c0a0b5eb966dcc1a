//! Comparisons with a number, and choices by truth values.

use steptime_aten::Dtype;
use steptime_cuda::pointwise::Function;
use steptime_tensor::View;

use super::elementwise::computes;
use super::pointwise;
use crate::binder::{Binder, Built, Refusal, of_type};
use crate::kernel::Kernel;
use crate::row::{Row, runs};
use crate::target::Target;

pub(super) const ROWS: &[Row] = &[
    runs("aten::eq", |b| compared(b, Function::Equal, |x, other| x == other)),
    runs("aten::ge", |b| compared(b, Function::AtLeast, |x, other| x >= other)),
    runs("aten::masked_fill_", masked_fill),
    runs("aten::where", choice),
    runs("aten::clamp_min", clamp_min),
];

/// A comparison of each element with a number.
fn compared(
    b: &mut Binder<'_, '_>,
    on_gpu: fn(f32) -> Function,
    holds: fn(f32, f32) -> bool,
) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let from = b.floats(0)?;
    let other = b.number(1)? as f32;
    let to = b.writes(0)?;
    of_type(&to, Dtype::Bool)?;
    if b.target == Target::Cuda {
        return pointwise::on_gpu(on_gpu(other), vec![from], vec![to]);
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        let from = from.floats(&run.memory)?;
        let mut values = from.rows().flatten();
        to.flags_mut(&mut run.memory)?.for_each_row(|row| {
            row.iter_mut().zip(&mut values).for_each(|(to, &x)| *to = u8::from(holds(x, other)));
        });
        Ok(())
    })))
}

/// `masked_fill_(self, mask, value)`.
fn masked_fill(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let mask = b.reads(1)?;
    of_type(&mask, Dtype::Bool)?;
    let value = b.number(2)? as f32;
    let to = b.changes(0)?;
    if b.target == Target::Cuda {
        return pointwise::on_gpu(Function::MaskedFill(value), vec![mask, to.clone()], vec![to]);
    }
    of_type(&to, Dtype::F32)?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let mask = mask.flags(&run.memory)?.broadcast(to.shape())?.to_vec();
        let mut mask = mask.into_iter();
        to.floats_mut(&mut run.memory)?.for_each_row(|row| {
            row.iter_mut().zip(&mut mask).filter(|(_, mask)| *mask != 0).for_each(|(to, _)| *to = value);
        });
        Ok(())
    })))
}

/// `where(condition, self, other)`.
fn choice(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let mask = b.reads(0)?;
    of_type(&mask, Dtype::Bool)?;
    let (one, other) = (b.floats(1)?, b.floats(2)?);
    let to = b.writes(0)?;
    if b.target == Target::Cuda {
        return pointwise::on_gpu(Function::Where, vec![mask, one, other], vec![to]);
    }
    of_type(&to, Dtype::F32)?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let mask: View<'_, u8> = mask.flags(&run.memory)?.broadcast(to.shape())?;
        let one = one.floats(&run.memory)?.broadcast(to.shape())?;
        let other = other.floats(&run.memory)?.broadcast(to.shape())?;
        let mut all = mask.rows().flatten().zip(one.rows().flatten()).zip(other.rows().flatten());
        to.floats_mut(&mut run.memory)?.for_each_row(|row| {
            row.iter_mut()
                .zip(&mut all)
                .for_each(|(to, ((&mask, &one), &other))| *to = if mask != 0 { one } else { other });
        });
        Ok(())
    })))
}

/// `clamp_min(self, min)`: `max(x - min, 0) + min` for 0, and by comparison otherwise.
fn clamp_min(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    b.takes_halves = true;
    let least = b.number(1)? as f32;
    let from = b.floats(0)?;
    let to = b.writes(0)?;
    if b.target == Target::Cuda {
        return pointwise::on_gpu(Function::ClampMin(least), vec![from], vec![to]);
    }
    if least == 0.0 {
        return computes(b.target, &[steptime_ops::elementwise::Expr::input(0).relu()], vec![from], vec![to]);
    }
    of_type(&to, Dtype::F32)?;
    Ok(Built::Kernel(Kernel::new(move |run| {
        let from = from.floats(&run.memory)?;
        let mut values = from.rows().flatten();
        to.floats_mut(&mut run.memory)?.for_each_row(|row| {
            let each = row.iter_mut().zip(&mut values);
            each.for_each(|(to, &x)| *to = if x < least { least } else { x });
        });
        Ok(())
    })))
}
