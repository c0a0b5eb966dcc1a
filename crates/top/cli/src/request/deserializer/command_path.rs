//! The choice of a command by the words of its name.

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::{Arguments, Refused};

/// The words of a command's name, and its arguments.
#[derive(Clone, Copy)]
pub struct CommandPath<'a> {
    pub words: &'a [&'a str],
    pub arguments: Arguments<'a>,
}

impl<'de> Deserializer<'de> for CommandPath<'de> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for CommandPath<'de> {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Refused> {
        let (first, rest) =
            self.words.split_first().ok_or_else(|| Refused::custom("the command is missing"))?;
        let first: StrDeserializer<'_, Refused> = (*first).into_deserializer();
        Ok((seed.deserialize(first)?, CommandPath { words: rest, ..self }))
    }
}

impl<'de> VariantAccess<'de> for CommandPath<'de> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Refused> {
        if self.words.is_empty() { seed.deserialize(self.arguments) } else { seed.deserialize(self) }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Refused> {
        Err(Refused::custom("arguments have names"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        self.arguments.deserialize_struct("", fields, visitor)
    }
}
