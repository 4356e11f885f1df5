//! Writing on all cores what has an order.

use gapscope_trace::parallel;
use std::io::{self, Write};
use std::num::NonZero;

/// Jobs for each core that are encoded while what came of those before is written: their texts take some hundred kilobytes each.
const AT_ONCE: usize = 2;

enum Work<'a, W, J> {
    Write(&'a mut W, &'a [Vec<u8>]),
    Encode(J, Vec<u8>),
}

/// Encodes each job, several at a time, and writes what comes of them in their order.
///
/// # Errors
/// Those of `out` and of `encode`.
pub(crate) fn in_order<J: Send>(
    out: &mut (impl Write + Send),
    jobs: impl IntoIterator<Item = J>,
    encode: impl Fn(J, &mut Vec<u8>) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let at_once = AT_ONCE * std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut jobs = jobs.into_iter();
    let (mut ready, mut spare): (Vec<Vec<u8>>, Vec<Vec<u8>>) = Default::default();
    loop {
        let mut work = Vec::new();
        if !ready.is_empty() {
            work.push(Work::Write(&mut *out, &ready));
        }
        for job in jobs.by_ref().take(at_once) {
            work.push(Work::Encode(job, spare.pop().unwrap_or_default()));
        }
        if work.is_empty() {
            return Ok(());
        }
        let done = parallel::each(work, |work| match work {
            Work::Write(out, ready) => {
                ready.iter().try_for_each(|bytes| out.write_all(bytes))?;
                Ok(None)
            }
            Work::Encode(job, mut bytes) => {
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
            in_order(&mut out, 0..count, |job: u32, bytes| {
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
        assert!(in_order(&mut Vec::new(), 0..20, failing).is_err());
        let full: &mut [u8] = &mut [0; 4];
        let result = in_order(&mut { full }, 0..20, |job: u32, bytes| {
            write!(bytes, "{job}")
        });
        assert!(result.is_err());
    }
}
