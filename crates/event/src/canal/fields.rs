//! JSON objects whose members stay in their order.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeMap};

/// A JSON object whose members stay in their order: names to values.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields<'a, T>(pub Vec<(Cow<'a, str>, T)>);

impl<T> Fields<'_, T> {
    /// The value under a name, if there is one.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }
}

impl<T: Serialize> Serialize for Fields<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| object.serialize_entry(name, value))?;
        object.end()
    }
}

impl<'de, 'a, T: Deserialize<'de> + 'a> Deserialize<'de> for Fields<'a, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor(PhantomData)).map(Fields)
    }
}

struct FieldsVisitor<'a, T>(PhantomData<&'a T>);

impl<'de, 'a, T: Deserialize<'de>> de::Visitor<'de> for FieldsVisitor<'a, T> {
    type Value = Vec<(Cow<'a, str>, T)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::with_capacity(map.size_hint().unwrap_or(0));
        while let Some((name, value)) = map.next_entry::<String, T>()? {
            fields.push((Cow::Owned(name), value));
        }
        Ok(fields)
    }
}
