//! The functions that the program calls to begin and end labels; each writes one end of a label to the log of the
//! calling thread. A mark is a moment; push and pop begin and end a label of the thread; start and end those of a
//! range, which may end on another thread.

use super::attributes::Attributes;
use super::domains::{self, Domain};
use super::operators;
use super::payload::{self, PayloadData};
use super::text::Text;
use crate::recorder::{Recorder, recorder};
use crate::{capture, labels};
use gapscope_spool::event::{CommonEvent, CudaEvent, LabelEdge, LabelScope, LossKind};
use gapscope_spool::hook::guard;
use gapscope_spool::{ids, monotonic_ns};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// NVTX_NO_PUSH_POP_TRACKING, which a program gets without a tool, too.
const NOT_TRACKED: c_int = -2;

/// The ids of ranges; 0 means none.
static RANGES: AtomicU64 = AtomicU64::new(1);

/// The domain and range of a label.
#[derive(Clone, Copy)]
struct LabelLocation {
    domain: *const Domain,
    /// The id of a range of the process; other labels belong to the thread.
    range: Option<ids::LabelRange>,
}

/// The domain of functions without one.
const DEFAULT: *const Domain = std::ptr::null();

/// The content that the program passes with a label.
#[derive(Default)]
struct LabelContent<'a> {
    text: Text<'a>,
    attributes: Option<Attributes>,
    /// Structured values of the payload extension.
    payloads: &'a [PayloadData],
}

impl<'a> From<Text<'a>> for LabelContent<'a> {
    fn from(text: Text<'a>) -> Self {
        LabelContent {
            text,
            ..LabelContent::default()
        }
    }
}

impl<'a> LabelContent<'a> {
    /// Returns the content that a label's attributes describe.
    ///
    /// # Safety
    /// `attributes` is null or valid, and the program waits while they are used.
    unsafe fn attributes(attributes: *const c_void) -> LabelContent<'a> {
        // SAFETY: as the caller promises.
        unsafe {
            let attributes = Attributes::at(attributes);
            let known = attributes.as_ref();
            LabelContent {
                text: known.map_or(Text::None, |a| a.text()),
                payloads: known.map_or(&[], |a| a.payloads()),
                attributes,
            }
        }
    }

    /// Returns the content that payloads alone describe.
    ///
    /// # Safety
    /// `payloads` is null or has `count` elements, and the program waits while they are used.
    unsafe fn payloads(payloads: *const PayloadData, count: usize) -> LabelContent<'a> {
        LabelContent {
            // SAFETY: as the caller promises.
            payloads: unsafe { PayloadData::all(payloads, count) },
            ..LabelContent::default()
        }
    }
}

/// Writes one end of a label.
///
/// # Safety
/// The domain is null or one of ours; the content is the program's own.
unsafe fn label(location: LabelLocation, edge: LabelEdge, content: LabelContent<'_>) {
    guard(|| {
        if let Some(control) = capture::control() {
            let text = content.text.to_text();
            return capture::interface::label(
                control,
                location.range.map(|range| range.0),
                edge,
                &text,
            );
        }
        let Some(recorder) = recorder() else { return };
        // The time comes first, so that it is the program's and not that of our bookkeeping.
        let at_ns = monotonic_ns();
        // SAFETY: as the caller promises.
        let domain = unsafe { domains::id(location.domain, recorder) };
        let scope = match (location.range, domain) {
            (Some(range), domain) => LabelScope::Range { domain, range },
            (None, ids::LabelDomain::NONE) => LabelScope::Thread,
            (None, domain) => LabelScope::Domain(domain),
        };
        if location.range.is_none()
            && domain == ids::LabelDomain::NONE
            && operators::write_operator(recorder, edge, &content.text, at_ns)
        {
            return;
        }
        let write = |text: &Text<'_>| {
            let text = match (text, edge) {
                (_, LabelEdge::End) => ids::Text::NONE,
                (Text::None, _) => labels::text(recorder, b""),
                (text, _) => text.id(recorder),
            };
            recorder.write(&CommonEvent::Label {
                scope,
                edge,
                text,
                at_ns,
            });
        };
        if content.payloads.is_empty() {
            write(&content.text);
            if let Some(attributes) = &content.attributes {
                write_details(attributes.category, domain, attributes, recorder);
            }
        } else {
            let write_parts = |ending, text: &str| {
                if !text.is_empty() {
                    recorder.write(&CudaEvent::LabelPayload { ending, text });
                }
            };
            // SAFETY: as the caller promises.
            unsafe {
                payload::read(location.domain, content.payloads, |decoded| {
                    if edge == LabelEdge::End {
                        write_parts(Some(scope), decoded.parts);
                        write(&Text::None);
                    } else {
                        write(decoded.message.as_ref().unwrap_or(&content.text));
                        let attributes = content.attributes.unwrap_or_default();
                        let category = decoded.category.unwrap_or(attributes.category);
                        write_details(category, domain, &attributes, recorder);
                        write_parts(None, decoded.parts);
                    }
                    if !decoded.understood {
                        recorder.loss(LossKind::NvtxPayloads, 1, "payload schema not understood");
                    }
                });
            }
        }
    });
}

