//! The folders and files of a lake.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::replace_folder::{self, Turn};
use crate::tables::Table;

/// Version of the format. Lakes of another version are refused.
pub const VERSION: u32 = 2;

const MARK: &str = "_steptime.json";
const OWN: &str = "_ingest";
const RANK_FILE: &str = "rank.json";
/// A lake: a folder of ranks.
#[derive(Debug, Clone)]
pub struct Lake {
    /// The folder.
    pub path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    steptime_lake: u32,
}

/// State of a trace when it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Absolute path of the file.
    pub path: String,
    /// Length, bytes.
    pub bytes: u64,
    /// Time of the last change, nanoseconds since 1970.
    pub modified_ns: u64,
}

/// Origin of a rank of the lake: `rank.json` in its folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankFile {
    /// [`VERSION`].
    pub steptime_lake: u32,
    /// The trace.
    pub input: Input,
    /// Number of repairs in the trace.
    pub repairs: u64,
    /// Numbers of events in the tables.
    pub rows: Rows,
    /// Length of each table's file, bytes: a file of another length is damaged.
    pub tables: BTreeMap<String, u64>,
}

/// Numbers of events in the tables of a rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rows {
    /// Number of steps.
    pub steps: u64,
    /// Number of ops and annotations on the host.
    pub ops: u64,
    /// Number of kernels, copies and fills.
    pub activities: u64,
    /// Number of kernels.
    pub kernels: u64,
    /// Number of collectives.
    pub collectives: u64,
    /// Number of gaps of streams.
    pub gaps: u64,
}

impl Input {
    /// Reads the present state of a file.
    pub(crate) fn read(path: &Path) -> io::Result<Input> {
        let metadata = fs::metadata(path)?;
        let since = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let whole = fs::canonicalize(path)?;
        let modified_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Ok(Input { path: whole.to_string_lossy().into_owned(), bytes: metadata.len(), modified_ns })
    }
}

