//! Sums of gradients without an optimizer's rule.

use steptime_ops::embedding::backward::RowRule;

use super::RowOptimizer;
use crate::embedding::{Grouping, RowSettings, Sizes, Tables};
use crate::{Buffer, Error, Float, Stream};

impl<G: Float> RowOptimizer<G> {
    /// An optimizer that adds to each row its gradient.
    pub(in crate::embedding) fn adding(
        stream: &Stream,
        tables: &Tables<'_>,
        grouping: &Grouping,
        sizes: Sizes,
    ) -> Result<RowOptimizer<G>, Error> {
        // A step subtracts the rate times the gradient.
        let settings = RowSettings::new(RowRule::SGD, -1.0);
        let states = tables.iter().map(|_| Buffer::zeros(stream, 0)).collect::<Result<_, _>>()?;
        RowOptimizer::make(stream, tables, grouping, sizes, settings, states)
    }

    /// The same for tables that may be at other addresses in each step; every step can be captured.
    pub(in crate::embedding) fn moving(mut self) -> RowOptimizer<G> {
        self.moving = true;
        self
    }
}
