//! The answer of `gemm plan`.

use serde::Serialize;
use steptime_answers::SCHEMA;
use steptime_ops::Isa;
use steptime_ops::gemm::{LevelCost, Plan};

/// Tiles of a product, and the bytes read at each level.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    /// The instruction set planned for.
    pub path: String,
    pub plan: Plan,
    /// Costs from the registers down to memory.
    pub levels: [LevelCost; 4],
}

impl Answer {
    pub fn new(isa: Isa, plan: Plan) -> Answer {
        Answer { schema: SCHEMA, command: "gemm plan", path: isa.to_string(), levels: plan.levels(), plan }
    }

    /// Returns the answer as a table.
    pub fn text(&self) -> String {
        format!("path      {}\n{}", self.path, self.plan)
    }
}
