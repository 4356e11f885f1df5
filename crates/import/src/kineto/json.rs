//! Scans JSON as far as finding events needs it: the ends of values, members of objects, texts and numbers.
//!
//! Values are slices of the document, and positions are indices of its bytes. No function recurses, so that nesting
//! costs nothing. Where a file is still being read, [`Stop::More`] asks for more bytes and the same call again.

use std::borrow::Cow;

/// The reason why the end of a value was not found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The bytes end inside the value.
    More,
    /// The bytes are not JSON.
    Bad,
}

/// Returns the first position from `at` on that is not white space.
#[inline]
pub(super) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Returns the byte at a position, or [`Stop::More`] at the end.
#[inline]
pub(super) fn byte(bytes: &[u8], at: usize) -> Result<u8, Stop> {
    bytes.get(at).copied().ok_or(Stop::More)
}

/// Returns the position behind the string whose opening quote is at `at`. A string with a zero byte is none: disks and copies that
/// fail leave holes of zeros.
#[inline]
pub(super) fn skip_string(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    let mut from = at + 1;
    loop {
        let rest = bytes.get(from..).ok_or(Stop::More)?;
        let quote = memchr::memchr2(b'"', 0, rest).ok_or(Stop::More)?;
        let end = from + quote;
        if bytes[end] == 0 {
            return Err(Stop::Bad);
        }
        if bytes[end - 1] != b'\\' || end == at + 1 {
            return Ok(end + 1);
        }
        let escapes = bytes[at + 1..end].iter().rev().take_while(|b| **b == b'\\');
        if escapes.count() % 2 == 0 {
            return Ok(end + 1);
        }
        from = end + 1;
    }
}

/// Returns true if a word of eight bytes holds a quote or a bracket of any kind. It may also return true for other
/// words.
#[inline]
fn has_structure(word: u64) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let zero = |v: u64| v.wrapping_sub(ONES) & !v & HIGHS;
    // Square and curly brackets differ in one bit.
    let folded = word | (ONES * 0x20);
    let found = zero(word ^ (ONES * u64::from(b'"')))
        | zero(folded ^ (ONES * u64::from(b'{')))
        | zero(folded ^ (ONES * u64::from(b'}')));
    found != 0
}

