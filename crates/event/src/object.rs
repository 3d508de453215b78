//! JSON objects that keep the fields they do not know.
//!
//! `#[serde(flatten)]` says the same in one line, but buffers every field in an intermediate value
//! before it looks at the names. [`open_object!`] looks at the names first: nothing is buffered, and
//! an object without unknown fields allocates nothing beyond its own values.

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Deserializer, de};

/// Implements `Serialize` and `Deserialize` for a struct that is an object of `required` fields (of
/// any type), `optional` ones (of type `Option`, absent when `None`), and the `rest`, a
/// [`Rest`](crate::payload::Rest) of what is not known.
///
/// - A name that occurs twice is an error, known or not: to keep one of them would be a guess.
/// - An entry of the rest that bears the name of a known field is not written: the field is the truth.
macro_rules! open_object {
    ($type:ident { required: [$($required:ident),*], optional: [$($optional:ident),*], rest: $rest:ident }) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;

                const KNOWN: &[&str] = &[$(stringify!($required),)* $(stringify!($optional),)*];
                let mut object = serializer.serialize_map(None)?;
                $(object.serialize_entry(stringify!($required), &self.$required)?;)*
                $(if let Some(value) = &self.$optional {
                    object.serialize_entry(stringify!($optional), value)?;
                })*
                for (name, value) in &self.$rest {
                    if !KNOWN.contains(&name.as_str()) {
                        object.serialize_entry(name, value)?;
                    }
                }
                object.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                use serde::de::Error;

                struct Object;

                impl<'de> serde::de::Visitor<'de> for Object {
                    type Value = $type;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("the object `", stringify!($type), "`"))
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<$type, A::Error> {
                        $(let mut $required = None;)*
                        $(let mut $optional = None;)*
                        let mut rest = $crate::payload::Rest::new();
                        while let Some($crate::object::Name(name)) = map.next_key()? {
                            $(if name == stringify!($required) {
                                if $required.replace(map.next_value()?).is_some() {
                                    return Err(A::Error::duplicate_field(stringify!($required)));
                                }
                                continue;
                            })*
                            $(if name == stringify!($optional) {
                                if $optional.replace(map.next_value()?).is_some() {
                                    return Err(A::Error::duplicate_field(stringify!($optional)));
                                }
                                continue;
                            })*
                            $crate::object::keep(&mut rest, name, &mut map)?;
                        }
                        Ok($type {
                            $($required: $required.ok_or_else(|| A::Error::missing_field(stringify!($required)))?,)*
                            $($optional: $optional.flatten(),)*
                            $rest: rest,
                        })
                    }
                }

                deserializer.deserialize_map(Object)
            }
        }
    };
}

pub(crate) use open_object;

/// Reads the value of a field that is not known into the rest.
pub(crate) fn keep<'de, A: de::MapAccess<'de>>(
    rest: &mut crate::payload::Rest,
    name: Cow<'de, str>,
    map: &mut A,
) -> Result<(), A::Error> {
    if rest.contains_key(name.as_ref()) {
        return Err(de::Error::custom(format_args!("duplicate field `{name}`")));
    }
    rest.insert(name.into_owned(), map.next_value()?);
    Ok(())
}

/// The name of a member, borrowed from the text unless an escape stands in it.
pub(crate) struct Name<'de>(pub(crate) Cow<'de, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl<'de> de::Visitor<'de> for NameVisitor {
    type Value = Name<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Borrowed(name)))
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name(Cow::Owned(name.to_owned())))
    }
}
