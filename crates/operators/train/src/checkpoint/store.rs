//! The writer of a run's checkpoints.

use std::fs::{self, File, TryLockError};
use std::num::NonZero;
use std::path::{Path, PathBuf};

use super::disk::{Disk, LocalDisk};
use super::folder::{PARTIAL, REMOVED, leftovers, list, place, with_end};
use super::write::Plan;
use super::{CheckpointError, Entry, State};

/// Number and size of checkpoints.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Number of checkpoints that are kept, the last ones.
    pub keep: NonZero<usize>,
    /// Largest size of a shard, in bytes.
    pub shard_bytes: u64,
}

impl Default for Options {
    /// Three checkpoints, shards of 4 GiB.
    fn default() -> Self {
        Options { keep: NonZero::new(3).expect("3 is not zero"), shard_bytes: 4 << 30 }
    }
}

/// The folder of a run's checkpoints, opened by the one process that writes them.
pub struct Store {
    folder: PathBuf,
    options: Options,
    disk: Box<dyn Disk>,
    /// Locked until the store is dropped or the process ends.
    lock: File,
}

impl Drop for Store {
    fn drop(&mut self) {
        // A child process that is just being started may have the file open for a moment longer.
        let _ = self.lock.unlock();
    }
}

/// A checkpoint that was written.
#[derive(Debug)]
pub struct Written {
    /// Its folder.
    pub path: PathBuf,
    /// Bytes of all tensors.
    pub bytes: u64,
    /// Number of earlier checkpoints that were removed, or the reason why one could not be.
    pub removed: Result<usize, CheckpointError>,
}

impl Store {
    /// Opens a folder, and makes it if it does not exist. Remains of a process that was killed are removed.
    ///
    /// # Errors
    ///
    /// The folder cannot be made or read; another process has opened it.
    pub fn open(folder: impl Into<PathBuf>, options: Options) -> Result<Self, CheckpointError> {
        Store::with_disk(folder, options, Box::new(LocalDisk))
    }

    /// Opens a folder whose checkpoints are written by the given file operations.
    ///
    /// # Errors
    ///
    /// As for [`Store::open`].
    pub fn with_disk(
        folder: impl Into<PathBuf>,
        options: Options,
        disk: Box<dyn Disk>,
    ) -> Result<Self, CheckpointError> {
        let folder = folder.into();
        fs::create_dir_all(&folder).map_err(CheckpointError::io("create", &folder))?;
        let path = folder.join(".lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(CheckpointError::io("open", &path))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(CheckpointError::Locked { folder }),
            // A file system without locks: its user takes care.
            Err(TryLockError::Error(_)) | Ok(()) => {}
        }
        for path in leftovers(&folder)? {
            disk.remove_folder(&path).map_err(CheckpointError::io("remove", &path))?;
        }
        Ok(Store { folder, options, disk, lock })
    }

    /// The folder of the checkpoints.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a checkpoint of a state, the text of `model.toml` and tensors (weights and optimizer states); then removes
    /// the oldest ones. Tensors are read in parts, shards are written in parallel.
    ///
    /// # Errors
    ///
    /// There is a checkpoint of the state's step; names or shapes are invalid; a tensor cannot be read; the disk is full
    /// or fails. Earlier checkpoints are then as they were.
    pub fn write(
        &self,
        state: &State,
        model: &str,
        entries: &[Entry<'_>],
    ) -> Result<Written, CheckpointError> {
        let path = place(&self.folder, state.step);
        if path.exists() {
            return Err(CheckpointError::Exists { path });
        }
        let plan = Plan::new(entries, self.options.shard_bytes)?;
        let bytes = plan.bytes();
        let partial = with_end(&path, PARTIAL);
        let written = self.write_aside(plan, &partial, &path, state, model, entries);
        if let Err(error) = written {
            // If this fails too, the next opening of the store removes it.
            let _ = self.disk.remove_folder(&partial);
            return Err(error.or_no_space(&self.folder, bytes));
        }
        Ok(Written { path, bytes, removed: self.remove_old() })
    }

    fn write_aside(
        &self,
        plan: Plan,
        partial: &Path,
        path: &Path,
        state: &State,
        model: &str,
        entries: &[Entry<'_>],
    ) -> Result<(), CheckpointError> {
        self.disk.create_folder(partial).map_err(CheckpointError::io("create", partial))?;
        plan.write(&*self.disk, partial, state, model, entries)?;
        self.disk.rename(partial, path).map_err(CheckpointError::io("rename", partial))?;
        self.disk.sync_folder(&self.folder).map_err(CheckpointError::io("flush", &self.folder))
    }

    /// Removes all checkpoints after a step, for a run that resumes from an earlier one; returns their number.
    ///
    /// # Errors
    ///
    /// A checkpoint cannot be removed.
    pub fn remove_after(&self, step: u64) -> Result<usize, CheckpointError> {
        let checkpoints = list(&self.folder)?.into_iter().rev();
        // The last one first: a process that is killed here leaves no gap.
        self.remove(checkpoints.take_while(|&(later, _)| later > step).map(|(_, path)| path))
    }

    /// Removes all checkpoints but the last ones.
    fn remove_old(&self) -> Result<usize, CheckpointError> {
        let checkpoints = list(&self.folder)?;
        let old = checkpoints.len().saturating_sub(self.options.keep.get());
        self.remove(checkpoints.into_iter().take(old).map(|(_, path)| path))
    }

    /// Removes checkpoints. Each is renamed first, so that no part of one looks whole.
    fn remove(&self, paths: impl Iterator<Item = PathBuf>) -> Result<usize, CheckpointError> {
        let mut count = 0;
        for path in paths {
            let removed = with_end(&path, REMOVED);
            self.disk.rename(&path, &removed).map_err(CheckpointError::io("rename", &path))?;
            self.disk.remove_folder(&removed).map_err(CheckpointError::io("remove", &removed))?;
            count += 1;
        }
        Ok(count)
    }
}
