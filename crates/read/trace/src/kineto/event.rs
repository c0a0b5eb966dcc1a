//! One event as written in the file, before its kind is known.

use super::LaunchShape;
use crate::json::{Cursor, Fault, Text, Value};
use crate::number;
use crate::repairs::Note;
use crate::units::Nanos;

/// Fields of an event that this reader uses.
#[derive(Default)]
pub(super) struct Event<'a> {
    /// Phase; 0 if missing.
    pub(super) phase: u8,
    pub(super) category: Text<'a>,
    pub(super) name: Option<Text<'a>>,
    pub(super) pid: Option<Number<'a>>,
    pub(super) tid: Option<Number<'a>>,
    pub(super) start: Option<Nanos>,
    pub(super) dur: Option<Nanos>,
    /// Number of a flow arrow.
    pub(super) id: Option<u64>,
    pub(super) args: Args<'a>,
}

/// Fields under `args`.
#[derive(Default)]
pub(super) struct Args<'a> {
    /// All arguments, as written.
    pub(super) raw: &'a [u8],
    pub(super) correlation: u64,
    pub(super) external_id: u64,
    pub(super) record_function_id: u64,
    pub(super) sequence: Option<i64>,
    pub(super) forward_thread: u64,
    pub(super) device: Option<i64>,
    pub(super) stream: Option<i64>,
    pub(super) bytes: u64,
    pub(super) shape: LaunchShape,
    pub(super) graph_node: u64,
    pub(super) sync_kind: Option<Text<'a>>,
    pub(super) wait_on_stream: Option<i64>,
    pub(super) wait_on_correlation: Option<i64>,
    pub(super) wait_on_event: Option<i64>,
    /// Number of the step that XLA's event marks, and the details of a kernel launch or copy.
    pub(super) step: Option<i64>,
    pub(super) details: Option<Text<'a>>,
    /// Name in a metadata event.
    pub(super) name: Option<Text<'a>>,
    /// Whether the event describes inputs of an op.
    pub(super) inputs: bool,
    /// Whether the event describes a collective.
    pub(super) collective: bool,
}

/// Process or thread: usually a number, sometimes a name.
#[derive(Clone, Copy)]
pub(super) enum Number<'a> {
    Is(i64),
    Named(Text<'a>),
}

impl<'a> Event<'a> {
    /// Reads the object at the cursor.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Event<'a>, Fault> {
        let mut event = Event::default();
        cursor.value()?;
        while let Some(key) = cursor.key()? {
            match key.raw {
                b"ph" => {
                    let phase = cursor.string()?.unwrap_or_default().raw;
                    event.phase = if let &[phase] = phase { phase } else { 0 };
                }
                b"cat" => event.category = cursor.string()?.unwrap_or_default(),
                b"name" => event.name = cursor.string()?,
                b"pid" => event.pid = Number::read(cursor)?,
                b"tid" => event.tid = Number::read(cursor)?,
                b"ts" => event.start = cursor.number(Nanos::from_micros_digits)?,
                b"dur" => event.dur = cursor.number(Nanos::from_micros_digits)?,
                b"id" => event.id = flow_id(cursor)?,
                b"args" => event.args = Args::read(cursor)?,
                _ => cursor.skip()?,
            }
        }
        Ok(event)
    }
}

