//! Runs a recording from the program's start to the finished trace: launches the program, drains its spool (reads the
//! events that hooks inside the program have written) in a loop, and finishes when it has ended. [`Recording::start`]
//! returns a [`Session`], whose thread does all this; [`Session::wait`] returns what was [`Recorded`].

use crate::conditions::Conditions;
use crate::counters::{self, Counters};
use crate::drain::{Drain, DrainedProcess, RecordingHeader, spool_folder};
use crate::keeper::{self, Keeper};
use crate::launch::{LaunchedProgram, Recording, Start, check_program, exit_of};
use crate::memory_limit::{KILLED_FOR_MEMORY, MemoryKills};
use crate::outcome::{Outcome, Recorded};
use crate::progress::{Progress, RecentActivity};
use crate::signals::{self, Signals};
use crate::unhooked_processes::Watcher;
use crate::unhooked_processes::cuda::nvtx_note;
use crate::windows::{RemainingTraces, Windows};
use crate::{Error, inherited_settings, nested_recordings, procfs};
use gapscope_spool::{env, monotonic_ns};
use gapscope_stacks::{Options, Stacks};
use gapscope_trace::manifest::Exit;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time between two drains.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);
/// The time between two checkpoints, from which another session can continue.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(4);
/// The bytes of spool that may wait for a checkpoint; with more, the checkpoint comes early.
const CHECKPOINT_BYTES: u64 = 64 << 20;
/// The longest time for which recorded processes may outlive the command; what they do later is not recorded.
const MAX_OUTLIVE: Duration = Duration::from_secs(2);
/// The time between SIGTERM and SIGKILL.
const KILL_DELAY: Duration = Duration::from_secs(5);
/// The session yields to the program's own threads.
const NICENESS: i32 = 5;

/// The words of the notes on options that did nothing, after the option's name.
pub const UNUSED_OPTION: &str = "did nothing: it";

/// The exit status of a shell whose program SIGKILL has ended.
const KILLED_IN_SHELL: i32 = 128 + libc::SIGKILL;

/// The note on a program that a filter of system calls has ended.
const ENDED_BY_FILTER: &str = "The program was ended by a filter of system calls (SIGSYS). Recording needs openat, mmap, fcntl, \
     prctl and clone3 when the program makes its first Vulkan instance and device, or first uses CUDA: where it runs to its end \
     without gapscope, set the filter later, or let it allow these calls.";

/// A recording in progress.
#[derive(Debug)]
pub struct Session {
    /// The launched process.
    pid: u32,
    /// The numbers so far, which the thread renews in each round.
    progress: Arc<Mutex<Progress>>,
    thread: JoinHandle<Result<Recorded, Error>>,
}

impl Recording {
    /// Makes the trace's folder, prepares hardware counters, launches the command and starts the session's thread.
    ///
    /// # Errors
    /// The command cannot be run, or the trace cannot be written. Nothing is left behind.
    pub fn start(self) -> Result<Session, Error> {
        let program = self.command.first().ok_or(Error::NoCommand)?;
        check_program(program)?;
        inherited_settings::raise_descriptor_limit();
        // A signal from here on must not leave a folder behind that is no trace yet.
        let signals = Signals::catch().map_err(Error::io(Path::new(program)))?;
        let header = RecordingHeader {
            command: self
                .command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            keeps_arguments: self.keep_arguments,
            mode: self.mode,
            names: self.names.clone(),
            stack_rate_hz: self.stack_rate_hz,
            start_ns: monotonic_ns(),
            start_unix_ns: unix_ns(),
            session_pid: std::process::id(),
        };
        let mut drain = Drain::create(&self.output, header)?;
        // The keeper is forked while this process has as few threads as can be.
        let output = self.output.canonicalize();
        let spool = output.map(|output| spool_folder(&output));
        let keeper = spool.ok().and_then(|spool| Keeper::start(&spool));
        // The counters are prepared first, so that the program does not share the machine with that work.
        let options = self.counters.as_ref();
        let counters =
            options.map(|options| Counters::start(options, counters::executable(program)));
        match self.launch(program) {
            Ok(child) => {
                drain.header.start_unix_ns += child.started_ns - drain.header.start_ns;
                drain.header.start_ns = child.started_ns;
                Ok(Session::begin(
                    self, drain, keeper, child, signals, counters,
                ))
            }
            Err(error) => {
                keeper.into_iter().for_each(Keeper::end);
                // The launch's error matters more than one of the removal.
                let _ = std::fs::remove_dir_all(&self.output);
                Err(error)
            }
        }
    }
}

