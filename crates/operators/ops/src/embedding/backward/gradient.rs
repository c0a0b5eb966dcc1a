//! The gradient of a bag's output.

use super::super::group::{Grouping, Groups};
use super::super::{Bounds, EmbeddingError, Lookups, Pooling, Tables};
use super::sum::{GradientSource, Sums};
use super::{BackwardError, winners};
use crate::Cpu;

/// The gradient of the pooled output, `[B, D_0 + D_1 + ...]` with rows `stride` elements apart; where tables are not
/// pooled, `[N, D]`.
#[derive(Debug, Clone, Copy)]
pub struct Gradient<'a> {
    values: &'a [f32],
    stride: usize,
    winners: Option<&'a [Vec<u32>]>,
}

impl<'a> Gradient<'a> {
    /// A gradient with rows `stride` elements apart.
    #[must_use]
    pub fn new(values: &'a [f32], stride: usize) -> Gradient<'a> {
        Gradient { values, stride, winners: None }
    }

    /// Adds the winning lookups of maximum pooling, from [`winners`](super::winners) or a forward pass. Without them,
    /// the backward pass finds them before it changes the tables.
    #[must_use]
    pub fn with_winners(self, winners: &'a [Vec<u32>]) -> Gradient<'a> {
        Gradient { winners: Some(winners), ..self }
    }

    /// Returns some columns of a row.
    pub(super) fn row(&self, row: usize, column: usize, dim: usize) -> &'a [f32] {
        &self.values[row * self.stride + column..][..dim]
    }

    /// Fails unless rows of these columns fit.
    fn check(&self, rows: usize, columns: usize) -> Result<(), EmbeddingError> {
        let (found, stride) = (self.values.len(), self.stride);
        let needed = rows.saturating_sub(1).saturating_mul(stride).saturating_add(columns);
        if rows > 0 && (stride < columns || found < needed) {
            let what = "gradient of the output";
            return Err(EmbeddingError::Size { what, found, stride, rows, columns, needed });
        }
        Ok(())
    }
}

/// Data that the [`Sums`] of all tables borrow.
#[derive(Debug, Default)]
pub(super) struct Factors {
    /// `1 / L` of each bag, for each table with mean pooling.
    means: Vec<Vec<f32>>,
    /// `[B, D]` positions, for each table with maximum pooling.
    winners: Vec<Vec<u32>>,
}

impl Factors {
    /// The factors of these lookups, after checking the arguments.
    pub(super) fn new(
        cpu: &Cpu,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
        grouping: &Grouping,
        bounds: Bounds,
        gradient: &Gradient<'_>,
    ) -> Result<Factors, BackwardError> {
        check(tables, lookups, grouping, gradient)?;
        let max = (0..tables.len()).any(|table| tables.pooling(table) == Pooling::Max);
        let winners = match gradient.winners {
            Some(given) => {
                check_winners(tables, lookups, given)?;
                Vec::new()
            }
            None if max => winners::winners(cpu, tables, lookups, bounds),
            None => Vec::new(),
        };
        let mut means = vec![Vec::new(); tables.len()];
        cpu.run_with(&mut means, |table, means| {
            if tables.pooling(table) == Pooling::Mean {
                means.extend(
                    (0..lookups.bags()).map(|bag| 1.0 / count(tables, lookups, bounds, table, bag) as f32),
                );
            }
        });
        Ok(Factors { means, winners })
    }

