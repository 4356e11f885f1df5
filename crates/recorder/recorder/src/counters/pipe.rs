//! Encodes the messages between the session (the process of `gapscope record`) and the process that samples hardware
//! counters: requests go to the latter, reports come back. A message is a frame: its length (4 bytes, little-endian)
//! and a value in postcard's encoding (a compact binary form of serde). All whole frames of a stream that was cut can
//! be read.

use gapscope_model::HardwareCounter;
use gapscope_trace::manifest::Unmeasured;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;

/// The most bytes of a frame; a longer one is not written, and ends the reading.
const MAX_FRAME_BYTES: u32 = 4 << 20;
/// The number of samples at which a batch is sent.
pub const MAX_BATCH_SAMPLES: usize = 512;

/// A message of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SamplerRequest {
    /// The first message: what to sample, and for which command.
    Prepare {
        /// The counters; earlier ones get room first.
        counters: Vec<HardwareCounter>,
        /// The time between two samples.
        interval_ns: u64,
        /// The file that the command runs.
        executable: PathBuf,
        /// The session's process, with which the sampler ends.
        parent: u32,
    },
    /// The program uses this GPU, which is to be sampled.
    Gpu {
        /// The UUID as the manifest writes it.
        uuid: String,
        /// The name for messages.
        name: String,
        /// A process that uses the GPU.
        process: Option<u32>,
    },
    /// Sampling ends, and what is left is to be reported.
    Finish,
}

/// A message of the process that samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SamplerReport {
    /// The process is prepared as far as it can be without a GPU.
    Ready,
    /// Samples of a GPU begin, each with a value for each column.
    Started {
        /// The number of this stream in later messages.
        stream: u32,
        /// The GPU's UUID as the manifest writes it.
        uuid: String,
        /// The time between two samples.
        interval_ns: u64,
        /// The counters of the values.
        columns: Vec<Column>,
    },
    /// Samples of a stream that has started.
    Samples(Batch),
    /// Samples of a stream are missing.
    Lost(LostSamples),
    /// Counters that are not sampled, with the reason.
    Unmeasured(Unmeasured),
    /// Everything that was left has been reported.
    Ended,
}

/// A counter that is sampled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    pub counter: HardwareCounter,
    /// The interface that the counter is read by: `CUPTI PM sampling, METRIC, every 100 us`.
    pub source: String,
}

/// Consecutive samples of a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// The number of [`SamplerReport::Started`].
    pub stream: u32,
    /// The time from which the first sample's start is counted.
    pub from_ns: i64,
    /// For each sample, how long it begins after the end of the one before, and how long it is.
    pub times: Vec<(i64, u64)>,
    /// For each sample a value for each column, in the counter's unit; NaN where there is none.
    pub values: Vec<f64>,
}

/// A gap between samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostSamples {
    /// The number of [`SamplerReport::Started`].
    pub stream: u32,
    /// The start of the gap on the clock of the trace.
    pub from_ns: i64,
    pub duration_ns: u64,
    /// The number of samples that would have fitted into the gap.
    pub samples: u64,
    /// The reason, as a phrase.
    pub reason: String,
}

/// One sample of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// The start on the clock of the trace.
    pub start_ns: i64,
    /// The duration, which is more than 0.
    pub duration_ns: i64,
    /// A value for each column.
    pub values: &'a [f64],
}

impl Batch {
    /// Creates a batch without samples.
    pub fn new(stream: u32, from_ns: i64) -> Batch {
        Batch {
            stream,
            from_ns,
            times: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Returns the samples, each with `columns` values. Left out are samples without a length or with impossible
    /// times, and values of no sample.
    pub fn samples(&self, columns: usize) -> impl Iterator<Item = Sample<'_>> {
        let values = self.values.chunks_exact(columns.max(1));
        let mut at_ns = Some(self.from_ns);
        let samples = self.times.iter().zip(values);
        samples.filter_map(move |((after, duration), values)| {
            let start_ns = at_ns?.checked_add(*after);
            let duration_ns = i64::try_from(*duration).ok();
            at_ns = start_ns
                .zip(duration_ns)
                .and_then(|(s, d)| s.checked_add(d));
            at_ns?;
            Some(Sample {
                start_ns: start_ns?,
                duration_ns: duration_ns.filter(|ns| *ns > 0)?,
                values,
            })
        })
    }
}

/// The way in which reading ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadEnd {
    /// The stream ended after a frame.
    Whole,
    /// The stream ended inside a frame, or by an error of the pipe.
    Cut,
    /// The bytes are not a frame.
    Damaged,
}

/// Writes a frame.
///
/// # Errors
/// Nobody reads any more, or the value is too large.
pub fn write(to: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    let mut frame = vec![0; 4];
    frame = postcard::to_extend(value, frame).map_err(std::io::Error::other)?;
    let length = u32::try_from(frame.len() - 4).ok();
    let length = length.filter(|length| *length <= MAX_FRAME_BYTES);
    let length = length.ok_or_else(|| std::io::Error::other("a frame is too long"))?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&frame)?;
    to.flush()
}

