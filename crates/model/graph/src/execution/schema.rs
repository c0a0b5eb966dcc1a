//! Memory effects of an operator's schema: the arguments that it writes, the returns that are views.

use rustc_hash::FxHashMap;
use steptime_trace::{NameId, Strings};

/// Access of an operator to the memory of one argument or return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// No annotation: the argument is read, the return is new.
    #[default]
    Plain,
    /// `Tensor(a)`: the return shares the argument's memory; neither is read or written.
    View,
    /// `Tensor(a!)`: written in place.
    Write,
}

/// Ops that return views although their schema does not declare it: callers must not change their results in place.
const UNSAID: [&str; 4] =
    ["aten::_unsafe_view", "aten::unsafe_chunk", "aten::unsafe_split", "aten::unsafe_split_with_sizes"];

/// Whether the result of an op shares memory with its first argument although its schema declares it as new.
#[must_use]
pub(super) fn is_view_unsaid(op: &str) -> bool {
    UNSAID.contains(&op)
}

/// The memory accesses of one operator schema, such as
/// `aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    arguments: Vec<Access>,
    returns: Vec<Access>,
}

impl Schema {
    /// Parses a schema; unreadable parts count as having no annotations.
    #[must_use]
    pub fn parse(text: &str) -> Schema {
        let Some(open) = text.find('(') else {
            return Schema::default();
        };
        let (arguments, rest) = bracketed(&text[open..]);
        let returns = rest.split_once("->").map_or("", |(_, returns)| returns.trim());
        let returns = if returns.starts_with('(') { bracketed(returns).0 } else { returns };
        Schema { arguments: accesses(arguments), returns: accesses(returns) }
    }

    /// Returns the access of the argument at `index`, keyword arguments included.
    #[must_use]
    pub fn argument(&self, index: usize) -> Access {
        self.arguments.get(index).copied().unwrap_or_default()
    }

    /// Returns the access of the return at `index`.
    #[must_use]
    pub fn output(&self, index: usize) -> Access {
        self.returns.get(index).copied().unwrap_or_default()
    }
}

/// Parsed schemas, each distinct text once.
#[derive(Clone, Debug, Default)]
pub struct Schemas {
    by_name: FxHashMap<NameId, Option<Schema>>,
}

impl Schemas {
    /// Parses every schema in `texts`; the empty text is not a schema.
    #[must_use]
    pub fn parse(names: &Strings, texts: &[NameId]) -> Schemas {
        let mut by_name = FxHashMap::default();
        for &text in texts {
            by_name.entry(text).or_insert_with(|| match names.get(text) {
                "" => None,
                text => Some(Schema::parse(text)),
            });
        }
        Schemas { by_name }
    }

    /// Returns the schema with this text; `None` if the text is empty or was not parsed.
    #[must_use]
    pub fn get(&self, text: NameId) -> Option<&Schema> {
        self.by_name.get(&text)?.as_ref()
    }
}

/// Returns the text between the opening bracket that `text` starts with and its closing bracket, and the text after it.
fn bracketed(text: &str) -> (&str, &str) {
    let mut depth = 0usize;
    for (at, byte) in unquoted(text) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return (&text[1..at], &text[at + 1..]);
        }
    }
    (text.get(1..).unwrap_or(""), "")
}

/// Returns the access of each item of a list separated by commas.
fn accesses(list: &str) -> Vec<Access> {
    let mut found = Vec::new();
    let mut depth = 0usize;
    let mut start = 0;
    let mut item = |text: &str| match text.trim() {
        "" | "*" => {}
        text => found.push(access(text)),
    };
    for (at, byte) in unquoted(list) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                item(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    item(&list[start..]);
    found
}

/// Returns the annotation of one argument or return; its default value is ignored.
fn access(item: &str) -> Access {
    let declared = item.split('=').next().unwrap_or(item);
    match declared.split_once('(') {
        None => Access::Plain,
        Some((_, set)) if set.split(')').next().is_some_and(|set| set.contains('!')) => Access::Write,
        Some(_) => Access::View,
    }
}

/// Returns the ASCII bytes outside of quoted strings, with their positions.
fn unquoted(text: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut quote = None;
    text.bytes().enumerate().filter(move |&(_, byte)| match (quote, byte) {
        (None, b'"' | b'\'') => {
            quote = Some(byte);
            false
        }
        (None, _) => byte.is_ascii(),
        (Some(open), _) => {
            if byte == open {
                quote = None;
            }
            false
        }
    })
}

#[cfg(test)]
mod tests {
    use super::Access::{Plain, View, Write};
    use super::*;

    fn check(text: &str, arguments: &[Access], returns: &[Access]) {
        let schema = Schema::parse(text);
        assert_eq!(schema.arguments, arguments, "{text}");
        assert_eq!(schema.returns, returns, "{text}");
    }

    #[test]
    fn annotations_are_read() {
        check("aten::mm(Tensor self, Tensor mat2) -> Tensor", &[Plain, Plain], &[Plain]);
        check("aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)", &[View, Plain], &[View]);
        check(
            "aten::gather.out(Tensor self, int dim, *, bool g=False, Tensor(a!) out) -> Tensor(a!)",
            &[Plain, Plain, Plain, Write],
            &[Write],
        );
        check("aten::_foreach_add_(Tensor(a!)[] self, Scalar x) -> ()", &[Write, Plain], &[]);
        check("aten::split(Tensor(a -> *) self, int n=0) -> Tensor(a)[]", &[View, Plain], &[View]);
        check(
            "x::max.out(Tensor self, *, Tensor(a!) m, Tensor(b!) i) -> (Tensor(a!) m, Tensor(b!) i)",
            &[Plain, Write, Write],
            &[Write, Write],
        );
    }

    #[test]
    fn defaults_do_not_confuse() {
        check(
            "aten::c(Tensor x, int[2] stride=[1, 1], str mode=\"a,(b!\", Tensor? y=None) -> (Tensor, Tensor)",
            &[Plain; 4],
            &[Plain, Plain],
        );
    }

    #[test]
    fn what_is_no_schema_has_no_annotations() {
        for text in ["", "(", ")", "aten::x", "a(b", "a((((", "->", "é(é é) -> é", "a(\"", "a)("] {
            let schema = Schema::parse(text);
            assert_eq!(schema.argument(7), Plain, "{text}");
            assert_eq!(schema.output(7), Plain, "{text}");
        }
    }
}