    /// The sums of gradients of each table.
    pub(super) fn sums<'a>(
        &'a self,
        tables: &Tables<'_>,
        lookups: &Lookups<'a>,
        grouping: &'a Grouping,
        gradient: &Gradient<'a>,
    ) -> Vec<Sums<'a>> {
        let winners = gradient.winners.unwrap_or(&self.winners);
        let one = |(table, groups): (usize, &'a Groups)| {
            let (pooling, dim) = (tables.pooling(table), tables.table(table).dim());
            let places = lookups.table(table);
            let pooled = pooling != Pooling::None;
            Sums {
                groups,
                gradient: gradient.values,
                stride: gradient.stride,
                column: if pooled { tables.column(table) } else { 0 },
                dim,
                receives: if pooled { GradientSource::Bag } else { GradientSource::Place(places.start) },
                weights: lookups.weights().map(|weights| &weights[places]),
                means: (pooling == Pooling::Mean).then(|| &self.means[table][..]),
                winners: (pooling == Pooling::Max).then(|| &winners[table][..]),
                ahead: (FETCH_BYTES / (dim * size_of::<f32>())).clamp(2, 64),
            }
        };
        grouping.tables().iter().enumerate().map(one).collect()
    }
}

/// Bytes of rows to fetch ahead of their use: about memory bandwidth times latency.
const FETCH_BYTES: usize = 12 << 10;

/// Number of lookups of a bag that a mean counts.
pub(super) fn count(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    bounds: Bounds,
    table: usize,
    bag: usize,
) -> usize {
    let places = lookups.bag(table, bag);
    if bounds != Bounds::Ignore {
        return places.len();
    }
    let rows = tables.table(table).rows() as u64;
    places.filter(|&place| (lookups.indices().at(place) as u64) < rows).count()
}

/// Fails unless tables, lookups, their grouping and gradients fit each other.
pub(super) fn check(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    grouping: &Grouping,
    gradient: &Gradient<'_>,
) -> Result<(), BackwardError> {
    let (found, tables_len) = (grouping.tables().len(), tables.len());
    if found != tables_len || lookups.offsets().len() != Lookups::offset_count(tables_len, lookups.bags())? {
        return Err(BackwardError::Tables { what: "a grouping", found, tables: tables_len });
    }
    for (table, groups) in grouping.tables().iter().enumerate() {
        let (given, given_bags) = (lookups.table(table).len(), lookups.bags());
        let given_rows = tables.table(table).rows();
        let (grouped, grouped_bags, grouped_rows) = (groups.lookups(), groups.bags(), groups.rows());
        if (grouped, grouped_bags, grouped_rows) != (given, given_bags, given_rows) {
            return Err(BackwardError::Grouping {
                table,
                grouped,
                grouped_bags,
                grouped_rows,
                given,
                given_bags,
                given_rows,
            });
        }
    }
    check_size(tables, lookups, gradient)
}

/// Fails unless gradients fit tables and lookups, and these each other.
pub(super) fn check_size(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    gradient: &Gradient<'_>,
) -> Result<(), BackwardError> {
    for table in 0..tables.len() {
        match tables.pooling(table) {
            Pooling::None => gradient.check(lookups.len(), tables.table(table).dim())?,
            _ => gradient.check(lookups.bags(), tables.columns())?,
        }
        if tables.pooling(table) == Pooling::Max && lookups.weights().is_some() {
            let why = "a maximum takes no per-sample weights: leave them out, or choose another pooling";
            let name = tables.table(table).name().to_owned();
            return Err(EmbeddingError::Pooling { table, name, why }.into());
        }
    }
    Ok(())
}

/// Fails unless there are winners for each bag and column of the tables with maximum pooling.
fn check_winners(
    tables: &Tables<'_>,
    lookups: &Lookups<'_>,
    given: &[Vec<u32>],
) -> Result<(), BackwardError> {
    let (found, count) = (given.len(), tables.len());
    if found != count {
        return Err(BackwardError::Tables { what: "winners", found, tables: count });
    }
    for (table, given) in given.iter().enumerate() {
        let (columns, rows) = (tables.table(table).dim(), lookups.bags());
        let needed = rows * columns;
        if tables.pooling(table) == Pooling::Max && given.len() != needed {
            let (what, found, stride) = ("winners", given.len(), columns);
            return Err(EmbeddingError::Size { what, found, stride, rows, columns, needed }.into());
        }
    }
    Ok(())
}
