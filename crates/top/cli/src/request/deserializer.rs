//! Arguments of a command from named JSON values: a serde format in which the groups of options of a command are not nested.
//!
//! An argument that is not given has the default of the command line. A list may be given as one text, which is divided like a word of
//! the command line.

mod command_path;
mod literal;
mod refused;
mod scalar;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

pub use self::command_path::CommandPath;
pub use self::refused::Refused;
use self::scalar::Scalar;
use super::{name, rules};

/// All arguments of a command.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    /// The definition of the command.
    pub command: &'a clap::Command,
    /// The given values.
    pub given: &'a Map<String, Value>,
}

impl<'de> Deserializer<'de> for Arguments<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Refused> {
        Err(Refused::custom("the command has subcommands: name one"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_map(Fields { arguments: self, fields })
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// The fields of a struct that are still to be read.
struct Fields<'a> {
    arguments: Arguments<'a>,
    fields: &'static [&'static str],
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Refused;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refused> {
        let Some(field) = self.fields.first() else { return Ok(None) };
        let field: StrDeserializer<'_, Refused> = (*field).into_deserializer();
        seed.deserialize(field).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Refused> {
        let (name, rest) =
            self.fields.split_first().ok_or_else(|| Refused::custom("a value without a name"))?;
        self.fields = rest;
        let argument = Argument { arguments: self.arguments, name };
        let read = seed.deserialize(argument).and_then(|value| argument.check().map(|()| value));
        read.map_err(|refused| refused.about(name, self.arguments.given.get(*name)))
    }
}

/// One argument, or a group of arguments.
#[derive(Clone, Copy)]
struct Argument<'a> {
    arguments: Arguments<'a>,
    name: &'static str,
}

impl<'a> Argument<'a> {
    fn definition(&self) -> Option<&'a clap::Arg> {
        self.arguments.command.get_arguments().find(|argument| name(argument) == self.name)
    }

    /// Returns the given value, or the default.
    fn value(&self) -> Option<Scalar<'a>> {
        let default = || self.definition()?.get_default_values().first()?.to_str();
        let given = self.arguments.given.get(self.name);
        given.map(Scalar::Json).or_else(|| default().map(Scalar::Word))
    }

    fn required(&self) -> Result<Scalar<'a>, Refused> {
        self.value().ok_or_else(|| Refused::custom("is required"))
    }

    /// Checks each given value by the definition.
    fn check(&self) -> Result<(), Refused> {
        let (Some(definition), true) = (self.definition(), self.arguments.given.contains_key(self.name))
        else {
            return Ok(());
        };
        let mut texts = self.list().into_iter().filter_map(Scalar::text);
        texts.try_for_each(|text| rules::check_value(definition, &text).map_err(Refused::custom))
    }

    /// Returns the elements of a list.
    fn list(&self) -> Vec<Scalar<'a>> {
        let divided = |text: &'a str| match self.definition().and_then(clap::Arg::get_value_delimiter) {
            Some(delimiter) => text.split(delimiter).map(Scalar::Word).collect(),
            None => vec![Scalar::Word(text)],
        };
        match self.value() {
            None => Vec::new(),
            Some(Scalar::Json(Value::Array(all))) => all.iter().map(Scalar::Json).collect(),
            Some(Scalar::Json(Value::String(text))) => divided(text),
            Some(Scalar::Word(word)) => divided(word),
            Some(other) => vec![other],
        }
    }
}

impl<'de> Deserializer<'de> for Argument<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.required()?.deserialize_any(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match self.arguments.given.get(self.name) {
            None => visitor.visit_bool(false),
            Some(value) => Scalar::Json(value).deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.required()?.deserialize_str(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.required()?.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        if self.value().is_some() { visitor.visit_some(self) } else { visitor.visit_none() }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_seq(Elements(self.list().into_iter()))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.arguments.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.required()?.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct map identifier ignored_any
    }
}

/// The elements of a list.
struct Elements<'a>(std::vec::IntoIter<Scalar<'a>>);

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Refused;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Refused> {
        self.0.next().map(|element| seed.deserialize(element)).transpose()
    }
}