impl<'a> Args<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Args<'a>, Fault> {
        let mut args = Args::default();
        let start = cursor.at;
        if !cursor.enter_object()? {
            return Ok(args);
        }
        while let Some(key) = cursor.key()? {
            match key.raw {
                b"External id" | b"external id" => args.external_id = cursor.unsigned()?.unwrap_or(0),
                b"Record function id" => args.record_function_id = cursor.unsigned()?.unwrap_or(0),
                b"Sequence number" => args.sequence = cursor.integer()?,
                b"Fwd thread id" => args.forward_thread = cursor.unsigned()?.unwrap_or(0),
                b"correlation" | b"correlation_id" => args.correlation = cursor.unsigned()?.unwrap_or(0),
                b"device" => args.device = quiet_integer(cursor)?,
                b"stream" => args.stream = quiet_integer(cursor)?,
                b"bytes" => args.bytes = cursor.unsigned()?.unwrap_or(0),
                b"grid" => args.shape.grid = triple(cursor)?,
                b"block" => args.shape.block = triple(cursor)?,
                b"registers per thread" => args.shape.registers = small(cursor)?,
                b"shared memory" => args.shape.shared_memory = small(cursor)?,
                b"graph node id" | b"cuda_graph_node_id" => args.graph_node = cursor.unsigned()?.unwrap_or(0),
                b"cuda_sync_kind" => args.sync_kind = cursor.string()?,
                b"wait_on_stream" => args.wait_on_stream = cursor.integer()?,
                b"wait_on_cuda_event_record_corr_id" => args.wait_on_correlation = cursor.integer()?,
                b"wait_on_cuda_event_id" => args.wait_on_event = cursor.integer()?,
                b"step_num" => args.step = cursor.integer()?,
                b"kernel_details" | b"memcpy_details" | b"Memset_details" | b"memset_details" => {
                    args.details = cursor.string()?;
                }
                b"name" if cursor.peek()? == b'"' => args.name = cursor.string()?,
                b"Input Dims" | b"Input dims" => {
                    args.inputs = true;
                    cursor.skip()?;
                }
                b"Collective name" => {
                    args.collective = true;
                    cursor.skip()?;
                }
                _ => cursor.skip()?,
            }
        }
        args.raw = &cursor.bytes[start..cursor.at];
        Ok(args)
    }
}

impl<'a> Number<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Option<Number<'a>>, Fault> {
        cursor.peek()?;
        let start = cursor.at;
        let number = match cursor.scalar()? {
            Value::Number(digits) => number::integer(digits).map(Number::Is),
            Value::Text(text) => {
                let raw = text.raw.trim_ascii();
                let digits = raw.strip_prefix(b"stream ").unwrap_or(raw);
                Some(number::integer(digits).map_or(Number::Named(text), Number::Is))
            }
            Value::Null => return Ok(None),
            _ => None,
        };
        if number.is_none() {
            cursor.quirks.push((Note::WrongType, start));
        }
        Ok(number)
    }

    /// Returns the number, or a number below -2^62 derived from the name.
    pub(super) fn value(self) -> i64 {
        match self {
            Number::Is(number) => number,
            Number::Named(text) => {
                let hash = text.raw.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                });
                i64::MIN + (hash >> 2) as i64
            }
        }
    }
}

/// Returns the id of an arrow: a number, or the hash of a text.
fn flow_id(cursor: &mut Cursor<'_>) -> Result<Option<u64>, Fault> {
    Ok(Number::read(cursor)?.map(|id| id.value() as u64))
}

/// Reads a number; other types under the same key are ignored without a note.
fn quiet_integer(cursor: &mut Cursor<'_>) -> Result<Option<i64>, Fault> {
    Ok(match cursor.peek()? {
        b'{' | b'[' => {
            cursor.skip()?;
            None
        }
        _ => match cursor.value()? {
            Value::Number(digits) => number::integer(digits),
            Value::Text(text) => number::integer(text.raw),
            _ => None,
        },
    })
}

fn small(cursor: &mut Cursor<'_>) -> Result<u32, Fault> {
    Ok(cursor.unsigned()?.map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX)))
}

/// Reads three numbers; a Triton op has another type under the same key.
fn triple(cursor: &mut Cursor<'_>) -> Result<[u32; 3], Fault> {
    let mut found = [0; 3];
    if cursor.enter_array()? {
        let mut index = 0;
        while cursor.item()? {
            let number = small(cursor)?;
            if let Some(slot) = found.get_mut(index) {
                *slot = number;
            }
            index += 1;
        }
    }
    Ok(found)
}
