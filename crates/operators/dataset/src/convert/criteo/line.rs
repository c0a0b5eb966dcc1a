//! The fields of one line.

use super::{CATEGORICAL, DENSE};
use crate::convert::Damage;
use crate::convert::table::MISSING;

/// The numbers of a line. A missing whole number is 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) label: f32,
    pub(super) dense: [i64; DENSE],
    pub(super) categorical: [u64; CATEGORICAL],
}

/// The rest of a line.
pub(super) struct Line<'a> {
    rest: &'a [u8],
}

/// Value of each byte as a hexadecimal digit; 255 for others.
const HEX: [u8; 256] = {
    let mut values = [255; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        values[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

impl<'a> Line<'a> {
    /// A line without its newline.
    pub(super) fn new(line: &'a [u8]) -> Line<'a> {
        Line { rest: line.strip_suffix(b"\r").unwrap_or(line) }
    }

    /// Parses all fields.
    pub(super) fn parse(self, row: &mut Row) -> Result<(), Damage> {
        let whole = self.rest;
        let mut line = self;
        line.fields(row).map_err(|damage| {
            let found = memchr::memchr_iter(b'\t', whole).count() + 1;
            let expected = 1 + DENSE + CATEGORICAL;
            if found == expected { damage } else { Damage::Fields { found, expected } }
        })
    }

    fn fields(&mut self, row: &mut Row) -> Result<(), Damage> {
        row.label = match self.number() {
            Some(Some(0)) => 0.0,
            Some(Some(1)) => 1.0,
            _ => return Err(Damage::Label),
        };
        for (column, value) in row.dense.iter_mut().enumerate() {
            self.tab().ok_or(Damage::Long)?;
            let number = self.number().ok_or_else(|| Damage::Dense { column: format!("I{}", column + 1) })?;
            *value = number.unwrap_or(0);
        }
        for (column, value) in row.categorical.iter_mut().enumerate() {
            self.tab().ok_or(Damage::Long)?;
            let token = self.hex().ok_or_else(|| Damage::Category { column: format!("C{}", column + 1) })?;
            *value = token.unwrap_or(MISSING);
        }
        if self.rest.is_empty() { Ok(()) } else { Err(Damage::Long) }
    }

    fn tab(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"\t")?;
        Some(())
    }

    /// A whole number of up to 18 digits, or an empty field.
    fn number(&mut self) -> Option<Option<i64>> {
        let negative = self.rest.first() == Some(&b'-');
        let digits = &self.rest[usize::from(negative)..];
        let mut value = 0_i64;
        let mut length = 0;
        while let Some(digit) =
            digits.get(length).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
        {
            if length == 18 {
                return None;
            }
            value = value * 10 + i64::from(digit);
            length += 1;
        }
        self.rest = &digits[length..];
        let ended = matches!(self.rest.first(), None | Some(b'\t'));
        match (length, ended) {
            (_, false) => None,
            (0, true) => (!negative).then_some(None),
            _ => Some(Some(if negative { -value } else { value })),
        }
    }

    /// A hexadecimal number of up to 8 digits, or an empty field.
    fn hex(&mut self) -> Option<Option<u64>> {
        let ends = |byte: Option<&u8>| matches!(byte, None | Some(b'\t'));
        // All of Criteo's categories have 8 digits.
        if let Some((digits, rest)) = self.rest.split_first_chunk::<8>()
            && ends(rest.first())
        {
            let (mut value, mut all) = (0_u64, 0);
            for &byte in digits {
                let digit = HEX[usize::from(byte)];
                all |= digit;
                value = value << 4 | u64::from(digit & 15);
            }
            if all < 16 {
                self.rest = rest;
                return Some(Some(value));
            }
        }
        let mut value = 0_u64;
        let mut length = 0;
        while let Some(digit) =
            self.rest.get(length).map(|&byte| HEX[usize::from(byte)]).filter(|&digit| digit < 16)
        {
            if length == 8 {
                return None;
            }
            value = value << 4 | u64::from(digit);
            length += 1;
        }
        self.rest = &self.rest[length..];
        ends(self.rest.first()).then_some((length > 0).then_some(value))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(line: &[u8]) -> Result<Row, Damage> {
        let mut row = Row { label: 9.0, dense: [9; DENSE], categorical: [9; CATEGORICAL] };
        Line::new(line).parse(&mut row).map(|()| row)
    }

    fn field(fields: &mut [String], place: usize, text: &str) -> Result<Row, Damage> {
        let before = std::mem::replace(&mut fields[place], text.to_owned());
        let row = parse(fields.join("\t").as_bytes());
        fields[place] = before;
        row
    }

    proptest! {
        #[test]
        fn a_written_line_is_read(
            label in 0..2_i64,
            dense in proptest::collection::vec(proptest::option::of(-1000..1_000_000_000_000_i64), DENSE),
            categorical in proptest::collection::vec(proptest::option::of(any::<u32>()), CATEGORICAL),
            newline: bool,
        ) {
            let mut fields = vec![label.to_string()];
            fields.extend(dense.iter().map(|value| value.map_or(String::new(), |value| value.to_string())));
            fields.extend(categorical.iter().map(|c| c.map_or(String::new(), |c| format!("{c:08x}"))));
            let text = fields.join("\t") + if newline { "\r" } else { "" };
            let row = parse(text.as_bytes()).expect("valid");
            prop_assert_eq!(row.label, label as f32);
            prop_assert!(row.dense.into_iter().eq(dense.iter().map(|value| value.unwrap_or(0))));
            let tokens = categorical.iter().map(|token| token.map_or(MISSING, u64::from));
            prop_assert!(row.categorical.into_iter().eq(tokens));
        }

        #[test]
        fn any_bytes_are_a_row_or_damage(line in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse(&line);
        }
    }

    #[test]
    fn damage_names_its_column() {
        let mut fields = vec!["1".to_owned()];
        fields.extend((0..DENSE).map(|_| "5".to_owned()));
        fields.extend((0..CATEGORICAL).map(|_| "68fd1e64".to_owned()));
        assert!(field(&mut fields, 0, "1").is_ok());
        for label in ["", "2", "x", "-1"] {
            assert_eq!(field(&mut fields, 0, label), Err(Damage::Label), "{label:?}");
        }
        for dense in ["-", "1.5", "--1", "1234567890123456789", " 1"] {
            assert_eq!(
                field(&mut fields, 3, dense),
                Err(Damage::Dense { column: "I3".to_owned() }),
                "{dense:?}"
            );
        }
        for category in ["68fd1e6g", "68fd1e640", " ", "0x12"] {
            let damage = Err(Damage::Category { column: "C26".to_owned() });
            assert_eq!(field(&mut fields, 39, category), damage, "{category:?}");
        }
        for category in ["68FD1E64", "a", "0"] {
            assert!(field(&mut fields, 39, category).is_ok(), "{category:?}");
        }
        let expected = 40;
        assert_eq!(parse(b""), Err(Damage::Fields { found: 1, expected }));
        assert_eq!(parse(fields[..39].join("\t").as_bytes()), Err(Damage::Fields { found: 39, expected }));
        fields.push(String::new());
        assert_eq!(parse(fields.join("\t").as_bytes()), Err(Damage::Fields { found: 41, expected }));
    }
}
