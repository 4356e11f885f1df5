//! Copies memory of the GPU to the host, and has its pieces worked on by all cores meanwhile.
//!
//! Memory goes through three page-locked buffers: while the GPU fills one, threads work on the pieces in the others. The
//! threads end before the copy returns.

use super::driver_functions::DriverFunctions;
use gapscope_capture::CHUNK_BYTES;
use gapscope_spool::hook;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The size of each buffer: large enough that copies run at the bandwidth of the link.
const BUFFER_BYTES: usize = 32 << 20;
const BUFFERS: usize = 3;
/// The bytes that a thread takes at once, whole pieces.
const JOB_BYTES: usize = 16 * CHUNK_BYTES as usize;
/// The most threads: more do not make copies over a link faster.
const MAX_THREADS: usize = 16;
/// CU_STREAM_NON_BLOCKING: the stream does not wait for the default stream.
pub const NON_BLOCKING: u32 = 1;

/// A range of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Range {
    pub address: u64,
    pub bytes: u64,
}

/// A part of a range that has been copied.
#[derive(Debug, Clone, Copy)]
pub struct CopiedPart<'a> {
    /// The index of the range.
    pub range: usize,
    /// Offset of the first byte in its range, a multiple of the size of pieces.
    pub offset: u64,
    pub bytes: &'a [u8],
}

/// A function of the driver that failed.
#[derive(Debug, Clone, Copy)]
pub struct DriverError {
    pub function: &'static str,
    pub code: i32,
}

/// Returns an error for a function that did not succeed.
pub fn check(function: &'static str, code: i32) -> Result<(), DriverError> {
    match code {
        0 => Ok(()),
        code => Err(DriverError { function, code }),
    }
}

/// A stream and buffers for copies.
#[derive(Debug)]
pub struct Copier {
    stream: *mut c_void,
    buffers: [*mut c_void; BUFFERS],
}

// SAFETY: the driver takes the stream from any thread, and buffers are used by one copy at a time.
unsafe impl Send for Copier {}

/// A part of a buffer that is to be worked on.
struct Job {
    buffer: usize,
    start: usize,
    bytes: usize,
    range: usize,
    offset: u64,
}

/// The jobs that wait, and how many of each buffer are not done.
struct Jobs {
    waiting: VecDeque<Job>,
    open: [usize; BUFFERS],
    /// No further jobs come.
    is_closed: bool,
}

struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, jobs: MutexGuard<'a, Jobs>) -> MutexGuard<'a, Jobs> {
        (self.changed.wait(jobs)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next job; `None` once there are no more.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.lock();
        loop {
            if let Some(job) = jobs.waiting.pop_front() {
                return Some(job);
            }
            if jobs.is_closed {
                return None;
            }
            jobs = self.wait(jobs);
        }
    }

    fn done(&self, buffer: usize) {
        self.lock().open[buffer] -= 1;
        self.changed.notify_all();
    }

    /// Waits until nothing of a buffer is worked on.
    fn wait_for(&self, buffer: usize) {
        let mut jobs = self.lock();
        while jobs.open[buffer] > 0 {
            jobs = self.wait(jobs);
        }
    }
}

