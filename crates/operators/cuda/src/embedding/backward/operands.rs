//! Operands of a backward pass: checks, waits, and their addresses on the device.

use steptime_ops::embedding::backward::BackwardError;
use steptime_ops::embedding::{EmbeddingError, Pooling};

use super::RowOptimizer;
use super::state::state_pitch;
use crate::embedding::row_check::check_gradient;
use crate::embedding::row_device::Entry;
use crate::embedding::row_kind::RowKind;
use crate::embedding::{Grouping, Lookups, Sizes, Tables};
use crate::{Args, Error, Float, Grid, Slice, Stream};

impl<G: Float> RowOptimizer<G> {
    /// Waits where another stream may still use shared memory: tables, lookups, the gradient, and the parts of the
    /// state that are handed out.
    pub(super) fn take_turn(
        &self,
        stream: &Stream,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
        gradient: Slice<'_, G>,
    ) -> Result<(), Error> {
        let all = lookups.read_by(Args::new()).reads(gradient).writes(self.numbers.as_ref());
        let all = self.states.iter().fold(all, |all, state| all.writes(state.as_ref()));
        let all = tables.iter().fold(all, |all, table| all.writes(table.bytes()));
        all.take_turn(stream)
    }

    /// Updates the addresses of the tables on the device: in each step where tables are moving, else if they changed.
    pub(super) fn place(&mut self, stream: &Stream, tables: &mut Tables<'_>) -> Result<(), Error> {
        let mut entries = Vec::with_capacity(tables.len());
        for at in 0..tables.len() {
            let (column, apart) = (tables.column(at) as u32, tables.pooling(at) == Pooling::None);
            let table = tables.table(at);
            let (name, element) = (table.name().to_owned(), table.element());
            let (pitch, rows, dim) = (table.pitch() / element.align(), table.rows(), table.dim());
            let weights = tables.values_mut(at).ok_or(EmbeddingError::NotTrainable {
                table: name,
                element,
                why: "read only",
            })?;
            entries.push(Entry {
                weights: weights.address(),
                state: self.states[at].as_ref().address(),
                pitch: pitch as u32,
                state_pitch: state_pitch(&self.settings, dim) as u32,
                rows: rows as u32,
                column: if apart { 0 } else { column },
                kind: self.kind_of[at] as u32,
                place: at as u32,
                winners: self.winners[at].as_ref().address(),
            });
        }
        if self.moving {
            for entry in &entries {
                let args = Args::new().own(self.device_entries.as_ref()).value(*entry);
                // SAFETY: the arguments are those of `place_table`, which writes the entry of this table: there is one
                // for each. No other stream uses the entries since `stream_use.write`.
                unsafe {
                    self.kernels[entry.kind as usize].place.launch(stream, Grid::line(1, 1), args)?;
                }
            }
            self.entries = entries;
        } else if entries != self.entries {
            self.device_entries.as_mut().write(stream, &entries)?;
            self.entries = entries;
        }
        Ok(())
    }

    pub(super) fn check(
        &self,
        tables: &Tables<'_>,
        lookups: &Lookups<'_>,
        grouping: &Grouping,
        gradient: Slice<'_, G>,
    ) -> Result<(), Error> {
        let (found, count) = (self.shapes.len(), tables.len());
        if found != count {
            return Err(BackwardError::Tables { what: "an optimizer", found, tables: count }.into());
        }
        for (at, (table, &(rows, dim))) in tables.iter().zip(&self.shapes).enumerate() {
            let (given_rows, given_dim) = (table.rows(), table.dim());
            if (given_rows, given_dim) != (rows, dim) {
                return Err(BackwardError::Shape { table: at, rows, dim, given_rows, given_dim }.into());
            }
            if RowKind::new(tables, at, &self.sizes) != self.kernels[self.kind_of[at]].kind {
                return Err(changed(format!("table {at} of another type, alignment or pooling")));
            }
        }
        let sizes = Sizes { stride: self.sizes.stride, ..Sizes::from_lookups(lookups, 0) };
        if (Sizes { lookups: sizes.lookups, ..self.sizes }) != sizes {
            return Err(changed(format!("{sizes:?} for {:?}", self.sizes)));
        }
        let rows = tables.iter().map(|table| table.rows() as u32);
        let offsets = steptime_ops::embedding::Lookups::offset_count(count, lookups.bags())?;
        if lookups.offsets().len() != offsets {
            let (found, bags) = (lookups.offsets().len(), lookups.bags());
            return Err(EmbeddingError::OffsetCount { found, tables: count, bags, needed: offsets }.into());
        }
        let same = grouping.payload() == self.payload
            && grouping.windows() == self.windows
            && grouping.sizes().bags == self.sizes.bags;
        if !same || grouping.len() != lookups.len() || !rows.eq(grouping.rows().iter().copied()) {
            return Err(Error::Unsupported {
                what: "a grouping of other tables or lookups".into(),
                remedy: "group these lookups, with the grouping that the optimizer was made with",
            });
        }
        check_gradient(tables, lookups, gradient, self.sizes.stride)?;
        let vector = self.kernels.iter().map(|kernels| kernels.kind.lanes.vector).max().unwrap_or(1);
        let align = size_of::<G>() * vector;
        if !gradient.address().is_multiple_of(align as u64) {
            return Err(Error::Unsupported {
                what: format!("a gradient at an address that is not a multiple of {align}"),
                remedy: "begin the gradient at a multiple of 16 bytes",
            });
        }
        Ok(())
    }
}

fn changed(what: String) -> Error {
    Error::Unsupported { what, remedy: "make another `RowOptimizer` for these" }
}