impl Session {
    /// Starts the session's thread for the launched program, and what observes that beside the hooks: the watcher of
    /// processes without hooks, conditions of the machine, and stacks.
    fn begin(
        recording: Recording,
        drain: Drain,
        keeper: Option<Keeper>,
        child: LaunchedProgram,
        signals: Signals,
        counters: Option<Counters>,
    ) -> Session {
        let progress = Arc::new(Mutex::new(Progress::default()));
        let pid = child.process.id();
        let spool = spool_folder(drain.folder());
        let watcher = Watcher::start(pid, &recording.layer, recording.cuda.as_deref(), spool);
        let notice = nested_recordings::Notice::leave(drain.folder());
        let shared = progress.clone();
        let memory_kills = MemoryKills::watch(&recording.system_root);
        let conditions = Conditions::start(recording.system_root.clone());
        let rate_hz = recording
            .stack_rate_hz
            .filter(|_| procfs::shows_own_namespace());
        let stacks = rate_hz.map(|rate_hz| {
            let root = "/".into();
            Stacks::start(Options { rate_hz, root })
        });
        let thread = std::thread::spawn(move || {
            // If the system refuses, the session only competes with the program a little more.
            let _ = rustix::process::setpriority_process(None, NICENESS);
            let run = RecordingRun {
                exit_signal: pidfd(pid),
                recording,
                drain,
                keeper,
                child,
                signals,
                progress: shared,
                recent: RecentActivity::default(),
                recording_since_ns: None,
                terminated: None,
                failure: None,
                windows: Windows::default(),
                conditions,
                memory_kills,
                stacks,
                counters,
            };
            let recorded = run.run(watcher);
            notice.settle(&recorded);
            recorded
        });
        Session {
            pid,
            progress,
            thread,
        }
    }

    /// Returns the id of the launched process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the numbers of the recording, so far.
    pub fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true when [`Self::wait`] returns at once.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the command has ended and the trace is complete.
    ///
    /// # Errors
    /// The trace could not be written. The command ran to its end all the same.
    pub fn wait(self) -> Result<Recorded, Error> {
        self.thread.join().unwrap_or(Err(Error::Broken))
    }
}

/// A recording in progress, as the thread that drains has it.
struct RecordingRun {
    recording: Recording,
    drain: Drain,
    /// Keeps the memory into which hooks write.
    keeper: Option<Keeper>,
    child: LaunchedProgram,
    signals: Signals,
    /// Becomes readable when the child has ended; absent on old kernels.
    exit_signal: Option<OwnedFd>,
    progress: Arc<Mutex<Progress>>,
    /// The times of the GPU's last work, for `progress`.
    recent: RecentActivity,
    /// The time at which a delayed recording began ([`Start::After`], [`Start::Label`]); absent before.
    recording_since_ns: Option<i64>,
    /// The time at which the time limit was reached, and whether SIGKILL was sent; absent before.
    terminated: Option<(Instant, bool)>,
    /// The reason why the trace cannot be written any more. The program runs on.
    failure: Option<Error>,
    windows: Windows,
    conditions: Conditions,
    memory_kills: MemoryKills,
    /// The samplers of stacks and of hardware counters; absent when the user asked for none.
    stacks: Option<Stacks>,
    counters: Option<Counters>,
}

impl RecordingRun {
    /// Runs the recording to its end, and tells a later recovery when it has failed.
    fn run(self, watcher: Watcher) -> Result<Recorded, Error> {
        let spool = spool_folder(self.drain.folder());
        let recorded = self.run_to_end(watcher);
        recorded.inspect_err(|_| keeper::note_failure(&spool))
    }