/// Writes the category and the number that a label carries, where it has one of them.
fn write_details(
    category: u32,
    domain: ids::LabelDomain,
    attributes: &Attributes,
    recorder: &Recorder,
) {
    let number = category;
    let category = domains::category(domain, number);
    if number != 0 && category == ids::LabelCategory::NONE {
        recorder.loss(
            LossKind::NvtxCategories,
            1,
            "their number, or that of their domain, is beyond 65535",
        );
    }
    let payload = attributes.payload();
    if category != ids::LabelCategory::NONE || payload.is_some() {
        recorder.write(&CudaEvent::LabelDetail { category, payload });
    }
}

/// Declares the functions that the program calls with its own texts, attributes, payloads and handles. Each writes
/// one end of a label in a domain; the first word says which end, and what the function returns.
macro_rules! called {
    () => {};
    (mark $name:ident ($($argument:ident: $type:ty),*) in $domain:expr => $content:expr; $($more:tt)*) => {
        pub unsafe extern "C" fn $name($($argument: $type),*) {
            // SAFETY: the program's own call.
            unsafe { label(LabelLocation { domain: $domain, range: None }, LabelEdge::Instant, $content) };
        }
        called! { $($more)* }
    };
    (push $name:ident ($($argument:ident: $type:ty),*) in $domain:expr => $content:expr; $($more:tt)*) => {
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the program's own call.
            unsafe { label(LabelLocation { domain: $domain, range: None }, LabelEdge::Begin, $content) };
            NOT_TRACKED
        }
        called! { $($more)* }
    };
    (pop $name:ident ($($argument:ident: $type:ty),*) in $domain:expr => $content:expr; $($more:tt)*) => {
        pub unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            // SAFETY: the program's own call.
            unsafe { label(LabelLocation { domain: $domain, range: None }, LabelEdge::End, $content) };
            NOT_TRACKED
        }
        called! { $($more)* }
    };
    (start $name:ident ($($argument:ident: $type:ty),*) in $domain:expr => $content:expr; $($more:tt)*) => {
        pub unsafe extern "C" fn $name($($argument: $type),*) -> u64 {
            let range = RANGES.fetch_add(1, Relaxed);
            // SAFETY: the program's own call.
            unsafe { label(LabelLocation { domain: $domain, range: Some(ids::LabelRange(range)) }, LabelEdge::Begin, $content) };
            range
        }
        called! { $($more)* }
    };
    (end $range:ident $name:ident ($($argument:ident: $type:ty),*) in $domain:expr => $content:expr; $($more:tt)*) => {
        pub unsafe extern "C" fn $name($($argument: $type),*) {
            // SAFETY: the program's own call.
            unsafe { label(LabelLocation { domain: $domain, range: Some(ids::LabelRange($range)) }, LabelEdge::End, $content) };
        }
        called! { $($more)* }
    };
}

called! {
    mark mark_ex(attributes: *const c_void) in DEFAULT => LabelContent::attributes(attributes);
    mark mark_a(text: *const c_char) in DEFAULT => Text::narrow(text).into();
    mark mark_w(text: *const u32) in DEFAULT => Text::wide(text).into();
    push push_ex(attributes: *const c_void) in DEFAULT => LabelContent::attributes(attributes);
    push push_a(text: *const c_char) in DEFAULT => Text::narrow(text).into();
    push push_w(text: *const u32) in DEFAULT => Text::wide(text).into();
    pop pop() in DEFAULT => LabelContent::default();
    start start_ex(attributes: *const c_void) in DEFAULT => LabelContent::attributes(attributes);
    start start_a(text: *const c_char) in DEFAULT => Text::narrow(text).into();
    start start_w(text: *const u32) in DEFAULT => Text::wide(text).into();
    end range range_end(range: u64) in DEFAULT => LabelContent::default();

    mark domain_mark_ex(domain: *const Domain, attributes: *const c_void) in domain => LabelContent::attributes(attributes);
    push domain_push_ex(domain: *const Domain, attributes: *const c_void) in domain => LabelContent::attributes(attributes);
    pop domain_pop(domain: *const Domain) in domain => LabelContent::default();
    start domain_start_ex(domain: *const Domain, attributes: *const c_void) in domain => LabelContent::attributes(attributes);
    end range domain_range_end(domain: *const Domain, range: u64) in domain => LabelContent::default();

    mark payload_mark(domain: *const Domain, data: *const PayloadData, count: usize) in domain => LabelContent::payloads(data, count);
    push payload_push(domain: *const Domain, data: *const PayloadData, count: usize) in domain => LabelContent::payloads(data, count);
    pop payload_pop(domain: *const Domain, data: *const PayloadData, count: usize) in domain => LabelContent::payloads(data, count);
    start payload_start(domain: *const Domain, data: *const PayloadData, count: usize) in domain => LabelContent::payloads(data, count);
    end range payload_end(domain: *const Domain, range: u64, data: *const PayloadData, count: usize) in domain =>
        LabelContent::payloads(data, count);
}
