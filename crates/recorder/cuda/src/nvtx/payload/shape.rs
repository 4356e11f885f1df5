//! The shape of a schema, by which the bytes of a payload (values that the program passes with a label) are read: a
//! layout of fields with their offsets and types, or an enumeration.

/// The shape of a schema.
pub enum Shape {
    Layout(Layout),
    Enum(Enum),
}

/// The fields of a C structure.
#[derive(Debug, Default)]
pub struct Layout {
    pub fields: Vec<Field>,
    /// Whether every entry of the layout is among the fields.
    pub whole: bool,
}

/// A field that can be read.
#[derive(Debug)]
pub struct Field {
    pub name: String,
    /// Offset in the payload, in bytes.
    pub offset: usize,
    pub encoding: Encoding,
    pub role: Role,
}

/// The purpose of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A value that is shown with its name.
    Value,
    /// The label's text.
    Message,
    /// The label's category.
    Category,
    Hidden,
}

/// The way in which a field is read.
#[derive(Debug, Clone, Copy)]
pub enum Encoding {
    /// An unsigned integer of this many bytes.
    Unsigned(usize),
    /// A signed integer of this many bytes.
    Signed(usize),
    /// A floating-point number of 4 bytes.
    Float,
    /// A floating-point number of 8 bytes.
    Double,
    /// A text of this many bytes, up to the first zero.
    Text(usize),
    /// A text up to the first zero, however far.
    OpenText,
    /// The address of a text that ends with a zero.
    TextAddress,
    /// A string that the program has registered.
    Registered,
    /// A number with names.
    Enum(&'static Enum),
}

/// An enumeration: the size of its values in bytes, and pairs of value and name.
#[derive(Debug)]
pub struct Enum {
    pub bytes: usize,
    pub names: Vec<(u64, String)>,
}

impl Enum {
    /// Returns the name of a value; `None` for a value without one.
    pub fn name(&self, value: u64) -> Option<&str> {
        let found = self.names.iter().find(|(known, _)| *known == value);
        found.map(|(_, name)| name.as_str())
    }
}

impl Encoding {
    /// Returns the number of bytes of such a field in the payload.
    pub fn bytes(&self) -> usize {
        match self {
            Encoding::Unsigned(bytes) | Encoding::Signed(bytes) | Encoding::Text(bytes) => *bytes,
            Encoding::Float => 4,
            Encoding::Double | Encoding::TextAddress | Encoding::Registered => 8,
            Encoding::OpenText => 0,
            Encoding::Enum(known) => known.bytes,
        }
    }
}

/// Returns the encoding of an NVTX_PAYLOAD_ENTRY_TYPE_…, or the size of a type that is not read; `None` for an
/// unknown type.
pub fn predefined(kind: u64) -> Option<Result<Encoding, usize>> {
    Some(match kind {
        1 | 11 => Ok(Encoding::Signed(1)),
        2 | 12 | 25 | 32 => Ok(Encoding::Unsigned(1)),
        3 | 13 => Ok(Encoding::Signed(2)),
        4 | 14 | 26 => Ok(Encoding::Unsigned(2)),
        5 | 15 => Ok(Encoding::Signed(4)),
        6 | 16 | 24 | 27 | 68 | 69 | 71 | 73 => Ok(Encoding::Unsigned(4)),
        7 | 9 | 17 => Ok(Encoding::Signed(8)),
        8 | 10 | 18 | 22 | 23 | 67 | 70 | 72 | 74 => Ok(Encoding::Unsigned(8)),
        19 | 43 | 52 => Ok(Encoding::Float),
        20 | 44 => Ok(Encoding::Double),
        21 | 33 | 34 | 45 => Err(16),
        42 | 50 => Err(2),
        80 => Ok(Encoding::Registered),
        _ => return None,
    })
}

/// Returns the encoding of a value that is a payload by itself, without a schema.
pub fn single(kind: u64) -> Option<Encoding> {
    match kind {
        TEXT | UTF8 => Some(Encoding::OpenText),
        kind => predefined(kind)?.ok(),
    }
}

/// NVTX_PAYLOAD_ENTRY_TYPE_CSTRING and the same for UTF-8.
pub const TEXT: u64 = 75;
pub const UTF8: u64 = 76;