    /// Runs the recording to its end, and finishes its trace, or removes it when no process recorded anything.
    fn run_to_end(mut self, watcher: Watcher) -> Result<Recorded, Error> {
        let exit = self.drain_until_exit();
        let end_ns = monotonic_ns();
        let background = self.wait_for_background();
        let still_running = self.drain_until_descendants_end();
        let updates = self.conditions.finish();
        self.drain.take_condition_updates(updates);
        if let Some(stacks) = &mut self.stacks {
            let updates = stacks.finish();
            self.drain.take_stack_samples(updates);
        }
        if let Some(counters) = &mut self.counters {
            let updates = counters.finish(self.drain.header.start_ns);
            self.drain.take_counter_updates(updates);
        }
        if self.failure.is_none() {
            self.failure = self.drain.drain_all().err();
        }
        self.keeper.take().into_iter().for_each(Keeper::end);
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if let Some(counters) = &mut self.counters {
            let updates = counters.not_followed(self.drain.device_facts());
            self.drain.take_counter_updates(updates);
        }
        let unasked = self.conditions.unasked(self.drain.device_facts());
        self.drain.take_condition_updates(unasked);
        let unhooked = watcher.finish(|pid, hook| self.drain.is_recorded(pid, hook));
        self.windows.write(&mut self.drain, end_ns, true);
        let output = self.drain.folder().to_owned();
        let timed_out = self.terminated.is_some();
        let inner = nested_recordings::inner_traces(&spool_folder(&output));
        let start = &self.recording.start;
        let mut nothing = nothing_recorded(&self.drain, start, &unhooked, &inner, background);
        let is_killed = matches!(
            exit,
            Exit::Signal(libc::SIGKILL) | Exit::Code(KILLED_IN_SHELL)
        );
        let is_killed = is_killed && self.memory_kills.has_more();
        if let (true, Some(Outcome::NothingRecorded { reason, .. })) = (is_killed, &mut nothing) {
            *reason = KILLED_FOR_MEMORY.to_owned();
        }
        if let Some(outcome) = nothing.take_if(|nothing| {
            nothing
                .without_work()
                .is_some_and(|(_, trace_kept)| !trace_kept)
        }) {
            drop(self.drain);
            std::fs::remove_dir_all(&output).map_err(Error::io(&output))?;
            return Ok(Recorded {
                output,
                exit,
                timed_out,
                outcome,
                dispatches: 0,
                losses: Vec::new(),
                notes: Vec::new(),
                windows: Vec::new(),
            });
        }
        let mut window = None;
        if self.recording.start == Start::Windows && nothing.is_none() {
            match self.windows.remain_alone(&mut self.drain, end_ns) {
                Some(RemainingTraces::Windows(first)) => {
                    return Ok(Recorded {
                        output: first,
                        exit,
                        timed_out,
                        outcome: Outcome::Recorded,
                        dispatches: self.drain.dispatches(),
                        losses: self.drain.manifest().losses,
                        notes: Vec::new(),
                        windows: self.windows.done().to_vec(),
                    });
                }
                Some(RemainingTraces::Own { start_ns, end_ns }) => {
                    window = Some((start_ns, end_ns))
                }
                None => {}
            }
        }
        let mut notes: Vec<String> = still_running;
        notes.extend(unhooked.iter().map(|sentence| format!("{sentence}.")));
        match nothing.as_ref().and_then(Outcome::without_work) {
            Some((reason, _)) => notes.push(format!("{reason}.")),
            None => notes.extend(nested_recordings::note(&inner)),
        }
        if is_killed && nothing.is_none() {
            notes.push(format!("At the end, {KILLED_FOR_MEMORY}."));
        }
        if exit == Exit::Signal(libc::SIGSYS) {
            notes.push(ENDED_BY_FILTER.to_owned());
        }
        if !procfs::shows_own_namespace() {
            notes.push(procfs::FOREIGN_PROC.to_owned());
        }
        notes.extend(self.unused_options());
        notes.extend(self.recording.labels.missing_note(&output));
        notes.extend(self.drain.counter_notes());
        notes.extend(nvtx_note().filter(|_| self.drain.has_hook("cuda")));
        let mut all_notes = Vec::new();
        let since_ns = self.recording_since_ns;
        let finished = self.drain.finish(|manifest| {
            manifest.exit = Some(exit);
            manifest.end_ns = end_ns.max(manifest.start_ns);
            if let Some(since_ns) = since_ns {
                manifest.start_at(since_ns);
            }
            if let Some((start_ns, end_ns)) = window {
                manifest.start_at(start_ns);
                manifest.end_ns = end_ns;
            }
            manifest.notes.extend(notes.iter().cloned());
            all_notes.clone_from(&manifest.notes);
        })?;
        Ok(Recorded {
            output,
            exit,
            timed_out,
            outcome: nothing.unwrap_or(Outcome::Recorded),
            dispatches: finished.dispatches,
            losses: finished.losses,
            notes: all_notes,
            windows: self.windows.done().to_vec(),
        })
    }

