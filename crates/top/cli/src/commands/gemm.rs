//! `steptime gemm plan`.

use steptime::ops::Isa;
use steptime::ops::gemm::Plan;

use super::Failure;
use crate::cli::{Gemm, Product};
use crate::console::Console;
use crate::report::gemm::Answer;

pub fn run(args: &Gemm, console: &Console<'_>) -> Result<(), Failure> {
    let &Gemm::Plan { size: Product { m, n, k }, isa, threads, json } = args;
    let isa = isa.unwrap_or_else(Isa::best);
    let threads = threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from);
    let answer = Answer::new(isa, Plan::new(isa, m, n, k).for_threads(threads));
    if json {
        console.print_json(&answer)?;
    } else {
        console.print(&answer.text())?;
    }
    Ok(())
}
