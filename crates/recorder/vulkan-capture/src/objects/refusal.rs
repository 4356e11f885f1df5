//! Defines the reason why work of the program cannot be captured, as text for the reader of the capture.

use std::borrow::Cow;

/// The reason why something cannot be captured, as the reader of the capture is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(Cow<'static, str>);

impl From<&'static str> for Refusal {
    fn from(text: &'static str) -> Refusal {
        Refusal(Cow::Borrowed(text))
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal(Cow::Owned(text))
    }
}

impl From<Refusal> for gapscope_capture::model::EndReason {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal.0.into_owned())
    }
}
