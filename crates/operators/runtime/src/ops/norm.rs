//! Lengths of vectors.

use steptime_cuda::reduce::Kind;

use super::reduce::reduced;
use crate::binder::{Binder, Built, Refusal};
use crate::row::{Row, runs};

pub(super) const ROWS: &[Row] = &[runs("aten::linalg_vector_norm", norm)];

/// `linalg_vector_norm(self, ord, dim, keepdim)`, of order 2.
fn norm(b: &mut Binder<'_, '_>) -> Result<Built, Refusal> {
    if b.number(1)? != 2.0 {
        return Err("its order is not 2".to_owned());
    }
    let dims = b.sizes(2)?;
    reduced(b, &dims, Kind::Norm)
}
