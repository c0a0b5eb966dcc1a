//! What a collective exchanges, as NCCL's hooks describe it.

use crate::json::{Cursor, Fault, Text};
use crate::notes::{Note, Notes};
use crate::strings::{NameId, Strings};

/// What a [`Collective`] is recorded on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Carrier {
    /// A kernel: a row of [`crate::Activities`].
    Activity(u32),
    /// A host op, `record_param_comms`: a row of [`crate::HostOps`].
    Op(u32),
    /// An execution-trace node: a row of [`crate::Nodes`].
    Node(u32),
}

/// The arguments of one collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Collective {
    /// What it is recorded on.
    pub carrier: Carrier,
    /// The operation: `allreduce`, `all_to_allv`, `broadcast`.
    pub name: NameId,
    /// Elements sent.
    pub in_elements: u64,
    /// Elements received.
    pub out_elements: u64,
    /// Element type, `Float`.
    pub dtype: Option<NameId>,
    /// How many ranks take part.
    pub group_size: Option<u32>,
    /// The name of the process group.
    pub group_name: Option<NameId>,
    /// What the process group is for, `default_pg`.
    pub group_description: Option<NameId>,
    /// The ranks of the process group, as written: `[0, 1]`.
    pub group_ranks: Option<NameId>,
    /// The how-manieth of its group, where recorded; the same on every rank.
    pub sequence: Option<i64>,
    /// Elements sent to each rank, as written.
    pub in_split: Option<NameId>,
    /// Elements received from each rank, as written.
    pub out_split: Option<NameId>,
    /// The sender of a point-to-point message.
    pub source_rank: Option<i64>,
    /// The receiver of a point-to-point message.
    pub target_rank: Option<i64>,
}

impl Collective {
    /// The row of [`crate::Activities`], for a kernel.
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

    /// Takes the field `key` from the cursor, in Kineto's or the execution trace's spelling;
    /// `false` when it is no field of a collective, and nothing was taken.
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

    /// The same with the names of another table, on another carrier.
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

/// A string's contents, or any other value as it stands.
fn as_written<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Text<'a>>, Fault> {
    if cursor.peek()? == b'"' {
        return cursor.string();
    }
    Ok(Some(Text { raw: cursor.raw()?, escaped: false }))
}

/// Interns a string of the file; `at` is where it stands.
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
