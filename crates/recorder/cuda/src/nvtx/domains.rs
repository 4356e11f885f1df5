//! Domains (groups of labels, usually one for each library) and registered strings: the program gets handles for
//! them and keeps these. The functions with `_a` and `_w` are those that the program calls, with texts of bytes and
//! of `wchar_t`. Handles stay valid in forked children.

use super::text::{RegisteredString, Text};
use crate::per_process::PerProcess;
use crate::recorder::{Recorder, recorder};
use gapscope_spool::event::{CommonEvent, Object};
use gapscope_spool::hook::guard;
use gapscope_spool::ids;
use gapscope_spool::writer::generation;
use rustc_hash::FxHashMap;
use std::ffi::c_char;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The target of an nvtxDomainHandle_t. It lives as long as the process.
pub struct Domain {
    id: ids::LabelDomain,
    name: String,
    /// The process, by its generation (count of forks), in whose log its name was written; 0 before.
    named_in: AtomicU32,
}

/// The domains and strings that exist, so that repeated requests do not fill the memory.
#[derive(Default)]
struct Registry {
    domains: FxHashMap<String, &'static Domain>,
    strings: FxHashMap<String, &'static RegisteredString>,
}

/// The registry of this process.
static REGISTRY: PerProcess<Mutex<Registry>> = PerProcess::new();
/// The id of the next domain. It is not per process: a forked child may know its parent's domains.
static NEXT_DOMAIN: AtomicU32 = AtomicU32::new(1);

fn registry() -> &'static Mutex<Registry> {
    REGISTRY.get(Mutex::default)
}

/// Returns the id of a domain, whose name is written before its first use in a process; 0 is the default domain.
///
/// # Safety
/// `domain` is null or a handle of [`create_a`].
#[inline]
pub unsafe fn id(domain: *const Domain, recorder: &Recorder) -> ids::LabelDomain {
    // SAFETY: as the caller promises; domains are never freed.
    let Some(domain) = (unsafe { domain.as_ref() }) else {
        return ids::LabelDomain::NONE;
    };
    let generation = generation();
    if domain.named_in.swap(generation, Relaxed) != generation {
        recorder.write(&CommonEvent::Name {
            object: Object::LabelDomain(domain.id),
            name: &domain.name,
        });
    }
    domain.id
}

/// Returns the id of a category: 0 for none, and for numbers of 2^16 and more, which do not fit into an id.
pub fn category(domain: ids::LabelDomain, category: u32) -> ids::LabelCategory {
    let id = match (u16::try_from(domain.0), u16::try_from(category)) {
        (Ok(domain), Ok(category)) if category != 0 => {
            u32::from(domain) << 16 | u32::from(category)
        }
        _ => 0,
    };
    ids::LabelCategory(id)
}

/// Returns the domain of a name, which the first call makes; null if that fails.
fn create(name: Text<'_>) -> *const Domain {
    let domain = guard(|| {
        let name = name.to_text();
        let mut registry = registry().lock().unwrap_or_else(PoisonError::into_inner);
        *registry.domains.entry(name.clone()).or_insert_with(|| {
            Box::leak(Box::new(Domain {
                id: ids::LabelDomain(NEXT_DOMAIN.fetch_add(1, Relaxed)),
                name,
                named_in: AtomicU32::new(0),
            }))
        })
    });
    domain.map_or(std::ptr::null(), std::ptr::from_ref)
}

pub unsafe extern "C" fn create_a(name: *const c_char) -> *const Domain {
    // SAFETY: the program's own text.
    create(unsafe { Text::narrow(name) })
}

pub unsafe extern "C" fn create_w(name: *const u32) -> *const Domain {
    // SAFETY: the program's own text.
    create(unsafe { Text::wide(name) })
}

/// Returns the registered string of a text, which the first call makes; null if that fails.
fn register(text: Text<'_>) -> *const RegisteredString {
    let string = guard(|| {
        let text = text.to_text();
        let mut registry = registry().lock().unwrap_or_else(PoisonError::into_inner);
        *registry
            .strings
            .entry(text.clone())
            .or_insert_with(|| Box::leak(Box::new(RegisteredString::new(text))))
    });
    string.map_or(std::ptr::null(), std::ptr::from_ref)
}

pub unsafe extern "C" fn register_a(
    _domain: *const Domain,
    text: *const c_char,
) -> *const RegisteredString {
    // SAFETY: the program's own text.
    register(unsafe { Text::narrow(text) })
}

pub unsafe extern "C" fn register_w(
    _domain: *const Domain,
    text: *const u32,
) -> *const RegisteredString {
    // SAFETY: the program's own text.
    register(unsafe { Text::wide(text) })
}

/// Writes the name of a category of a domain.
///
/// # Safety
/// The domain is null or a handle of ours.
unsafe fn name_category(domain: *const Domain, number: u32, name: Text<'_>) {
    guard(|| {
        let Some(recorder) = recorder() else { return };
        // SAFETY: as the caller promises.
        let id = category(unsafe { id(domain, recorder) }, number);
        if id != ids::LabelCategory::NONE {
            recorder.write(&CommonEvent::Name {
                object: Object::LabelCategory(id),
                name: &name.to_text(),
            });
        }
    });
}

pub unsafe extern "C" fn category_a(number: u32, name: *const c_char) {
    // SAFETY: the program's own text; no domain.
    unsafe { name_category(std::ptr::null(), number, Text::narrow(name)) }
}

pub unsafe extern "C" fn category_w(number: u32, name: *const u32) {
    // SAFETY: the program's own text; no domain.
    unsafe { name_category(std::ptr::null(), number, Text::wide(name)) }
}

pub unsafe extern "C" fn domain_category_a(
    domain: *const Domain,
    number: u32,
    name: *const c_char,
) {
    // SAFETY: the program's own text and handle.
    unsafe { name_category(domain, number, Text::narrow(name)) }
}

pub unsafe extern "C" fn domain_category_w(domain: *const Domain, number: u32, name: *const u32) {
    // SAFETY: the program's own text and handle.
    unsafe { name_category(domain, number, Text::wide(name)) }
}
