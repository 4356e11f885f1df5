//! Writes the markers of a profile column by column as they come from their lanes, because in memory each would take
//! hundreds of bytes. A lane is a list of slices (drawn intervals) that follow or contain each other; in the profile
//! each lane is a thread, and each slice a marker.
//!
//! The library that knows the format makes the profile itself. It gets only the markers that are the first of their
//! lane to use some text, so that its tables of texts are complete; what it writes of these markers is replaced.
//!
//! The order of calls: [`Markers::number`] for all lanes, [`Markers::register`] for each, then [`Markers::write`]
//! with the JSON that the library made.

use super::{MarkerRow, MarkerType};
use crate::ordered_output::write_in_order;
use crate::packed::{Block, Lane};
use crate::scene::DetailValue;
use crate::scene::Scene;
use crate::slice::{LaneSlice, SliceKind};
use crate::texts::TextId;
use fxprof_processed_profile::{
    MarkerFieldFormat, MarkerTiming, Profile, StringHandle, ThreadHandle, Timestamp,
};
use gapscope_trace::parallel::each;
use serde_json::Deserializer;
use std::io::{self, Write};

/// The beginning of the markers of a thread in JSON. No text contains it, because its quotes would be escaped.
const MARKERS_KEY: &[u8] = b"\"markers\":";

/// Marks a text that has no number.
const NO_NUMBER: u32 = u32::MAX;

/// The markers of all threads.
pub(super) struct Markers<'a> {
    /// What the slices of lanes get their names and details from.
    scene: &'a Scene<'a>,
    /// The schema of each kind of slice.
    types: &'a [MarkerType; SliceKind::ALL.len()],
    /// The category of each kind as JSON.
    categories: Vec<String>,
    /// The library's handle of each text of the scene, by [`TextId`]; `none` is that for a missing value.
    texts: &'a [StringHandle],
    none: StringHandle,
    /// The index of the text for a missing value: the end, or that of an equal text.
    none_at: usize,
    /// The registered lanes, in order. The first time of a thread's markers is its index here, in nanoseconds.
    threads: Vec<Thread<'a>>,
}

/// A lane as a thread of the profile, in which texts have numbers of their own.
struct Thread<'a> {
    lane: &'a Lane,
    /// The number of each text in the thread, or [`NO_NUMBER`].
    numbers: Vec<u32>,
}

/// A lane with its texts numbered.
pub(super) struct NumberedLane<'a> {
    thread: Thread<'a>,
    /// The markers that are the first to use some text.
    first: Vec<LaneSlice>,
}

