//! Firefox Profiler's processed profile: a thread for each lane, a marker for each slice; samples of threads with their stacks.
//!
//! The profiler draws counters of bytes only: the others are in the file, and it shows nothing of them. It has no arrows.

mod joined;
mod markers;
mod samples;

pub(crate) use joined::JoinedProfile;

use crate::Exported;
use crate::details::{Key, Value};
use crate::scene::{Counter, Scene};
use crate::slice::{Drawn, Kind};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, Marker, MarkerFieldFlags, MarkerFieldFormat, MarkerLocations,
    MarkerTypeHandle, ProcessHandle, Profile, ReferenceTimestamp, RuntimeSchemaMarkerField,
    RuntimeSchemaMarkerSchema, StringHandle, Timestamp,
};
use gapscope_trace::tables::CounterUnit;
use markers::Markers;
use std::io::{self, Write};

/// Writes a trace.
///
/// # Errors
/// Those of `out`.
pub fn write(scene: &Scene, out: &mut (impl Write + Send)) -> io::Result<Exported> {
    with_profile(scene, |profile, markers| markers.write(profile, out))?;
    Ok(scene.exported_with_samples())
}

/// Makes the profile of a trace as JSON, in which the markers of threads are replaced as its parts are written.
fn with_profile(
    scene: &Scene,
    write: impl FnOnce(&[u8], &Markers) -> io::Result<()>,
) -> io::Result<()> {
    let manifest = &scene.trace.manifest;
    let before_ns = scene.origin_ns.saturating_sub(manifest.start_ns);
    let unix_ns = manifest
        .start_unix_ns
        .map(|ns| ns.saturating_add(before_ns));
    // The format must have a date: without one the profiler shows 1970.
    let (product, unix_ms) = match unix_ns {
        Some(ns) => ("gapscope", ns as f64 / 1e6),
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
    let types = Kind::ALL.map(|kind| Type::register(kind, &mut profile));
    let mut markers = Markers::new(scene, &types, &texts, none);
    let start = Timestamp::from_nanos_since_reference(0);
    let code = samples::Code::of(scene, &mut profile);
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

/// The profiler draws straight lines between samples: each step is two.
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

/// What markers of a kind have.
struct Type {
    handle: MarkerTypeHandle,
    category: CategoryHandle,
    keys: &'static [Key],
    /// By key: its place in `keys`.
    places: [Option<u8>; Key::ALL.len()],
}

impl Type {
    fn register(kind: Kind, profile: &mut Profile) -> Type {
        let keys = keys(kind);
        let mut places = [None; Key::ALL.len()];
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
            Kind::Dispatch => CategoryColor::Green,
            Kind::Transfer => CategoryColor::Blue,
            Kind::Opaque => CategoryColor::Purple,
            Kind::Gap => CategoryColor::Red,
            Kind::HostCall => CategoryColor::Orange,
            Kind::CommandBuffer | Kind::Marker => CategoryColor::Gray,
        };
        Type {
            handle: profile.register_marker_type(schema),
            category: profile.add_category(kind.as_str(), colour),
            keys,
            places,
        }
    }
}

/// The details that a kind may have.
fn keys(kind: Kind) -> &'static [Key] {
    use Key::*;
    match kind {
        Kind::Dispatch => &[
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
        Kind::Transfer => &[
            Label,
            Bytes,
            SourceBuffer,
            DestinationBuffer,
            CommandBuffer,
            Position,
        ],
        Kind::Opaque => &[Label, CommandBuffer, Position],
        Kind::CommandBuffer => &[
            Label,
            CommandBuffer,
            Submission,
            Dispatches,
            Transfers,
            Timing,
        ],
        Kind::Marker => &[Label, Scope, CommandBuffer],
        Kind::HostCall => &[Count, BusyNs, Queue, Bytes, Result],
        Kind::Gap => &[Meaning, GapNs, Submission],
    }
}

fn format(key: Key) -> MarkerFieldFormat {
    use Key::*;
    match key {
        Label | Local | EntryPoint | Source | Specialisation | Timing | Scope | Meaning => {
            MarkerFieldFormat::String
        }
        Bytes => MarkerFieldFormat::Bytes,
        BusyNs | GapNs => MarkerFieldFormat::Nanoseconds,
        _ => MarkerFieldFormat::Integer,
    }
}

/// A slice as a marker.
struct Row<'a> {
    of: &'a Type,
    name: StringHandle,
    /// In the order of the type's keys.
    values: [Option<Value>; MOST_KEYS],
    texts: &'a [StringHandle],
    none: StringHandle,
}

const MOST_KEYS: usize = 11;

impl<'a> Row<'a> {
    fn of(
        scene: &Scene,
        drawn: &Drawn,
        of: &'a Type,
        texts: &'a [StringHandle],
        none: StringHandle,
    ) -> Row<'a> {
        let mut values = [None; MOST_KEYS];
        let Ok(()) = scene.details(drawn, |key, value| {
            if let Some(place) = of.places[key as usize] {
                values[usize::from(place)] = Some(value);
            }
            Ok::<(), std::convert::Infallible>(())
        });
        Row {
            of,
            name: texts[scene.name(drawn).0 as usize],
            values,
            texts,
            none,
        }
    }
}

impl Marker for Row<'_> {
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
            Some(Value::Text(text)) => self.texts[text.0 as usize],
            _ => self.none,
        }
    }

    fn number_field_value(&self, field: u32) -> f64 {
        match self.values[field as usize] {
            Some(Value::Unsigned(number)) => number as f64,
            Some(Value::Signed(number)) => number as f64,
            // JSON has no such number: it becomes null, which the profiler does not show.
            _ => f64::NAN,
        }
    }
}
