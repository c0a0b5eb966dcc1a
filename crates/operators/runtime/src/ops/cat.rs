//! Concatenation.

use steptime_aten::Dtype;
use steptime_ops::rearrange::concat;

use crate::binder::{Binder, Built, Refusal};
use crate::kernel::Kernel;
use crate::row::{Row, runs};

pub(super) const ROWS: &[Row] = &[runs("aten::cat", cat)];

/// `cat(tensors, dim)`.
fn cat(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    let parts = b.reads_all(0)?;
    let output = b.writes(0)?;
    let dim = b.int(1)?;
    let dim = usize::try_from(if dim < 0 { dim + output.shape().len() as i64 } else { dim });
    let dim = dim.map_err(|_| "it has no such dimension")?;
    let dtype = output.dtype;
    if !matches!(dtype, Dtype::F32 | Dtype::I64) || parts.iter().any(|part| part.dtype != dtype) {
        return Err("it concatenates floats, or integers".to_owned());
    }
    Ok(Built::Kernel(Kernel::new(move |run| {
        if dtype == Dtype::I64 {
            let all = parts.iter().map(|part| part.ints(&run.memory)).collect::<Result<Vec<_>, _>>()?;
            return Ok(concat(run.cpu, &all, dim, output.ints_mut(&mut run.memory)?)?);
        }
        let all = parts.iter().map(|part| part.floats(&run.memory)).collect::<Result<Vec<_>, _>>()?;
        Ok(concat(run.cpu, &all, dim, output.floats_mut(&mut run.memory)?)?)
    })))
}
