//! Atomic replacement of the folders of ranks: a reader finds the old rank or the new one, even if an ingest is killed or several
//! write at once.
//!
//! If the system supports it, the new folder and the old one are exchanged in one operation. Otherwise, as on some network file
//! systems, the old one is first moved aside, under a name that encodes its place: the next ingest puts it back, or removes it.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

const LOCK: &str = ".lock";
/// Prefix of the folder names of unfinished ranks.
const UNFINISHED: &str = ".part-";
/// Prefix of the names of ranks that were moved aside: `.old-rank=3.run=monday`.
const ASIDE: &str = ".old-";
/// Age from which an unfinished folder counts as interrupted, on file systems without locks.
const STALE: Duration = Duration::from_secs(3600);

/// Lock for changing folders of ranks; one ingest has it at a time, or all on a file system without locks.
pub(crate) struct Turn {
    _lock: File,
}

impl Turn {
    pub(crate) fn take(own: &Path) -> io::Result<Turn> {
        let lock = File::create(own.join(LOCK))?;
        let _ = lock.lock();
        Ok(Turn { _lock: lock })
    }
}

/// An unfinished folder. Its maker holds a lock on it.
pub(crate) struct UnfinishedFolder {
    folder: TempDir,
    _lock: io::Result<File>,
}

impl UnfinishedFolder {
    pub(crate) fn new(own: &Path) -> io::Result<UnfinishedFolder> {
        // No other ingest removes it between its creation and its lock.
        let _turn = Turn::take(own)?;
        let folder = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(own)?;
        let lock = File::open(folder.path()).and_then(|lock| lock.lock().map(|()| lock));
        Ok(UnfinishedFolder { folder, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces the folder of a rank; the old folder is removed with this value.
    pub(crate) fn place(&self, run: &str, rank: u32, place: &Path) -> io::Result<()> {
        let own = self.path();
        match exchanged(own, place) {
            // There was no old folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(own, place),
            Err(_) => {
                let aside = own.with_file_name(format!("{ASIDE}rank={rank}.run={run}"));
                fs::rename(place, &aside)?;
                fs::rename(own, place)?;
                fs::remove_dir_all(aside)
            }
            Ok(()) => Ok(()),
        }?;
        // Flushes the names to disk, too.
        place.parent().map_or(Ok(()), sync)
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchanged(one: &Path, other: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchanged(_one: &Path, other: &Path) -> io::Result<()> {
    fs::metadata(other)?;
    Err(io::ErrorKind::Unsupported.into())
}

/// Flushes the files of a folder to disk.
pub(crate) fn synced(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        File::open(entry?.path())?.sync_all()?;
    }
    sync(folder)
}

#[cfg(unix)]
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// Cleans up after interrupted ingests: ranks that were moved aside go back to their places unless others are there; abandoned
/// folders are removed.
pub(crate) fn clean_up(own: &Path, place: impl Fn(&str, u32) -> PathBuf) -> io::Result<()> {
    let _turn = Turn::take(own)?;
    for entry in fs::read_dir(own)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else { continue };
        if let Some(place) = name.strip_prefix(ASIDE).and_then(|name| place_of(name, &place)) {
            if place.exists() {
                fs::remove_dir_all(path)?;
            } else {
                fs::rename(path, place)?;
            }
        } else if name.starts_with(UNFINISHED) && is_left(&path) {
            // A folder that cannot be removed is not among the tables, and does no harm.
            let _ = fs::remove_dir_all(path);
        }
    }
    Ok(())
}

fn place_of(aside: &str, place: impl Fn(&str, u32) -> PathBuf) -> Option<PathBuf> {
    let (rank, run) = aside.strip_prefix("rank=")?.split_once(".run=")?;
    Some(place(run, rank.parse().ok()?))
}

fn is_left(folder: &Path) -> bool {
    match File::open(folder).map(|folder| folder.try_lock()) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock)) => false,
        _ => {
            let changed = fs::metadata(folder).and_then(|found| found.modified());
            changed.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > STALE))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lake::Lake;

    #[test]
    fn a_rank_that_was_moved_aside_goes_back_and_what_is_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let lake = Lake::open(&folder.path().join("lake")).expect("a lake");
        let (gone, there) = (lake.rank("a.run=b", 3), lake.rank("a", 4));
        fs::create_dir_all(gone.parent().expect("a run")).expect("a folder");
        fs::create_dir_all(&there).expect("a folder");
        for name in [".old-rank=3.run=a.run=b", ".old-rank=4.run=a", ".part-killed"] {
            fs::create_dir(lake.own().join(name)).expect("a folder");
        }
        let busy = lake.unfinished().expect("a folder");
        clean_up(&lake.own(), |run, rank| lake.rank(run, rank)).expect("settled");
        assert!(gone.is_dir() && there.is_dir() && busy.path().is_dir());
        let mut left: Vec<_> =
            fs::read_dir(lake.own()).expect("a folder").flatten().map(|e| e.path()).collect();
        left.sort();
        assert_eq!(left, [lake.own().join(LOCK), busy.path().to_owned()]);
    }

    #[test]
    fn folders_are_exchanged() {
        let folder = tempfile::tempdir().expect("a folder");
        let lake = Lake::open(&folder.path().join("lake")).expect("a lake");
        let place = lake.rank("a", 0);
        fs::create_dir_all(place.parent().expect("a run")).expect("a folder");
        for turn in ["first", "second"] {
            let made = lake.unfinished().expect("a folder");
            fs::write(made.path().join("x"), turn).expect("written");
            made.place("a", 0, &place).expect("placed");
            assert_eq!(fs::read_to_string(place.join("x")).expect("text"), turn);
        }
        assert_eq!(fs::read_dir(lake.own()).expect("a folder").count(), 1, "the lock alone is left");
    }
}
