//! Runs recorded commands on the simulated clock.

use crate::clock;
use crate::command::{Command, CopyQueries, Program};
use crate::config::config;
use crate::misuse;
use crate::performance::Tally;
use crate::query::{check_results, result_bytes, write_results};
use crate::truth::{self, LoggedCommand};

/// The position of a queue on the simulated clock.
#[derive(Default)]
pub struct Cursor {
    /// The time at which the next work can start, which a timestamp at the top of the pipe gets.
    front_ns: u64,
    /// The time at which all the work so far is done, which a timestamp at the bottom gets.
    done_ns: u64,
}

impl Cursor {
    pub fn arrive(&mut self, at_ns: u64) {
        self.front_ns = self.front_ns.max(at_ns);
        self.done_ns = self.done_ns.max(self.front_ns);
    }

    fn work(&mut self, duration_ns: u64) -> (u64, u64) {
        let start_ns = self.front_ns;
        let end_ns = start_ns + duration_ns;
        self.front_ns = if config().overlap {
            start_ns + duration_ns / 2
        } else {
            end_ns
        };
        self.done_ns = self.done_ns.max(end_ns);
        (start_ns, end_ns)
    }

    fn barrier(&mut self) {
        self.front_ns = self.front_ns.max(self.done_ns);
    }
}

pub struct Execution<'a> {
    pub cursor: &'a mut Cursor,
    pub timestamp_bits: u32,
    pub command_buffer: usize,
    pub truth: Option<truth::Lines>,
    /// The counts since the last query began.
    pub tally: Tally,
}

impl Execution<'_> {
    pub fn run(&mut self, program: &Program) {
        for command in &program.commands {
            // SAFETY: addresses were checked when the command was recorded, and what they lie in is in use until the end.
            unsafe { self.command(command) };
        }
    }

    /// Waits for the end of all the work.
    pub fn finish(&self) -> u64 {
        self.reach(self.cursor.done_ns)
    }

    unsafe fn command(&mut self, command: &Command) {
        match command {
            Command::Dispatch { groups, pipeline } => {
                self.dispatch(*groups, pipeline.map(|pipeline| pipeline.kernel.as_str()));
            }
            Command::DispatchIndirect { address, pipeline } => {
                // The work before the command may write the arguments.
                self.reach(self.cursor.done_ns);
                let groups = (*address as *const [u32; 3]).read_unaligned();
                self.dispatch(groups, pipeline.map(|pipeline| pipeline.kernel.as_str()));
            }
            Command::Draw { pipeline } => {
                let kernel = pipeline.map(|pipeline| pipeline.kernel.as_str());
                self.work(
                    config().dispatch_ns,
                    LoggedCommand {
                        kernel,
                        ..LoggedCommand::kind("draw")
                    },
                );
            }
            Command::RenderPass => {
                self.work(config().dispatch_ns, LoggedCommand::kind("render_pass"));
            }
            Command::Copy { from, to, bytes } => {
                self.transfer("copy", *bytes);
                std::ptr::copy(*from as *const u8, *to as *mut u8, *bytes as usize);
            }
            Command::Fill { to, bytes, word } => {
                self.transfer("fill", *bytes);
                for offset in (0..*bytes as usize).step_by(4) {
                    ((to + offset) as *mut u32).write_unaligned(*word);
                }
            }
            Command::Update { to, data } => {
                self.transfer("update", data.len() as u64);
                std::ptr::copy_nonoverlapping(data.as_ptr(), *to as *mut u8, data.len());
            }
            Command::ImageTransfer { bytes } => self.transfer("copy", *bytes),
            Command::ResetQueries(range) => {
                self.instant("query_reset", self.cursor.front_ns);
                range.queries().iter().for_each(|query| query.reset());
            }
            Command::Timestamp {
                pool,
                query,
                at_top,
            } => {
                let at_ns = if *at_top {
                    self.cursor.front_ns
                } else {
                    self.cursor.done_ns
                };
                self.instant("timestamp", at_ns);
                let ticks = clock::device_ticks(config(), at_ns, self.timestamp_bits);
                if let Some([query]) = pool.range("vkCmdWriteTimestamp", *query, 1) {
                    query.write("vkCmdWriteTimestamp", ticks);
                }
            }
            Command::CopyQueries(copy) => self.copy_queries(copy),
            Command::StartCounting => self.tally = Tally::default(),
            Command::StopCounting(range) => {
                self.reach(self.cursor.done_ns);
                for query in range.queries() {
                    query.count(self.tally.results(&range.pool.counters));
                }
            }
            Command::Barrier => {
                self.cursor.barrier();
                self.record(
                    LoggedCommand::kind("barrier"),
                    (self.cursor.front_ns, self.cursor.front_ns),
                );
            }
            Command::Execute(program) => self.run(program),
        }
    }

    fn dispatch(&mut self, groups: [u32; 3], kernel: Option<&str>) {
        let count = groups
            .iter()
            .map(|&count| u64::from(count))
            .product::<u64>();
        let duration_ns = config().dispatch_ns + count * config().group_ns;
        self.tally.dispatches += 1;
        self.tally.busy_ns += duration_ns;
        self.work(
            duration_ns,
            LoggedCommand {
                groups: Some(groups),
                kernel,
                ..LoggedCommand::kind("dispatch")
            },
        );
    }

    /// The bytes are moved at the end of the command.
    fn transfer(&mut self, kind: &'static str, bytes: u64) {
        let duration_ns = bytes * 1_000 / config().bytes_per_us;
        self.tally.bytes += bytes;
        let end_ns = self.work(
            duration_ns,
            LoggedCommand {
                bytes: Some(bytes),
                ..LoggedCommand::kind(kind)
            },
        );
        self.reach(end_ns);
    }

    unsafe fn copy_queries(&mut self, copy: &CopyQueries) {
        const CALL: &str = "vkCmdCopyQueryPoolResults";
        let queries = copy.range.queries();
        // Timestamps of earlier commands are available to the copy, as transfers are ordered after the work that they
        // read.
        self.cursor.barrier();
        self.transfer(
            "query_copy",
            u64::from(copy.range.count) * result_bytes(copy.flags),
        );
        check_results(CALL, queries, copy.stride, copy.flags);
        let all = write_results(queries, copy.to, copy.stride, copy.flags);
        if !all && copy.flags.contains(ash::vk::QueryResultFlags::WAIT) {
            misuse::report(CALL, "it would wait forever: a query was not written");
        }
    }

    fn work(&mut self, duration_ns: u64, work: LoggedCommand<'_>) -> u64 {
        let duration_ns = if config().null { 0 } else { duration_ns };
        let times = self.cursor.work(duration_ns);
        self.record(work, times);
        times.1
    }

    fn instant(&mut self, kind: &'static str, at_ns: u64) {
        self.reach(at_ns);
        self.record(LoggedCommand::kind(kind), (at_ns, at_ns));
    }

    fn record(&mut self, work: LoggedCommand<'_>, times: (u64, u64)) {
        if let Some(truth) = &mut self.truth {
            truth.command(self.command_buffer, &work, times);
        }
    }

    /// Nothing that the host can see happens before its time.
    fn reach(&self, at_ns: u64) -> u64 {
        if !config().null {
            clock::sleep_until(at_ns);
        }
        at_ns
    }
}
