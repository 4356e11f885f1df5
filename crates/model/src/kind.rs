//! Defines the macro `kind!`, which makes enumerations whose values have a text, in the trace, and a number, in the
//! spool (the log of events from recorded programs).

/// Defines an enumeration of kinds from lines `Value = "text"`; numbers count the lines from 0. Unknown texts and
/// numbers read as `Unknown`, which is the default.
macro_rules! kind {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $value_doc:literal])+ $value:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name {
            $($(#[doc = $value_doc])+ $value,)+
            /// A value that this version does not know.
            #[default]
            Unknown,
        }

        impl $name {
            /// All values but [`Self::Unknown`], in the order of their numbers from 0.
            pub const ALL: &'static [$name] = &[$($name::$value),+];

            /// The texts of [`Self::ALL`], each with its meaning.
            pub const TEXTS: &'static [(&'static str, &'static str)] =
                &[$(($text, concat!($($value_doc),+))),+];

            /// Returns the text.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)+
                    Self::Unknown => "unknown",
                }
            }

            /// Returns the value of a text; [`Self::Unknown`] for a text of a later version.
            pub fn from_text_or_unknown(text: &str) -> Self {
                match text {
                    $($text => Self::$value,)+
                    _ => Self::Unknown,
                }
            }

            /// Returns the number: the position in [`Self::ALL`].
            pub const fn number(self) -> u8 {
                self as u8
            }

            /// Returns the value of a number; [`Self::Unknown`] for a number of a later version.
            pub fn from_number(number: u8) -> Self {
                Self::ALL.get(usize::from(number)).copied().unwrap_or_default()
            }
        }

        /// Serialises to the text in human-readable formats, otherwise to the number.
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                match to.is_human_readable() {
                    true => to.serialize_str(self.as_str()),
                    false => to.serialize_u8(self.number()),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                match from.is_human_readable() {
                    true => Ok(Self::from_text_or_unknown(&<String as serde::Deserialize>::deserialize(from)?)),
                    false => Ok(Self::from_number(serde::Deserialize::deserialize(from)?)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use kind;
