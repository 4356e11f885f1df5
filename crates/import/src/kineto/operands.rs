//! Formats the shapes and types of an operator's operands, which PyTorch's profiler writes if asked for shapes.

use super::json::members;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The arguments that are kept, in this order.
const KEPT: [&[u8]; 2] = [b"Input Dims", b"Input type"];

/// The formatted operands by the bytes of the kept arguments, so that equal texts are kept once.
#[derive(Debug, Default)]
pub(super) struct Operands {
    /// `None` for operators without these arguments.
    known: FxHashMap<Box<[u8]>, Option<Arc<str>>>,
    /// The kept arguments of the current event, each with a zero byte behind it; reused for each.
    key: Vec<u8>,
}

impl Operands {
    /// Returns `Input Dims=[[8,64],[]], Input type=["float",""]`; `None` if the arguments have neither.
    pub(super) fn payload(&mut self, args: &[u8]) -> Option<Arc<str>> {
        let mut found: [&[u8]; KEPT.len()] = [b""; KEPT.len()];
        for (key, value) in members(args) {
            if let Some(at) = KEPT.iter().position(|kept| *kept == key) {
                found[at] = value;
            }
        }
        self.key.clear();
        for value in found {
            self.key.extend_from_slice(value);
            self.key.push(0);
        }
        if let Some(known) = self.known.get(self.key.as_slice()) {
            return known.clone();
        }
        let said = KEPT
            .iter()
            .zip(found)
            .filter(|(_, value)| !value.is_empty());
        let texts: Vec<String> = said
            .map(|(key, value)| format!("{}={}", String::from_utf8_lossy(key), compact(value)))
            .collect();
        let text = (!texts.is_empty()).then(|| Arc::from(texts.join(", ")));
        self.known.insert(self.key.as_slice().into(), text.clone());
        text
    }
}

/// Removes the white space between values.
fn compact(value: &[u8]) -> String {
    let (mut in_string, mut escaped) = (false, false);
    let kept = value.iter().copied().filter(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ => {}
        }
        in_string || !byte.is_ascii_whitespace()
    });
    String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_types_are_kept_without_white_space() {
        let mut operands = Operands::default();
        let args = br#"{"Ev Idx": 1, "Input type": ["a b", ""], "Input Dims": [ [1,
            2], []]}"#;
        let text = operands.payload(args);
        let expected = r#"Input Dims=[[1,2],[]], Input type=["a b",""]"#;
        assert_eq!(text.as_deref(), Some(expected));
        assert!(Arc::ptr_eq(
            &text.unwrap(),
            &operands.payload(args).unwrap()
        ));
        assert_eq!(operands.payload(br#"{"Ev Idx": 1}"#), None);
        assert_eq!(operands.payload(b""), None);
    }
}
