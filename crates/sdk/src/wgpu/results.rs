//! Converts the query results of a command buffer to entries of the profile: ticks go in, times on the host's clock
//! come out, each unknown one with its reason.

use super::Capability;
use super::batch::{Batch, QueryPair};
use super::chunk::QUERIES;
use super::clock::{DeviceClock, Offset};
use super::inner::{Inner, lock};
use crate::interval::Interval;
use crate::kernel_profile::ScopeEntry;
use crate::kernel_profile::{CommandBufferEntry, DispatchEntry, LossKind, PassEntry};
use crate::passes::{
    HIDDEN, MeasuredInterval, MeasuredPass, WANTED_NO_MORE, WorkTimes, hull, settle,
};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

// The reasons why a time is unknown.
const NO_QUERIES: &str = "there was no memory for timestamps";
const NO_TIME: &str = "the device delivered no usable timestamps";
const TAKEN: &str = "the program times this pass itself";
const NOT_ENDED: &str = "the program did not end this scope";
const NO_BOUNDS: &str = "its device times contradict the host times around them";

/// The reason for dispatches that are not listed.
const BORROWED: &str = "the program encoded through wgpu's own encoder or pass (`&mut wgpu::CommandEncoder`, `&mut wgpu::ComputePass`): `Profiler::scopes` times such work";

/// The times of a batch (one command buffer with its passes and dispatches) on the device's clock.
struct Times {
    /// The time of the whole command buffer.
    whole: MeasuredInterval,
    /// The times of the passes, in the order of the batch.
    passes: Vec<MeasuredInterval>,
    /// The times of the dispatches, in the order of the batch.
    dispatches: Vec<MeasuredInterval>,
    /// The times of the scopes, in the order of the batch.
    scopes: Vec<MeasuredInterval>,
    /// The offset to the host's clock, if it is known.
    offset: Option<Offset>,
    seen_ns: Option<u64>,
}

impl Inner {
    /// Records the mapped results of a batch that were seen to have arrived at `seen_ns`, and gives its chunks back.
    pub fn record_arrived(&self, mut batch: Batch, seen_ns: u64) {
        let mut ticks = Vec::with_capacity(batch.chunks.len() * QUERIES as usize);
        let mut readable = true;
        for chunk in &batch.chunks {
            ticks.resize(ticks.len().next_multiple_of(QUERIES as usize), 0);
            match chunk.readable.get_mapped_range(0..chunk.bytes()) {
                Ok(view) => {
                    let (words, _) = view.as_chunks::<8>();
                    ticks.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
                }
                Err(_) => readable = false,
            }
            chunk.readable.unmap();
        }
        self.give_back(std::mem::take(&mut batch.chunks));
        if !readable {
            return self.record(
                &batch,
                Times::unknown(&batch, "the results could not be read"),
            );
        }
        let times = {
            let mut clock = lock(&self.clock);
            Times::measure(
                &batch,
                &ticks,
                self.capability,
                self.period_ns,
                seen_ns,
                &mut clock,
            )
        };
        if let Some(offset) = times.offset {
            self.profile().add_bound(offset.error_ns);
        }
        self.record(&batch, times);
    }

    /// Records a batch whose results will never arrive.
    pub fn record_lost(&self, mut batch: Batch, reason: &'static str) {
        self.give_up(std::mem::take(&mut batch.chunks));
        self.record(&batch, Times::unknown(&batch, reason));
    }

    /// Records a batch without queries.
    pub fn record_untimed(&self, batch: &Batch) {
        let reason = match self.capability {
            _ if !batch.scopes.is_empty() => "none of its scopes could be timed",
            Capability::Nothing if self.wants_nothing() => "the program wanted no times",
            Capability::Nothing => "the device has no timestamps, or was made without them",
            _ if batch.passes.is_empty() && !self.times_encoders() => {
                "it has no compute pass, and was made without timestamps between passes"
            }
            _ => NO_QUERIES,
        };
        self.record(batch, Times::unknown(batch, reason));
    }

