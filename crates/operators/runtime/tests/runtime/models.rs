//! Shipped models: every op runs, or is refused before anything runs.

use steptime_runtime::{DescribedStep, Program};

use crate::common::{names, shipped};

#[test]
fn every_op_of_every_shipped_model_has_an_implementation() {
    let names = names();
    assert!(names.len() > 8);
    for name in names {
        let described = DescribedStep::new(&shipped(&name)).expect("a step");
        let program = Program::new(&described);
        assert!(program.is_ok(), "{name}: {}", program.unwrap_err());
    }
}
