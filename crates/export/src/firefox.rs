//! Writes a scene (a trace as tools draw it: groups of tracks of lanes of slices) as Firefox Profiler's processed
//! profile: a thread for each lane, a marker for each slice, and samples of threads with their stacks.
//! `joined_profile` does so for several traces in one file.
//!
//! The profiler draws only counters of bytes; other counters are in the file and are not shown. It has no arrows.

mod joined_profile;
mod markers;
mod samples;

pub(crate) use joined_profile::JoinedProfile;

use crate::Exported;
use crate::scene::{Counter, Scene};
use crate::scene::{DetailKey, DetailValue};
use crate::slice::{LaneSlice, SliceKind};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, Marker, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations,
    MarkerTypeHandle, ProcessHandle, Profile, ReferenceTimestamp, RuntimeSchemaMarkerField,
    RuntimeSchemaMarkerSchema, StringHandle, Timestamp,
};
use gapscope_trace::tables::CounterUnit;
use markers::Markers;
use std::io::{self, Write};

/// Writes a trace as one profile, and returns the counts of its rows.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(scene: &Scene, out: &mut (impl Write + Send)) -> io::Result<Exported> {
    with_profile(scene, |profile, markers| markers.write(profile, out))?;
    Ok(scene.exported_with_samples())
}

/// Makes the profile of a trace as JSON and calls `write` with it once. Its threads have only a few markers, which
/// [`Markers::write`] replaces by all of them.
fn with_profile(
    scene: &Scene,
    write: impl FnOnce(&[u8], &Markers) -> io::Result<()>,
) -> io::Result<()> {
    let manifest = &scene.trace.manifest;
    // The profile begins at the scene's origin, which is this much later than the recording's start.
    let before_ns = scene.origin_ns.saturating_sub(manifest.start_ns);
    // The format demands a date, and the profiler shows 1970 for a missing one.
    let (product, unix_ms) = match manifest.start_unix_ns {
        Some(ns) => ("gapscope", ns.saturating_add(before_ns) as f64 / 1e6),
        None => ("gapscope (date not known)", 0.0),
    };
    let mut profile = Profile::new(
        product,
        ReferenceTimestamp::from_millis_since_unix_epoch(unix_ms),
        samples::interval(&scene.trace.tables.samples),
    );
    let texts = scene.names.texts.all().iter();
    let texts: Vec<StringHandle> = texts.map(|text| profile.intern_string(text)).collect();
    let none = profile.intern_string("–");
    let types = SliceKind::ALL.map(|kind| MarkerType::register(kind, &mut profile));
    let mut markers = Markers::new(scene, &types, &texts, none);
    let start = Timestamp::from_nanos_since_reference(0);
    let code = samples::SampledCode::new(scene, &mut profile);
    let mut tid = 2_000_000_000;
    let tracks = scene.groups.iter().flat_map(|group| &group.tracks);
    let lanes = tracks.flat_map(|track| &track.lanes).collect();
    let mut numbered = markers.number(lanes).into_iter();
    for group in &scene.groups {
        let process = profile.add_process(&group.name, group.pid, start);
        for track in &group.tracks {
            for (lane, slices) in numbered.by_ref().take(track.lanes.len()).enumerate() {
                tid += 1;
                let shown = track.thread.filter(|_| lane == 0).map_or(tid, |id| id.0);
                let thread = profile.add_thread(process, shown, start, false);
                profile.set_thread_name(thread, &track.lane_name(lane));
                profile.set_thread_show_markers_in_timeline(thread, true);
                // The profiler hides threads without samples unless it is told.
                profile.add_initial_visible_thread(thread);
                markers.register(slices, thread, &mut profile);
                if let Some(samples) = group.samples_of(track, lane) {
                    code.add(samples, thread, &mut profile);
                }
            }
        }
        for samples in group.samples_without_track() {
            let thread = profile.add_thread(process, samples.thread.0, start, false);
            profile.set_thread_name(thread, &samples.name);
            profile.add_initial_visible_thread(thread);
            code.add(samples, thread, &mut profile);
        }
        for counter in &group.counters {
            add_counter(scene, counter, process, &mut profile);
        }
    }
    write(&serde_json::to_vec(&profile)?, &markers)
}

/// Adds a counter to the profile. The profiler draws straight lines between samples, so each step is two samples at
/// the same time: the format wants changes, so the first is 0 and the second the change.
fn add_counter(scene: &Scene, counter: &Counter, process: ProcessHandle, profile: &mut Profile) {
    let category = match counter.unit {
        CounterUnit::Bytes => "Memory",
        _ => "counter",
    };
    let description = format!("{}, in {}", counter.name, counter.unit);
    let handle = profile.add_counter(process, &counter.name, category, &description);
    let mut before = 0.0;
    for sample in &counter.samples {
        let at = Timestamp::from_nanos_since_reference(scene.ns(sample.start_ns));
        profile.add_counter_sample(handle, at, 0.0, 0);
        profile.add_counter_sample(handle, at, sample.value - before, 1);
        before = sample.value;
    }
}

/// The schema of the markers of a kind of slice.
struct MarkerType {
    /// The schema and the category in the profile.
    handle: MarkerTypeHandle,
    category: CategoryHandle,
    /// The details that are fields of the marker, in their order.
    keys: &'static [DetailKey],
    /// The index of each key in `keys`, by the number of the key; absent for keys that the kind does not have.
    places: [Option<u8>; DetailKey::ALL.len()],
}

