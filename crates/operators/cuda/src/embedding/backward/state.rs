//! State of an optimizer from step to step, as saved in checkpoints.

use steptime_ops::embedding::Element;
use steptime_ops::embedding::backward::Decay;

use super::RowOptimizer;
use crate::embedding::row_numbers::Numbers;
use crate::embedding::{RowSettings, Tables};
use crate::{Args, Buffer, Error, Float, Grid, SliceMut, Stream};

impl<G: Float> RowOptimizer<G> {
    /// The settings.
    #[must_use]
    pub fn settings(&self) -> RowSettings {
        self.settings
    }

    /// Sets the learning rate of later steps in this stream. Does not wait, within one stream, and does not change the
    /// number of steps taken.
    ///
    /// # Errors
    ///
    /// The rate is negative or not finite; the driver refuses.
    pub fn set_learning_rate(&mut self, stream: &Stream, lr: f32) -> Result<(), Error> {
        self.set(stream, RowSettings { lr, ..self.settings })
    }

    /// Sets the weight decay, as [`RowOptimizer::set_learning_rate`] sets the rate.
    ///
    /// # Errors
    ///
    /// The decay is negative or not finite; the driver refuses.
    pub fn set_decay(&mut self, stream: &Stream, decay: Decay) -> Result<(), Error> {
        self.set(stream, RowSettings { decay, ..self.settings })
    }

    fn set(&mut self, stream: &Stream, settings: RowSettings) -> Result<(), Error> {
        settings.check()?;
        self.stream_use.write(stream)?;
        if let Some(kernels) = self.kernels.first() {
            let args = Args::new().own(self.numbers.as_ref()).value(Numbers::new(&settings, 0));
            // SAFETY: the arguments are those of `set_numbers`, which changes the one `Numbers` of this optimizer, and
            // which no other stream uses since `stream_use.write`.
            unsafe { kernels.set.launch(stream, Grid::line(1, 1), args)? };
        }
        self.settings = settings;
        Ok(())
    }

    /// Number of steps taken, after the preceding work of the stream; 0 where neither rule nor rounding counts them.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn steps(&self, stream: &Stream) -> Result<u64, Error> {
        Ok(self.numbers.to_host(stream)?.first().map_or(0, |numbers| numbers.step))
    }

    /// Sets the number of steps taken, from a checkpoint.
    ///
    /// # Errors
    ///
    /// A kernel failed.
    pub fn set_steps(&mut self, stream: &Stream, steps: u64) -> Result<(), Error> {
        self.numbers.as_mut().write(stream, &[Numbers::new(&self.settings, steps)])
    }

    /// The state of a table, and the floats from row to row: see `RowRule` for their meaning.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    #[must_use]
    pub fn state(&self, table: usize) -> (&Buffer<f32>, usize) {
        (&self.states[table], state_pitch(&self.settings, self.shapes[table].1))
    }

    /// The mutable state of a table, for restoring a checkpoint. Only the values may change, since kernels rely on the
    /// size.
    ///
    /// # Panics
    ///
    /// The table does not exist.
    #[must_use]
    pub fn state_mut(&mut self, table: usize) -> SliceMut<'_, f32> {
        self.states[table].as_mut()
    }
}

/// Number of floats of each table's state.
pub(super) fn state_floats(tables: &Tables<'_>, settings: &RowSettings) -> impl Iterator<Item = usize> {
    tables.iter().map(|table| table.rows().saturating_mul(state_pitch(settings, table.dim())))
}

/// Fails where the state of a table has another number of floats, or an address at which kernels cannot load vectors.
pub(super) fn check_states(
    tables: &Tables<'_>,
    settings: &RowSettings,
    states: &[Buffer<f32>],
) -> Result<(), Error> {
    let floats: Vec<usize> = state_floats(tables, settings).collect();
    let given: Vec<usize> = states.iter().map(Buffer::len).collect();
    let aligned = states.iter().all(|state| state.as_ref().address().is_multiple_of(16));
    if floats == given && aligned {
        return Ok(());
    }
    Err(Error::Unsupported {
        what: format!("state of {given:?} floats{}", if aligned { "" } else { ", not aligned to 16 bytes" }),
        remedy: "give each table's rows times the floats of a row of state: see `RowOptimizer::state`",
    })
}

/// Floats from row to row of the state: as on the CPU, except that rows of more than one float begin at multiples of 16
/// bytes.
pub(super) fn state_pitch(settings: &RowSettings, dim: usize) -> usize {
    match settings.rule.state_width(dim) {
        width @ (0 | 1) => width,
        width => (Element::F32.pitch(width) / size_of::<f32>()).next_multiple_of(4),
    }
}

#[cfg(test)]
mod tests {
    use steptime_ops::embedding::backward::RowRule;

    use super::*;

    #[test]
    fn rows_of_state_are_aligned_for_their_loads() {
        let pitch = |rule, dim| state_pitch(&RowSettings::new(rule, 0.1), dim);
        let partial = RowRule::PartialRowWiseAdam { beta1: 0.9, beta2: 0.999, eps: 1e-8 };
        for dim in 1..300 {
            for rule in [RowRule::Adagrad { eps: 1e-8 }, RowRule::ADAM, partial] {
                let floats = pitch(rule, dim);
                let width = rule.state_width(dim);
                assert!(floats >= width && (width == 1 || floats % 4 == 0), "{rule:?} {dim}");
            }
            assert_eq!((pitch(RowRule::SGD, dim), pitch(RowRule::ROW_WISE_ADAGRAD, dim)), (0, 1));
        }
        // `state_pitch` of `python/steptime/operators/plans.py` is tested with the same values.
        assert_eq!([64, 3, 127].map(|dim| pitch(partial, dim)), [68, 4, 128]);
        assert_eq!([5, 9, 33, 60].map(|dim| pitch(RowRule::ADAM, dim)), [16, 20, 68, 128]);
    }
}