impl<'a> Markers<'a> {
    pub fn new(
        scene: &'a Scene<'a>,
        types: &'a [MarkerType; SliceKind::ALL.len()],
        texts: &'a [StringHandle],
        none: StringHandle,
    ) -> Markers<'a> {
        let category = |of: &MarkerType| serde_json::to_string(&of.category).unwrap_or_default();
        let equal = texts.iter().position(|text| *text == none);
        Markers {
            scene,
            types,
            categories: types.iter().map(category).collect(),
            texts,
            none,
            none_at: equal.unwrap_or(texts.len()),
            threads: Vec::new(),
        }
    }

    /// Numbers the texts of each lane from 0 by first use, as the library will, on all cores.
    pub fn number(&self, lanes: Vec<&'a Lane>) -> Vec<NumberedLane<'a>> {
        each(lanes, |lane| {
            let (mut numbers, mut count) = (vec![NO_NUMBER; self.texts.len() + 1], 0);
            let mut first = Vec::new();
            for drawn in lane.slices() {
                let before = count;
                self.each_text(&drawn, |text| {
                    if numbers[text] == NO_NUMBER {
                        numbers[text] = count;
                        count += 1;
                    }
                });
                if count > before {
                    first.push(drawn);
                }
            }
            NumberedLane {
                thread: Thread { lane, numbers },
                first,
            }
        })
    }

    /// Makes a lane the markers of a thread that has no texts yet: gives the library those that are the first to use
    /// a text, in order, so that the library's numbers are those of the lane.
    pub fn register(
        &mut self,
        lane: NumberedLane<'a>,
        thread: ThreadHandle,
        profile: &mut Profile,
    ) {
        let at = Timestamp::from_nanos_since_reference(self.threads.len() as u64);
        for drawn in lane.first {
            // The time tells later which thread the marker belongs to.
            profile.add_marker(thread, MarkerTiming::Instant(at), self.row(&drawn));
        }
        self.threads.push(lane.thread);
    }

    /// Visits the texts of a marker, by index in `texts`, in the library's order: its name, then its fields.
    fn each_text(&self, drawn: &LaneSlice, mut visit: impl FnMut(usize)) {
        visit(self.scene.name(drawn).0 as usize);
        let row = self.row(drawn);
        for (key, value) in row.of.keys.iter().zip(row.values) {
            if super::format(*key) == MarkerFieldFormat::String {
                visit(self.text_of(value));
            }
        }
    }

    /// Returns a slice as the library takes it.
    fn row(&self, drawn: &LaneSlice) -> MarkerRow<'a> {
        let of = &self.types[drawn.slice.kind as usize];
        MarkerRow::new(self.scene, drawn, of, self.texts, self.none)
    }

    /// Returns the index of a value's text, or that for a missing value.
    fn text_of(&self, value: Option<DetailValue>) -> usize {
        match value {
            Some(DetailValue::Text(TextId(text))) => text as usize,
            _ => self.none_at,
        }
    }

    /// Writes a profile, or one thread of it, with all markers in place of the registered ones. Markers of other
    /// threads stay as they are.
    pub fn write(&self, mut profile: &[u8], out: &mut (impl Write + Send)) -> io::Result<()> {
        while let Some(at) = find(profile, MARKERS_KEY) {
            let (before, rest) = profile.split_at(at + MARKERS_KEY.len());
            out.write_all(before)?;
            let mut values = Deserializer::from_slice(rest).into_iter::<serde_json::Value>();
            let registered = values.next().transpose()?.unwrap_or_default();
            let end = values.byte_offset();
            let at_ms = registered["startTime"][0].as_f64();
            let thread = at_ms.and_then(|ms| self.threads.get((ms * 1e6).round() as usize));
            match thread {
                Some(thread) => self.write_thread(thread, out)?,
                None => out.write_all(&rest[..end])?,
            }
            profile = &rest[end..];
        }
        out.write_all(profile)
    }

    /// Writes the markers of a thread as the format's object of columns.
    fn write_thread(&self, thread: &Thread, out: &mut (impl Write + Send)) -> io::Result<()> {
        write!(out, "{{\"length\":{},\"category\":", thread.lane.count())?;
        column(thread.lane, out, Block::slices, |drawn, text| {
            let category = &self.categories[drawn.slice.kind as usize];
            text.extend_from_slice(category.as_bytes());
            Ok(())
        })?;
        out.write_all(b",\"data\":")?;
        column(thread.lane, out, Block::slices, |drawn, text| {
            self.data(thread, &drawn, text)
        })?;
        out.write_all(b",\"endTime\":")?;
        column(thread.lane, out, Block::times, |times, text| {
            milliseconds(self.scene.ns(times.end_ns), text)
        })?;
        out.write_all(b",\"name\":")?;
        column(thread.lane, out, Block::slices, |drawn, text| {
            let name = thread.numbers[self.scene.name(&drawn).0 as usize];
            integer(name.into(), text);
            Ok(())
        })?;
        out.write_all(b",\"phase\":")?;
        let count = |block: &Block| 0..block.count;
        column(thread.lane, out, count, |_, text| {
            // The phase 1 is an interval.
            text.push(b'1');
            Ok(())
        })?;
        out.write_all(b",\"startTime\":")?;
        column(thread.lane, out, Block::times, |times, text| {
            milliseconds(self.scene.ns(times.start_ns), text)
        })?;
        out.write_all(b"}")
    }

    /// Appends the fields of a marker as an object.
    fn data(&self, thread: &Thread, drawn: &LaneSlice, text: &mut Vec<u8>) -> io::Result<()> {
        let row = self.row(drawn);
        text.extend_from_slice(b"{\"type\":\"");
        text.extend_from_slice(drawn.slice.kind.as_str().as_bytes());
        text.push(b'"');
        for (key, value) in row.of.keys.iter().zip(row.values) {
            text.extend_from_slice(b",\"");
            text.extend_from_slice(key.as_str().as_bytes());
            text.extend_from_slice(b"\":");
            if super::format(*key) == MarkerFieldFormat::String {
                integer(thread.numbers[self.text_of(value)].into(), text);
                continue;
            }
            match value {
                Some(DetailValue::Unsigned(number)) => double(number as f64, text)?,
                Some(DetailValue::Signed(number)) => double(number as f64, text)?,
                // The profiler shows nothing for null.
                _ => text.extend_from_slice(b"null"),
            }
        }
        text.push(b'}');
        Ok(())
    }
}

