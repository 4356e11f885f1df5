//! Recognises operators of PyTorch, whose observer for NVTX `--label-ops` has switched on.
//!
//! The observer begins a range for each operator in the default domain, with the operator's number at the end of its
//! name: `aten::mm, op_id = 31`, `AddmmBackward0, seq = 7, op_id = 32`. Such a range becomes an operator label with
//! the name alone: a text for each call would fill the memory, and the program's own ranges have to be told from
//! operators.

use super::text::Text;
use crate::labels;
use crate::recorder::Recorder;
use gapscope_spool::env;
use gapscope_spool::event::{LabelEdge, Layer};
use gapscope_spool::ids;
use gapscope_spool::interface::write_layer;
use std::cell::Cell;
use std::sync::OnceLock;

/// The open ranges of the default domain on a thread; of the innermost 128 it is known whether they are operators.
#[derive(Debug, Clone, Copy, Default)]
struct OpenRanges {
    /// Number of open ranges.
    depth: u32,
    /// A bit for each, the innermost lowest: 1 for an operator.
    operators: u128,
}

thread_local! {
    static OPEN_RANGES: Cell<OpenRanges> = const { Cell::new(OpenRanges { depth: 0, operators: 0 }) };
}

impl OpenRanges {
    fn push(self, operator: bool) -> OpenRanges {
        OpenRanges {
            depth: self.depth.saturating_add(1),
            operators: self.operators << 1 | u128::from(operator),
        }
    }

    /// Returns the ranges that stay open when the innermost ends, and whether that one was an operator. An end
    /// without a beginning is the program's.
    fn pop(self) -> (OpenRanges, bool) {
        let left = OpenRanges {
            depth: self.depth.saturating_sub(1),
            operators: self.operators >> 1,
        };
        (left, self.depth > 0 && self.operators & 1 == 1)
    }
}

/// Returns whether the user asked for labels of operators.
fn are_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| {
        std::env::var(env::LABELS)
            .is_ok_and(|labels| labels.split(',').any(|label| label == "operators"))
    })
}

/// Writes one end of a range of the default domain if it is an operator's; returns false for the program's own.
pub fn write_operator(recorder: &Recorder, edge: LabelEdge, text: &Text<'_>, at_ns: i64) -> bool {
    if !are_wanted() {
        return false;
    }
    match edge {
        LabelEdge::Begin => {
            let name = match text {
                Text::Bytes(bytes) => name(bytes),
                Text::None | Text::Registered(_) => None,
            };
            OPEN_RANGES.set(OPEN_RANGES.get().push(name.is_some()));
            if let Some(name) = name {
                let text = labels::text(recorder, name);
                write_layer(recorder.spool(), Layer::Operator, edge, text, at_ns);
            }
            name.is_some()
        }
        LabelEdge::End => {
            let (left, operator) = OPEN_RANGES.get().pop();
            OPEN_RANGES.set(left);
            if operator {
                let text = ids::Text::NONE;
                write_layer(recorder.spool(), Layer::Operator, edge, text, at_ns);
            }
            operator
        }
        LabelEdge::Instant => false,
    }
}

/// Returns the operator's name in a text of PyTorch's observer; `None` for another text.
fn name(text: &[u8]) -> Option<&[u8]> {
    let name = without_number(text, b", op_id = ")?;
    // Operators that are differentiated, or that differentiate another one, have a sequence number.
    Some(without_number(name, b", seq = ").unwrap_or(name))
}

/// Returns a text without the key and the number at its end; `None` if it does not end so.
fn without_number<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    let name = text[..text.len() - digits].strip_suffix(key)?;
    (digits > 0 && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_told_from_ranges_of_the_program() {
        let names: [(&str, Option<&str>); 9] = [
            ("aten::mm, op_id = 31", Some("aten::mm")),
            (
                "AddmmBackward0, seq = 7, op_id = 32",
                Some("AddmmBackward0"),
            ),
            ("a, b, seq = 0, op_id = 1", Some("a, b")),
            ("aten::mm", None),
            ("aten::mm, seq = 7", None),
            ("step, op_id = ", None),
            (", op_id = 5", None),
            ("5", None),
            ("", None),
        ];
        for (text, expected) in names {
            assert_eq!(name(text.as_bytes()), expected.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn each_end_is_that_of_its_beginning() {
        let open = OpenRanges::default().push(false).push(true).push(false);
        let (open, first) = open.pop();
        let (open, second) = open.pop();
        let (open, third) = open.pop();
        let (_, none) = open.pop();
        assert_eq!([first, second, third, none], [false, true, false, false]);
    }
}