    /// Returns a note on each option that did nothing for this program.
    fn unused_options(&self) -> Vec<String> {
        let options = [
            ("--profile-kernel", !self.recording.profile.is_empty()),
            ("--instructions", self.recording.instructions.is_some()),
        ];
        let given = options.into_iter().filter(|(_, is_given)| *is_given);
        given
            .filter(|_| !self.drain.has_hook("cuda"))
            .map(|(option, _)| {
                format!("{option} {UNUSED_OPTION} looks into kernels of CUDA, and the program used no CUDA.")
            })
            .collect()
    }

    /// Does rounds until the command has ended, and returns how. Passes signals on and keeps the time limit
    /// meanwhile.
    fn drain_until_exit(&mut self) -> Exit {
        let mut checkpointed = Instant::now();
        loop {
            if let Some(exit) = exit_of(&mut self.child.process) {
                return exit;
            }
            let pid = self.child.process.id();
            self.signals.pass_on(pid);
            if let Some(keeper) = &mut self.keeper {
                keeper.replace_killed();
            }
            self.keep_time_limit(pid);
            self.tick(&mut checkpointed);
            self.pause();
        }
    }

    /// Drains until the recorded processes that the command started have ended too, or [`MAX_OUTLIVE`] has passed.
    /// Returns a sentence for each process that still runs.
    fn drain_until_descendants_end(&mut self) -> Vec<String> {
        let ended = Instant::now();
        let mut checkpointed = ended;
        loop {
            // A process that is just starting to record must be found before the others are asked.
            self.drain.find_processes();
            let running = || self.drain.processes().iter().filter(|p| p.is_alive());
            if running().next().is_none() {
                return Vec::new();
            }
            if ended.elapsed() >= MAX_OUTLIVE {
                return running().map(DrainedProcess::leave_running).collect();
            }
            self.tick(&mut checkpointed);
            std::thread::sleep(DRAIN_INTERVAL);
        }
    }

    /// Waits for processes that the command started and that have not begun to record, when no process has
    /// recorded. Returns a sentence about a process that still has not begun after [`MAX_OUTLIVE`].
    fn wait_for_background(&mut self) -> Option<String> {
        let spool = spool_folder(&self.drain.folder().canonicalize().ok()?);
        let ended = Instant::now();
        while self.drain.processes().is_empty() {
            let runs_on = procfs::pids_with_environment(env::SPOOL, spool.as_os_str());
            let pid = *runs_on.first()?;
            if ended.elapsed() >= MAX_OUTLIVE {
                let name = procfs::process_name(pid).unwrap_or_default();
                return Some(format!(
                    "the command has ended, and what it started in the background runs on: {name} (process {pid}) had not begun \
                     to use a GPU. Run it in the foreground to record it"
                ));
            }
            std::thread::sleep(DRAIN_INTERVAL);
            self.drain.find_processes();
        }
        None
    }

    /// Does one round of the recording, unless the trace cannot be written any more; an error is kept in `failure`.
    /// `checkpointed` is the time of the last checkpoint.
    fn tick(&mut self, checkpointed: &mut Instant) {
        if self.failure.is_none()
            && let Err(error) = self.try_tick(checkpointed)
        {
            self.failure = Some(error);
        }
    }

