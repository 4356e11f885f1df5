//! The problems that make a line of a trace's text form (a row as a word and `column=value` pairs) unreadable.

/// Why a line of the text form cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the messages say the same")]
pub enum TextProblem {
    #[error("`{0}=` stands where the kind of the row is expected")]
    NoRow(String),
    #[error(
        "`{word}` begins no row; rows begin with manifest, process, thread, device, queue, loss, unmeasured, {tables}"
    )]
    UnknownRow { word: String, tables: String },
    #[error("a {row} has no column `{column}`; it has {known}")]
    UnknownColumn {
        row: &'static str,
        column: String,
        known: String,
    },
    #[error("a {part} has no `{field}`; it has {known}")]
    UnknownField {
        part: String,
        field: String,
        known: String,
    },
    #[error("`{0}` is not of the form column=value")]
    NoPair(String),
    #[error("the quoted value of `{0}` is not closed")]
    OpenQuote(String),
    #[error("text follows the quoted value of `{0}`")]
    TextAfterQuote(String),
    #[error("`{0}` is given twice")]
    GivenTwice(String),
    #[error("`{text}` is not a value of `{column}`")]
    NotAValue { text: String, column: String },
    #[error("`{column}={text}` has no known unit: ns, us, ms or s")]
    NoUnit { column: String, text: String },
    #[error("`{column}={text}` is not a time")]
    NotATime { column: String, text: String },
    #[error("`{column}={text}` is not a whole number of nanoseconds")]
    Fraction { column: String, text: String },
    #[error("{0}")]
    Json(String),
}

impl TextProblem {
    /// Returns the problem of a text that does not fit its column.
    pub(super) fn not_a_value(text: &str, column: &str) -> TextProblem {
        TextProblem::NotAValue {
            text: text.to_owned(),
            column: column.to_owned(),
        }
    }
}
