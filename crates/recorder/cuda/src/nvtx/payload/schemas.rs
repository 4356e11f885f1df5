//! Keeps schemas by their ids: layouts and enumerations that the program has registered. They are found without a
//! lock, in forked children too.

use super::shape::Shape;
use crate::nvtx::domains::Domain;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

/// The most schemas of a process; payloads with further ones are not understood. Only a program that registers the
/// same schemas again and again has more.
const MAX_SCHEMAS: u32 = 1 << 12;

/// The ids of schemas that the program registers without one: NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START and the like.
static NEXT_ID: AtomicU64 = AtomicU64::new(1 << 32);

/// Returns the id that the program chose, or a new one.
pub fn id_or_new(chosen: u64) -> u64 {
    if chosen == 0 {
        NEXT_ID.fetch_add(1, Relaxed)
    } else {
        chosen
    }
}

/// A registered layout or enumeration. It lives as long as the process.
pub struct Schema {
    domain: *const Domain,
    /// The id that payloads name it by, unique in its domain.
    id: u64,
    pub shape: Shape,
    /// The schema that was registered before.
    next: *const Schema,
}

/// The newest schema, at the head of a list; null before the first.
static NEWEST: AtomicPtr<Schema> = AtomicPtr::new(std::ptr::null_mut());
/// Number of schemas in the list.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Returns the newest schema with an id.
pub fn find(domain: *const Domain, id: u64) -> Option<&'static Schema> {
    let mut at: *const Schema = NEWEST.load(Acquire);
    // SAFETY: null, or leaked by `add` and never changed.
    while let Some(schema) = unsafe { at.as_ref() } {
        if schema.id == id && schema.domain == domain {
            return Some(schema);
        }
        at = schema.next;
    }
    None
}

/// Keeps a schema that the program has registered in a domain, unless there are [`MAX_SCHEMAS`].
pub fn add(domain: *const Domain, id: u64, shape: Shape) {
    if COUNT.fetch_add(1, Relaxed) >= MAX_SCHEMAS {
        COUNT.fetch_sub(1, Relaxed);
        return;
    }
    let schema = Box::into_raw(Box::new(Schema {
        domain,
        id,
        shape,
        next: std::ptr::null(),
    }));
    let mut newest = NEWEST.load(Acquire);
    loop {
        // SAFETY: nobody else has it yet.
        unsafe { (*schema).next = newest };
        match NEWEST.compare_exchange_weak(newest, schema, AcqRel, Acquire) {
            Ok(_) => return,
            Err(other) => newest = other,
        }
    }
}
