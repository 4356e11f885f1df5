//! What the session and the process that samples say to each other: frames, each the length of what follows (4 bytes, little-endian)
//! and a value as postcard writes it. A stream that was cut gives all whole frames before the cut.

use gapscope_model::HardwareCounter;
use gapscope_trace::manifest::Unmeasured;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;

/// No frame is longer.
const MAX_FRAME_BYTES: u32 = 4 << 20;
/// A batch has at most so many samples.
pub const MAX_BATCH_SAMPLES: usize = 512;

/// What the session says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SamplerRequest {
    /// The first: what to sample, and for which command.
    Prepare {
        /// Those that are given room first come first.
        counters: Vec<HardwareCounter>,
        /// Between two samples.
        interval_ns: u64,
        /// The file that the command runs.
        executable: PathBuf,
        /// The process that ends with this one's work.
        parent: u32,
    },
    /// The program uses this GPU: sample it.
    Gpu {
        /// As the manifest writes it.
        uuid: String,
        /// For sentences.
        name: String,
        /// A process that uses it.
        process: Option<u32>,
    },
    /// Sample no more; say what is left.
    Finish,
}

/// What the process that samples says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum SamplerReport {
    /// It is prepared as far as it can be without a GPU to sample.
    Ready,
    /// Samples of a GPU come from now on, each with a value for each column.
    Started {
        /// The number of this in what follows.
        stream: u32,
        /// The GPU.
        uuid: String,
        /// Between two samples.
        interval_ns: u64,
        /// What each sample has a value of.
        columns: Vec<Column>,
    },
    /// Some of them.
    Samples(Batch),
    /// Some that are missing.
    Lost(LostSamples),
    /// Counters that are not sampled, and why.
    Unmeasured(Unmeasured),
    /// There is no more: what was left is said.
    Ended,
}

/// A counter that is sampled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Which.
    pub counter: HardwareCounter,
    /// What it was read by: `CUPTI PM sampling, METRIC, every 100 us`.
    pub source: String,
}

/// Samples in a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Batch {
    /// That of [`SamplerReport::Started`].
    pub stream: u32,
    /// From which the first one counts.
    pub from_ns: i64,
    /// Of each sample how long after the last one's end it begins, and how long it is.
    pub times: Vec<(i64, u64)>,
    /// Of each sample a value for each column, in the counter's unit; NaN where there is none.
    pub values: Vec<f64>,
}

/// Samples that are missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostSamples {
    /// That of [`SamplerReport::Started`].
    pub stream: u32,
    /// Where the gap begins.
    pub from_ns: i64,
    /// How long it is.
    pub duration_ns: u64,
    /// How many would have fitted in.
    pub samples: u64,
    /// Why: a phrase.
    pub reason: String,
}

/// One sample of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// On the clock of the trace.
    pub start_ns: i64,
    /// More than 0.
    pub duration_ns: i64,
    /// For each column.
    pub values: &'a [f64],
}

impl Batch {
    /// Without samples.
    pub fn new(stream: u32, from_ns: i64) -> Batch {
        Batch {
            stream,
            from_ns,
            times: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Its samples, of so many columns. Samples without a length, or with times that no clock has, are left out, and so is what is
    /// there of values for no sample.
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

/// Why reading ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadEnd {
    /// At the end of a frame.
    Whole,
    /// Inside a frame, or by an error of the pipe.
    Cut,
    /// What was read is no frame.
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
/// There is none: how it ended.
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
    // As much as is there, not as much as is said.
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

    /// What bytes that nobody has checked say.
    fn read_all(mut bytes: &[u8]) -> (Vec<SamplerReport>, ReadEnd) {
        let mut all = Vec::new();
        loop {
            match read::<SamplerReport>(&mut bytes) {
                Ok(said) => {
                    if let SamplerReport::Samples(batch) = &said {
                        for columns in [0, 1, 7] {
                            batch.samples(columns).for_each(drop);
                        }
                    }
                    all.push(said);
                }
                Err(ending) => return (all, ending),
            }
        }
    }

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
        for said in all {
            write(&mut bytes, said).unwrap();
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