impl MarkerType {
    /// Adds the schema and the category of a kind to the profile.
    fn register(kind: SliceKind, profile: &mut Profile) -> MarkerType {
        let keys = keys(kind);
        let mut places = [None; DetailKey::ALL.len()];
        for (place, key) in (0..).zip(keys) {
            places[*key as usize] = Some(place);
        }
        let fields = keys.iter().map(|key| RuntimeSchemaMarkerField {
            key: key.as_str().to_owned(),
            label: key.as_str().to_owned(),
            format: format(*key),
            flags: MarkerFieldFlags::SEARCHABLE,
        });
        let schema = RuntimeSchemaMarkerSchema {
            type_name: kind.as_str().to_owned(),
            description: None,
            locations: MarkerLocations::MARKER_CHART
                | MarkerLocations::MARKER_TABLE
                | MarkerLocations::TIMELINE_OVERVIEW,
            chart_label: Some("{marker.name}".to_owned()),
            tooltip_label: None,
            table_label: None,
            fields: fields.collect(),
            graphs: Vec::new(),
        };
        let colour = match kind {
            SliceKind::Dispatch => CategoryColor::Green,
            SliceKind::Transfer => CategoryColor::Blue,
            SliceKind::Opaque => CategoryColor::Purple,
            SliceKind::Gap => CategoryColor::Red,
            SliceKind::HostCall | SliceKind::Launch => CategoryColor::Orange,
            SliceKind::CommandBuffer | SliceKind::Marker => CategoryColor::Gray,
        };
        MarkerType {
            handle: profile.register_marker_type(schema),
            category: profile.add_category(kind.as_str(), colour),
            keys,
            places,
        }
    }
}

/// Returns the details that a kind may have.
fn keys(kind: SliceKind) -> &'static [DetailKey] {
    use DetailKey::*;
    match kind {
        SliceKind::Dispatch => &[
            Label,
            GroupsX,
            GroupsY,
            GroupsZ,
            Local,
            Kernel,
            EntryPoint,
            Source,
            Specialisation,
            CommandBuffer,
            Position,
        ],
        SliceKind::Transfer => &[
            Label,
            Bytes,
            SourceBuffer,
            DestinationBuffer,
            CommandBuffer,
            Position,
        ],
        SliceKind::Opaque => &[Label, CommandBuffer, Position],
        SliceKind::CommandBuffer => &[
            Label,
            CommandBuffer,
            Submission,
            Dispatches,
            Transfers,
            Timing,
        ],
        SliceKind::Marker => &[Label, Scope, CommandBuffer],
        SliceKind::HostCall => &[Call, Count, BusyNs, Queue, Bytes, Result],
        SliceKind::Launch => &[Submission, Submits, Queue, CommandBuffers, Duration],
        SliceKind::Gap => &[Meaning, GapNs, Submission],
    }
}

/// Returns how the profiler shows a detail. Values that are texts must have the format `String`.
fn format(key: DetailKey) -> MarkerFieldFormat {
    use DetailKey::*;
    match key {
        Label | Local | EntryPoint | Source | Specialisation | Timing | Scope | Meaning | Call
        | Submits | Duration => MarkerFieldFormat::String,
        Bytes => MarkerFieldFormat::Bytes,
        BusyNs | GapNs => MarkerFieldFormat::Nanoseconds,
        _ => MarkerFieldFormat::Integer,
    }
}

/// A slice as a marker, in the form in which the library that writes profiles asks for it.
struct MarkerRow<'a> {
    /// The schema of the slice's kind.
    of: &'a MarkerType,
    name: StringHandle,
    /// The values, in the order of the type's keys.
    values: [Option<DetailValue>; MAX_KEYS],
    /// The profile's handles of the scene's texts, by text id.
    texts: &'a [StringHandle],
    /// The text that stands for a missing one.
    none: StringHandle,
}

/// The most keys that [`keys`] returns, which are those of dispatches.
const MAX_KEYS: usize = 11;

impl<'a> MarkerRow<'a> {
    fn new(
        scene: &Scene,
        drawn: &LaneSlice,
        of: &'a MarkerType,
        texts: &'a [StringHandle],
        none: StringHandle,
    ) -> MarkerRow<'a> {
        let mut values = [None; MAX_KEYS];
        scene.details(drawn, |key, value| {
            if let Some(place) = of.places[key as usize] {
                values[usize::from(place)] = Some(value);
            }
        });
        MarkerRow {
            of,
            name: texts[scene.name(drawn).0 as usize],
            values,
            texts,
            none,
        }
    }
}

impl Marker for MarkerRow<'_> {
    fn marker_type(&self, _: &mut Profile) -> MarkerTypeHandle {
        self.of.handle
    }

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.of.category
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        match self.values[field as usize] {
            Some(DetailValue::Text(text)) => self.texts[text.0 as usize],
            _ => self.none,
        }
    }

    fn number_field_value(&self, field: u32) -> f64 {
        match self.values[field as usize] {
            Some(DetailValue::Unsigned(number)) => number as f64,
            Some(DetailValue::Signed(number)) => number as f64,
            // JSON has no NaN: it becomes null, which the profiler does not show.
            _ => f64::NAN,
        }
    }
}
