//! The kinds of damage that make a table's file, or a part of it, unreadable.

use crate::memory::{self, size_text};
use crate::panics::Panicked;
use arrow_schema::DataType;

/// The most rows that a table can have: row numbers have 32 bits.
pub const MAX_ROWS: usize = crate::lookup::NONE as usize - 1;

/// Why a table's file cannot be read, or not to its end. Each prints as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum Damage {
    #[error("it is missing")]
    Missing,
    #[error("its end is missing")]
    Cut,
    #[error("its footer is damaged")]
    Footer,
    #[error("it was changed or damaged after it was written")]
    Altered,
    #[error("its footer tells of columns beyond its end")]
    BeyondEnd,
    #[error("its columns differ in their numbers of rows")]
    UnequalColumns,
    #[error("it is damaged: it says that it has {rows} rows, and a table has {MAX_ROWS} at most")]
    ManyRows { rows: usize },
    #[error("its table would have more than {MAX_ROWS} rows")]
    ManyRowsInTable,
    #[error(
        "compressed with {codec}: write it again with zstd, snappy, lz4, gzip or without compression"
    )]
    Codec { codec: String },
    #[error("the file has no such column")]
    NoColumn,
    #[error("its column {column} is missing or of another type")]
    Column { column: &'static str },
    #[error("{column} cannot be read")]
    Computed { column: String },
    #[error("it has another number of rows than its file says")]
    OtherRows,
    #[error("it has fewer rows than its file says")]
    FewerRows,
    #[error("it has more values than its file says")]
    MoreValues,
    #[error("it has fewer values than its file says")]
    FewerValues,
    #[error("it is of another type, or lacks values")]
    TypeOrNulls,
    #[error("it is of type {held}, or lacks values")]
    TypeOrNullsOf { held: DataType },
    #[error("it is of type {held} and not {wanted}")]
    Type { held: DataType, wanted: DataType },
    #[error("it holds {value}, no {wanted}")]
    Value { value: String, wanted: DataType },
    #[error("it holds {value} as a float, which is no exact {wanted}")]
    Inexact { value: String, wanted: DataType },
    #[error("the header of a page is damaged")]
    PageHeader,
    #[error("a page of it goes on beyond its end")]
    PageBeyondEnd,
    #[error("a page claims {}, more than its column has", size_text(*bytes))]
    PageOverColumn { bytes: u64 },
    #[error("a page claims {}, more than its {} can become", size_text(*bytes), size_text(*packed_bytes))]
    PageOverCodec { bytes: u64, packed_bytes: u64 },
    #[error("a page claims {}, more than the limit of memory, which {} sets", size_text(*bytes), memory::VARIABLE)]
    PageOverMemory { bytes: u64 },
    #[error("a dictionary claims more values than it has bytes")]
    DictionaryValues,
    #[error("the lengths of its texts are damaged")]
    TextLengths,
    #[error("its texts take {}, more than the limit of memory, which {} sets", size_text(*bytes), memory::VARIABLE)]
    TextsOverMemory { bytes: u64 },
    #[error(transparent)]
    Panicked(#[from] Panicked),
    /// The message of the system, or of a library that decodes the file.
    #[error("{0}")]
    Library(String),
}

impl Damage {
    /// Keeps the message of an error of the system or of a library.
    pub(crate) fn library(error: impl std::fmt::Display) -> Damage {
        Damage::Library(error.to_string())
    }
}
