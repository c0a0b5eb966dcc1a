//! Recorded jobs as described by their folders: number of ranks, placement of tables, step time.

use std::path::{Path, PathBuf};

use steptime_eager::{Model, TableLayout};
use steptime_trace::Meta;

use super::described;
use crate::error::Error;

/// Description of a recorded job by its folder.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedJob {
    /// The folder.
    pub path: PathBuf,
    /// The recorder's name of the model.
    pub model: Option<String>,
    /// Number of recorded ranks.
    pub ranks: u32,
    /// Samples per step of all ranks together.
    pub batch: Option<u64>,
    /// Tables of each rank, where recorded.
    pub placement: Vec<Vec<u64>>,
    /// The un-profiled step: the mean of the ranks' medians, milliseconds.
    pub measured_ms: f64,
}

impl RecordedJob {
    /// Reads the `meta.json` of every rank; no trace is opened.
    ///
    /// # Errors
    /// Fails where the folder or one of the files cannot be read, or a rank has no measured step.
    pub fn read(path: &Path) -> Result<RecordedJob, Error> {
        let io =
            |source: std::io::Error| Error::Plan(super::PlanError::Read { path: path.to_owned(), source });
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(path).map_err(io)? {
            folders.push(entry.map_err(io)?.path());
        }
        folders.retain(|folder| folder.join("meta.json").is_file());
        folders.sort();
        let metas: Result<Vec<Meta>, Error> =
            folders.iter().map(|folder| Ok(Meta::read_of(folder)?)).collect();
        let metas = metas?;
        let truth = |(meta, folder): (&Meta, &PathBuf)| {
            meta.step_ms.ok_or_else(|| Error::NoTruth { path: folder.clone(), purpose: "validated" })
        };
        let truths: Result<Vec<f64>, Error> = metas.iter().zip(&folders).map(truth).collect();
        let truths = truths?;
        let first = metas.first().cloned().unwrap_or_default();
        Ok(RecordedJob {
            path: path.into(),
            model: first.model,
            ranks: u32::try_from(metas.len()).unwrap_or(u32::MAX),
            batch: first.global_batch,
            placement: first.placement,
            measured_ms: truths.iter().sum::<f64>() / truths.len().max(1) as f64,
        })
    }

    /// Title: the folder's name.
    #[must_use]
    pub fn title(&self) -> String {
        let folder = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        folder.unwrap_or_else(|| self.path.display().to_string())
    }

    /// Changes a description of its model to the recorded job: its batch, its ranks, its placement of tables. Where the recorder
    /// did not note a placement, the description's is kept.
    ///
    /// # Errors
    /// Fails where the description has fewer tables than were placed, or another number of GPUs.
    pub fn adjust_model(&self, model: &Model) -> Result<Model, Error> {
        let problem = |source| described(&self.path, source);
        let model = match self.batch {
            Some(batch) if batch != model.batch() => model.with_batch(batch).map_err(problem)?,
            _ => model.clone(),
        };
        if self.placement.is_empty() {
            if model.gpus() == self.ranks {
                return Ok(model);
            }
            let what = format!(
                "{} ranks were recorded, and the description is of {}: write `placement` in meta.json, or place the tables in [parallel]",
                self.ranks,
                model.gpus()
            );
            return Err(Error::Plan(super::PlanError::Plan { path: self.path.clone(), what }));
        }
        let sizes = model.tables();
        let home = |(table, size): (u64, &steptime_eager::TableSize)| {
            let on: Vec<u32> = (0..)
                .zip(&self.placement)
                .filter(|(_, own)| own.contains(&table))
                .map(|(gpu, _)| gpu)
                .collect();
            match on[..] {
                [] => None,
                [gpu] => Some(TableLayout::whole(gpu, size.rows, size.columns)),
                _ => Some(TableLayout::by_columns(&on, size.rows, size.columns)),
            }
        };
        let homes: Option<Vec<TableLayout>> = (0..).zip(&sizes).map(home).collect();
        let placed = self.placement.iter().flatten().max().map_or(0, |most| most + 1);
        let Some(homes) = homes.filter(|_| placed as usize <= sizes.len()) else {
            let what = format!(
                "`placement` in meta.json names {placed} tables, and the description has {}: it is of another model",
                sizes.len()
            );
            return Err(Error::Plan(super::PlanError::Plan { path: self.path.clone(), what }));
        };
        model.on(self.ranks, homes).map_err(problem)
    }
}
