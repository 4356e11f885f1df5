//! Finds the prefix that logs of containers put before each line of a JSON text, such as `worker-1  | ` or a time, and takes
//! it off: the bytes of a file go in, and those of the text come out.

use std::io::{self, BufRead, Read};

/// The number of bytes at the start of a file in which the JSON text must begin.
pub(crate) const LOOKED_AT: usize = 1 << 16;
/// The maximum length of a prefix.
const MAX_PREFIX_BYTES: usize = 256;
/// The maximum number of lines behind the first one that are looked at.
const MAX_LINES: usize = 16;

/// A prefix of lines. Its numbers differ from line to line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinePrefix {
    first: Vec<u8>,
}

impl LinePrefix {
    /// Returns the prefix of the lines with which a file starts: the one of the first line with a beginning of JSON, which later
    /// lines with JSON have too; `None` where JSON begins a line, or where there is none.
    pub fn find(start: &[u8]) -> Option<LinePrefix> {
        let mut lines = start.split(|byte| *byte == b'\n');
        let first = lines.find_map(|line| Some((line, json_at(line)?)));
        let (line, at) = first.filter(|(_, at)| *at <= MAX_PREFIX_BYTES)?;
        let first = line.get(..at)?.to_vec();
        let prefix = LinePrefix { first };
        if prefix.first.trim_ascii().is_empty() {
            return None;
        }
        // The last line may be cut.
        let rest: Vec<&[u8]> = lines.take(MAX_LINES).collect();
        let (_, whole) = rest.split_last()?;
        let is_json = |line: &&[u8]| {
            let text = prefix.strip(line).map(<[u8]>::trim_ascii);
            text.is_some_and(|text| text.is_empty() || b"\"{}[],".contains(&text[0]))
        };
        // Lines of other programs may lie between.
        let fits = whole.iter().filter(|line| is_json(line)).count();
        (fits > 0 && fits * 2 >= whole.len()).then_some(prefix)
    }

    /// Returns a line without its prefix; `None` for a line that does not have it.
    pub fn strip<'l>(&self, line: &'l [u8]) -> Option<&'l [u8]> {
        let (mut prefix, mut rest) = (self.first.as_slice(), line);
        while let Some(byte) = prefix.first() {
            if byte.is_ascii_digit() {
                let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
                let count = digits(rest);
                if count == 0 {
                    return None;
                }
                rest = &rest[count..];
                prefix = &prefix[digits(prefix)..];
            } else {
                rest = rest.strip_prefix(&[*byte])?;
                prefix = &prefix[1..];
            }
        }
        Some(rest)
    }
}

/// Returns the position in a line at which JSON begins: a bracket of an object or of an array of objects, with nothing behind it
/// or what such values begin with.
fn json_at(line: &[u8]) -> Option<usize> {
    let line = line.trim_ascii_end();
    let opens = |at: &usize| {
        let inside = line[at + 1..].trim_ascii_start().first();
        match line[*at] {
            b'{' => matches!(inside, None | Some(b'"')),
            _ => matches!(inside, None | Some(b'{')),
        }
    };
    memchr::memchr2_iter(b'{', b'[', line).find(opens)
}

/// Reads a text without the prefix of its lines. Lines that do not have it stay as they are.
pub(crate) struct WithoutPrefix<R> {
    inner: R,
    prefix: LinePrefix,
    line: Vec<u8>,
    /// The position of the unread rest of the line.
    at: usize,
}

impl<R: BufRead> WithoutPrefix<R> {
    pub fn new(inner: R, prefix: LinePrefix) -> WithoutPrefix<R> {
        WithoutPrefix {
            inner,
            prefix,
            line: Vec::new(),
            at: 0,
        }
    }
}

impl<R: BufRead> Read for WithoutPrefix<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.line.len() {
            self.line.clear();
            self.at = 0;
            if self.inner.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(0);
            }
            let rest = self.prefix.strip(&self.line);
            self.at = rest.map_or(0, |rest| self.line.len() - rest.len());
        }
        let read = out.len().min(self.line.len() - self.at);
        out[..read].copy_from_slice(&self.line[self.at..self.at + read]);
        self.at += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_lines_is_taken_off() {
        let cases = [
            ("w-1  | {\nw-1  |   \"a\": [\nw-1  |   ]\nw-1  | }\n", true),
            (
                "w-1  | start\nw-1  | {\"ph\": 1}\nw-1  | {\"ph\": 2}\n",
                true,
            ),
            (
                "2026-11-27T10:00:09.5Z [r0]: {\n2026-11-27T10:00:10Z [r0]: \"a\n",
                false,
            ),
            (
                "2026-11-27T10:00:09.5Z [r0]: {\n2026-11-27T10:00:10.25Z [r12]: \"a\": 1}\nx\n",
                true,
            ),
            ("{\n \"a\": [\n {\n", false),
            ("[INFO] {3}\n{\"traceEvents\": [\n{\"ph\"", false),
            ("x = {\n \"a\": 1\n}\n", false),
            ("one line {", false),
            ("", false),
        ];
        for (text, has_prefix) in cases {
            let prefix = LinePrefix::find(text.as_bytes());
            assert_eq!(prefix.is_some(), has_prefix, "{text}");
        }
        let text = b"a 9: {\nb\na 10: \"x\": 1\na 11: }\n";
        let prefix = LinePrefix::find(text).unwrap();
        let mut read = String::new();
        let mut without = WithoutPrefix::new(&text[..], prefix);
        without.read_to_string(&mut read).unwrap();
        assert_eq!(read, "{\nb\n\"x\": 1\n}\n");
    }
}
