//! The words by which messages name the variants of an enum. Experiment files and command lines use
//! the same words, so that the enum is their only list.

use serde::de::value::{Error, StrDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::{de::DeserializeOwned, forward_to_deserialize_any};

/// Returns the words of an enum's variants, in the order of their declaration.
///
/// # Panics
/// If `T` is not an enum.
pub fn words<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut words: &[&str] = &[];
    // This always fails, because there is no value to read.
    let _ = T::deserialize(Enquiry(&mut words));
    assert!(!words.is_empty(), "only an enum has words");
    words
}

/// Returns the variant that a word names; `None` if no variant without content has this word.
pub fn from_word<T: DeserializeOwned>(word: &str) -> Option<T> {
    let deserializer: StrDeserializer<'_, Error> = word.into_deserializer();
    T::deserialize(deserializer).ok()
}

/// Returns the word of a variant without content.
pub fn word<T: serde::Serialize>(variant: &T) -> String {
    let word = serde_json::to_string(variant).expect("a word is plain data");
    word.trim_matches('"').to_owned()
}

/// Keeps the variant names that an enum's `Deserialize` passes to it.
struct Enquiry<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Enquiry<'_> {
    type Error = Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = variants;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(serde::de::Error::custom("there is no value"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CopyMethod, Durability, Mapping};

    #[test]
    fn words_are_those_of_messages() {
        assert_eq!(
            words::<Mapping>(),
            ["anonymous", "file-private", "file-shared"]
        );
        for word in words::<CopyMethod>() {
            let method: CopyMethod = from_word(word).unwrap();
            assert_eq!(crate::encode(&method), format!("{word:?}"));
        }
    }

    #[test]
    fn only_a_word_of_the_enum_names_a_variant() {
        assert_eq!(from_word("o-dsync"), Some(Durability::ODsync));
        assert_eq!(from_word::<Durability>("ODsync"), None);
        assert_eq!(from_word("anonymous"), Some(Mapping::Anonymous));
        assert_eq!(from_word::<Mapping>("file-private"), None);
    }
}
