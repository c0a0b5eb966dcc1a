//! Gradients of tables with the update of their rows, and the optimizer states of the rows.

use steptime_ops::embedding::backward::{Gradient, RowOptimizer, RowRule, State};
use steptime_ops::embedding::group::Grouping;
use steptime_ops::embedding::{Bounds, Lookups, Pooling, Table, Tables};

use crate::arg::Arg;
use crate::error::Failure;
use crate::numbers::Numbers;
use crate::run::Run;
use crate::slices::Slices;

/// Operands of an update.
#[derive(Debug)]
pub(crate) struct UpdateArgs {
    pub(crate) gradient: Arg,
    pub(crate) tables: Vec<Arg>,
    pub(crate) indices: Arg,
    pub(crate) offsets: Arg,
}

/// An update of all rows that were looked up.
#[derive(Debug)]
pub(crate) struct RowUpdate {
    args: UpdateArgs,
    names: Vec<String>,
    pooling: Pooling,
    rule: fn(&Numbers) -> RowRule,
    grouping: Grouping,
    /// The optimizer with its states, made before the first step.
    optimizer: Option<RowOptimizer>,
}

impl RowUpdate {
    pub(crate) fn new(
        args: UpdateArgs,
        names: Vec<String>,
        pooling: Pooling,
        rule: fn(&Numbers) -> RowRule,
    ) -> RowUpdate {
        RowUpdate { args, names, pooling, rule, grouping: Grouping::new(), optimizer: None }
    }

    fn tables<'a>(&self, memory: &mut Slices<'a>) -> Result<Tables<'a>, Failure> {
        let mut all = Vec::with_capacity(self.names.len());
        for (table, name) in self.args.tables.iter().zip(&self.names) {
            all.push(Table::borrow_mut(name, table.row_mut(memory)?, table.shape()[1])?);
        }
        Ok(Tables::new(all, self.pooling))
    }

    /// Allocates the states.
    pub(crate) fn prepare(&mut self, memory: &mut Slices<'_>, numbers: &Numbers) -> Result<(), Failure> {
        let tables = self.tables(memory)?;
        self.optimizer = Some(RowOptimizer::new((self.rule)(numbers), numbers.rate as f32, &tables)?);
        Ok(())
    }

    /// Names of the tables, and their states.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&str, &State)> {
        let states = self.optimizer.as_ref().map_or(&[][..], RowOptimizer::states);
        self.names.iter().map(String::as_str).zip(states)
    }

    /// The state of a table, for writing.
    pub(crate) fn state_mut(&mut self, table: &str) -> Option<&mut State> {
        let at = self.names.iter().position(|name| name == table)?;
        self.optimizer.as_mut()?.states_mut().get_mut(at)
    }

    pub(crate) fn run(&mut self, run: &mut Run<'_, '_>) -> Result<(), Failure> {
        let mut tables = self.tables(&mut run.memory)?;
        let (indices, offsets) =
            (self.args.indices.int_row(&run.memory)?, self.args.offsets.int_row(&run.memory)?);
        let bags = self.args.gradient.shape()[0];
        let lookups = Lookups::new(bags, indices, offsets)?;
        self.grouping.group(run.cpu, &tables, &lookups, Bounds::Error)?;
        let gradient = Gradient::new(self.args.gradient.row(&run.memory)?, tables.columns());
        let Some(optimizer) = &mut self.optimizer else { return Ok(()) };
        optimizer.set_learning_rate(run.numbers.rate as f32)?;
        optimizer.set_steps(run.step - 1);
        Ok(optimizer.step(run.cpu, &mut tables, &lookups, &self.grouping, Bounds::Error, &gradient)?)
    }
}
