//! Decodes a payload, a program's bytes, by its schema (the layout that the program registered under an id) into
//! names and values, such as `bytes=4096, root=0`.

use super::data::PayloadData;
use super::schemas;
use super::shape::{self, Encoding, Field, Role, Shape};
use crate::nvtx::domains::Domain;
use crate::nvtx::text::{RegisteredString, Text};
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::fmt::{Display, Write as _};

/// The most bytes of a value; longer values are cut, as a trace is not for data.
const MAX_VALUE_BYTES: usize = 1 << 10;
/// The first id of schemas that the program registers itself: NVTX_PAYLOAD_SCHEMA_ID_STATIC_START.
const FIRST_OWN_SCHEMA: u64 = 1 << 24;
/// NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED: a payload that others point into; it is no value itself.
const REFERENCED: u64 = 1022;

/// The decoded payloads of an event.
pub struct Decoded<'a> {
    /// The label's text, where a payload has it.
    pub message: Option<Text<'a>>,
    /// The label's category, where a payload has it.
    pub category: Option<u32>,
    /// Names and values, such as `bytes=4096, root=0`.
    pub parts: &'a str,
    /// Whether all payloads were understood.
    pub understood: bool,
}

thread_local! {
    /// The text of the thread's last payload, whose memory the next one uses.
    static PARTS: Cell<String> = const { Cell::new(String::new()) };
}

/// Decodes the payloads of one label, and passes the result to `use_it`, once.
///
/// # Safety
/// The payloads are the program's own, and it waits meanwhile; the domain is null or one of ours.
pub unsafe fn read(
    domain: *const Domain,
    payloads: &[PayloadData],
    use_it: impl FnOnce(&Decoded<'_>),
) {
    let mut parts = PARTS.try_with(Cell::take).unwrap_or_default();
    parts.clear();
    let mut reader = Reader {
        parts: &mut parts,
        message: None,
        category: None,
        understood: true,
    };
    for data in payloads {
        // SAFETY: as the caller promises.
        unsafe { reader.payload(domain, data) };
    }
    use_it(&Decoded {
        message: reader.message,
        category: reader.category,
        parts: reader.parts,
        understood: reader.understood,
    });
    // At the end of the thread the memory is not kept.
    let _ = PARTS.try_with(|kept| kept.set(parts));
}

/// The values that have been decoded so far, as text, and the label's text and category.
struct Reader<'a> {
    parts: &'a mut String,
    message: Option<Text<'a>>,
    category: Option<u32>,
    understood: bool,
}

impl<'a> Reader<'a> {
    /// Decodes one payload by its schema.
    ///
    /// # Safety
    /// The payload is the program's own.
    unsafe fn payload(&mut self, domain: *const Domain, data: &PayloadData) {
        if data.at.is_null() || data.bytes == 0 || data.schema == REFERENCED {
            return;
        }
        let layout = match data.schema {
            FIRST_OWN_SCHEMA.. => {
                match schemas::find(domain, data.schema).map(|schema| &schema.shape) {
                    Some(Shape::Layout(layout)) => layout,
                    _ => return self.understood = false,
                }
            }
            kind => {
                let encoding = shape::single(kind);
                // Of several values that follow each other, none is the value.
                let encoding = encoding.filter(|encoding| {
                    matches!(encoding, Encoding::OpenText)
                        || data.bytes == usize::MAX
                        || data.bytes == encoding.bytes()
                });
                match encoding {
                    // SAFETY: as the caller promises.
                    Some(encoding) => unsafe { self.field(data, "", 0, encoding, Role::Value) },
                    None => self.understood = false,
                }
                return;
            }
        };
        self.understood &= layout.whole;
        for Field {
            name,
            offset,
            encoding,
            role,
        } in &layout.fields
        {
            // SAFETY: as the caller promises; the layout is the one that it registered.
            unsafe { self.field(data, name, *offset, *encoding, *role) };
        }
    }

