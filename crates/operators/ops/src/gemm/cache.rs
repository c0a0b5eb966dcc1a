//! Fourth rung: register tiles inside of blocks that fit caches, b1 rows of A and b2 columns of B at a time, k_c steps
//! each. Predicted reads from beyond the cache: n^3 / b1 of B and n^3 / b2 of A, and C once for each k_c. Operands are
//! still in their original place: their lines are far apart, compete for the same ways, and touch a page each.

use super::kernel::{Store, Window, tile};
use super::register::{FIRST, check, strips};
use super::{GemmError, MatMut, MatRef, Plan};
use crate::Cpu;

/// Computes `c = a * b` in the blocks of the plan, without packing, on one thread.
///
/// # Errors
///
/// The shapes do not fit, or the rows of `b` are not contiguous.
pub fn gemm_cache(cpu: &Cpu, a: MatRef<'_>, b: MatRef<'_>, mut c: MatMut<'_>) -> Result<(), GemmError> {
    check(&a, &b, &c)?;
    let (m, n, k) = (a.rows(), b.cols(), a.cols());
    let plan = Plan::new(cpu.isa(), m, n, k);
    // Unpacked, b2 columns of B must share the second level with b1 rows of A.
    let b2 =
        (plan.machine.caches[1].bytes / 2 / size_of::<f32>() / plan.k_c).max(plan.n_r) / plan.n_r * plan.n_r;
    let window = Window::new(&mut c);
    for step in (0..k.max(1)).step_by(plan.k_c) {
        let steps = plan.k_c.min(k - step);
        let store = if step == 0 { FIRST } else { Store { beta: 1.0, ..FIRST } };
        for block_col in (0..n).step_by(b2) {
            for block_row in (0..m).step_by(plan.m_c) {
                for col in (block_col..n.min(block_col + b2)).step_by(plan.n_r) {
                    for row in (block_row..m.min(block_row + plan.m_c)).step_by(plan.m_r) {
                        let (rows, cols) = (plan.m_r.min(m - row), plan.n_r.min(n - col));
                        // SAFETY: one thread, one tile at a time.
                        let c = unsafe { window.part(row, col, rows, cols) };
                        let (a, b) = strips(&a, &b, row, col, step);
                        tile(cpu.arch(), steps, a, b, &c, rows, cols, &store);
                    }
                }
            }
        }
    }
    Ok(())
}