impl Lake {
    /// Opens a lake, or creates one in a folder that is empty or missing.
    ///
    /// # Errors
    /// If it has another version, or the folder holds something else.
    pub fn open(path: &Path) -> Result<Lake, Error> {
        let lake = Lake { path: path.to_owned() };
        let mark = path.join(MARK);
        match fs::read(&mark) {
            Ok(text) => lake.checked(&text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => lake.begin(&mark)?,
            Err(_) if path.is_file() => return Err(Error::NoLake { path: path.to_owned() }),
            Err(error) => return Err(Error::io(&mark)(error)),
        }
        let own = lake.own();
        fs::create_dir_all(&own).map_err(Error::io(&own))?;
        replace_folder::clean_up(&own, |run, rank| lake.rank(run, rank)).map_err(Error::io(&own))?;
        Ok(lake)
    }

    fn checked(&self, text: &[u8]) -> Result<(), Error> {
        let found = serde_json::from_slice::<Mark>(text).map(|mark| mark.steptime_lake);
        match found {
            Ok(VERSION) => Ok(()),
            other => {
                let found = other.map_or_else(|_| "unknown".to_owned(), |version| version.to_string());
                Err(Error::Version { path: self.path.clone(), found, expected: VERSION })
            }
        }
    }

    /// Marks a folder as a lake, atomically: another shard may do so at the same time.
    fn begin(&self, mark: &Path) -> Result<(), Error> {
        let path = &self.path;
        fs::create_dir_all(path).map_err(Error::io(path))?;
        let mut within = fs::read_dir(path).map_err(Error::io(path))?;
        let foreign = within.any(|entry| {
            let name = entry.map(|entry| entry.file_name());
            name.is_ok_and(|name| name != MARK && name != OWN)
        });
        // Another shard may have marked it since.
        if foreign && !mark.exists() {
            return Err(Error::NoLake { path: path.clone() });
        }
        let own = self.own();
        fs::create_dir_all(&own).map_err(Error::io(&own))?;
        self.write_json(mark, &Mark { steptime_lake: VERSION })
    }

    /// Returns the folder of the ingests' own files.
    pub(crate) fn own(&self) -> PathBuf {
        self.path.join(OWN)
    }

    /// Returns the folder of a rank.
    #[must_use]
    pub fn rank(&self, run: &str, rank: u32) -> PathBuf {
        self.path.join(format!("run={run}")).join(format!("rank={rank}"))
    }

    /// Returns the path of the report of a run's shard.
    #[must_use]
    pub fn report(&self, run: &str, part: u64, of: u64) -> PathBuf {
        self.own().join(format!("{run}.{part}-of-{of}.json"))
    }

    /// Returns the complete ranks of a run; damaged ones are left out.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn ranks(&self, run: &str) -> Result<Vec<(u32, RankFile)>, Error> {
        let folder = self.path.join(format!("run={run}"));
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io(&folder)(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(Error::io(&folder))?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("rank=")?.parse().ok());
            if let Some(rank) = number
                && let Some(file) = self.rank_file(run, rank)?
            {
                found.push((rank, file));
            }
        }
        found.sort_by_key(|(rank, _)| *rank);
        Ok(found)
    }

    /// Reads the file of a rank; `None` if it is missing, or if a table has another length than written.
    ///
    /// # Errors
    /// If its file exists and cannot be read.
    pub fn rank_file(&self, run: &str, rank: u32) -> Result<Option<RankFile>, Error> {
        let folder = self.rank(run, rank);
        let path = folder.join(RANK_FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path)(error)),
        };
        let file: Option<RankFile> = serde_json::from_slice(&text).ok();
        Ok(file.filter(|file| lengths(&folder).is_ok_and(|found| found == file.tables)))
    }

    /// Creates a folder for an unfinished rank; it is removed with the value unless it is [put in place](Lake::place).
    pub(crate) fn unfinished(&self) -> Result<replace_folder::UnfinishedFolder, Error> {
        let own = self.own();
        replace_folder::UnfinishedFolder::new(&own).map_err(Error::io(&own))
    }

    /// Flushes a finished folder to disk and moves it to the place of a rank. An old folder stays there until then, and is then
    /// removed whole.
    pub(crate) fn place(
        &self,
        made: replace_folder::UnfinishedFolder,
        run: &str,
        rank: u32,
        mut file: RankFile,
    ) -> Result<(), Error> {
        let about = made.path().join(RANK_FILE);
        file.tables = lengths(made.path()).map_err(Error::io(made.path()))?;
        let text = serde_json::to_vec_pretty(&file).map_err(|error| Error::io(&about)(error.into()))?;
        fs::write(&about, text).map_err(Error::io(&about))?;
        let folder = self.path.join(format!("run={run}"));
        fs::create_dir_all(&folder).map_err(Error::io(&folder))?;
        let place = self.rank(run, rank);
        let placed = || {
            readable(made.path())?;
            replace_folder::synced(made.path())?;
            let _turn = Turn::take(&self.own())?;
            made.place(run, rank, &place)
        };
        placed().map_err(Error::io(&place))
    }

    /// Writes a file of JSON atomically.
    pub(crate) fn write_json<T: Serialize>(&self, path: &Path, value: &T) -> Result<(), Error> {
        let written = || -> io::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(self.own())?;
            serde_json::to_writer_pretty(&mut file, value)?;
            readable_file(file.as_file())?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        };
        written().map_err(Error::io(path))
    }
}

/// Returns the lengths of the tables in the folder of a rank.
fn lengths(folder: &Path) -> io::Result<BTreeMap<String, u64>> {
    let of = |table: Table| {
        let found = fs::metadata(folder.join(format!("{}.parquet", table.name())))?;
        Ok((table.name().to_owned(), found.len()))
    };
    Table::ALL.into_iter().map(of).collect()
}

/// Makes a folder readable by others: temporary folders are readable only by their owner.
#[cfg(unix)]
fn readable(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn readable(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn readable_file(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable_file(_file: &File) -> io::Result<()> {
    Ok(())
}
