//! `steptime gemm plan`.

use steptime::ops::Isa;
use steptime::ops::gemm::Plan;

use super::Failure;
use crate::cli::{Gemm, Product};
use crate::output;
use crate::report::gemm::Answer;

/// Runs it.
pub fn run(args: &Gemm) -> Result<(), Failure> {
    let &Gemm::Plan { size: Product { m, n, k }, isa, json } = args;
    let isa = isa.unwrap_or_else(Isa::best);
    let answer = Answer::new(isa, Plan::new(isa, m, n, k));
    if json {
        output::print_json(&answer)?;
    } else {
        output::print(&answer.text())?;
    }
    Ok(())
}
