//! Texts as the program passes them to NVTX (narrow, wide or registered), and their ids in events.

use crate::labels;
use crate::recorder::Recorder;
use gapscope_spool::ids;
use gapscope_spool::writer::generation;
use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A text as NVTX passes it.
#[derive(Default)]
pub enum Text<'a> {
    #[default]
    None,
    /// A text of bytes, usually UTF-8.
    Bytes(Cow<'a, [u8]>),
    /// A text that the program registered before, by its handle.
    Registered(&'a RegisteredString),
}

impl<'a> Text<'a> {
    /// Reads a text of bytes.
    ///
    /// # Safety
    /// `text` is null or NUL-terminated, and lives for `'a`.
    pub unsafe fn narrow(text: *const c_char) -> Text<'a> {
        if text.is_null() {
            return Text::None;
        }
        // SAFETY: as the caller promises.
        Text::Bytes(Cow::Borrowed(unsafe { CStr::from_ptr(text) }.to_bytes()))
    }

    /// Reads a text of wchar_t, which has 32 bits on Linux.
    ///
    /// # Safety
    /// As for [`Self::narrow`].
    pub unsafe fn wide(text: *const u32) -> Text<'a> {
        if text.is_null() {
            return Text::None;
        }
        let mut narrow = String::new();
        let mut at = text;
        // SAFETY: as the caller promises: the text ends with 0.
        unsafe {
            while at.read_unaligned() != 0 {
                narrow.push(
                    char::from_u32(at.read_unaligned()).unwrap_or(char::REPLACEMENT_CHARACTER),
                );
                at = at.add(1);
            }
        }
        Text::Bytes(Cow::Owned(narrow.into_bytes()))
    }

    /// Reads an nvtxMessageType_t with its nvtxMessageValue_t.
    ///
    /// # Safety
    /// They are the program's own, and it waits while the text is used.
    pub unsafe fn message(kind: i32, value: *const c_void) -> Text<'a> {
        // SAFETY: as the caller promises; the type tells the union's member.
        unsafe {
            match kind {
                1 => Text::narrow(value.cast()),
                2 => Text::wide(value.cast()),
                3 => value
                    .cast::<RegisteredString>()
                    .as_ref()
                    .map_or(Text::None, Text::Registered),
                _ => Text::None,
            }
        }
    }

    /// Returns the id of the text in events; 0 for no text.
    #[inline]
    pub fn id(&self, recorder: &Recorder) -> ids::Text {
        match self {
            Text::None => ids::Text::NONE,
            Text::Bytes(bytes) => labels::text(recorder, bytes),
            Text::Registered(string) => string.id(recorder),
        }
    }

    /// Returns the characters of the text.
    pub fn to_text(&self) -> String {
        match self {
            Text::None => String::new(),
            Text::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Text::Registered(string) => string.text().to_owned(),
        }
    }
}

/// The target of an nvtxStringHandle_t. It lives as long as the process.
pub struct RegisteredString {
    text: String,
    /// The process (upper half) in which the text has the id in the lower half.
    id: AtomicU64,
}

impl RegisteredString {
    /// Creates a string that has no id yet.
    pub fn new(text: String) -> RegisteredString {
        RegisteredString {
            text,
            id: AtomicU64::new(0),
        }
    }

    /// Returns the id of the string in this process's events.
    #[inline]
    pub fn id(&self, recorder: &Recorder) -> ids::Text {
        let generation = generation();
        let known = self.id.load(Relaxed);
        if (known >> 32) as u32 == generation {
            return ids::Text(known as u32);
        }
        let id = labels::text(recorder, self.text.as_bytes());
        self.id
            .store(u64::from(generation) << 32 | u64::from(id.0), Relaxed);
        id
    }

    pub fn text(&self) -> &str {
        &self.text
    }
}
