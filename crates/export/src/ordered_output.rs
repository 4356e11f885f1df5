//! Encodes jobs (parts of a file) on all cores, and writes the results in the order of the jobs.

use gapscope_trace::parallel;
use std::io::{self, Write};
use std::num::NonZero;

/// Number of jobs for each core that are encoded while the previous results are written. The text of a job takes some
/// hundred kilobytes.
const JOBS_PER_CORE: usize = 2;

/// A task of a core: writing the results of earlier jobs, or encoding a job into a buffer.
enum Job<'a, W, J> {
    /// Where to write, and the encoded jobs.
    Write(&'a mut W, &'a [Vec<u8>]),
    /// The job, and the empty buffer that its text is appended to.
    Encode(J, Vec<u8>),
}

/// Encodes several jobs at a time and writes the results in the order of the jobs. `encode` appends the text of a job
/// to an empty buffer, on any core.
///
/// # Errors
/// Encoding a job or writing to `out` fails.
pub(crate) fn write_in_order<J: Send>(
    out: &mut (impl Write + Send),
    jobs: impl IntoIterator<Item = J>,
    encode: impl Fn(J, &mut Vec<u8>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let at_once = JOBS_PER_CORE * std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut jobs = jobs.into_iter();
    let (mut ready, mut spare): (Vec<Vec<u8>>, Vec<Vec<u8>>) = Default::default();
    loop {
        let mut work = Vec::new();
        if !ready.is_empty() {
            work.push(Job::Write(&mut *out, &ready));
        }
        for job in jobs.by_ref().take(at_once) {
            work.push(Job::Encode(job, spare.pop().unwrap_or_default()));
        }
        if work.is_empty() {
            return Ok(());
        }
        let done = parallel::each(work, |work| match work {
            Job::Write(out, ready) => {
                ready.iter().try_for_each(|bytes| out.write_all(bytes))?;
                Ok(None)
            }
            Job::Encode(job, mut bytes) => {
                encode(job, &mut bytes)?;
                Ok(Some(bytes))
            }
        });
        let done: io::Result<Vec<Option<Vec<u8>>>> = done.into_iter().collect();
        let mut written = std::mem::replace(&mut ready, done?.into_iter().flatten().collect());
        written.iter_mut().for_each(Vec::clear);
        spare.append(&mut written);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_in_the_order_of_the_jobs() {
        for count in [0, 1, 7, 8, 9, 100] {
            let mut out = Vec::new();
            write_in_order(&mut out, 0..count, |job: u32, bytes| {
                write!(bytes, "{job} ")
            })
            .unwrap();
            let expected: String = (0..count).map(|job| format!("{job} ")).collect();
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn an_error_ends_it() {
        let failing = |_: u32, _: &mut Vec<u8>| Err(io::Error::other("no"));
        assert!(write_in_order(&mut Vec::new(), 0..20, failing).is_err());
        let full: &mut [u8] = &mut [0; 4];
        let result = write_in_order(&mut { full }, 0..20, |job: u32, bytes| {
            write!(bytes, "{job}")
        });
        assert!(result.is_err());
    }
}