/// Reads a frame.
///
/// # Errors
/// There is no further frame.
pub fn read<T: DeserializeOwned>(from: &mut impl Read) -> Result<T, ReadEnd> {
    let mut length = [0; 4];
    let mut have = 0;
    while have < length.len() {
        match from.read(&mut length[have..]) {
            Ok(0) if have == 0 => return Err(ReadEnd::Whole),
            Ok(0) => return Err(ReadEnd::Cut),
            Ok(more) => have += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return Err(ReadEnd::Cut),
        }
    }
    let length = u32::from_le_bytes(length);
    if length > MAX_FRAME_BYTES {
        return Err(ReadEnd::Damaged);
    }
    // The buffer grows with what is there, not with the length that is claimed.
    let mut frame = Vec::new();
    let read = from.take(length.into()).read_to_end(&mut frame);
    if read.is_err() || frame.len() < length as usize {
        return Err(ReadEnd::Cut);
    }
    match postcard::take_from_bytes(&frame) {
        Ok((value, [])) => Ok(value),
        _ => Err(ReadEnd::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads reports from bytes that nobody has checked, with the samples of batches by right and wrong numbers of
    /// columns. Returns the reports, and how the reading ended.
    fn read_all(mut bytes: &[u8]) -> (Vec<SamplerReport>, ReadEnd) {
        let mut all = Vec::new();
        loop {
            match read::<SamplerReport>(&mut bytes) {
                Ok(report) => {
                    if let SamplerReport::Samples(batch) = &report {
                        for columns in [0, 1, 7] {
                            batch.samples(columns).for_each(drop);
                        }
                    }
                    all.push(report);
                }
                Err(ending) => return (all, ending),
            }
        }
    }

    /// Any batch of a stream with three columns.
    fn batch() -> impl Strategy<Value = SamplerReport> {
        let times = proptest::collection::vec((-5..1000_i64, 0..10_000_u64), 0..50);
        (any::<u32>(), 0..i64::MAX / 2, times).prop_map(|(stream, from_ns, times)| {
            let values = (0..times.len() * 3).map(|v| v as f64 / 7.0).collect();
            SamplerReport::Samples(Batch {
                stream,
                from_ns,
                times,
                values,
            })
        })
    }

    /// Any report of the process that samples.
    fn any_said() -> impl Strategy<Value = SamplerReport> {
        let columns = proptest::collection::vec((0..20_u8, ".{0,20}"), 0..5);
        prop_oneof![
            Just(SamplerReport::Ready),
            Just(SamplerReport::Ended),
            batch(),
            (any::<u32>(), ".{0,9}", columns).prop_map(|(stream, uuid, columns)| {
                SamplerReport::Started {
                    stream,
                    uuid,
                    interval_ns: 100_000,
                    columns: (columns.into_iter())
                        .map(|(counter, source)| Column {
                            counter: HardwareCounter::from_number(counter),
                            source,
                        })
                        .collect(),
                }
            }),
            ".{0,40}".prop_map(|reason| SamplerReport::Lost(LostSamples {
                stream: 0,
                from_ns: -1,
                duration_ns: 7,
                samples: u64::MAX,
                reason,
            })),
        ]
    }

    fn written(all: &[SamplerReport]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for report in all {
            write(&mut bytes, report).unwrap();
        }
        bytes
    }

    proptest! {
        #[test]
        fn what_is_said_is_heard(all in proptest::collection::vec(any_said(), 0..8)) {
            let (read, ending) = read_all(&written(&all));
            prop_assert_eq!(ending, ReadEnd::Whole);
            prop_assert_eq!(read, all);
        }

        #[test]
        fn a_cut_takes_only_what_is_behind_it(
            all in proptest::collection::vec(any_said(), 1..8),
            at in any::<prop::sample::Index>(),
        ) {
            let bytes = written(&all);
            let cut = at.index(bytes.len());
            let (read, ending) = read_all(&bytes[..cut]);
            prop_assert!(read.len() < all.len());
            prop_assert_eq!(&read[..], &all[..read.len()]);
            let ends = (0..=all.len()).map(|n| written(&all[..n]).len());
            let at_end = ends.into_iter().any(|end| end == cut);
            prop_assert_eq!(ending, if at_end { ReadEnd::Whole } else { ReadEnd::Cut });
        }

        #[test]
        fn no_bytes_crash_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            read_all(&bytes);
        }

        #[test]
        fn damage_inside_frames_crashes_nothing(
            all in proptest::collection::vec(any_said(), 1..6),
            at in any::<prop::sample::Index>(),
            to in any::<u8>(),
        ) {
            let mut bytes = written(&all);
            let at = at.index(bytes.len());
            bytes[at] = to;
            read_all(&bytes);
        }
    }

    #[test]
    fn times_that_no_clock_has_are_left_out() {
        let batch = Batch {
            stream: 0,
            from_ns: i64::MAX - 10,
            times: vec![(0, 5), (0, 0), (1, 2), (1, u64::MAX), (0, 1)],
            values: vec![1.0, 2.0, 3.0, 4.0, 5.0],
        };
        let values: Vec<f64> = batch.samples(1).map(|s| s.values[0]).collect();
        assert_eq!(values, [1.0, 3.0]);
    }
}
