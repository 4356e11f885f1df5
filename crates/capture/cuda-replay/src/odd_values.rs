//! Finds the first launch of a capture that writes a NaN or an infinity, by running it launch by launch and looking at the
//! memory that each changes.

use gapscope_capture::cuda::CudaCapture;
use gapscope_replay::{Element, Extent, OddValue, Search};

use crate::cells;
use crate::error::Error;
use crate::options::Options;
use crate::parameters;
use crate::session::{Run, Session};
use crate::transfer::Range;

/// Runs a capture launch by launch until one writes a NaN or an infinity into a piece of memory that had none.
///
/// # Errors
/// The capture cannot be run, or the type of the elements is not given.
pub fn find_odd_value(capture: &CudaCapture, options: &Options) -> Result<Search, Error> {
    let element = options.element.filter(|element| element.is_float()).ok_or_else(|| {
        Error::Unsupported(
            "say what the memory holds, as the code of a CUDA kernel does not: --type f32, f16 or f64"
                .to_owned(),
        )
    })?;
    let mut session = Session::open(capture, options.device.as_ref())?;
    let end = match options.extent {
        Extent::Until(last) => session.plan.index(last)? + 1,
        _ => session.plan.stages.len(),
    };
    session.reset()?;
    let mut search = Search::default();
    for stage in 0..end {
        let contents = session.plan.stages[stage].contents.clone();
        session.upload(&contents)?;
        let cells = cells::cells(capture, session.stage(stage));
        let changed = cells.iter().filter(|cell| cell.changed.is_some());
        let changed: Vec<Range> = changed.map(|cell| cell.range).collect();
        let before = look(&mut session, &changed, element)?;
        let mut run = Run::default();
        session.run_stage(stage, &mut run)?;
        let after = look(&mut session, &changed, element)?;
        search.dispatches += 1;
        search.ranges += changed.len() as u64;
        search.before += before.iter().filter(|look| look.count > 0).count() as u64;
        let pairs = changed.iter().zip(before.iter().zip(after));
        let mut new = pairs.filter(|(_, (before, after))| before.count == 0 && after.count > 0);
        if let Some((range, (_, odd))) = new.next() {
            let offset = range.offset + odd.offset;
            let leading = parameters::leading_to(&session, stage, range.memory, offset);
            let name = leading
                .into_iter()
                .next()
                .map(|(name, offset)| format!("{name}, byte {offset}"));
            search.found = Some(OddValue {
                dispatch: session.stage(stage).number,
                kernel: session.stage(stage).launch.kernel.clone(),
                buffer: range.memory.0,
                name,
                offset,
                element,
                value: odd.value,
                count: odd.count,
                set: 0,
                binding: 0,
            });
            return Ok(search);
        }
    }
    Ok(search)
}

/// The NaN and infinite values of a piece of memory.
#[derive(Default)]
struct Look {
    count: u64,
    /// The byte of the first in its piece.
    offset: u64,
    value: String,
}

/// Looks at pieces of memory.
fn look(session: &mut Session<'_>, ranges: &[Range], element: Element) -> Result<Vec<Look>, Error> {
    let size = element.bytes();
    let (driver, placed) = (&session.gpu.driver, &session.placed);
    session.stager.read(driver, placed, ranges, |index, bytes| {
        // Elements are aligned in their memory, and a piece may begin anywhere.
        let lead = ranges[index].offset.next_multiple_of(size) - ranges[index].offset;
        let aligned = bytes.get(lead as usize..).unwrap_or_default();
        let (count, first) = element.odd(aligned);
        let first = first.map(|first| (first * size) as usize);
        Look {
            count,
            offset: first.map_or(0, |first| lead + first as u64),
            value: first
                .map(|at| element.text(&aligned[at..][..size as usize]))
                .unwrap_or_default(),
        }
    })
}