/// Returns the position behind the object or array whose bracket is at `at`. A bracket of the other kind at its end shows that
/// its own is missing.
pub(super) fn skip_container(bytes: &[u8], mut at: usize) -> Result<usize, Stop> {
    let is_object = bytes.get(at) == Some(&b'{');
    let mut depth = 0u64;
    loop {
        while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            if has_structure(u64::from_le_bytes(*word)) {
                break;
            }
            at += 8;
        }
        match byte(bytes, at)? {
            b'"' => {
                at = skip_string(bytes, at)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            end @ (b'}' | b']') => {
                depth -= 1;
                if depth == 0 {
                    return match is_object == (end == b'}') {
                        true => Ok(at + 1),
                        false => Err(Stop::Bad),
                    };
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Returns the position behind the value that begins at `at`. A number or word at the very end of the bytes may
/// continue behind them.
#[inline]
pub(super) fn skip_value(bytes: &[u8], at: usize) -> Result<usize, Stop> {
    match byte(bytes, at)? {
        b'"' => skip_string(bytes, at),
        b'{' | b'[' => skip_container(bytes, at),
        // Some profilers write `NaN` and `Infinity`.
        b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
            let mut end = at + 1;
            loop {
                match byte(bytes, end)? {
                    b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => end += 1,
                    _ => return Ok(end),
                }
            }
        }
        _ => Err(Stop::Bad),
    }
}

/// Reads the member of an object from `at`, which is behind the opening bracket or a value. Returns the key without
/// quotes, the value and the position behind it; or `None` and the position behind the object if the object ends.
#[inline]
#[allow(clippy::type_complexity)]
pub(super) fn member(bytes: &[u8], at: usize) -> Result<(Option<(&[u8], &[u8])>, usize), Stop> {
    let mut at = skip_space(bytes, at);
    if byte(bytes, at)? == b',' {
        at = skip_space(bytes, at + 1);
    }
    match byte(bytes, at)? {
        b'"' => {}
        b'}' => return Ok((None, at + 1)),
        _ => return Err(Stop::Bad),
    }
    let key_end = skip_string(bytes, at)?;
    let key = &bytes[at + 1..key_end - 1];
    let colon = skip_space(bytes, key_end);
    if byte(bytes, colon)? != b':' {
        return Err(Stop::Bad);
    }
    let start = skip_space(bytes, colon + 1);
    let end = skip_value(bytes, start)?;
    Ok((Some((key, &bytes[start..end])), end))
}

/// Returns the members of a complete object as keys and values, and nothing for any other value.
pub(super) fn members(object: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut at = match object.first() {
        Some(b'{') => 1,
        _ => object.len(),
    };
    std::iter::from_fn(move || {
        let (found, next) = member(object, at).ok()?;
        at = next;
        found
    })
}

/// Returns the elements of a complete array, and nothing for any other value.
pub(super) fn elements(array: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = match array.first() {
        Some(b'[') => 1,
        _ => array.len(),
    };
    std::iter::from_fn(move || {
        at = skip_space(array, at);
        if array.get(at) == Some(&b',') {
            at = skip_space(array, at + 1);
        }
        let end = skip_value(array, at).ok()?;
        let found = &array[at..end];
        at = end;
        Some(found)
    })
}

/// Returns the inside of a string, or any other value as it is.
pub(super) fn bare(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inside @ .., b'"'] => inside,
        other => other,
    }
}

/// Decodes the escapes of the inside of a string. Invalid Unicode becomes the replacement character.
pub(super) fn text(inside: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inside).is_none() {
        return String::from_utf8_lossy(inside);
    }
    let mut text = Vec::with_capacity(inside.len());
    let mut at = 0;
    while let Some(&byte) = inside.get(at) {
        at += 1;
        if byte != b'\\' {
            text.push(byte);
            continue;
        }
        let escape = inside.get(at).copied().unwrap_or(b'\\');
        at += 1;
        match escape {
            b'n' => text.push(b'\n'),
            b't' => text.push(b'\t'),
            b'r' => text.push(b'\r'),
            b'b' => text.push(8),
            b'f' => text.push(12),
            b'u' => {
                let mut code = hexadecimal(inside, at);
                at += 4;
                // Two surrogates together encode one character.
                if (0xd800..0xdc00).contains(&code) && inside.get(at..at + 2) == Some(b"\\u") {
                    let low = hexadecimal(inside, at + 2);
                    if (0xdc00..0xe000).contains(&low) {
                        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                        at += 6;
                    }
                }
                let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => text.push(other),
        }
    }
    Cow::Owned(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the value of the four digits of a `\u` escape; the replacement character's for others.
fn hexadecimal(inside: &[u8], at: usize) -> u32 {
    let digits = inside.get(at..at + 4).unwrap_or_default();
    let digits = std::str::from_utf8(digits).unwrap_or_default();
    u32::from_str_radix(digits, 16).unwrap_or(u32::from(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        let end = |text: &str| skip_value(text.as_bytes(), 0);
        assert_eq!(end(r#""a\"b\\" "#), Ok(8));
        assert_eq!(end(r#""" "#), Ok(2));
        assert_eq!(end(r#"{"a": [1, {"b": "}]"}], "c": {}} "#), Ok(32));
        assert_eq!(end("-1.5e3,"), Ok(6));
        assert_eq!(end("NaN}"), Ok(3));
        assert_eq!(end(r#"{"a": 1"#), Err(Stop::More));
        assert_eq!(end(r#""a\""#), Err(Stop::More));
        assert_eq!(end("}"), Err(Stop::Bad));
        assert_eq!(end(r#"{"a": [1}, "#), Err(Stop::More));
        assert_eq!(end(r#"{"a": 1]"#), Err(Stop::Bad));
    }

    #[test]
    fn members_and_elements_are_found() {
        let object = br#"{ "a" : 1 , "b":[1, "x", {}], "c":"d" }"#;
        let found: Vec<_> = members(object).map(|(k, v)| (text(k), text(v))).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[1].1, r#"[1, "x", {}]"#);
        let inside: Vec<_> = elements(br#"[1, "x", {}]"#).map(text).collect();
        assert_eq!(inside, ["1", r#""x""#, "{}"]);
        assert_eq!(members(b"[1]").count() + elements(b"{}").count(), 0);
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(text(br#"a\n\"\u00e9\ud83d\ude00\/"#), "a\n\"é😀/");
        assert_eq!(text(br"\ud83d x"), "\u{fffd} x");
        assert_eq!(text(b"\\"), "\\");
        assert_eq!(text(b"\xff"), "\u{fffd}");
    }
}
