//! One node as written in the file, flat or nested.

use super::attributes;
use crate::json::{Cursor, Fault, Text};
use crate::kineto::Category;
use crate::units::Nanos;

/// Fields of a node.
#[derive(Default)]
pub(super) struct RawNode<'a> {
    pub(super) id: Option<u64>,
    pub(super) name: Option<Text<'a>>,
    pub(super) parent: u64,
    pub(super) rf_id: u64,
    pub(super) fw_parent: u64,
    pub(super) seq_id: Option<i64>,
    pub(super) scope: u64,
    pub(super) tid: u64,
    pub(super) fw_tid: u64,
    pub(super) op_schema: Text<'a>,
    pub(super) kernel_backend: Text<'a>,
    pub(super) kernel_file: Text<'a>,
    pub(super) inputs: RawValues<'a>,
    pub(super) outputs: RawValues<'a>,
    /// Category, from a linker.
    pub(super) category: Option<Category>,
    /// Start and duration, from a linker.
    pub(super) start: Option<Nanos>,
    pub(super) dur: Option<Nanos>,
    /// Attributes as written, if they describe a collective.
    pub(super) collective: Option<&'a [u8]>,
}

/// Parallel lists that describe inputs or outputs, as written.
#[derive(Clone, Copy, Default)]
pub(super) struct RawValues<'a> {
    pub(super) values: &'a [u8],
    pub(super) shapes: &'a [u8],
    pub(super) types: &'a [u8],
    pub(super) strides: &'a [u8],
}

impl<'a> RawNode<'a> {
    /// Reads the object at the cursor.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<RawNode<'a>, Fault> {
        let mut node = RawNode::default();
        cursor.value()?;
        while let Some(key) = cursor.key()? {
            match key.raw {
                b"id" => node.id = cursor.unsigned()?,
                b"name" => node.name = cursor.string()?,
                b"parent" | b"ctrl_deps" => node.parent = parent(cursor)?,
                b"inputs" => node.inputs.read(cursor)?,
                b"outputs" => node.outputs.read(cursor)?,
                b"input_shapes" => node.inputs.shapes = cursor.raw()?,
                b"input_types" => node.inputs.types = cursor.raw()?,
                b"input_strides" => node.inputs.strides = cursor.raw()?,
                b"output_shapes" => node.outputs.shapes = cursor.raw()?,
                b"output_types" => node.outputs.types = cursor.raw()?,
                b"output_strides" => node.outputs.strides = cursor.raw()?,
                b"attrs" => node.attributes(cursor)?,
                b"cat" => node.category = cursor.string()?.map(|name| Category::parse(name.raw)),
                b"ts" => node.start = cursor.number(Nanos::from_micros_digits)?,
                b"dur" => node.dur = cursor.number(Nanos::from_micros_digits)?,
                name => {
                    if !node.field(name, cursor)? {
                        cursor.skip()?;
                    }
                }
            }
        }
        Ok(node)
    }

    fn attributes(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        cursor.peek()?;
        let start = cursor.at;
        let mut collective = false;
        attributes::each(cursor, |name, value| {
            collective |= name == b"collective_name";
            self.field(name, &mut Cursor::new(value)).map(|_| ())
        })?;
        if collective {
            self.collective = Some(&cursor.bytes[start..cursor.at]);
        }
        Ok(())
    }

    /// Reads a field that is either in the node or among its attributes; returns `false` and reads nothing if the field is
    /// not used.
    fn field(&mut self, name: &[u8], cursor: &mut Cursor<'a>) -> Result<bool, Fault> {
        match name {
            b"rf_id" => self.rf_id = cursor.unsigned()?.unwrap_or(0),
            b"fw_parent" => self.fw_parent = cursor.unsigned()?.unwrap_or(0),
            b"seq_id" => self.seq_id = cursor.integer()?,
            b"scope" => self.scope = cursor.unsigned()?.unwrap_or(0),
            b"tid" => self.tid = cursor.unsigned()?.unwrap_or(0),
            b"fw_tid" => self.fw_tid = cursor.unsigned()?.unwrap_or(0),
            b"op_schema" => self.op_schema = cursor.string()?.unwrap_or_default(),
            b"kernel_backend" => self.kernel_backend = cursor.string()?.unwrap_or_default(),
            b"kernel_file" => self.kernel_file = cursor.string()?.unwrap_or_default(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl<'a> RawValues<'a> {
    /// Reads a list of values, or an object of the parallel lists.
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Fault> {
        if cursor.peek()? != b'{' {
            self.values = cursor.raw()?;
            return Ok(());
        }
        cursor.enter_object()?;
        while let Some(key) = cursor.key()? {
            match key.raw {
                b"values" => self.values = cursor.raw()?,
                b"shapes" => self.shapes = cursor.raw()?,
                b"types" => self.types = cursor.raw()?,
                b"strides" => self.strides = cursor.raw()?,
                _ => cursor.skip()?,
            }
        }
        Ok(())
    }
}

/// Reads a number, or the first number of a list.
fn parent(cursor: &mut Cursor<'_>) -> Result<u64, Fault> {
    if cursor.peek()? != b'[' {
        return Ok(cursor.unsigned()?.unwrap_or(0));
    }
    let mut list = Cursor::new(cursor.raw()?);
    list.enter_array()?;
    Ok(if list.item()? { list.unsigned()?.unwrap_or(0) } else { 0 })
}
