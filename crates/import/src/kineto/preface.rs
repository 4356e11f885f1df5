//! Finds the first document of a file behind text that is no JSON, such as the lines that a program printed before it, and
//! tells events and arrays of documents apart. The first bytes of a file go in.

use super::event::Event;
use super::json::{Stop, member, skip_space};
use memchr::memmem::find;

/// How far into a file the first document may begin.
pub(super) const LOOKED_AT: usize = 1 << 16;

/// The keys of which a document of Chrome's JSON has one near its beginning.
const KEYS: [&[u8]; 2] = [b"\"traceEvents\"", b"\"ph\""];

/// Returns the number of bytes before the first document; `None` where there is none.
pub(super) fn bytes(start: &[u8]) -> Option<usize> {
    let begins = matches!(start.first(), Some(b'{' | b'['));
    if begins && opens(start, 0) {
        return Some(0);
    }
    let start = &start[..start.len().min(LOOKED_AT)];
    let key = KEYS.iter().filter_map(|key| find(start, key)).min();
    // Binary files are no text with JSON behind it.
    let text = key
        .map(|key| &start[..key])
        .filter(|text| !text.contains(&0));
    let behind =
        text.and_then(|text| memchr::memchr2_iter(b'{', b'[', text).find(|at| opens(start, *at)));
    // A document that is damaged at its beginning is read as far as it can be.
    behind.or(begins.then_some(0))
}

/// Returns whether the bracket at a position begins an object with members or an array of objects. A log has other
/// brackets, as in `[INFO]`. What lies behind the end of the bytes is not known and may fit.
fn opens(start: &[u8], at: usize) -> bool {
    let inside = start.get(skip_space(start, at + 1));
    match start[at] {
        b'{' => matches!(inside, None | Some(b'"' | b'}')),
        _ => matches!(inside, None | Some(b'{' | b']')),
    }
}

/// Returns whether the bytes begin with an event, as far as the event lies in the bytes.
pub(super) fn is_event(start: &[u8]) -> bool {
    match Event::read(start, 0) {
        Ok((event, _)) => event.phase != 0,
        Err(Stop::More | Stop::Bad) => false,
    }
}

/// Returns whether a line of the bytes begins with an event: the first one may be damaged.
pub(super) fn has_event_line(start: &[u8]) -> bool {
    let mut lines = memchr::memmem::find_iter(start, b"\n{").map(|at| at + 1);
    is_event(start) || lines.any(|at| is_event(&start[at..]))
}

/// Returns whether the object that begins at a position is a document: the array of its events begins in the bytes, and
/// no phase of an event comes before it.
pub(super) fn is_document(bytes: &[u8], at: usize) -> bool {
    let mut at = at + 1;
    loop {
        at = skip_space(bytes, at);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(behind) = rest.strip_prefix(KEYS[0]) {
            let colon = skip_space(behind, 0);
            let value = skip_space(behind, colon + 1);
            return behind.get(colon) == Some(&b':') && behind.get(value) == Some(&b'[');
        }
        match member(bytes, at) {
            Ok((Some((key, _)), next)) if key != b"ph" => at = next,
            _ => return false,
        }
    }
}

/// Returns whether the object that begins at a position has the phase of an event, as far as its members can be read.
pub(super) fn has_phase(bytes: &[u8], at: usize) -> bool {
    let mut at = at + 1;
    while let Ok((Some((key, _)), next)) = member(bytes, at) {
        if key == b"ph" {
            return true;
        }
        at = next;
    }
    false
}

/// Returns whether the bytes begin with an array of events.
pub(super) fn is_array_of_events(start: &[u8]) -> bool {
    let first = skip_space(start, 1);
    start.first() == Some(&b'[') && start.get(first) == Some(&b'{') && is_event(&start[first..])
}

/// Returns whether what stands in place of a value is a word of a text.
pub(super) fn is_text(value: &[u8]) -> bool {
    let values: [&[u8]; 5] = [b"null", b"true", b"false", b"NaN", b"Infinity"];
    value.first().is_some_and(u8::is_ascii_alphabetic) && !values.contains(&value)
}

/// Returns whether the array with which the bytes begin holds documents in place of events.
pub(super) fn is_around_documents(start: &[u8]) -> bool {
    let start = &start[..start.len().min(LOOKED_AT)];
    let [document, event] = KEYS.map(|key| find(start, key));
    document.is_some_and(|document| event.is_none_or(|event| document < event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_begin_behind_lines_of_a_log() {
        for (start, bytes_before) in [
            (r#"{"traceEvents": []}"#, Some(0)),
            (r#"[{"ph": "X"}]"#, Some(0)),
            ("[]", Some(0)),
            ("[INFO] saved {3}\n{\"traceEvents\": []}", Some(17)),
            ("rank 0 | {\"ph\": \"X\"}", Some(9)),
            ("done\n[\n{\"ph\": \"X\"}]", Some(5)),
            ("{x, \"ph\"", Some(0)),
            ("no JSON", None),
            ("a\0b{\"ph\": 1}", None),
        ] {
            assert_eq!(bytes(start.as_bytes()), bytes_before, "{start}");
        }
    }

    #[test]
    fn arrays_of_documents_and_bare_events_are_told_from_documents() {
        assert!(is_around_documents(
            br#"[{"a": 1, "traceEvents": [{"ph": "X"}]}]"#
        ));
        assert!(!is_around_documents(
            br#"[{"ph": "X"}, {"name": "\"traceEvents\""}]"#
        ));
        assert!(is_event(br#"{"name": "a", "ph": "X"}"#));
        assert!(!is_event(br#"{"traceEvents": []}"#));
        assert!(has_event_line(
            b"{\"ph\": \"X\", \"args\": {\n{\"ph\": \"X\"}"
        ));
        let document = br#"{"a": {"ph": "X"}, "traceEvents" : [{"ph": "X""#;
        assert!(is_document(document, 0));
        assert!(!is_document(br#"{"ph": "X", "traceEvents": []}"#, 0));
        assert!(!is_document(br#"{"a": {"traceEvents": []}}"#, 0));
        assert!(has_phase(br#"{"name": "a", "ph": "X", "args": {"#, 0));
        assert!(!has_phase(br#"{"a": {"ph": "X"}, "traceEvents": ["#, 0));
        assert!(is_array_of_events(br#"[ {"ph": "X"}]"#));
        assert!(!is_array_of_events(br#"[1, {"ph": "X"}]"#));
    }
}