    /// Adds a batch to the profile: the command buffer, its passes and its dispatches.
    fn record(&self, batch: &Batch, times: Times) {
        let profile = self.profile();
        let host = |device: Interval| {
            let offset = times.offset?;
            Some(Interval {
                start_ns: offset.host_ns(device.start_ns)?,
                end_ns: offset.host_ns(device.end_ns)?,
            })
        };
        let placed = match &times.whole {
            Ok(whole) => host(*whole).ok_or(Cow::Borrowed(NO_BOUNDS)),
            Err(why) => Err(why.clone()),
        };
        let entry = CommandBufferEntry {
            id: Some(batch.id),
            label: Cow::Owned(batch.label.to_string()),
            start_ns: placed.as_ref().ok().map(|placed| placed.start_ns),
            end_ns: placed.as_ref().ok().map(|placed| placed.end_ns),
            // Scopes begin before the program finishes the command buffer.
            submitted_ns: batch.scopes.is_empty().then_some(batch.finished_ns),
            seen_ns: times.seen_ns,
            dispatches: batch.dispatch_count,
            unknown_because: placed.err().unwrap_or_default(),
            ..CommandBufferEntry::default()
        };
        let hides_work = batch.hides_work();
        profile.record_listed_command_buffer(entry, batch.dispatch_count > 0 || hides_work);
        if hides_work && self.capability != Capability::CommandBuffers {
            profile.lose(LossKind::UnlistedDispatches, 1, BORROWED);
        }
        for (scope, interval) in batch.scopes.iter().zip(times.scopes) {
            let placed = interval.as_ref().ok().and_then(|i| host(*i));
            profile.record_scope(ScopeEntry {
                cb_label: Cow::Owned(batch.label.to_string()),
                command_buffer: batch.id,
                path: Arc::clone(&scope.path),
                gpu_ns: interval.as_ref().ok().map(|i| i.duration_ns()),
                placed,
                unknown_because: interval.err().unwrap_or_default(),
            });
        }
        if !self.lists_work() {
            let reason = match (self.capability, times.whole) {
                (Capability::CommandBuffers, _) => WANTED_NO_MORE.into(),
                (Capability::Nothing, _) if self.wants_nothing() => {
                    "the program wanted no times".into()
                }
                (_, whole) => whole.err().unwrap_or(Cow::Borrowed(NO_TIME)),
            };
            profile.lose(LossKind::DispatchTimes, batch.dispatch_count.into(), reason);
        }
        for ((pass, inside), interval) in batch.passes.iter().zip(ranges(batch)).zip(times.passes) {
            if inside.is_empty() && self.capability == Capability::Dispatches {
                // Nothing ran in this pass.
                continue;
            }
            let placed = interval.as_ref().ok().and_then(|i| host(*i));
            profile.record_pass(PassEntry {
                cb_label: Cow::Owned(batch.label.to_string()),
                command_buffer: Some(batch.id),
                label: Cow::Owned(pass.label.to_string()),
                first_dispatch: pass.first,
                dispatches: inside.len() as u32,
                // The duration is known even if the place on the host's clock is not.
                gpu_ns: interval.as_ref().ok().map(|i| i.duration_ns()),
                start_gpu_ns: placed.map(|placed| placed.start_ns),
                end_gpu_ns: placed.map(|placed| placed.end_ns),
                unknown_because: interval.err().unwrap_or_default(),
                ..Default::default()
            });
        }
        for ((dispatch, interval), index) in batch.dispatches.iter().zip(times.dispatches).zip(0..)
        {
            let placed = interval.as_ref().ok().and_then(|i| host(*i));
            profile.record_dispatch(DispatchEntry {
                cb_label: Cow::Owned(batch.label.to_string()),
                command_buffer: Some(batch.id),
                op_kind: Cow::Owned(dispatch.label.to_string()),
                kernel: Cow::Owned(dispatch.kernel.to_string()),
                dispatch_index: index,
                groups: dispatch.groups,
                group_size: None,
                gpu_ns: interval.as_ref().ok().map(|i| i.duration_ns()),
                start_gpu_ns: placed.map(|placed| placed.start_ns),
                end_gpu_ns: placed.map(|placed| placed.end_ns),
                unknown_because: interval.err().unwrap_or_default(),
                ..Default::default()
            });
        }
    }
}