/// Lets the threads end, also when a copy fails.
struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Copier {
    /// Creates a stream and buffers in the current context.
    pub fn new(driver: &DriverFunctions) -> Result<Copier, DriverError> {
        let mut copier = Copier {
            stream: std::ptr::null_mut(),
            buffers: [std::ptr::null_mut(); BUFFERS],
        };
        // SAFETY: the driver's functions, which store a handle and addresses.
        unsafe {
            let code = (driver.create_stream)(&mut copier.stream, NON_BLOCKING);
            check("cuStreamCreate", code)?;
            for buffer in &mut copier.buffers {
                let code = (driver.allocate_host)(buffer, BUFFER_BYTES);
                check("cuMemAllocHost", code)?;
            }
        }
        Ok(copier)
    }

    /// Frees the stream and the buffers, in the context that they were made in.
    pub fn free(self, driver: &DriverFunctions) {
        // SAFETY: they were made by `new`, and no copy runs.
        unsafe {
            for buffer in self.buffers {
                (driver.free_host)(buffer);
            }
            (driver.destroy_stream)(self.stream);
        }
    }

    /// Copies ranges, and calls `work` on several threads with parts of them, which hold whole pieces. `between` is
    /// called on this thread now and then, so that it can take what `work` has found.
    ///
    /// # Errors
    /// The driver refused a copy.
    pub fn read(
        &mut self,
        driver: &DriverFunctions,
        ranges: &[Range],
        work: &(dyn Fn(CopiedPart<'_>) + Sync),
        between: &mut dyn FnMut(),
    ) -> Result<(), DriverError> {
        let queue = Queue {
            jobs: Mutex::new(Jobs {
                waiting: VecDeque::new(),
                open: [0; BUFFERS],
                is_closed: false,
            }),
            changed: Condvar::new(),
        };
        let total: u64 = ranges.iter().map(|range| range.bytes).sum();
        let useful = (total / JOB_BYTES as u64 + 1).min(MAX_THREADS as u64) as usize;
        let threads =
            std::thread::available_parallelism().map_or(1, |count| count.get().min(useful));
        let buffers = self.buffers.map(|buffer| buffer as usize);
        let run = |job: &Job| {
            // SAFETY: the buffer has these bytes, the copy into it has ended, and no other begins before the job is done.
            let bytes = unsafe {
                std::slice::from_raw_parts(
                    (buffers[job.buffer] + job.start) as *const u8,
                    job.bytes,
                )
            };
            work(CopiedPart {
                range: job.range,
                offset: job.offset,
                bytes,
            });
        };
        std::thread::scope(|scope| {
            let mut spawned = 0;
            hook::with_signals_blocked(|| {
                for _ in 0..threads {
                    let queue = &queue;
                    let run = &run;
                    let made = std::thread::Builder::new()
                        .name("gapscope".to_owned())
                        .spawn_scoped(scope, move || {
                            while let Some(job) = queue.next() {
                                hook::guard(|| run(&job));
                                queue.done(job.buffer);
                            }
                        });
                    spawned += usize::from(made.is_ok());
                }
            });
            let _closing = Closing(&queue);
            let mut copying = Copying {
                driver,
                copier: self,
                queue: &queue,
                buffer: 0,
                used: 0,
                jobs: Vec::new(),
                // The system gave no thread.
                run_here: (spawned == 0).then_some(&run),
            };
            for (index, range) in ranges.iter().enumerate() {
                copying.add(index, *range, between)?;
            }
            copying.hand_over(between)?;
            (0..BUFFERS).for_each(|buffer| queue.wait_for(buffer));
            between();
            Ok(())
        })
    }
}

/// A copy under way.
struct Copying<'a> {
    driver: &'a DriverFunctions,
    copier: &'a Copier,
    queue: &'a Queue,
    /// The buffer that is filled, and how much of it is used.
    buffer: usize,
    used: usize,
    /// The jobs of this buffer.
    jobs: Vec<Job>,
    /// Does a job on this thread, where there are no others.
    run_here: Option<&'a dyn Fn(&Job)>,
}

impl Copying<'_> {
    /// Copies a range into buffers, part by part.
    fn add(
        &mut self,
        index: usize,
        range: Range,
        between: &mut dyn FnMut(),
    ) -> Result<(), DriverError> {
        let mut offset = 0;
        while offset < range.bytes {
            // Parts begin at multiples of the size of pieces, so that each holds whole pieces.
            let room = (BUFFER_BYTES - self.used) / CHUNK_BYTES as usize * CHUNK_BYTES as usize;
            if room == 0 {
                self.hand_over(between)?;
                continue;
            }
            let bytes = (range.bytes - offset).min(room as u64) as usize;
            let to = (self.copier.buffers[self.buffer] as usize + self.used) as *mut c_void;
            // SAFETY: the buffer has the room, and the driver checks the address.
            let code = unsafe {
                (self.driver.copy_to_host)(to, range.address + offset, bytes, self.copier.stream)
            };
            check("cuMemcpyDtoHAsync", code)?;
            for start in (0..bytes).step_by(JOB_BYTES) {
                self.jobs.push(Job {
                    buffer: self.buffer,
                    start: self.used + start,
                    bytes: JOB_BYTES.min(bytes - start),
                    range: index,
                    offset: offset + start as u64,
                });
            }
            self.used += bytes.next_multiple_of(8);
            offset += bytes as u64;
        }
        Ok(())
    }

    /// Waits for the copies into the current buffer, gives its jobs to the threads, and goes on to the next buffer.
    fn hand_over(&mut self, between: &mut dyn FnMut()) -> Result<(), DriverError> {
        // SAFETY: the driver's function with a stream of ours.
        let code = unsafe { (self.driver.synchronise_stream)(self.copier.stream) };
        check("cuStreamSynchronize", code)?;
        if let Some(run) = self.run_here {
            self.jobs.drain(..).for_each(|job| run(&job));
        }
        let mut jobs = self.queue.lock();
        jobs.open[self.buffer] += self.jobs.len();
        jobs.waiting.extend(self.jobs.drain(..));
        drop(jobs);
        self.queue.changed.notify_all();
        self.buffer = (self.buffer + 1) % BUFFERS;
        self.used = 0;
        between();
        self.queue.wait_for(self.buffer);
        Ok(())
    }
}
