//! The file operations of a checkpoint that is written.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// File operations that write a checkpoint: the local disk, or one that fails in tests.
pub trait Disk: Send + Sync {
    /// Makes a folder that does not exist.
    ///
    /// # Errors
    ///
    /// The system's reason.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Makes a file that does not exist.
    ///
    /// # Errors
    ///
    /// The system's reason.
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DurableFile>>;
    /// Makes the entries of a folder permanent.
    ///
    /// # Errors
    ///
    /// The system's reason.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Renames a folder, in one step.
    ///
    /// # Errors
    ///
    /// The system's reason.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a folder with all its files.
    ///
    /// # Errors
    ///
    /// The system's reason.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file that can be made permanent.
pub trait DurableFile: Write + Send {
    /// Waits until all written bytes are on the disk.
    ///
    /// # Errors
    ///
    /// The system's reason.
    fn sync(&mut self) -> io::Result<()>;
}

/// The machine's file systems.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalDisk;

impl DurableFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for LocalDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DurableFile>> {
        Ok(Box::new(File::create_new(path)?))
    }

    #[cfg(unix)]
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// Windows cannot open a folder as a file; its journal keeps the order of entries.
    #[cfg(not(unix))]
    fn sync_folder(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }
}