    /// Does one round of the recording: drains the spool, takes conditions and stacks, writes windows, and makes a
    /// checkpoint when one is due.
    fn try_tick(&mut self, checkpointed: &mut Instant) -> Result<(), Error> {
        self.drain.drain()?;
        self.switch_on();
        self.take_conditions();
        self.take_stacks();
        self.windows.write(&mut self.drain, monotonic_ns(), false);
        if checkpointed.elapsed() >= CHECKPOINT_INTERVAL
            || self.drain.waiting_bytes() >= CHECKPOINT_BYTES
        {
            self.drain.checkpoint()?;
            *checkpointed = Instant::now();
        }
        let now_ns = monotonic_ns();
        self.recent.add(self.drain.take_busy());
        let progress = Progress {
            elapsed: Duration::from_nanos((now_ns - self.child.started_ns).max(0) as u64),
            recording: match self.recording.start {
                Start::AtOnce => true,
                Start::Windows => self.drain.processes().iter().any(|p| p.is_recording()),
                Start::After(_) | Start::Label(_) => self.recording_since_ns.is_some(),
            },
            processes: self.drain.processes().len() as u32,
            dispatches: self.drain.dispatches(),
            gpu_busy_share: self.recent.busy_share(now_ns),
            bytes_written: self.drain.bytes_written(),
        };
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
        Ok(())
    }

    /// Starts a delayed recording when its time has come, or notices that a label has started the recording.
    fn switch_on(&mut self) {
        let now_ns = monotonic_ns();
        match &self.recording.start {
            Start::AtOnce | Start::Windows => {}
            Start::After(delay) => {
                let elapsed = Duration::from_nanos((now_ns - self.child.started_ns).max(0) as u64);
                if elapsed >= *delay {
                    self.recording_since_ns.get_or_insert(now_ns);
                    for process in self.drain.processes().iter().filter(|p| !p.is_recording()) {
                        process.record(true);
                    }
                }
            }
            Start::Label(_) => {
                if self.recording_since_ns.is_none()
                    && self.drain.processes().iter().any(|p| p.is_recording())
                {
                    let submitted_ns = self.drain.first_submit_ns().unwrap_or(now_ns);
                    self.recording_since_ns = Some(now_ns.min(submitted_ns));
                }
            }
        }
    }

    /// Takes conditions of the recorded time only. Windows (captures by the program) may begin at any time.
    fn take_conditions(&mut self) {
        let is_recorded = match self.recording.start {
            Start::AtOnce | Start::Windows => true,
            Start::After(_) | Start::Label(_) => self.recording_since_ns.is_some(),
        };
        if is_recorded {
            let processes = self.drain.processes().iter();
            let processes = processes.filter(|_| procfs::shows_own_namespace());
            let processes = processes.map(DrainedProcess::pid);
            self.conditions.follow(processes, self.drain.device_facts());
            let updates = self.conditions.take();
            self.drain.take_condition_updates(updates);
            self.take_counters();
        }
    }

    /// Takes samples of hardware counters: of each GPU from its first use on.
    fn take_counters(&mut self) {
        if let Some(counters) = &mut self.counters {
            let process = self.drain.processes().last();
            let process = process.filter(|_| procfs::shows_own_namespace());
            let process = process.map(DrainedProcess::pid);
            let mut updates = counters.follow(self.drain.device_facts(), process);
            updates.extend(counters.take());
            self.drain.take_counter_updates(updates);
        }
    }

    /// Passes threads that submit or wait to the sampler of stacks, which pauses while no process records, and takes
    /// its samples.
    fn take_stacks(&mut self) {
        let Some(stacks) = &mut self.stacks else {
            return;
        };
        for (pid, thread) in self.drain.take_callers() {
            stacks.follow(pid, thread);
        }
        stacks.pause(!self.drain.processes().iter().any(|p| p.is_recording()));
        let updates = stacks.take();
        self.drain.take_stack_samples(updates);
    }

