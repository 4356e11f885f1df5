//! Reads JSON that differs from the standard as Python's, JavaScript's and people's JSON does, as standard JSON: without a
//! byte order mark and commas behind last elements, and with `null` in place of numbers that are none (`NaN`).

use std::io::{self, Read};

/// The number of bytes that are read at once.
const BLOCK_BYTES: usize = 1 << 16;

/// The words for numbers that are none.
const NO_NUMBERS: [&[u8]; 6] = [b"NaN", b"nan", b"-NaN", b"-nan", b"Infinity", b"-Infinity"];

/// JSON that is made standard while it is read.
pub(super) struct Tidy<R> {
    inner: R,
    block: Vec<u8>,
    /// Standard JSON, of which the bytes from `at` on have not been read.
    out: Vec<u8>,
    at: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// True where a comma was read whose element has not begun.
    has_comma: bool,
    /// The letters of a word outside of texts, and a sign before them.
    word: Vec<u8>,
}

impl<R: Read> Tidy<R> {
    pub fn new(inner: R) -> Tidy<R> {
        Tidy {
            inner,
            block: vec![0; BLOCK_BYTES],
            out: Vec::new(),
            at: 0,
            is_in_string: false,
            is_escaped: false,
            has_comma: false,
            word: Vec::new(),
        }
    }

    /// Adds a byte of the file.
    fn add(&mut self, byte: u8) {
        if self.is_in_string {
            self.out.push(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_string = false,
                _ => {}
            }
            return;
        }
        let is_in_number = self
            .out
            .last()
            .is_some_and(|last| matches!(last, b'0'..=b'9' | b'.'));
        let is_of_word = match byte {
            b'-' => self.word.is_empty() && !matches!(self.out.last(), Some(b'e' | b'E')),
            byte => byte.is_ascii_alphabetic() && !(is_in_number && self.word.is_empty()),
        };
        if is_of_word {
            self.begin_value();
            self.word.push(byte);
            return;
        }
        self.end_word();
        match byte {
            b',' => self.has_comma = true,
            b']' | b'}' => {
                self.has_comma = false;
                self.out.push(byte);
            }
            b' ' | b'\t' | b'\r' | b'\n' => self.out.push(byte),
            byte => {
                self.begin_value();
                self.is_in_string = byte == b'"';
                self.out.push(byte);
            }
        }
    }

    /// Writes the comma before a value.
    fn begin_value(&mut self) {
        if std::mem::take(&mut self.has_comma) {
            self.out.push(b',');
        }
    }

    /// Writes the word that ends.
    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        match NO_NUMBERS.contains(&self.word.as_slice()) {
            true => self.out.extend_from_slice(b"null"),
            false => self.out.extend_from_slice(&self.word),
        }
        self.word.clear();
    }
}

impl<R: Read> Read for Tidy<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            self.out.clear();
            self.at = 0;
            let mut block = std::mem::take(&mut self.block);
            let read = self.inner.read(&mut block);
            for byte in &block[..*read.as_ref().unwrap_or(&0)] {
                self.add(*byte);
            }
            self.block = block;
            if read? == 0 {
                self.end_word();
                break;
            }
        }
        let length = to.len().min(self.out.len() - self.at);
        to[..length].copy_from_slice(&self.out[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_and_people_write_becomes_standard_json() {
        for (written, standard) in [
            (
                r#"{"a": [1, 2,], "b": "x,]",}"#,
                r#"{"a": [1,2], "b":"x,]"}"#,
            ),
            (
                r#"[NaN, -Infinity, Infinity, "NaN"]"#,
                r#"[null,null,null,"NaN"]"#,
            ),
            (
                r#"[-1.5e-3, 1E5, true, null]"#,
                r#"[-1.5e-3,1E5,true,null]"#,
            ),
            (r#"["\",]", 1]"#, r#"["\",]",1]"#),
        ] {
            // Single bytes come as whole files do.
            for bytes in [1, 1000] {
                let mut text = String::new();
                let chunks = written.as_bytes().chunks(bytes);
                let mut file: Box<dyn Read> = Box::new(io::empty());
                for chunk in chunks {
                    file = Box::new(file.chain(chunk));
                }
                Tidy::new(file).read_to_string(&mut text).unwrap();
                let plain = |text: &str| text.replace(' ', "");
                assert_eq!(plain(&text), plain(standard));
            }
        }
    }
}
