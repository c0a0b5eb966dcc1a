//! A single value of an argument.

use serde::de::{Deserializer, Error, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Number, Value};

use super::Refused;

/// A single value: JSON, or a word of the command line's definition.
#[derive(Debug, Clone, Copy)]
pub enum Scalar<'a> {
    /// A JSON value.
    Json(&'a Value),
    /// A default, or a part of a text that stands for a list.
    Word(&'a str),
}

impl Scalar<'_> {
    /// Returns the text of a text or number.
    pub fn text(self) -> Option<String> {
        match self {
            Scalar::Json(Value::String(text)) => Some(text.clone()),
            Scalar::Json(Value::Number(number)) => Some(number.to_string()),
            Scalar::Json(_) => None,
            Scalar::Word(word) => Some(word.to_owned()),
        }
    }
}

impl<'de> Deserializer<'de> for Scalar<'de> {
    type Error = Refused;

    /// A word that is a number is read as one.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self {
            Scalar::Json(Value::String(text)) => visitor.visit_borrowed_str(text),
            Scalar::Json(Value::Bool(value)) => visitor.visit_bool(*value),
            Scalar::Json(Value::Number(number)) => visit_number(number, visitor),
            Scalar::Json(Value::Array(_)) => Err(Refused::invalid_type(Unexpected::Seq, &visitor)),
            Scalar::Json(Value::Object(_)) => Err(Refused::invalid_type(Unexpected::Map, &visitor)),
            Scalar::Json(Value::Null) => Err(Refused::invalid_type(Unexpected::Unit, &visitor)),
            Scalar::Word(word) => match word.parse() {
                Ok(number) => visit_number(&number, visitor),
                Err(_) => visitor.visit_borrowed_str(word),
            },
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self {
            Scalar::Word(word) => visitor.visit_borrowed_str(word),
            Scalar::Json(_) => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_str(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match self {
            Scalar::Json(Value::String(text)) => visitor.visit_enum(text.as_str().into_deserializer()),
            Scalar::Word(word) => visitor.visit_enum(word.into_deserializer()),
            Scalar::Json(_) => Err(Refused::unknown_variant("", variants)),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf option unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}

fn visit_number<'de, V: Visitor<'de>>(number: &Number, visitor: V) -> Result<V::Value, Refused> {
    match (number.as_u64(), number.as_i64(), number.as_f64()) {
        (Some(whole), _, _) => visitor.visit_u64(whole),
        (_, Some(whole), _) => visitor.visit_i64(whole),
        (_, _, Some(number)) => visitor.visit_f64(number),
        _ => Err(Refused::custom(format!("{number} is too large"))),
    }
}
