//! Reads the values of a pickle: numbers, texts, lists and dictionaries alone. Python's own reader runs code that a
//! pickle names; this one knows no operation that names code, and refuses a pickle that has one.
//!
//! A value is kept once, however often the pickle refers to it: a few bytes cannot become gigabytes.

use rustc_hash::FxHashMap;
use std::ops::Range;

/// The number of a value in a pickle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Id(u32);

/// A value, whose parts are other values.
#[derive(Debug)]
enum Value {
    Number(i64),
    /// The place of a text in the pickle.
    Text(Range<usize>),
    List(Vec<Id>),
    /// Keys and values.
    Dictionary(Vec<(Id, Id)>),
    /// Something that snapshots do not need: a large number, a fraction, a truth value.
    Other,
}

/// The values of a pickle.
#[derive(Debug)]
pub(super) struct Values<'a> {
    bytes: &'a [u8],
    values: Vec<Value>,
    top: Id,
}

/// The most values of a pickle, about 2 GiB of memory.
const MAX_VALUES: usize = 1 << 26;
/// The most keys of a dictionary that is looked into. Those of snapshots have some ten; a large one that is referred to
/// a million times would take hours.
const MAX_KEYS: usize = 256;
/// The longest text that is read.
const MAX_TEXT_BYTES: usize = 1 << 14;

impl<'a> Values<'a> {
    /// Reads a pickle of protocol 2 to 5.
    ///
    /// # Errors
    /// It is cut or damaged, too large, or has operations other than those of plain values; the text says which.
    pub fn read(bytes: &'a [u8]) -> Result<Values<'a>, String> {
        let mut reader = Reader {
            bytes,
            at: 0,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memory: FxHashMap::default(),
        };
        let top = reader.run()?;
        Ok(Values {
            bytes,
            values: reader.values,
            top,
        })
    }

    /// Returns the value that was pickled.
    pub fn top(&self) -> Id {
        self.top
    }

    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    fn value(&self, id: Id) -> Option<&Value> {
        self.values.get(id.0 as usize)
    }

    /// Returns the elements of a list or a tuple; none of other values.
    pub fn list(&self, id: Id) -> &[Id] {
        match self.value(id) {
            Some(Value::List(list)) => list,
            _ => &[],
        }
    }

    /// Returns the value of a key of a dictionary.
    pub fn get(&self, dictionary: Id, key: &str) -> Option<Id> {
        let Value::Dictionary(pairs) = self.value(dictionary)? else {
            return None;
        };
        let is_key = |name: Id| match self.value(name) {
            Some(Value::Text(range)) => self.bytes.get(range.clone()) == Some(key.as_bytes()),
            _ => false,
        };
        let keys = pairs.iter().rev().take(MAX_KEYS);
        let mut found = keys.filter(|(name, _)| is_key(*name));
        found.next().map(|(_, value)| *value)
    }

    /// Returns a number.
    pub fn number(&self, id: Id) -> Option<i64> {
        match self.value(id)? {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a text; `None` for one that is no UTF-8 or very long.
    pub fn text(&self, id: Id) -> Option<&'a str> {
        match self.value(id)? {
            Value::Text(range) if range.len() <= MAX_TEXT_BYTES => {
                std::str::from_utf8(self.bytes.get(range.clone())?).ok()
            }
            _ => None,
        }
    }

    /// Returns the number that a dictionary has under a key.
    pub fn number_of(&self, dictionary: Id, key: &str) -> Option<i64> {
        self.number(self.get(dictionary, key)?)
    }

    /// Returns the text that a dictionary has under a key.
    pub fn text_of(&self, dictionary: Id, key: &str) -> Option<&'a str> {
        self.text(self.get(dictionary, key)?)
    }
}

/// The machine that a pickle is a program of.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    /// The heights of the stack at which marks lie.
    marks: Vec<usize>,
    memory: FxHashMap<u32, Id>,
}

const CUT: &str = "it ends before its value is complete";
const EMPTY_STACK: &str = "an operation takes more values than there are";