/// Writes a list with one value for each item of a lane. `items` returns those of a block (a part of the lane), and
/// `value` appends the JSON of one.
fn column<'a, T, I: Iterator<Item = T>>(
    lane: &'a Lane,
    out: &mut (impl Write + Send),
    items: impl Fn(&'a Block) -> I + Sync,
    value: impl Fn(T, &mut Vec<u8>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    out.write_all(b"[")?;
    write_in_order(out, lane.blocks.iter().enumerate(), |(at, block), text| {
        let mut any = at > 0;
        items(block).try_for_each(|item| {
            if std::mem::replace(&mut any, true) {
                text.push(b',');
            }
            value(item, text)
        })
    })?;
    out.write_all(b"]")
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|part| part == what)
}

fn integer(number: u64, text: &mut Vec<u8>) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Below this limit each whole number is a double, and a millionth of it keeps all its digits as a double.
const EXACT_LIMIT: u64 = 1_000_000_000_000_000;

/// Appends a number as serde_json writes doubles, most of which are whole.
fn double(number: f64, text: &mut Vec<u8>) -> io::Result<()> {
    let whole = number as u64;
    if whole < EXACT_LIMIT && whole as f64 == number && number.is_sign_positive() {
        integer(whole, text);
        text.extend_from_slice(b".0");
        return Ok(());
    }
    Ok(serde_json::to_writer(text, &number)?)
}

/// Appends nanoseconds as milliseconds, as serde_json writes the double.
fn milliseconds(ns: u64, text: &mut Vec<u8>) -> io::Result<()> {
    if !(1000..EXACT_LIMIT).contains(&ns) {
        return Ok(serde_json::to_writer(text, &(ns as f64 / 1e6))?);
    }
    integer(ns / 1_000_000, text);
    text.push(b'.');
    let mut rest = ns % 1_000_000;
    let mut digit = 100_000;
    loop {
        text.push(b'0' + (rest / digit) as u8);
        rest %= digit;
        digit /= 10;
        if rest == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_are_written_as_the_library_does(ns in prop_oneof![0u64..3000, any::<u64>(), (0u64..50).prop_map(|bits| (1 << bits) + 1)], signed: i64, zeros in 0u32..9) {
            for ns in [ns, ns / 10u64.pow(zeros) * 10u64.pow(zeros)] {
                let mut text = Vec::new();
                milliseconds(ns, &mut text).unwrap();
                prop_assert_eq!(text, serde_json::to_vec(&(ns as f64 / 1e6)).unwrap());
            }
            for number in [ns as f64, signed as f64, -0.0, 0.5] {
                let mut text = Vec::new();
                double(number, &mut text).unwrap();
                prop_assert_eq!(text, serde_json::to_vec(&number).unwrap());
            }
        }
    }
}