    /// Decodes the field of a payload at an offset, and adds it to the values.
    ///
    /// # Safety
    /// The payload is the program's own and has such a field there, if it reaches that far.
    unsafe fn field(
        &mut self,
        data: &PayloadData,
        name: &str,
        offset: usize,
        encoding: Encoding,
        role: Role,
    ) {
        if role == Role::Hidden {
            return;
        }
        // SAFETY: as the caller promises; the function checks how far the payload reaches.
        let Some(value) = (unsafe { value(data, offset, encoding) }) else {
            self.understood = false;
            return;
        };
        match (role, value) {
            (Role::Message, Value::Text(text)) => self.message = Some(text),
            (Role::Category, Value::Unsigned(category)) => self.category = Some(category as u32),
            (_, Value::Unsigned(number)) => match encoding {
                Encoding::Enum(known) => match known.name(number) {
                    Some(value) => self.part(name, value),
                    None => self.part(name, number),
                },
                _ => self.part(name, number),
            },
            (_, Value::Signed(number)) => self.part(name, number),
            (_, Value::Float(number)) => self.part(name, number),
            (_, Value::Text(text)) => {
                let text = text.to_text();
                let end = text.floor_char_boundary(MAX_VALUE_BYTES);
                self.part(name, &text[..end]);
            }
        }
    }

    /// Appends a value to the text: `name=value`, or the value alone where it has no name.
    fn part(&mut self, name: &str, value: impl Display) {
        let before = if self.parts.is_empty() { "" } else { ", " };
        let between = if name.is_empty() { "" } else { "=" };
        // Writing to a string does not fail.
        let _ = write!(self.parts, "{before}{name}{between}{value}");
    }
}

/// A decoded value.
enum Value<'a> {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Text<'a>),
}

/// Returns the value of a field; `None` where the payload does not reach that far.
///
/// # Safety
/// The payload is the program's own and lives for `'a`, and has such a field there, if it reaches that far.
unsafe fn value<'a>(data: &PayloadData, offset: usize, encoding: Encoding) -> Option<Value<'a>> {
    let size = encoding.bytes();
    if offset.checked_add(size)? > data.bytes {
        return None;
    }
    // SAFETY: the payload reaches that far.
    let bytes: &'a [u8] = unsafe { std::slice::from_raw_parts(data.at.add(offset), size) };
    let raw = || {
        let mut raw = [0; 8];
        raw[..size].copy_from_slice(bytes);
        u64::from_ne_bytes(raw)
    };
    Some(match encoding {
        Encoding::Unsigned(_) | Encoding::Enum(_) => Value::Unsigned(raw()),
        Encoding::Signed(bytes) => {
            let unused = 64 - 8 * bytes as u32;
            Value::Signed((raw() << unused) as i64 >> unused)
        }
        Encoding::Float => Value::Float(f32::from_bits(raw() as u32).into()),
        Encoding::Double => Value::Float(f64::from_bits(raw())),
        Encoding::Text(_) => Value::Text(Text::Bytes(Cow::Borrowed(until_zero(bytes)))),
        Encoding::OpenText => {
            // SAFETY: the text ends with a zero, or where the payload does.
            let bytes: &'a [u8] = unsafe {
                let at = data.at.add(offset);
                let length = libc::strnlen(at.cast(), data.bytes - offset);
                std::slice::from_raw_parts(at, length)
            };
            Value::Text(Text::Bytes(Cow::Borrowed(bytes)))
        }
        Encoding::TextAddress => {
            let at = raw() as *const c_char;
            if at.is_null() {
                return Some(Value::Text(Text::Bytes(Cow::Borrowed(b""))));
            }
            // SAFETY: the program says that the text is there for the tool to copy.
            Value::Text(Text::Bytes(Cow::Borrowed(
                unsafe { CStr::from_ptr(at) }.to_bytes(),
            )))
        }
        Encoding::Registered => {
            // SAFETY: null, or a handle of ours, which is never freed.
            let string = unsafe { (raw() as *const RegisteredString).as_ref() };
            Value::Text(string.map_or(Text::Bytes(Cow::Borrowed(b"")), Text::Registered))
        }
    })
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0);
    &bytes[..end.unwrap_or(bytes.len())]
}
