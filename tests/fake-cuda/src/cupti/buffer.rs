//! The client's buffers: requested, filled, and handed back by a thread of CUPTI's or by a flush.

use super::{Completed, Requested};
use crate::config::config;
use crate::records;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};

/// A buffer of the client.
struct Buffer {
    at: *mut u8,
    bytes: usize,
    used: usize,
}

// SAFETY: the client lends the buffer to the holder of this value.
unsafe impl Send for Buffer {}

/// The client's functions.
#[derive(Clone, Copy)]
pub struct Callbacks {
    pub requested: Requested,
    pub completed: Completed,
}

impl Callbacks {
    fn request(self) -> Option<Buffer> {
        let (mut at, mut bytes, mut most) = (std::ptr::null_mut(), 0, 0);
        // SAFETY: the client's callback with variables of ours.
        unsafe { (self.requested)(&mut at, &mut bytes, &mut most) };
        (!at.is_null()).then_some(Buffer { at, bytes, used: 0 })
    }

    fn complete(self, buffer: Buffer) {
        let Buffer { at, bytes, used } = buffer;
        // SAFETY: the client's callback with its own buffer.
        unsafe { (self.completed)(std::ptr::null_mut(), 0, at, bytes, used) };
    }
}

#[derive(Default)]
pub struct Buffers {
    pub callbacks: Option<Callbacks>,
    current: Option<Buffer>,
    worker: Option<Sender<(Callbacks, Buffer)>>,
    handed_back: u64,
}

/// The buffers that the worker has not handed back yet.
static ON_THE_WAY: AtomicUsize = AtomicUsize::new(0);
/// The records that found no buffer.
static DROPPED: AtomicUsize = AtomicUsize::new(0);

/// Returns the answer of `cuptiActivityGetNumDroppedRecords`, once.
pub fn take_dropped() -> usize {
    DROPPED.swap(0, SeqCst)
}

pub fn drop_as_configured() {
    DROPPED.fetch_add(config().dropped, SeqCst);
}

impl Buffers {
    /// Appends a record; a full buffer is handed back by the worker.
    pub fn append(&mut self, record: &[u8]) {
        let fits = |b: &Buffer| b.used + record.len() <= b.bytes.min(config().buffer_bytes);
        if self.current.as_ref().is_some_and(|b| !fits(b))
            && let Some(full) = self.current.take()
        {
            self.hand_over(full);
        }
        if self.current.is_none() {
            self.current = self.callbacks.and_then(Callbacks::request);
        }
        match self.current.as_mut() {
            Some(buffer) if buffer.used + record.len() <= buffer.bytes => {
                // SAFETY: the buffer has room for it, and the client lends it.
                unsafe {
                    std::ptr::copy_nonoverlapping(
                        record.as_ptr(),
                        buffer.at.add(buffer.used),
                        record.len(),
                    )
                };
                buffer.used += record.len();
            }
            _ => {
                DROPPED.fetch_add(1, SeqCst);
            }
        }
    }

    fn hand_over(&mut self, mut buffer: Buffer) {
        let Some(callbacks) = self.callbacks else {
            return;
        };
        finish(&mut buffer, self.handed_back);
        self.handed_back += 1;
        let worker = self.worker.get_or_insert_with(|| {
            let (sender, receiver) = channel::<(Callbacks, Buffer)>();
            std::thread::spawn(move || {
                for (callbacks, buffer) in receiver {
                    callbacks.complete(buffer);
                    ON_THE_WAY.fetch_sub(1, SeqCst);
                }
            });
            sender
        });
        ON_THE_WAY.fetch_add(1, SeqCst);
        let _ = worker.send((callbacks, buffer));
    }

    /// Gives the client its partly filled buffer. Returns the work that remains to be done without the lock.
    pub fn flush(&mut self) -> impl FnOnce() + use<> {
        let buffer = self.current.take().filter(|b| b.used > 0);
        let flushed = buffer.zip(self.callbacks).map(|(mut buffer, callbacks)| {
            finish(&mut buffer, self.handed_back);
            self.handed_back += 1;
            (callbacks, buffer)
        });
        move || {
            if let Some((callbacks, buffer)) = flushed {
                callbacks.complete(buffer);
            }
            while ON_THE_WAY.load(SeqCst) > 0 {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
        }
    }
}

/// Damages a buffer as the configuration says, before the client gets it.
fn finish(buffer: &mut Buffer, number: u64) {
    if config().reversed {
        // SAFETY: the used bytes are whole records of ours.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.at, buffer.used) };
        let mut records: Vec<Vec<u8>> = Vec::new();
        let mut rest = &bytes[..];
        while let Some(length) = size_of_record(rest) {
            let (record, behind) = rest.split_at(length);
            records.push(record.to_vec());
            rest = behind;
        }
        records.reverse();
        bytes.copy_from_slice(&records.concat());
    }
    if number == 0 {
        drop_as_configured();
        if config().torn && buffer.used + 8 <= buffer.bytes {
            // SAFETY: there is room, and the buffer is lent.
            unsafe { std::ptr::write_bytes(buffer.at.add(buffer.used), records::TORN as u8, 8) };
            buffer.used += 8;
        }
    }
}

/// Returns the length of the record at the start of `bytes`; `None` at the end and for an unknown kind.
pub fn size_of_record(bytes: &[u8]) -> Option<usize> {
    let kind = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let size = records::size_of_kind(kind)?;
    (size <= bytes.len()).then_some(size)
}