    /// Tells the program to end after the time limit, and kills it [`KILL_DELAY`] later.
    fn keep_time_limit(&mut self, pid: u32) {
        let Some(limit) = self.recording.time_limit else {
            return;
        };
        let elapsed = Duration::from_nanos((monotonic_ns() - self.child.started_ns).max(0) as u64);
        match self.terminated {
            None if elapsed >= limit => {
                // If only a shell were killed, the programs that it started would run on.
                for process in procfs::descendants(pid) {
                    signals::send(process, Signal::TERM);
                }
                self.terminated = Some((Instant::now(), false));
            }
            Some((since, false)) if since.elapsed() >= KILL_DELAY => {
                for process in procfs::descendants(pid) {
                    signals::send(process, Signal::KILL);
                }
                self.terminated = Some((since, true));
            }
            _ => {}
        }
    }

    /// Sleeps until the next drain, or until the command ends.
    fn pause(&self) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: DRAIN_INTERVAL.subsec_nanos().into(),
        };
        let slept = self.exit_signal.as_ref().is_some_and(|exit| {
            let slept = poll(&mut [PollFd::new(exit, PollFlags::IN)], Some(&timeout));
            // A signal must be passed on at once.
            matches!(slept, Ok(_) | Err(Errno::INTR))
        });
        if !slept {
            std::thread::sleep(DRAIN_INTERVAL);
        }
    }
}

/// Returns a descriptor that becomes readable when the process has ended. Old kernels have none.
fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns the outcome of a recording without GPU work, with the first reason that is known; `None` when it has some.
/// `unhooked` are the sentences of the watcher, `inner` the traces of recordings inside this one, and `background`
/// the sentence on a process that runs on. The trace is kept only when a process recorded.
fn nothing_recorded(
    drain: &Drain,
    start: &Start,
    unhooked: &[String],
    inner: &[PathBuf],
    background: Option<String>,
) -> Option<Outcome> {
    if drain.submissions() > 0 {
        return None;
    }
    let nothing =
        |reason: String, trace_kept| Some(Outcome::NothingRecorded { reason, trace_kept });
    if drain.processes().is_empty() {
        let unreadable = drain.unreadable().next().map(str::to_owned);
        let reason = unreadable.or_else(|| unhooked.first().cloned());
        if let (None, Some(inside)) = (&reason, recorded_inside(inner, false)) {
            return Some(inside);
        }
        let reason = reason.or(background).unwrap_or_else(|| {
            "the program used no Vulkan and no CUDA: no process of it loaded a Vulkan driver, or began to use CUDA \
             (`gapscope doctor` says what can be recorded on this machine)"
                .to_owned()
        });
        return nothing(reason, false);
    }
    if let Some(reason) = drain.reasons().next() {
        // A hook that could not record gives the best reason.
        return nothing(reason.trim_end_matches('.').to_owned(), true);
    }
    if let Some(sentence) = unhooked.first() {
        return nothing(sentence.clone(), true);
    }
    if let Some(inside) = recorded_inside(inner, true) {
        return Some(inside);
    }
    let reason = match start {
        Start::Label(text) => format!("nothing was recorded: no label with `{text}` began"),
        Start::Windows if drain.assembler.captures().is_empty() => {
            "nothing was recorded: the program began no capture".to_owned()
        }
        Start::Windows => "the program submitted no work in its captures".to_owned(),
        Start::After(_) if drain.devices() > 0 => {
            "nothing was recorded: the program submitted no work after the start delay".to_owned()
        }
        _ if drain.devices() > 0 => {
            "the program made a device and submitted nothing to it".to_owned()
        }
        _ => "the program loaded a GPU library and made no device".to_owned(),
    };
    nothing(reason, true)
}

/// Returns the outcome of a recording whose work is in the recordings inside it; `None` if there are none.
fn recorded_inside(inner: &[PathBuf], trace_kept: bool) -> Option<Outcome> {
    Some(Outcome::RecordedInside {
        reason: nested_recordings::reason(inner)?,
        trace_kept,
        inner: inner.to_vec(),
    })
}

/// Returns the wall clock's time in nanoseconds since 1970.
fn unix_ns() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as i64)
}
