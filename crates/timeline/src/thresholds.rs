//! The thresholds of all analyses, each with its reason. The table in `docs/thresholds.md` is written from them by
//! `UPDATE=1 cargo test -p gapscope-analysis thresholds`.

use crate::quantity::{Bytes, Nanoseconds, Percent};

/// The unit in which a threshold is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A share of a whole: 0 to 1.
    Share,
    /// Nanoseconds.
    Nanoseconds,
    /// A factor: so many times another quantity.
    Times,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
}

/// A number at which the result of an analysis changes, with its meaning and reason.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// The name of the constant.
    pub name: &'static str,
    /// The value, in `unit`.
    pub value: f64,
    /// The unit of the value.
    pub unit: Unit,
    /// The decision that depends on the threshold, and on which side of it.
    pub decides: &'static str,
    /// The reason for the value.
    pub reason: &'static str,
}

impl Threshold {
    /// Returns the value with its unit.
    pub fn text(&self) -> String {
        match self.unit {
            Unit::Share => Percent(self.value).to_string(),
            Unit::Nanoseconds => Nanoseconds(self.value as i64).to_string(),
            Unit::Times => format!("{} times", self.value),
            Unit::Count => self.value.to_string(),
            Unit::Bytes => Bytes(self.value).to_string(),
            Unit::BytesPerSecond => format!("{}/s", Bytes(self.value)),
        }
    }
}

/// Makes a constant for each threshold, and the list of all. A line has the constant's name, type and value, the
/// unit, the decision that depends on the threshold, and the reason for the value.
macro_rules! thresholds {
    ($($name:ident: $type:ty = $value:literal, $unit:ident, $decides:literal, $reason:literal;)+) => {
        $(
            #[doc = concat!($decides, " ", $reason)]
            pub const $name: $type = $value;
        )+

        /// All thresholds, in the order of the documentation.
        pub const ALL: &[Threshold] = &[$(Threshold {
            name: stringify!($name),
            value: $value as f64,
            unit: Unit::$unit,
            decides: $decides,
            reason: $reason,
        }),+];
    };
}

