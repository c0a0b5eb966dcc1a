//! The backward pass of all tables with their optimizer.

use super::super::group::Grouping;
use super::super::{Bounds, Lookups, Tables};
use super::gradient::Factors;
use super::rows::{self, Job};
use super::sum::long::{self, Partials};
use super::update::Numbers;
use super::{BackwardError, Decay, Gradient, Rounding, RowRule, State};
use crate::Cpu;

/// An optimizer of embedding tables, with its state for every row.
#[derive(Debug)]
pub struct RowOptimizer {
    rule: RowRule,
    lr: f32,
    decay: Decay,
    rounding: Rounding,
    step: u64,
    states: Vec<State>,
    partials: Vec<Partials>,
}

impl RowOptimizer {
    /// An optimizer of these tables, without decay, with rounding to nearest.
    ///
    /// # Errors
    ///
    /// A setting that is out of range, or no memory for the state.
    pub fn new(rule: RowRule, lr: f32, tables: &Tables<'_>) -> Result<RowOptimizer, BackwardError> {
        rule.check(lr, Decay::None)?;
        let states = tables.iter().map(|table| State::zeros(rule, table)).collect::<Result<_, _>>()?;
        let partials = tables.iter().map(|_| Partials::default()).collect();
        let (decay, rounding) = (Decay::None, Rounding::Nearest);
        Ok(RowOptimizer { rule, lr, decay, rounding, step: 0, states, partials })
    }

    /// Sets the decay of the weights.
    ///
    /// # Errors
    ///
    /// The decay is negative or not finite.
    pub fn with_decay(self, decay: Decay) -> Result<RowOptimizer, BackwardError> {
        self.rule.check(self.lr, decay)?;
        Ok(RowOptimizer { decay, ..self })
    }

    /// Sets the rounding of 16-bit weights.
    #[must_use]
    pub fn with_rounding(self, rounding: Rounding) -> RowOptimizer {
        RowOptimizer { rounding, ..self }
    }

    /// Sets the learning rate of later steps.
    ///
    /// # Errors
    ///
    /// The rate is negative or not finite.
    pub fn set_learning_rate(&mut self, lr: f32) -> Result<(), BackwardError> {
        self.rule.check(lr, self.decay)?;
        self.lr = lr;
        Ok(())
    }

    /// The rule.
    #[must_use]
    pub fn rule(&self) -> RowRule {
        self.rule
    }

    /// Learning rate, decay and rounding.
    #[must_use]
    pub fn settings(&self) -> (f32, Decay, Rounding) {
        (self.lr, self.decay, self.rounding)
    }

    /// Number of steps taken.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// Sets the number of steps taken, from a checkpoint.
    pub fn set_steps(&mut self, steps: u64) {
        self.step = steps;
    }

    /// The state of each table.
    #[must_use]
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// The mutable state of each table, for restoring a checkpoint.
    pub fn states_mut(&mut self) -> &mut [State] {
        &mut self.states
    }

    /// The backward pass: steps every row that was looked up. `grouping` is that of `lookups` and `bounds`.
    ///
    /// The result is bit-identical for any number of threads and any instruction set.
    ///
    /// # Errors
    ///
    /// Arguments that do not fit each other, or a table that cannot be trained.
    pub fn step(
        &mut self,
        cpu: &Cpu,
        tables: &mut Tables<'_>,
        lookups: &Lookups<'_>,
        grouping: &Grouping,
        bounds: Bounds,
        gradient: &Gradient<'_>,
    ) -> Result<(), BackwardError> {
        let factors = Factors::new(cpu, tables, lookups, grouping, bounds, gradient)?;
        self.check(tables)?;
        let sums = factors.sums(tables, lookups, grouping, gradient);
        long::fill(cpu, &sums, &mut self.partials);
        let step = self.step + 1;
        let numbers = Numbers::new(self.rule, self.lr, self.decay, step);
        let rest = self.states.iter_mut().zip(&self.partials).zip(&sums);
        let job = |(at, (table, ((state, partials), sums)))| {
            Job::new(at, table, state, sums, partials, numbers, (self.rounding, step))
        };
        let jobs = tables.all_values_mut().zip(rest).enumerate().map(job).collect::<Result<Vec<_>, _>>()?;
        rows::run(cpu, &jobs);
        self.step = step;
        Ok(())
    }

    /// Fails unless its state is that of these tables.
    pub(super) fn check(&self, tables: &Tables<'_>) -> Result<(), BackwardError> {
        let (found, count) = (self.states.len(), tables.len());
        if found != count {
            return Err(BackwardError::Tables { what: "an optimizer", found, tables: count });
        }
        tables
            .iter()
            .zip(&self.states)
            .enumerate()
            .try_for_each(|(at, (table, state))| state.check(at, table))
    }
}