/// Returns the dispatches of each pass, by their indices in the command buffer.
fn ranges(batch: &Batch) -> impl Iterator<Item = Range<usize>> {
    let ends = batch.passes.iter().skip(1).map(|next| next.first);
    let ends = ends.chain([batch.dispatch_count]);
    let starts = batch.passes.iter().map(|pass| pass.first);
    starts
        .zip(ends)
        .map(|(start, end)| start as usize..end as usize)
}

impl Times {
    /// Returns times that are all unknown for one reason.
    fn unknown(batch: &Batch, reason: &'static str) -> Times {
        let unknown = MeasuredInterval::Err(Cow::Borrowed(reason));
        Times {
            whole: unknown.clone(),
            passes: vec![unknown.clone(); batch.passes.len()],
            dispatches: vec![unknown.clone(); batch.dispatches.len()],
            scopes: vec![unknown; batch.scopes.len()],
            offset: None,
            seen_ns: None,
        }
    }

    /// Converts the ticks of a batch, which are indexed by query.
    fn measure(
        batch: &Batch,
        ticks: &[u64],
        capability: Capability,
        period_ns: f64,
        seen_ns: u64,
        clock: &mut DeviceClock,
    ) -> Times {
        let mut device_ns = |query: u32| {
            let ticks = ticks.get(query as usize)?;
            clock.device_ns(*ticks, period_ns)
        };
        let mut measure = |pair: Option<QueryPair>| -> MeasuredInterval {
            let pair = pair.ok_or(NO_QUERIES)?;
            let start_ns = device_ns(pair.start()).ok_or(NO_TIME)?;
            let end_ns = device_ns(pair.end()).ok_or(NO_TIME)?;
            match start_ns <= end_ns {
                true => Ok(Interval { start_ns, end_ns }),
                false => Err(NO_TIME.into()),
            }
        };
        let measured: Vec<Option<MeasuredInterval>> = (batch.dispatches.iter())
            .map(|d| (capability == Capability::Dispatches).then(|| measure(d.pair)))
            .collect();
        let passes: Vec<_> = (batch.passes.iter().zip(ranges(batch)))
            .map(|(pass, inside)| {
                let measured = match (capability, pass.is_taken) {
                    (Capability::Passes, true) => Some(Err(TAKEN.into())),
                    (Capability::Passes, false) => Some(measure(pass.pair)),
                    _ => None,
                };
                MeasuredPass {
                    inside,
                    measured,
                    hides_dispatches: pass.is_borrowed,
                }
            })
            .collect();
        let scopes: Vec<_> = (batch.scopes.iter())
            .map(|scope| match scope.pair {
                Ok(_) if !scope.is_ended => Err(NOT_ENDED.into()),
                Ok(pair) => measure(Some(pair)),
                Err(why) => Err(why.into()),
            })
            .collect();
        let around = batch.whole.map(|_| measure(batch.whole));
        let WorkTimes { passes, dispatches } = settle(&passes, &measured);
        let hides_passes =
            batch.is_borrowed || (capability == Capability::Dispatches && batch.hides_work());
        let whole = match around {
            Some(around) => around,
            None if hides_passes => Err(HIDDEN.into()),
            None if !scopes.is_empty() => hull(&scopes),
            None => hull(&passes),
        };
        let offset = whole
            .as_ref()
            .ok()
            .and_then(|whole| clock.bracket(*whole, batch.finished_ns, seen_ns));
        Times {
            whole,
            passes,
            dispatches,
            scopes,
            offset,
            seen_ns: Some(seen_ns),
        }
    }
}
