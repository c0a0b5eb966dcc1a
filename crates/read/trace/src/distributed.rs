//! Ranks and process groups.

use crate::json::{Cursor, Fault};
use crate::number;

/// Rank and process groups of a trace in a distributed run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistributedRun {
    /// Communication library, for example `nccl`.
    pub backend: Option<String>,
    /// Rank of this process.
    pub rank: Option<u32>,
    /// Number of ranks.
    pub world_size: Option<u32>,
    /// Version of the library.
    pub nccl_version: Option<String>,
    /// Process groups of the run.
    pub groups: Vec<ProcessGroup>,
}

/// Ranks that communicate with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessGroup {
    /// Name, often a number.
    pub name: String,
    /// Description, for example `default_pg`.
    pub description: Option<String>,
    /// Communication library, for example `cuda:nccl`.
    pub backend: Option<String>,
    /// Number of ranks in the group.
    pub size: Option<u32>,
    /// Ranks of the group; empty if not recorded, which for the default group means all.
    pub ranks: Vec<u32>,
}

impl DistributedRun {
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Option<DistributedRun>, Fault> {
        if !cursor.enter_object()? {
            return Ok(None);
        }
        let mut found = DistributedRun::default();
        while let Some(key) = cursor.key()? {
            match key.raw {
                b"backend" => found.backend = string(cursor)?,
                b"rank" => found.rank = small(cursor)?,
                b"world_size" => found.world_size = small(cursor)?,
                b"nccl_version" => found.nccl_version = string(cursor)?,
                b"pg_config" => found.groups = ProcessGroup::read_list(cursor)?,
                _ => cursor.skip()?,
            }
        }
        Ok(Some(found))
    }
}

impl ProcessGroup {
    pub(crate) fn read_list(cursor: &mut Cursor<'_>) -> Result<Vec<ProcessGroup>, Fault> {
        let mut groups = Vec::new();
        if cursor.enter_array()? {
            while cursor.item()? {
                groups.extend(ProcessGroup::read(cursor)?);
            }
        }
        Ok(groups)
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Option<ProcessGroup>, Fault> {
        if !cursor.enter_object()? {
            return Ok(None);
        }
        let mut group = ProcessGroup::default();
        while let Some(key) = cursor.key()? {
            match key.raw {
                b"pg_name" => group.name = string(cursor)?.unwrap_or_default(),
                b"pg_desc" => group.description = string(cursor)?,
                b"backend_config" => group.backend = string(cursor)?,
                b"pg_size" | b"group_size" => group.size = small(cursor)?,
                b"ranks" => group.ranks = ranks(cursor)?,
                _ => cursor.skip()?,
            }
        }
        Ok(Some(group))
    }
}

/// Reads ranks from a list, a string such as `"[0, 1]"`, or the keys of an object.
fn ranks(cursor: &mut Cursor<'_>) -> Result<Vec<u32>, Fault> {
    let digits = |bytes: &[u8]| {
        bytes
            .split(|byte| !byte.is_ascii_digit())
            .filter_map(|digits| number::unsigned(digits).and_then(|rank| u32::try_from(rank).ok()))
            .collect()
    };
    if cursor.peek()? != b'{' {
        return Ok(digits(cursor.raw()?));
    }
    let mut ranks = Vec::new();
    cursor.enter_object()?;
    while let Some(key) = cursor.key()? {
        ranks.extend(digits(key.raw));
        cursor.skip()?;
    }
    Ok(ranks)
}

/// Reads a string, or a number as a string.
fn string(cursor: &mut Cursor<'_>) -> Result<Option<String>, Fault> {
    if let b'0'..=b'9' | b'-' = cursor.peek()? {
        return Ok(Some(String::from_utf8_lossy(cursor.raw()?).into_owned()));
    }
    Ok(cursor.string()?.map(|text| text.decoded()))
}

fn small(cursor: &mut Cursor<'_>) -> Result<Option<u32>, Fault> {
    Ok(cursor.integer()?.and_then(|number| u32::try_from(number).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_as_list_string_or_keys() {
        for json in [r#"{"ranks": [0, 1]}"#, r#"{"ranks": "[0, 1]"}"#, r#"{"ranks": {"0": 0, "1": 1}}"#] {
            let group = ProcessGroup::read(&mut Cursor::new(json.as_bytes()));
            assert_eq!(group.map(|group| group.map(|group| group.ranks)), Ok(Some(vec![0, 1])), "{json}");
        }
    }
}