thresholds! {
    UNKNOWN_SHARE: f64 = 0.5, Share,
        "From this share of unexplained time on there is no verdict.",
        "Whatever bounds the rest, the unexplained could bound more.";
    IDLE_SHARE: f64 = 0.5, Share,
        "Host, sync and latency are the verdict from this share of the time on.",
        "From half on, nothing else can cost as much.";
    COMMUNICATION_SHARE: f64 = 0.5, Share,
        "Exposed communication is the verdict from this share of the time on.",
        "From half on, nothing else can cost as much.";
    TRANSFER_SHARE: f64 = 0.5, Share,
        "Transfers are the verdict from this share of the time on.",
        "From half on, nothing else can cost as much.";
    TURNS_OVERLAP_SHARE: f64 = 0.1, Share,
        "Devices take turns where at most this share of the time in which one of them works is time in which several do.",
        "Work that is handed from one device to the next overlaps at its ends.";
    DEVICE_SHARE: f64 = 0.75, Share,
        "The device is the verdict from this share of computing and transfers on.",
        "While a quarter is left to all else, a third more speed can be had there, and the verdict is mixed.";
    SLACK_SHARE: f64 = 0.1, Share,
        "Transfers or communication beside computing are the verdict where computing waited for them for this share of the time, and at least twice as long as faster kernels could win.",
        "With less slack both are busy throughout, and neither alone holds up the other.";
    HANDOVER_NS: i64 = 20_000, Nanoseconds,
        "Work that starts at most so long after other work ended counts as started by that end, where it waited for it.",
        "From an event of one stream to the start of work on another a GPU takes 1 to 10 µs.";
    MESSAGE_END_SHARE: f64 = 0.1, Share,
        "Kernels of a message on two devices count as its two sides where their ends differ by at most this share of the length, or by the handover above.",
        "A sender is done when its data lies in a buffer, and the receiver copies them from there, which takes a small part of a wait worth telling.";
    CHANCE_SHARE: f64 = 0.1, Share,
        "Without a recorded wait, work counts as started by the end of other work only within so short a time that ends cover at most this share of the time.",
        "A start at random is then after such an end once in ten times at most, and not for most of the time.";
    SAME_RANK_SHARE: f64 = 0.75, Share,
        "A critical path is told as that of one rank where it stays there for this share of its time, also when it goes on with another rank wherever that may have come last within the clocks' error.",
        "Of two ranks that are alike each has half of such a path.";
    ALONE_SHARE: f64 = 0.5, Share,
        "Communication since the work before on a queue belongs to the critical path from this share of its time on, where the trace does not say what the next work there waited for.",
        "The device was not idle meanwhile, and the host may have waited for it; communication that mostly ran beside that earlier work would hide it.";
    VERDICT_PHASE_SHARE: f64 = 0.1, Share,
        "A label, or a stretch of time, is told with a verdict of its own from this share of the time on.",
        "What is bound otherwise for less changes the whole by less than a tenth.";
    PHASE_WORKS: u64 = 20, Count,
        "A phase has at least so many pieces of work.",
        "Of fewer, a share of their time may be chance.";
    PHASE_DIFFERENCE: f64 = 0.25, Share,
        "Phases differ where a part of the verdict's time differs by this share, and no single gap makes up as much of a phase.",
        "Smaller differences across the share of a verdict give other names to much the same.";
    PHASE_SHARPNESS: f64 = 0.75, Share,
        "The halves of phases next to a change differ by at least this share of what the phases differ by.",
        "At a change they differ by all of it; in a program that drifts steadily, by half.";
    CONTRADICTED_SHARE: f64 = 0.01, Share,
        "From this share of the compared times on the report says first that host and device times contradict each other.",
        "One in a thousand may be a single odd row; one in a hundred is the clock.";
    UNSTATED_ERROR_NS: i64 = 100_000, Nanoseconds,
        "Where a trace states no clock error, or one that is too small and no other work ended during the wait, it is unknown whether a wait for an event, a fence or a semaphore was for work that ends up to so long after the wait.",
        "Tools that align clocks once are off by tens of microseconds after minutes.";
    WHOLE_RUN_SHARE: f64 = 0.9, Share,
        "A verdict on less than this share of the run says on how much it is.",
        "Up to a tenth is what programs take to start and to end.";
    HARDLY_USED_SHARE: f64 = 0.05, Share,
        "A GPU that was busy for less than this share of the time of the busiest is told as hardly used.",
        "Work that is shared out, however badly, gives each GPU more.";
    CAPPED_SHARE: f64 = 0.1, Share,
        "A power limit is told with the verdict where it held for this share of the time and lowered the clocks.",
        "What holds for less changes the whole by less than a tenth.";
    SLOWED_CLOCK: f64 = 0.9, Share,
        "A power limit lowered the clocks where these were on average at most this share of the greatest.",
        "GPUs change their clocks by some per cent all the time.";
    UNDERFILLED_SHARE: f64 = 0.25, Share,
        "Kernels that run at once and have workgroups for less than this share of the multiprocessors leave the device underfilled: that time counts as latency.",
        "Four times the work would take as long: no better code inside the kernels gains as much as more of them at once.";
    SHAPE_SHARE: f64 = 0.1, Share,
        "From this share of a kernel's time that a better shape of its launches could save on, the shape is what limits it.",
        "The bound is an upper one: below, what the kernel does inside counts for more.";
    LATENCY_TIMES: f64 = 2.0, Times,
        "A kernel whose mean time is below so many times the shortest kernel's is short: nothing else limits it.",
        "Half of its time is what any kernel takes: fewer launches gain more than better ones.";
    SHORTEST_KERNEL_NS: i64 = 5_000, Nanoseconds,
        "The shortest kernel of a recording counts as at most so long.",
        "An empty kernel takes 1 to 3 µs on GPUs of the last ten years: one that takes longer does some work.";
    NEAR_LIMIT_SHARE: f64 = 0.6, Share,
        "A kernel is limited by memory or arithmetic from this share of what a unit can do on; below, by latency where its multiprocessors are occupied, and those are idle where they are active for less than this share.",
        "The rule `SpeedOfLight` of Nsight Compute calls what is below 60 % of peak latency-bound.";
    SAMPLE_RAN_SHARE: f64 = 0.95, Share,
        "A sample of hardware counters between dispatches of one kernel counts as the kernel's when they ran for this share of it.",
        "Its means are then at most a twentieth too low by the pauses, and kernels launched one after the other have samples at all.";
    MISSING_WORK_SHARE: f64 = 0.01, Share,
        "Sums of a run are compared with another's where at most this share of its work has no times or no row.",
        "A sum that lacks so much differs from a whole one by less than most changes that are told.";
    KERNEL_SAMPLES: u64 = 5, Count,
        "So many samples a kernel needs for its counters to be told.",
        "Of fewer, the standard error says little itself: of 5 it is off by a third.";
    KERNEL_COVERED_SHARE: f64 = 0.1, Share,
        "Samples must cover this share of a kernel's time for its counters to be told.",
        "Below, they are of its longest dispatches only, which may be unlike the others.";
    PHASE_DIFFERENCE_SHARE: f64 = 0.2, Share,
        "Samples of a kernel belong to different phases where the share of a unit's limit, or of the time in which multiprocessors were active, differs by this much on average.",
        "Samples of steady work scatter by a few per cent around the line between two limits; work of another kind uses other units.";
    PHASE_SHARE: f64 = 0.1, Share,
        "A phase of a kernel is told from this share of its sampled time on; a shorter one counts with the phase that is most like it.",
        "What takes less cannot win more than a tenth.";
    PCIE_TOLD_BYTES_PER_S: f64 = 1_073_741_824.0, BytesPerSecond,
        "A kernel that is near no known limit and moves so much over PCIe has an unknown limit where it is not known what the link can do.",
        "The slowest links of GPUs in use (four lanes of the third generation) carry 4 GB/s: from a quarter on they may be what a kernel waits for.";
    NVLINK_TOLD_BYTES_PER_S: f64 = 10_737_418_240.0, BytesPerSecond,
        "The same for NVLink.",
        "A single link of the first generation carries 20 GB/s in each direction.";
    CREDIBLE_PEAK_SHARE: f64 = 1.05, Share,
        "Above this share of the measured bandwidth the bytes that a kernel touches, or has bound, cannot all have come from the memory, and no share is told.",
        "Repetitions of the measurement that differ by more than 5 % are said to be uncertain; beyond them caches served a part, or not all that is bound was touched.";
    ADVICE_SHARE: f64 = 0.01, Share,
        "The report gives advice on a cause, and names kernels that leave the device underfilled, from this share of the time on.",
        "Advice on what costs less would hide the advice that counts.";
    FIRST_STEP_SHARE: f64 = 0.05, Share,
        "Where the greatest single cost is below this share of the time, the report says that no single step would help much.",
        "Runs differ by some per cent by themselves: who wins less can hardly see it.";
    ROUND_TRIP_NS: i64 = 200_000, Nanoseconds,
        "So long outside of calls between the return of a wait and the next submission counts as part of the wait's round trip.",
        "Recording and handing over a small command buffer takes 5 to 100 µs: a program that needs more does something else there.";
    SYNC_RETURN_NS: i64 = 50_000, Nanoseconds,
        "A call that allocates or frees memory, or does anything else in the driver, waited for the work that ended during it where it returned at most so long after.",
        "A blocked thread is woken within 5 to 50 µs; a call that goes on for longer does something of its own.";
    SYNC_TIMES: f64 = 2.0, Times,
        "Such a call waited only where it took at least so many times as long as the same function takes while the device is idle.",
        "Below, less than half of the call can have been a wait, and the function may just take that long.";
    SYNC_OWN_NS: i64 = 5_000, Nanoseconds,
        "A function is taken to need at least so long without a wait.",
        "Calls that the driver answers from memory of its own take 1 to 5 µs.";
    SYNC_SHARE: f64 = 0.5, Share,
        "A call that launches a kernel or a graph waited for it where that ran inside of the call for at least this share of it.",
        "A launch returns before its kernel starts, or some µs after: only one that waits, as with `CUDA_LAUNCH_BLOCKING=1`, holds the kernel in it.";
    BUILD_NS: i64 = 1_000_000, Nanoseconds,
        "Time outside of calls that leads to a load of code is spent on building the code from this length on.",
        "The fastest compilers take some milliseconds for a kernel; what a program does between two calls takes less.";
    BUILDS_LEAST: u64 = 3, Count,
        "A thread that loads code after such a time builds the code where that happens so often at least.",
        "Once or twice is how programs start: they read files, and load what they then use.";
    BUILD_OUTLIER: i64 = 10, Count,
        "A time before a load of code that is longer than so many times the thread's median of such times is not taken for building, unless samples or ranges show it.",
        "Kernels of one program take within a few times as long to build; a library that loads its code when it is first used does so after any time.";
    ELSEWHERE_SHARE: f64 = 0.5, Share,
        "A thread does not build the code that it loads where more than this share of its samples before the loads show something else.",
        "Who builds code may also read a file or wait for a lock between; who mostly does so does not build.";
    SAME_CLOCK_NS: i64 = 1_000_000_000, Nanoseconds,
        "Ranks whose traces name no boot have one clock where what these say of the wall clock differs by less.",
        "Machines are not started within the same second, and a wall clock is not set by more in passing.";
    FALSE_BLAME: f64 = 0.01, Share,
        "A rank is called late where equal ranks would have one as late in at most this share of programs.",
        "Of a hundred programs with equal ranks, one at most sends its reader after a rank.";
    LATE_GROUP_SHARE: f64 = 0.8, Share,
        "Of late ranks, the fewest are named whose lateness has this share of what all of it costs the other ranks.",
        "Who mends the ranks that are named has most of what there is to win, and looks for nobody else.";
    LATE_TOGETHER_SHARE: f64 = 0.2, Share,
        "Ranks are late together where all of them but one in time would bring at most this share of what all of them would.",
        "As long as the next one is as late, the others wait for that.";
    LATE_PART_SHARE: f64 = 0.5, Share,
        "A rank that is late in a stretch of at most this share of the time is called late in that stretch.",
        "What holds for the greater part of the time is said of all of it.";
    LATE_CAUSE_SHARE: f64 = 0.5, Share,
        "What a late rank did for longer than the others is the cause of its lateness from this share of it on.",
        "From half on, nothing else can have made it later.";
    BANDWIDTH_ERROR_SHARE: f64 = 0.1, Share,
        "A collective's time is taken from the last arrival to the last end where the clocks' error is at most this share of it.",
        "A bandwidth that is wrong by more says nothing about a network; the shortest kernel has no such error.";
    NODE_ORDER_NS: i64 = 5_000, Nanoseconds,
        "A gap of a CUDA graph with host nodes that is longer is unknown where it is not recorded when these ran; up to here it is the order of its nodes.",
        "From kernel to kernel a graph takes 0.8 µs on an H200, 1.1 µs while it is recorded; a function of the host is a way to the host and back.";
    START_UP_CUDA_NS: i64 = 100_000, Nanoseconds,
        "From so long on, the time in which a device starts, orders or hands over work of CUDA or HIP that is free to run has the cause `unknown`.",
        "An idle GPU starts a kernel 4 to 20 µs after its launch: in six recordings of V100, A100 and H100 nine in ten start within 6 µs of the call's return. From stream to stream it takes 1 to 10 µs. What takes several times as long waited for something else: work that is not recorded, another process's time slice, an event outside of the trace, or a change of the power state.";
    START_UP_NS: i64 = 500_000, Nanoseconds,
        "The same for Vulkan, Metal and unknown APIs.",
        "A thread of the system hands over submissions, so that a GPU starts one within some 100 µs, and the threads of a software GPU take as long to wake up: 90 to 260 µs in the median of five recordings of llvmpipe. A barrier takes less.";
    CONTEXT_SWITCH_NS: i64 = 500_000, Nanoseconds,
        "Work that starts so long after the work of another process or context ended has an unknown cause, as it would without that work.",
        "Changing contexts saves and loads the state of the whole GPU, which took 140 µs in the mean of 2,651 changes between two processes on an H100; a time slice is 1 ms and more.";
    GRAPH_NODE_START_NS: i64 = 1_000, Nanoseconds,
        "So much longer may the start of a CUDA graph take for each of its nodes.",
        "The first launch of a graph hands its nodes over to the device, which takes less than 1 µs for each; later launches take a few ns.";
    FIRST_START_NS: i64 = 20_000, Nanoseconds,
        "From so long on, the start of a queue's first work has the cause `unknown` where the recording began after the program.",
        "An idle GPU starts a kernel 4 to 20 µs after its launch. What takes longer may have waited for work from before the recording.";
    EARLY_RETURN_NS: i64 = 10_000, Nanoseconds,
        "A wait that returns before its work ends by more than this and the clock's error contradicts the times of that work. Where a trace states no clock error, work that starts so long before its launch contradicts the times, too.",
        "Devices write the time of an end some µs late; a host that sees it takes longer than that.";
    SUBMISSIONS_FOLLOWED: u64 = 64, Count,
        "From so many submissions without work on, of which each waits for the next, what the first waits for is unknown.",
        "Chains of queues that signal each other are as long as there are queues; a damaged trace's may have no end.";
    SEVERAL: f64 = 2.0, Count,
        "From so many command buffers in a submission, or kernels in a graph, on average, the advice is not to put more into one.",
        "With two of them in each it is done already, and the cause is another.";
    MOST_OF_CALLS_SHARE: f64 = 0.5, Share,
        "Advice is of pageable copies, graphs or a few slow calls from this share of the idle time in calls on.",
        "From half on, nothing else in these calls can cost as much.";
    SLOW_CALL_TIMES: f64 = 16.0, Times,
        "A submission call that takes so many times the median or more is slow.",
        "Calls differ by a few times with what they pass on; one that takes ten times as long was held up.";
    FEW_CALLS_SHARE: f64 = 0.1, Share,
        "Up to this share of the submission calls, slow ones are few: advice is then of them.",
        "With more of them, slow calls are how the program works.";
    SLOW_LAUNCH_NS: i64 = 200_000, Nanoseconds,
        "A call that launches a kernel and takes at least so long is slow, however many do: no graph is advised for it.",
        "A launch takes 2 to 20 µs, and up to 100 µs while a tool records much of it. What takes longer waits for something in the driver, for which a graph has to wait too.";
    LARGE_COPY_BYTES: u64 = 65_536, Bytes,
        "Copies of pageable memory of at least this size are told to be pinned, and smaller copies to the host to be made less often.",
        "CUDA passes smaller ones to the device with the call itself, and its own time is what they take.";
    SMALL_WORK_NS: i64 = 20_000, Nanoseconds,
        "Where transfers or communication are the verdict and one takes less than this on average, the advice is to join small ones.",
        "Each has a cost of its own of 2 to 20 µs, whatever its size.";
    GRAPH_LAUNCHES: u64 = 20, Count,
        "From so many kernels on that are launched outside of graphs, a graph of them is advised.",
        "Instantiating a graph costs more than a few launches.";
    GRAPH_WORK_TIMES: f64 = 10.0, Times,
        "A graph is advised where a typical kernel takes at most so many times as long as the call that launches it.",
        "Longer kernels hide the launches of those that follow: to launch ahead gains as much.";
    STALLED_SHARE: f64 = 0.5, Share,
        "From this share of the time on in which a task waited for a processor or a disk, the report says so beside a late host.",
        "A program with several threads has some of it at any time; from half on, whoever is late may have waited for it.";
    COMPILED_SHARE: f64 = 0.1, Share,
        "From this share of the time of a late host in which other threads of the process compile or load code on, the advice begins with that.",
        "Below, what else the submitting thread did counts for more. That it waited for them is likely and not certain: the time stays that of a late host.";
    CODES_OF_A_NAME: usize = 64, Count,
        "Up to so many kernels of different code that have one name are rows of their own, told apart by their code. More are one row, which says how many.",
        "A program that generates code anew for each step would fill the table with rows of one dispatch each.";
    REASON_SHARE: f64 = 0.1, Share,
        "The advice names a reason for which a cause is unknown from this share of the unknown time on.",
        "What is left out is too little to change what to look for.";
    POLLS_APART_NS: i64 = 10_000_000, Nanoseconds,
        "Polls that find work not done, at most so far apart and with no other call between, are one wait with the poll that finds it done.",
        "Who sleeps between polls sleeps for some milliseconds; who comes back later did something else.";
    UNCERTAIN_SHARE: f64 = 0.1, Share,
        "From this share of a cause on the report says how much of it could have another cause within the clock's error; from this share of the time on the verdict says so too.",
        "Below, it changes neither which cause is the greatest nor what to do.";
    RESERVE_SHARE: f64 = 0.5, Share,
        "Advice on a cause has a reserve where this share of its time may have another cause, by the clock's error or because times contradict each other; where the verdict is unknown, from `UNCERTAIN_SHARE` on.",
        "Advice on what is more likely something else sends its reader the wrong way.";
    REGULAR_LEAST_GAPS: u64 = 10, Count,
        "With fewer gaps that carry the idle time it is unknown whether they are regular.",
        "Of nine distances at random the middle half is hardly ever within a tenth.";
    REGULAR_SPREAD: f64 = 0.1, Share,
        "Gaps are regular if half of their distances differ from the median by at most this share.",
        "Timers, frames and loops of equal work stay below 5 %; at random it is over 50 %.";
    UNRELATED_TIMES: f64 = 2.0, Times,
        "Waits of another thread do not hold up a thread whose submissions vary by more than so many times as much after these waits as after its own submissions.",
        "A thread that is held up varies less after the wait than after its last submission, as the wait adds to the latter.";
    REGULAR_MOST_IN_PERIOD: u64 = 8, Count,
        "So many gaps at most are looked for in one period.",
        "A step of a program has a few large gaps; of more, some have a period of their own.";
    SLOW: i64 = 3, Times,
        "A kernel's first dispatch that took more than this times the median of its dispatches with as many workgroups is a sign of warm-up.",
        "Below, it may be chance; a driver that compiles takes far longer.";
    LEAST_DISPATCHES: u64 = 5, Count,
        "Timed dispatches that a kernel needs before its first is compared with its median.",
        "The median of fewer says little.";
    FIRST_SHARE: f64 = 0.1, Share,
        "Warm-up begins with a sign in this first share of the time.",
        "Warm-up is at the start.";
    MOST_SHARE: f64 = 0.5, Share,
        "Warm-up of more than this share of the time is not left out.",
        "What is the greater part is not an exception.";
    LEAST_COMMAND_BUFFERS: u64 = 4, Count,
        "Command buffers, or launches that are in none, that must start after warm-up for it to be left out.",
        "Something must be left to judge.";
    CONFIDENCE: f64 = 0.95, Share,
        "How often the interval of a ratio holds the true one; a ratio whose interval holds 1 is within noise.",
        "Of 100 comparisons of equal programs, at most 5 find a difference.";
    SAME_SIZE_SHARE: f64 = 0.005, Share,
        "Counts, bytes and launch sizes of an evaluation that differ by at most this share are of equal work.",
        "What a run does only once is shared out among a different number of evaluations.";
    PRESSURE_SPREAD: f64 = 0.5, Share,
        "Where one run of each side is compared, waits for processors add at most this to the spread that is assumed of a run's times (standard deviation of their logarithm).",
        "Runs of `fusion` on a software GPU with both processors loaded differed by 0.23 from their neighbours, and by 0.73 over 40 runs in which the load changed: half lies between.";
    PRESSURE_PART_SPREAD: f64 = 0.75, Share,
        "The same for a part of a run, such as the time of a kernel or idle time.",
        "Over 40 other runs under a changing load, single kernels differed by 0.72 to 0.81, and idle time and transfers by 0.9 to 1.0.";
    DRIFT_SPREAD: f64 = 0.25, Share,
        "Where one run of each side is compared, by how much its kernels got slower from its start to its end counts as the spread from run to run, too, up to this.",
        "GPUs that get hot lose up to a quarter of their clock; times that grow more do so by the program's sizes.";
    DRIFTING_SHARE: f64 = 0.9, Share,
        "A run drifted by no more than this share of its dispatches, by kernels, may have got slower from its start to its end within their errors.",
        "A GPU that gets hot slows all kernels alike; a program with growing sizes has kernels without.";
    ASSUMED_SPREAD: f64 = 0.01, Share,
        "Where one run of each side is compared, the time of a run is assumed to vary by this from run to run (standard deviation of its logarithm).",
        "Runs on a GPU of known clocks differ by about 1 %.";
    UNCLOCKED_SPREAD: f64 = 0.025, Share,
        "Where the clocks of a GPU were not recorded, and one run of each side is compared, times in which the GPU works are assumed to vary by this besides.",
        "Warm GPUs run up to a tenth slower than cold ones, and neither side says how warm its GPU was.";
    SOFTWARE_SPREAD: f64 = 0.05, Share,
        "Where one run of each side is compared, times on a software device are assumed to vary by this from run to run.",
        "Its processors also run the program, and whatever else the machine does.";
    HOPELESS_FACTOR: f64 = 10.0, Times,
        "Runs that could show only changes above this factor are said to show no change of the figure.",
        "No one looks for so great a change, and its exact size says only that the runs differ in everything.";
    LEAST_EVALUATIONS: usize = 6, Count,
        "Evaluations that each side needs for an interval.",
        "The smallest and the greatest of 5 hold the median in 94 of 100 cases, those of 6 in 97.";
    EVALUATION_BLOCKS: usize = 32, Count,
        "From 3 times this many evaluations on, the medians of at least this many blocks of neighbours are the samples.",
        "Neighbours resemble each other, as clocks change slowly; blocks do less, and 32 are enough for a narrow interval.";
    KNOWN_SHARE: f64 = 0.5, Share,
        "A time of evaluations is known when at least this share of them has it.",
        "Where most have none, those that have it may be special.";
    DRIFT_PART: f64 = 0.5, Share,
        "A compared side whose two halves differ by this part of the difference between the sides is said to have changed.",
        "What changed it may have made much of the difference.";
    TOLD_FACTOR: f64 = 1.2, Times,
        "Times that differ by this factor are told as a factor, and below in per cent.",
        "`1.05 times` is hard to read.";
    SAME_KERNELS: f64 = 0.5, Share,
        "Two works whose evaluations are not labelled are not the same work when less than this share of their kernels ran in both; where labels say that they are, how few is said.",
        "A change of a program leaves most of its kernels, two programs share few, and fusion may leave none.";
    MEANWHILE_SHARE: f64 = 0.9, Share,
        "Work that a thread launches outside of all labels may belong to a label of another thread when at least this share of it is launched while the label is open.",
        "A backward pass has all of it; a few launches at the ends may lie outside.";
    MEANWHILE_OPEN_SHARE: f64 = 0.5, Share,
        "And when the label is open for at most this share of the time from the first to the last of these launches.",
        "In a label that is open nearly always, such as a step, work of any thread would be launched.";
    OWN_SHARE: f64 = 0.9, Share,
        "A compared side has a verdict when at least this share of the busy time from its start to its end is its own.",
        "With more work of others in between, the verdict would be theirs.";
    DRIFT_SHARE: f64 = 0.05, Share,
        "Work may reach out of its command buffer by this share of the command buffer's time before its times are distrusted.",
        "A broken clock is mostly off by a factor of two or more, and sampling itself by less than this.";
    DRIFT_NS: i64 = 1_000, Nanoseconds,
        "Work may reach out of its command buffer by this much in any case.",
        "Timestamps of some devices tick once a microsecond.";
    OUTLIER_SHARE: f64 = 0.05, Share,
        "A rank is unlike the others where a figure of it is off by more than this share of the median over all ranks.",
        "Devices of one model differ by a few per cent: below this, another device helps less than it seems.";
    OUTLIER_SPREADS: f64 = 5.0, Times,
        "It is off by more than so many times the usual spread over the ranks, too.",
        "Of normal noise one in two million is so far off: a thousand ranks with a hundred kernels stay silent.";
    OUTLIER_MOST: f64 = 0.34, Share,
        "Where more than this share of the ranks is so far off, none is unlike: they are of several kinds.",
        "The stages of a pipeline differ by their nature; a third is the most that cannot be half of them.";
    FEW_RANKS: u64 = 4, Count,
        "Ranks are compared with their median from this many on.",
        "Of three, one that is unlike moves the usual spread as far as it is off itself.";
    SLOWED_NS: i64 = 200_000_000, Nanoseconds,
        "From so long on the report says that heat, the power supply or a hardware slowdown held a GPU's clocks down.",
        "They are asked for each 0.1 s: one answer alone may be of a change of clocks, which NVML also tells as a slowdown.";
    STALL_SHARE: f64 = 0.1, Share,
        "From this share of the time between two readings on, waits for memory count as a stall.",
        "A machine that reads files or starts programs has some now and then; a tenth of the time is not usual.";
    STALL_NS: i64 = 200_000_000, Nanoseconds,
        "From so much time lost to such stalls on the report says so.",
        "Less is a hiccup, which no figure but the greatest shows.";
    SWAPPED_BYTES: u64 = 16_777_216, Bytes,
        "From so many bytes on that the machine moved from and to swap, the report says so.",
        "Some pages are swapped at any time; a disk of 500 MB/s reads so many back in 34 ms.";
    PROFILE_LOW: f64 = 0.6, Share,
        "A profiled kernel that reaches less than this share of the greatest throughput of both its units and memory waits for latency.",
        "Nsight Compute draws the line there: a kernel that one of them bounds reaches more.";
    PROFILE_CLOSE: f64 = 0.1, Share,
        "Throughputs of units and memory that differ by less than this share of the greatest bound a profiled kernel together.",
        "Relieving one of them would win no more than this before the other bounds it.";
    SAMPLES_TOLD: u64 = 100, Count,
        "From so many samples of its instructions on an explanation says where a kernel has most of them.",
        "A share of a hundred samples is known to 5 points (one standard deviation of half of them).";
    MISSING_SAMPLES: f64 = 0.1, Share,
        "From this share of missing samples of stacks on the report says how many of them were taken.",
        "With less the lines of code and their order stay: each share is off by less than its error with a hundred samples.";
    RANGE_TOLD: f64 = 0.05, Share,
        "A range of a host thread with less than this share of a cause's idle time is told under the range around it.",
        "At most twenty ranges have as much, and code with less cannot win more than a twentieth.";
    STALL_TOLD: f64 = 0.1, Share,
        "From this share of the time, or of the samples, of its warps on the report tells a reason for which a kernel's warps stalled.",
        "What takes less cannot win more than a tenth.";
    LEAST_STEPS: usize = 3, Count,
        "A program has steps from so many on.",
        "Of two, none is the usual one.";
    STEP_LAUNCHES: f64 = 0.5, Share,
        "Ranges that are called like steps are steps where they hold this share of what is submitted from the first to the last.",
        "The optimiser of a step and other parts that are called like one hold less; a step that loads data outside of its range holds nearly all.";
    OUTER_STEPS: f64 = 0.9, Share,
        "Of ranges that are called like steps and hold this share of what the fullest hold, the outer are the steps.",
        "Ranges around others hold as much and the little between; those beside others hold much less.";
    STEP_LAG: f64 = 0.1, Share,
        "Where the work of the median step ends later than its range by this share of its length, the report says that the program submits ahead.",
        "Below, a step's parts are its own to nine tenths.";
    STEP_SLOW: f64 = 1.25, Times,
        "A step is slow from so many times the median on.",
        "Steps of different data differ by some per cent; a quarter is worth a look.";
    STEP_NOISE: f64 = 3.0, Times,
        "A slow step differs from the median by more than so many times the median distance from it, too.",
        "Of normal noise one step in 40 is so far off; where steps vary by nature, few are told.";
    STEP_GREW: f64 = 0.5, Share,
        "A slow step has a reason where one part of its time makes up this share of all that grew against the median step.",
        "Below, no single part is the reason.";
    PERIOD_LEAST: usize = 5, Count,
        "Launches have a period where so many turns are equal.",
        "Fewer may be a program that does the same in some of its parts.";
    PERIOD_SHARE: f64 = 0.9, Share,
        "Launches have a period where this share of the turns are equal, and the host takes part in as many.",
        "Now and then a step evaluates or saves something; with more odd turns it is not known which of the turns are steps.";
    PERIOD_OF_WORK: f64 = 0.8, Share,
        "Launches have a period where equal turns are this share of all work of the queue.",
        "A loop in a part of the program is not its main one.";
    PERIOD_PAUSE: i64 = 5, Times,
        "The host takes part in a turn without a wait, too, where the longest pause of the queue is so many times any other in the turn.",
        "Pauses between launches of a slow host differ by two or three times.";
}
