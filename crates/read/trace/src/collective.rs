//! Collectives, as NCCL's hooks describe them.

use crate::json::{Cursor, Fault, Text};
use crate::repairs::{Note, Notes};
use crate::strings::{NameId, Strings};

/// Record that carries a [`Collective`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    /// Kernel: a row of [`crate::Activities`].
    Activity(u32),
    /// Host op, `record_param_comms`: a row of [`crate::HostOps`].
    Op(u32),
    /// Execution-trace node: a row of [`crate::Nodes`].
    Node(u32),
}

/// Arguments of one collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// Record that carries it.
    pub carrier: Carrier,
    /// Operation: `allreduce`, `all_to_allv`, `broadcast`.
    pub name: NameId,
    /// Number of elements sent.
    pub in_elements: u64,
    /// Number of elements received.
    pub out_elements: u64,
    /// Element type, for example `Float`.
    pub dtype: Option<NameId>,
    /// Number of ranks that take part.
    pub group_size: Option<u32>,
    /// Name of the process group.
    pub group_name: Option<NameId>,
    /// Description of the process group, for example `default_pg`.
    pub group_description: Option<NameId>,
    /// Ranks of the process group, as written: `[0, 1]`.
    pub group_ranks: Option<NameId>,
    /// Sequence number in its group, if recorded; the same on every rank.
    pub sequence: Option<i64>,
    /// Elements sent to each rank, as written.
    pub in_split: Option<NameId>,
    /// Elements received from each rank, as written.
    pub out_split: Option<NameId>,
    /// Sender of a point-to-point message.
    pub source_rank: Option<i64>,
    /// Receiver of a point-to-point message.
    pub target_rank: Option<i64>,
}

impl Collective {
    /// Returns the row of [`crate::Activities`], for a kernel.
    #[must_use]
    pub fn activity(&self) -> Option<u32> {
        match self.carrier {
            Carrier::Activity(index) => Some(index),
            _ => None,
        }
    }

    pub(crate) fn new(carrier: Carrier) -> Collective {
        Collective {
            carrier,
            name: NameId(0),
            in_elements: 0,
            out_elements: 0,
            dtype: None,
            group_size: None,
            group_name: None,
            group_description: None,
            group_ranks: None,
            sequence: None,
            in_split: None,
            out_split: None,
            source_rank: None,
            target_rank: None,
        }
    }

    /// Reads the field `key` from the cursor, in Kineto's or the execution trace's spelling;
    /// returns `false` and reads nothing if it is not a field of a collective.
    pub(crate) fn field(
        &mut self,
        key: &[u8],
        cursor: &mut Cursor<'_>,
        names: &mut Strings,
        notes: &mut Notes,
    ) -> Result<bool, Fault> {
        let mut name = |text: Option<Text<'_>>| text.map(|text| intern(text, names, notes, 0));
        match key {
            b"Collective name" | b"collective_name" => {
                self.name = name(Some(cursor.string()?.unwrap_or_default())).unwrap_or_default()
            }
            b"In msg nelems" | b"in_msg_nelems" => self.in_elements = cursor.unsigned()?.unwrap_or(0),
            b"Out msg nelems" | b"out_msg_nelems" => self.out_elements = cursor.unsigned()?.unwrap_or(0),
            b"dtype" => self.dtype = name(cursor.string()?),
            b"Group size" | b"pg_size" => {
                self.group_size = cursor.unsigned()?.and_then(|size| u32::try_from(size).ok());
            }
            b"Process Group Name" | b"pg_name" => self.group_name = name(cursor.string()?),
            b"Process Group Description" | b"pg_desc" => self.group_description = name(cursor.string()?),
            b"Process Group Ranks" => self.group_ranks = name(as_written(cursor)?),
            b"Seq" | b"seq" => self.sequence = cursor.integer()?,
            b"In split size" | b"in_split_size" => self.in_split = name(as_written(cursor)?),
            b"Out split size" | b"out_split_size" => self.out_split = name(as_written(cursor)?),
            b"Src Rank" => self.source_rank = cursor.integer()?,
            b"Dst Rank" => self.target_rank = cursor.integer()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Returns the same with names of another table, on another carrier.
    pub(crate) fn renamed(mut self, map: impl Fn(NameId) -> NameId, carrier: Carrier) -> Collective {
        self.carrier = carrier;
        self.name = map(self.name);
        for name in [
            &mut self.dtype,
            &mut self.group_name,
            &mut self.group_description,
            &mut self.group_ranks,
            &mut self.in_split,
            &mut self.out_split,
        ] {
            *name = name.map(&map);
        }
        self
    }
}

/// Returns a string's contents, or the text of any other value.
fn as_written<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Text<'a>>, Fault> {
    if cursor.peek()? == b'"' {
        return cursor.string();
    }
    Ok(Some(Text { raw: cursor.raw()?, escaped: false }))
}

/// Interns a string of the file; `at` is its offset.
pub(crate) fn intern(text: Text<'_>, names: &mut Strings, notes: &mut Notes, at: u64) -> NameId {
    let (id, mended) = match text.escaped {
        false => names.intern_bytes(text.raw),
        true => names.intern_bytes(text.bytes(&mut Vec::new())),
    };
    if mended {
        notes.add(Note::InvalidUtf8, at);
    }
    id
}