impl Reader<'_> {
    fn take(&mut self, count: u64) -> Result<Range<usize>, String> {
        let count = usize::try_from(count).map_err(|_| CUT)?;
        let end = self.at.checked_add(count).ok_or(CUT)?;
        if end > self.bytes.len() {
            return Err(CUT.to_owned());
        }
        Ok(std::mem::replace(&mut self.at, end)..end)
    }

    /// Takes a number without a sign of up to 8 bytes, the least first.
    fn unsigned(&mut self, bytes: u64) -> Result<u64, String> {
        let range = self.take(bytes)?;
        let bytes = self.bytes[range].iter().rev();
        Ok(bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    fn push(&mut self, value: Value) -> Result<(), String> {
        if self.values.len() >= MAX_VALUES {
            return Err(format!("it has more than {MAX_VALUES} values"));
        }
        self.stack.push(Id(self.values.len() as u32));
        self.values.push(value);
        Ok(())
    }

    fn text(&mut self, length_bytes: u64) -> Result<(), String> {
        let length = self.unsigned(length_bytes)?;
        let range = self.take(length)?;
        self.push(Value::Text(range))
    }

    fn skip(&mut self, count: u64) -> Result<(), String> {
        self.take(count)?;
        self.push(Value::Other)
    }

    /// A number of any length in two's complement.
    fn long(&mut self, length: u64) -> Result<(), String> {
        let range = self.take(length)?;
        let bytes = &self.bytes[range];
        let is_negative = bytes.last().is_some_and(|byte| *byte >= 0x80);
        let sign = if is_negative { 0xff } else { 0 };
        let mut wide = [sign; 8];
        let fits = bytes.iter().skip(8).all(|byte| *byte == sign);
        for (to, from) in wide.iter_mut().zip(bytes) {
            *to = *from;
        }
        let number = i64::from_le_bytes(wide);
        self.push(match fits && (number < 0) == is_negative {
            true => Value::Number(number),
            false => Value::Other,
        })
    }

    fn pop(&mut self) -> Result<Id, String> {
        let above_mark = self
            .marks
            .last()
            .is_none_or(|mark| self.stack.len() > *mark);
        let value = above_mark.then(|| self.stack.pop()).flatten();
        value.ok_or_else(|| EMPTY_STACK.to_owned())
    }

    /// Takes the values above the last mark.
    fn above_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len());
        Ok(self.stack.split_off(mark.ok_or(EMPTY_STACK)?))
    }

    fn tuple(&mut self, count: usize) -> Result<(), String> {
        let mut parts = Vec::with_capacity(count);
        for _ in 0..count {
            parts.push(self.pop()?);
        }
        parts.reverse();
        self.push(Value::List(parts))
    }

    /// Adds to the value on top of the stack, which is a list or a dictionary.
    fn add(&mut self, parts: &[Id]) -> Result<(), String> {
        let top = self.stack.last().ok_or(EMPTY_STACK)?;
        match self.values.get_mut(top.0 as usize) {
            Some(Value::List(list)) => list.extend(parts),
            Some(Value::Dictionary(pairs)) => {
                let new = parts.chunks_exact(2).map(|pair| (pair[0], pair[1]));
                pairs.extend(new);
            }
            _ => return Err("it adds to a value that is no list".to_owned()),
        }
        Ok(())
    }

    fn remember(&mut self, place: u32) -> Result<(), String> {
        let top = *self.stack.last().ok_or(EMPTY_STACK)?;
        self.memory.insert(place, top);
        Ok(())
    }

    fn recall(&mut self, place: u64) -> Result<(), String> {
        let known = u32::try_from(place)
            .ok()
            .and_then(|place| self.memory.get(&place));
        let known = *known.ok_or("it recalls a value that it does not have")?;
        if self.stack.len() >= MAX_VALUES {
            return Err(format!("it has more than {MAX_VALUES} values"));
        }
        self.stack.push(known);
        Ok(())
    }

    fn run(&mut self) -> Result<Id, String> {
        loop {
            let place = self.at;
            let range = self.take(1)?;
            match self.bytes[range.start] {
                b'.' => return self.pop(),
                // The protocol, and a frame.
                0x80 => {
                    self.take(1)?;
                }
                0x95 => {
                    self.take(8)?;
                }
                b'(' => self.marks.push(self.stack.len()),
                b'N' | 0x88 | 0x89 => self.push(Value::Other)?, // None, True, False
                b'K' => {
                    let number = self.unsigned(1)?;
                    self.push(Value::Number(number as i64))?;
                }
                b'M' => {
                    let number = self.unsigned(2)?;
                    self.push(Value::Number(number as i64))?;
                }
                b'J' => {
                    let number = self.unsigned(4)? as u32 as i32;
                    self.push(Value::Number(number.into()))?;
                }
                0x8a => {
                    let length = self.unsigned(1)?;
                    self.long(length)?;
                }
                0x8b => {
                    let length = self.unsigned(4)?;
                    self.long(length)?;
                }
                b'G' => self.skip(8)?, // a fraction
                0x8c => self.text(1)?,
                b'X' => self.text(4)?,
                0x8d => self.text(8)?,
                b'C' => {
                    let length = self.unsigned(1)?;
                    self.skip(length)?;
                }
                b'B' => {
                    let length = self.unsigned(4)?;
                    self.skip(length)?;
                }
                b']' | b')' => self.push(Value::List(Vec::new()))?,
                b'}' => self.push(Value::Dictionary(Vec::new()))?,
                b't' => {
                    let parts = self.above_mark()?;
                    self.push(Value::List(parts))?;
                }
                count @ 0x85..=0x87 => self.tuple(usize::from(count - 0x84))?,
                b'a' => {
                    let part = self.pop()?;
                    self.add(&[part])?;
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    self.add(&[key, value])?;
                }
                b'e' | b'u' => {
                    let parts = self.above_mark()?;
                    self.add(&parts)?;
                }
                b'h' => {
                    let place = self.unsigned(1)?;
                    self.recall(place)?;
                }
                b'j' => {
                    let place = self.unsigned(4)?;
                    self.recall(place)?;
                }
                b'q' => {
                    let place = self.unsigned(1)? as u32;
                    self.remember(place)?;
                }
                b'r' => {
                    let place = self.unsigned(4)? as u32;
                    self.remember(place)?;
                }
                0x94 => self.remember(self.memory.len() as u32)?,
                other => {
                    return Err(format!(
                        "at byte {place} it has the operation {other:#04x}, which plain values do not need: gapscope runs no code of a pickle"
                    ));
                }
            }
        }
    }
}
