//! Parameters and optimizer states by name, for checkpoints and for exchange with PyTorch.

use crate::error::Error;
use crate::gpu::{RowStates, StateAccess};
use crate::kept::{KeptKind, TensorPart};
use crate::kernel::Kernel;
use crate::session::{Engine, Session};

/// A tensor that remains from step to step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedShape {
    /// Name: that of a parameter, such as `bottom.0.weight`, or that of a state, such as `bottom.0.weight.exp_avg`.
    pub name: String,
    /// Shape.
    pub shape: Vec<usize>,
    /// Whether it is an optimizer state.
    pub state: bool,
    /// Its place in the whole tensor, where a rank has only a part of it.
    pub part: Option<TensorPart>,
}

/// Names of the states of rows, of each one's share of their width.
fn row_states(width: usize, columns: usize) -> &'static [&'static str] {
    match width.checked_div(columns) {
        Some(2) => &["exp_avg", "exp_avg_sq"],
        Some(1) => &["sum"],
        _ => &[],
    }
}

/// Tables whose rows a kernel updates, with the floats of a row of their states.
fn states_of(kernel: &Kernel) -> Vec<(&str, usize)> {
    match kernel {
        Kernel::Rows(update) => update.states().map(|(table, state)| (table, state.width())).collect(),
        Kernel::Gpu(work) => work.rows().map_or_else(Vec::new, RowStates::states),
        Kernel::Function(_) => Vec::new(),
    }
}

impl Session {
    /// Parameters and optimizer states, each once, in the order of the program.
    #[must_use]
    pub fn tensors(&self) -> Vec<NamedShape> {
        let kept = self.program.kept.iter().filter(|kept| !matches!(kept.kind, KeptKind::Indices(_)));
        let mut all: Vec<NamedShape> = kept
            .map(|kept| NamedShape {
                name: kept.name.clone(),
                shape: kept.shape.clone(),
                state: kept.kind == KeptKind::State,
                part: kept.part,
            })
            .collect();
        for instruction in &self.program.instructions {
            for (table, width) in states_of(&instruction.kernel) {
                let Some(kept) = self.program.kept.iter().find(|kept| kept.name == table) else { continue };
                let names = row_states(width, kept.shape[1]);
                all.extend(names.iter().map(|name| NamedShape {
                    name: format!("{table}.{name}"),
                    shape: kept.shape.clone(),
                    state: true,
                    part: kept.part,
                }));
            }
        }
        all
    }

    /// The elements of a parameter or of an optimizer state, row by row.
    ///
    /// # Errors
    /// Where no tensor has the name.
    pub fn read(&mut self, name: &str) -> Result<Vec<f32>, Error> {
        if let Some(at) = self.kept(name) {
            return self.kept_floats(at);
        }
        let mut elements = Vec::new();
        self.each_state_row(name, StateAccess::Read, |row| elements.extend_from_slice(row))?;
        Ok(elements)
    }

    /// Replaces the elements of a parameter or of an optimizer state.
    ///
    /// # Errors
    /// Where no tensor has the name, or the number of elements differs. Nothing has changed.
    pub fn write(&mut self, name: &str, values: &[f32]) -> Result<(), Error> {
        let known = self.tensors().into_iter().find(|tensor| tensor.name == name);
        let needed: usize = known.map_or(0, |tensor| tensor.shape.iter().product());
        if needed != values.len() && (needed > 0 || self.kept(name).is_some()) {
            let (needed, given) = (format!("{needed} floats"), format!("{} floats", values.len()));
            return Err(Error::Values { name: name.to_owned(), needed, given });
        }
        if let Some(at) = self.kept(name) {
            return self.set_kept_floats(at, values);
        }
        let mut rest = values;
        self.each_state_row(name, StateAccess::Change, |row| {
            let (own, after) = rest.split_at(row.len());
            row.copy_from_slice(own);
            rest = after;
        })
    }

    fn kept(&self, name: &str) -> Option<usize> {
        let is = |kind: &KeptKind| !matches!(kind, KeptKind::Indices(_));
        self.program.kept.iter().position(|kept| kept.name == name && is(&kept.kind))
    }

    /// Calls `work` with the state of each row of a table.
    fn each_state_row(
        &mut self,
        name: &str,
        access: StateAccess,
        mut work: impl FnMut(&mut [f32]),
    ) -> Result<(), Error> {
        let unknown = || Error::Name {
            what: "parameter or state",
            name: name.to_owned(),
            known: self.tensors().into_iter().map(|tensor| tensor.name).collect::<Vec<_>>().join(", "),
        };
        let Some((table, state)) = name.rsplit_once('.') else { return Err(unknown()) };
        let shape = self.program.kept.iter().find(|kept| kept.name == table).map(|kept| kept.shape.clone());
        let Some([rows, columns]) = shape.as_deref().and_then(|shape| <[usize; 2]>::try_from(shape).ok())
        else {
            return Err(unknown());
        };
        let kernels = self.program.instructions.iter().position(|instruction| {
            let mut states = states_of(&instruction.kernel).into_iter();
            states.any(|(own, width)| own == table && row_states(width, columns).contains(&state))
        });
        let Some(at) = kernels else { return Err(unknown()) };
        let instruction = &mut self.program.instructions[at];
        let update = match (&mut instruction.kernel, &mut self.engine) {
            (Kernel::Rows(update), _) => update,
            (Kernel::Gpu(own), Engine::Gpu(gpu)) => {
                let Some(update) = own.rows_mut() else { return Ok(()) };
                let width =
                    update.states().into_iter().find(|(own, _)| *own == table).map_or(0, |(_, width)| width);
                let place = row_states(width, columns).iter().position(|known| *known == state).unwrap_or(0);
                let done = update.each_state(gpu.state_memory(), table, rows, access, &mut |row| {
                    work(&mut row[place * columns..][..columns]);
                });
                let (op, place) = (instruction.name.clone(), instruction.place.clone());
                return done.map_err(|source| Error::Run { op, place, source });
            }
            _ => return Ok(()),
        };
        let Some(own) = update.state_mut(table) else { return Ok(()) };
        let place = row_states(own.width(), columns).iter().position(|known| *known == state).unwrap_or(0);
        for row in 0..rows {
            work(&mut own.row_mut(row)[place * columns..][..columns]);
        }
        Ok(())
    }
}
