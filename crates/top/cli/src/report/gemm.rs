//! The answer of `gemm plan`.

use serde::Serialize;
use steptime::ops::Isa;
use steptime::ops::gemm::{LevelCost, Plan};

use steptime::answers::SCHEMA;

/// How a product is cut, and what each level reads.
#[derive(Debug, Serialize)]
pub struct Answer {
    pub schema: u32,
    pub command: &'static str,
    /// The instructions planned for.
    pub path: String,
    pub plan: Plan,
    /// From the registers' side down to memory.
    pub levels: [LevelCost; 4],
}

impl Answer {
    /// Of a plan.
    pub fn new(isa: Isa, plan: Plan) -> Answer {
        Answer { schema: SCHEMA, command: "gemm plan", path: isa.to_string(), levels: plan.levels(), plan }
    }

    /// As a table.
    pub fn text(&self) -> String {
        format!("path      {}\n{}", self.path, self.plan)
    }
}
