//! Converts the levels of an experiment file, which are strings, to parameters.
//!
//! Serde reads a struct of parameters from an experiment file just as from a message, with the same
//! bounds on numbers. In an experiment file numbers are strings, and sizes may have a unit. `toll`
//! fills in the fields whose names in messages begin with `@`; no level has such a name.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, StrDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer,
    MapAccess, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::quantity::parse_size;

/// Reads parameters from pairs of a name and a string. A parameter without a pair gets its default.
///
/// # Errors
/// Returns a message of the form `cannot X: why` for an unknown name or an invalid string.
pub fn from_levels<'a, T: DeserializeOwned>(
    levels: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<T, String> {
    let levels = LevelMap {
        rest: levels.into_iter(),
        current: ("", ""),
    };
    let read = T::deserialize(MapAccessDeserializer::new(levels));
    read.map_err(|LevelError(message)| message)
}

/// Deserializes a count from `MIN` to `MAX`, given as a number or as a string.
pub fn count<'de, const MIN: u64, const MAX: u64, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Amount,
{
    from.deserialize_any(AmountVisitor {
        bounds: MIN..=MAX,
        words: &format!("a whole number from {MIN} to {MAX}"),
        is_size: false,
        amount: PhantomData,
    })
}

/// Deserializes a size in bytes, given as a number or as a string such as `64k`.
pub(crate) fn size<'de, D: Deserializer<'de>, T: Amount>(from: D) -> Result<T, D::Error> {
    size_within(from, 0..=u64::MAX, "a size")
}

/// Deserializes a size in bytes within `bounds`, which messages describe by `words`.
pub fn size_within<'de, D: Deserializer<'de>, T: Amount>(
    from: D,
    bounds: RangeInclusive<u64>,
    words: &str,
) -> Result<T, D::Error> {
    from.deserialize_any(AmountVisitor {
        bounds,
        words,
        is_size: true,
        amount: PhantomData,
    })
}

macro_rules! sizes {
    ($($name:ident: $bounds:expr, $words:literal;)*) => {$(
        fn $name<'de, D, T>(from: D) -> Result<T, D::Error>
        where
            D: serde::Deserializer<'de>,
            T: crate::levels::Amount,
        {
            crate::levels::size_within(from, $bounds, $words)
        }
    )*};
}
pub(crate) use sizes;

/// A type that holds a count or a size; `None` stands for no value.
pub trait Amount: Sized {
    /// Converts a number; `None` if this type cannot hold it.
    fn from_number(number: Option<u64>) -> Option<Self>;
}

impl Amount for u64 {
    fn from_number(number: Option<u64>) -> Option<Self> {
        number
    }
}

impl Amount for u32 {
    fn from_number(number: Option<u64>) -> Option<Self> {
        number?.try_into().ok()
    }
}

impl Amount for Option<u64> {
    fn from_number(number: Option<u64>) -> Option<Self> {
        Some(number)
    }
}

struct AmountVisitor<'w, T> {
    bounds: RangeInclusive<u64>,
    words: &'w str,
    is_size: bool,
    amount: PhantomData<T>,
}

impl<T: Amount> Visitor<'_> for AmountVisitor<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words)
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        T::from_number(None).ok_or_else(|| E::custom("a number is missing"))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        if self.bounds.contains(&number) {
            T::from_number(Some(number))
        } else {
            None
        }
        .ok_or_else(|| E::custom(format_args!("it must be {}", self.words)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        match parse_size(text) {
            Ok(number) => self.visit_u64(number),
            Err(why) if self.is_size => Err(E::custom(why)),
            Err(_) => Err(E::custom(format_args!("it must be {}", self.words))),
        }
    }
}

/// Why a level is invalid.
#[derive(Debug)]
struct LevelError(String);

impl fmt::Display for LevelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LevelError {}

impl Error for LevelError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(message.to_string())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Self {
        Self(format!("it must be one of {}", expected.join(", ")))
    }
}

/// Levels by the names of their parameters.
struct LevelMap<'a, I> {
    rest: I,
    current: (&'a str, &'a str),
}

impl<'a, 'de, I: Iterator<Item = (&'a str, &'a str)>> MapAccess<'de> for LevelMap<'a, I> {
    type Error = LevelError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, LevelError> {
        let Some(next) = self.rest.next() else {
            return Ok(None);
        };
        self.current = next;
        let name: StrDeserializer<'_, LevelError> = next.0.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, LevelError> {
        let (name, text) = self.current;
        let read = seed.deserialize(LevelText(text));
        read.map_err(|LevelError(why)| {
            if why.starts_with("cannot ") {
                LevelError(why)
            } else {
                LevelError(format!("cannot set {name} to {text:?}: {why}"))
            }
        })
    }
}

/// The text of a level, to be read as the type of its parameter.
struct LevelText<'a>(&'a str);

impl<'de> Deserializer<'de> for LevelText<'_> {
    type Error = LevelError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, LevelError> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, LevelError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, LevelError> {
        visitor.visit_enum(Word(self.0))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// An enum's variant, given by its word. If the variant has content, `toll` fills that in.
struct Word<'a>(&'a str);

impl<'de> EnumAccess<'de> for Word<'_> {
    type Error = LevelError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), LevelError> {
        let word: StrDeserializer<'_, LevelError> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'_> {
    type Error = LevelError;

    fn unit_variant(self) -> Result<(), LevelError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, LevelError> {
        seed.deserialize("".into_deserializer())
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, LevelError> {
        Err(LevelError::custom("no parameter has a tuple variant"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, LevelError> {
        let nothing = std::iter::empty::<(&str, &str)>();
        visitor.visit_map(MapDeserializer::new(nothing))
    }
}
