//! Joins several traces into one profile (JSON for Firefox's profiler): writes the threads of each as they come, and
//! at the end the facts, which are the profile's other keys. [`JoinedProfile::begin`] comes first, then `write_part`
//! for each trace, which comes as a [`Scene`] (what is drawn of a trace), then `end`.

use super::with_profile;
use crate::json::CommaList;
use crate::scene::Scene;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Map, Value};
use std::io::{self, Write};

/// The beginning of the list of threads in JSON. The facts before it have no such key.
const THREADS_KEY: &[u8] = b"\"threads\":[";

/// The keys of facts that are indices into the list of threads.
const THREAD_INDEX_KEYS: [&str; 2] = ["initialVisibleThreads", "initialSelectedThreads"];

/// The parts of the joined profile that are written at the end.
#[derive(Default)]
pub(crate) struct JoinedProfile {
    /// Writes the commas between the threads.
    commas: CommaList,
    /// The number of threads that have been written.
    threads: u64,
    /// The counters of all traces, with indices of threads in the joined list.
    counters: Vec<Value>,
    /// The facts of the first trace, without threads and counters, but with the visible threads of all.
    facts: Map<String, Value>,
}

impl JoinedProfile {
    /// Opens the profile and its list of threads.
    pub fn begin(out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{\"threads\":[")
    }

    /// Writes the threads of a trace, and keeps its counters and facts for the end.
    pub fn write_part(&mut self, scene: &Scene, out: &mut (impl Write + Send)) -> io::Result<()> {
        with_profile(scene, |profile, markers| {
            let at = profile
                .windows(THREADS_KEY.len())
                .position(|w| w == THREADS_KEY);
            let at = at.ok_or_else(|| io::Error::other("the profile has no threads"))?;
            let (mut facts, mut rest) = {
                let (facts, rest) = profile.split_at(at + THREADS_KEY.len());
                (facts.to_vec(), rest)
            };
            let before = self.threads;
            while !rest.starts_with(b"]") {
                let mut values = Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
                values.next().transpose()?;
                let (thread, behind) = rest.split_at(values.byte_offset());
                self.commas.next(out)?;
                markers.write(thread, out)?;
                self.threads += 1;
                rest = behind.strip_prefix(b",").unwrap_or(behind);
            }
            facts.extend_from_slice(rest);
            self.add(serde_json::from_slice(&facts)?, before);
            Ok(())
        })
    }

    /// Adds the facts of a trace whose threads follow `before` others. Of traces after the first, only the counters,
    /// the visible threads and a longer list of categories are kept.
    fn add(&mut self, mut facts: Map<String, Value>, before: u64) {
        facts.remove("threads");
        let move_place = |place: &mut Value| {
            if let Some(at) = place.as_u64() {
                *place = Value::from(before + at);
            }
        };
        if let Some(Value::Array(counters)) = facts.remove("counters") {
            for mut counter in counters {
                if let Some(place) = counter.get_mut("mainThreadIndex") {
                    move_place(place);
                }
                self.counters.push(counter);
            }
        }
        for key in THREAD_INDEX_KEYS {
            let places = facts.get_mut("meta").and_then(|meta| meta.get_mut(key));
            let places = places.and_then(Value::as_array_mut);
            places.into_iter().flatten().for_each(move_place);
        }
        if self.facts.is_empty() {
            self.facts = facts;
            return;
        }
        let (Some(all), Some(meta)) = (self.facts.get_mut("meta"), facts.remove("meta")) else {
            return;
        };
        if let Some(places) = meta.get(THREAD_INDEX_KEYS[0]).and_then(Value::as_array)
            && let Some(known) = all
                .get_mut(THREAD_INDEX_KEYS[0])
                .and_then(Value::as_array_mut)
        {
            known.extend_from_slice(places);
        }
        // The categories of code exist only where there are samples, and come last.
        let count = |meta: &Value| meta["categories"].as_array().map_or(0, Vec::len);
        if count(&meta) > count(all) {
            all["categories"] = meta["categories"].clone();
        }
    }

    /// Closes the list of threads, and writes counters and facts.
    pub fn end(self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"],\"counters\":")?;
        serde_json::to_writer(&mut *out, &self.counters)?;
        for (key, value) in &self.facts {
            write!(out, ",{}:", Value::from(key.as_str()))?;
            serde_json::to_writer(&mut *out, value)?;
        }
        out.write_all(b"}\n")
    }
}
