//! Decides which launches are in a window: CUPTI's callbacks at calls go in, launches that are to be captured go to the
//! open window.
//!
//! While no window may begin, no launch has a callback. A window that is chosen by counting launches needs the callbacks
//! from the start; one that a label, the program or a signal begins needs them from then on.

use super::calls::{CallKind, CaptureCalls};
use super::driver_functions::DriverFunctions;
use super::graph_kernel::GraphKernel;
use super::graphs;
use super::launch_call::LaunchCall;
use super::loaded_code;
use super::open_window::{OpenWindow, Stop};
use super::prepared_launch::PreparedLaunch;
use super::refusal::Refusal;
use super::synchronise::{MAX_WAIT, while_relaxed};
use super::turn::Turn;
use super::{demangled, function_name};
use crate::callbacks::CallbackData;
use crate::cupti::numbers::{domain, resource};
use crate::instructions::ResourceData;
use crate::streams::StreamHandle;
use crate::subscription::{self, Subscription};
use gapscope_capture::model::EndReason;
use gapscope_capture::request::{Notice, Request, Window};
use gapscope_spool::hook::{self, guard};
use gapscope_spool::interface::{ProgramWindows, Signals};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The time between two looks at the count of signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(5);
/// The most functions whose names are remembered while launches of a kernel are counted.
const MAX_NAMES: usize = 1 << 16;

/// What this process was asked to capture.
pub struct CaptureControl {
    pub(super) request: Request,
    /// The process that the control was made for: a forked child has none of the parent's windows.
    process: u32,
    pub(super) driver: OnceLock<DriverFunctions>,
    calls: OnceLock<CaptureCalls>,
    state: Mutex<WindowState>,
    turn: Turn,
    /// Whether a window may begin, or is open.
    is_armed: AtomicBool,
    /// Whether a window is open, so that other work waits for its turn.
    is_open: AtomicBool,
    /// Whether callbacks of launches are on that no window needs.
    has_idle_callbacks: AtomicBool,
    /// Held while callbacks are switched.
    switching: Mutex<()>,
    /// Whether work of another thread ran while memory was copied.
    is_torn: AtomicBool,
    /// The launches that have ended in the window.
    ended_in_window: AtomicU64,
    /// Launches of kernels, those of kernels that the window names, and launches of graphs whose kernels are not among
    /// these, while launches are counted.
    launches: AtomicU64,
    named: AtomicU64,
    graphs: AtomicU64,
    /// Whether launches are counted from the start of the program.
    counts_all: bool,
    /// Labels that contain the text of the window and are open.
    labels: AtomicU64,
    signals: Option<Signals>,
    pub(super) is_by_program: AtomicBool,
    pub program_windows: ProgramWindows,
}

#[derive(Default)]
struct WindowState {
    open: Option<OpenWindow>,
    /// The number of windows that have been begun.
    begun: u32,
    /// The launch that is under way in the window: its stream.
    in_launch: Option<StreamHandle>,
    /// Whether functions by their handles have the name that the window asks for.
    names: FxHashMap<usize, bool>,
}

thread_local! {
    /// Whether the thread's calls are gapscope's own.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Whether the thread's current call has taken the turn.
    static HAS_TURN: Cell<bool> = const { Cell::new(false) };
}

/// Returns the control of this process's windows; `None` if the process was asked for none.
pub fn control() -> Option<&'static CaptureControl> {
    static CONTROL: OnceLock<Option<CaptureControl>> = OnceLock::new();
    let made = CONTROL.get_or_init(|| guard(CaptureControl::from_environment).flatten());
    made.as_ref()
        .filter(|control| control.process == std::process::id())
}

impl CaptureControl {
    fn from_environment() -> Option<CaptureControl> {
        let request = Request::from_environment()?;
        hook::silence();
        hook::pin_library();
        let signals = match request.window {
            Window::Signal => Some(Signals::map(&request.signals())?),
            _ => None,
        };
        let counts_all = matches!(
            request.window,
            Window::All | Window::Launches(_) | Window::Dispatches(_) | Window::Kernel { .. }
        );
        Some(CaptureControl {
            is_armed: AtomicBool::new(counts_all),
            is_by_program: AtomicBool::new(request.window == Window::Program),
            request,
            process: std::process::id(),
            driver: OnceLock::new(),
            calls: OnceLock::new(),
            state: Mutex::default(),
            turn: Turn::new(),
            is_open: AtomicBool::new(false),
            has_idle_callbacks: AtomicBool::new(false),
            switching: Mutex::new(()),
            is_torn: AtomicBool::new(false),
            ended_in_window: AtomicU64::new(0),
            launches: AtomicU64::new(0),
            named: AtomicU64::new(0),
            graphs: AtomicU64::new(0),
            counts_all,
            labels: AtomicU64::new(0),
            signals,
            program_windows: ProgramWindows::default(),
        })
    }

    /// Subscribes to CUPTI; called inside cuInit.
    pub fn start(&'static self) {
        self.request.notify(&Notice::Cuda);
        let subscription = match subscription::subscribe(callback) {
            Ok(subscription) => subscription,
            Err(unusable) => {
                let reason = unusable.sentence.trim_end_matches('.').to_owned();
                return self.request.notify(&Notice::NotBegun(reason));
            }
        };
        let driver = match DriverFunctions::find() {
            Ok(driver) => driver,
            Err(missing) => {
                let reason = format!(
                    "the CUDA driver has no function {missing}; captures need a driver for CUDA 12.4 or newer"
                );
                return self.request.notify(&Notice::NotBegun(reason));
            }
        };
        let _ = self.driver.set(driver);
        crate::callbacks::prepare_targets();
        let calls = (self.calls).get_or_init(|| CaptureCalls::find(&subscription.cupti));
        subscription.switch_callback(domain::RESOURCE, resource::MODULE_LOADED, true);
        for (number, kind) in calls.all() {
            let is_wanted = kind.is_about_code()
                || (kind.is_launch() && self.is_armed())
                || (kind.is_about_graphs() && self.takes_kernels_of_graphs());
            if is_wanted {
                subscription.switch_callback(domain::DRIVER, number, true);
            }
        }
        if self.signals.is_some() {
            // Without the thread, no signal begins a window.
            let _ = hook::spawn(move || self.follow_signals());
        }
        // SAFETY: the handler is a plain function of this library, which is pinned.
        unsafe { libc::atexit(at_exit) };
    }

    pub(super) fn is_armed(&self) -> bool {
        self.is_armed.load(Relaxed)
    }

    /// Forgets the names of functions, whose handles may get another meaning.
    pub(super) fn forget_names(&self) {
        self.lock().names.clear();
    }

    fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Switches the callbacks of calls on or off.
    fn switch(&self, subscription: &Subscription, is_wanted: impl Fn(CallKind) -> bool, on: bool) {
        let calls = self.calls.get().into_iter().flat_map(CaptureCalls::all);
        for (number, _) in calls.filter(|(_, kind)| is_wanted(*kind)) {
            subscription.switch_callback(domain::DRIVER, number, on);
        }
    }

    /// Makes a window begin with the next launch.
    pub(super) fn arm(&self) {
        let _switching = self
            .switching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.has_idle_callbacks.store(false, Relaxed);
        self.is_armed.store(true, Relaxed);
        if let Some(subscription) = subscription::live() {
            self.switch(subscription, CallKind::is_launch, true);
        }
    }

    /// Makes no window begin. Callbacks stay on until no call has the turn, which its end gives back.
    pub(super) fn disarm(&self) {
        self.is_armed.store(false, Relaxed);
        self.is_open.store(false, Relaxed);
        self.has_idle_callbacks.store(true, Relaxed);
    }

    /// Takes the callbacks of launches and of other work back where no window needs them.
    fn drop_idle_callbacks(&self) {
        if !self.has_idle_callbacks.load(Relaxed) || !self.turn.is_free() {
            return;
        }
        let _switching = self
            .switching
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.has_idle_callbacks.swap(false, Relaxed)
            && let Some(subscription) = subscription::live()
        {
            graphs::forget_all(self.driver.get());
            self.switch(subscription, |kind| !kind.is_about_code(), false);
        }
    }

    /// Opens and ends windows by signals, for as long as the process runs.
    fn follow_signals(&self) {
        loop {
            std::thread::sleep(SIGNAL_INTERVAL);
            let is_on = self.signals.as_ref().is_some_and(Signals::is_on);
            match is_on {
                true if !self.is_armed() => self.arm(),
                false if self.is_armed() => self.end_between_launches(EndReason::Complete),
                _ => {}
            }
        }
    }

    /// Ends the open window from outside of a launch.
    pub(super) fn end_between_launches(&self, reason: EndReason) {
        let has_turn = self.turn.take(MAX_WAIT);
        let was_inside = INSIDE.replace(true);
        let mut state = self.lock();
        match state.open {
            Some(_) => self.end(&mut state, reason),
            None => self.disarm(),
        }
        drop(state);
        INSIDE.set(was_inside);
        if has_turn {
            self.turn.give_back();
        }
        self.drop_idle_callbacks();
    }

    /// Handles the start of a launch.
    ///
    /// # Safety
    /// The data is CUPTI's, of this call.
    unsafe fn launch_begins(&self, kind: CallKind, data: &CallbackData) {
        let CallKind::Launch { shape, per_thread } = kind else {
            return;
        };
        // SAFETY: as the caller promises.
        let Some(call) = (unsafe { LaunchCall::read(shape, per_thread, data) }) else {
            if self.is_open.load(Relaxed) && self.take_turn() {
                let what = "a launch in a form that gapscope does not know";
                self.end(&mut self.lock(), EndReason::Refused(what.to_owned()));
            }
            return;
        };
        // A launch into a graph runs nothing.
        if crate::callbacks::is_capturing(call.stream).unwrap_or(false) {
            return;
        }
        let Some(driver) = self.driver.get() else {
            return;
        };
        let launch = self.launches.fetch_add(1, Relaxed);
        if !self.is_armed() {
            return;
        }
        if !self.is_in_window(driver, &call, launch) {
            // Other work waits while memory is copied.
            self.take_turn_while_open();
            return;
        }
        if !self.take_turn() {
            let kernel = function_name(driver, call.function).unwrap_or_default();
            let seconds = MAX_WAIT.as_secs();
            let refusal = Refusal::HeldUp { kernel, seconds };
            return self.end(&mut self.lock(), EndReason::Refused(refusal.to_string()));
        }
        // The window may have ended while this thread waited.
        if !self.is_armed() {
            return self.give_turn_back();
        }
        // SAFETY: as the caller promises.
        while_relaxed(driver, || unsafe {
            self.capture(driver, data, &call, launch)
        });
    }

    /// Captures a launch that is in the window, which it may begin.
    ///
    /// # Safety
    /// The call is the program's, and has begun.
    unsafe fn capture(
        &self,
        driver: &DriverFunctions,
        data: &CallbackData,
        call: &LaunchCall,
        launch: u64,
    ) {
        let mut state = self.lock();
        let context = data.current_context().handle;
        // SAFETY: as the caller promises.
        let prepared = match unsafe { PreparedLaunch::new(driver, call) } {
            Ok(prepared) => prepared,
            Err(refusal) => return self.refuse(&mut state, &refusal),
        };
        if state.open.is_none() && !self.begin(driver, &mut state, context) {
            return;
        }
        let number = self.counts_all.then_some(launch);
        let Some(open) = &mut state.open else { return };
        match open.before(driver, context, call, prepared, number) {
            Ok(()) => state.in_launch = Some(call.stream),
            Err(stop) => self.stop(&mut state, &stop),
        }
    }

    /// Returns whether kernels inside of graphs may be in the window.
    fn takes_kernels_of_graphs(&self) -> bool {
        matches!(self.request.window, Window::Kernel { .. })
    }

    /// Handles the start of a launch of a graph, of which a kernel may be the window.
    ///
    /// # Safety
    /// The data is CUPTI's, of this call.
    unsafe fn graph_launch_begins(&self, data: &CallbackData, per_thread: bool) {
        let (Some(driver), Window::Kernel { name, number }) =
            (self.driver.get(), &self.request.window)
        else {
            return;
        };
        // SAFETY: as the caller promises.
        let (executable, runs_nothing) =
            unsafe { (data.parameter(0), self.takes_into_graph(data, per_thread)) };
        if runs_nothing {
            return;
        }
        let kernels = match graphs::kernels(driver, executable) {
            Ok(kernels) => kernels,
            // Its kernels are not counted, as the end of the program says.
            Err(_) => {
                self.graphs.fetch_add(1, Relaxed);
                return;
            }
        };
        for kernel in kernels.iter() {
            let function = kernel.function as *mut c_void;
            if !self.has_name(driver, function, name) || self.named.fetch_add(1, Relaxed) != *number
            {
                continue;
            }
            if !self.take_turn() || !self.is_armed() {
                continue;
            }
            while_relaxed(driver, || {
                self.capture_in_graph(driver, data, executable, kernel.at, function);
            });
        }
    }

    /// Returns whether a launch of a graph goes into a graph that is being captured, so that nothing runs.
    ///
    /// # Safety
    /// The data is CUPTI's, of a call that launches a graph.
    unsafe fn takes_into_graph(&self, data: &CallbackData, per_thread: bool) -> bool {
        // SAFETY: as the caller promises.
        let stream = StreamHandle::new(unsafe { data.parameter(1) }, per_thread);
        crate::callbacks::is_capturing(stream).unwrap_or(false)
    }

    /// Captures a kernel of a graph that is about to be launched; the window is complete with it.
    fn capture_in_graph(
        &self,
        driver: &DriverFunctions,
        data: &CallbackData,
        executable: usize,
        at: usize,
        function: *mut c_void,
    ) {
        let mut state = self.lock();
        let context = data.current_context().handle;
        let name = function_name(driver, function).unwrap_or_default();
        let kernel = match GraphKernel::new(driver, executable, at, &name) {
            Ok(kernel) => kernel,
            Err(refusal) => return self.refuse(&mut state, &refusal),
        };
        if state.open.is_none() && !self.begin(driver, &mut state, context) {
            return;
        }
        let Some(open) = &mut state.open else { return };
        match kernel.capture(driver, context, open) {
            Ok(()) => self.end(&mut state, EndReason::Complete),
            Err(stop) => self.stop(&mut state, &stop),
        }
    }

    /// Handles the end of a launch.
    fn launch_ends(&self, has_succeeded: bool) {
        let Some(driver) = self.driver.get() else {
            return;
        };
        let mut state = self.lock();
        let Some(stream) = state.in_launch.take() else {
            return;
        };
        let Some(open) = &mut state.open else { return };
        if self.is_torn.load(Relaxed) {
            let what = "a call of another thread that ran while memory was copied, as it had waited too long";
            return self.end(&mut state, EndReason::Refused(what.to_owned()));
        }
        self.ended_in_window.fetch_add(1, Relaxed);
        let captured = while_relaxed(driver, || {
            open.after(driver, stream.for_driver(), has_succeeded)
        });
        match captured {
            Ok(()) if self.is_complete() => self.end(&mut state, EndReason::Complete),
            Ok(()) => {}
            Err(stop) => self.stop(&mut state, &stop),
        }
    }

    /// Returns whether a launch with this number is in a window.
    fn is_in_window(&self, driver: &DriverFunctions, call: &LaunchCall, launch: u64) -> bool {
        if self.is_by_program.load(Relaxed) {
            return true;
        }
        match &self.request.window {
            Window::All | Window::Program | Window::Signal | Window::Label(_) => true,
            Window::Launches(range) | Window::Dispatches(range) => range.contains(&launch),
            Window::Kernel { name, number } => {
                self.has_name(driver, call.function, name)
                    && self.named.fetch_add(1, Relaxed) == *number
            }
            Window::Submissions(_) => false,
        }
    }

    /// Returns whether the open window is complete after the launch that has just ended.
    fn is_complete(&self) -> bool {
        match &self.request.window {
            _ if self.is_by_program.load(Relaxed) => false,
            Window::Kernel { .. } => true,
            Window::Launches(range) | Window::Dispatches(range) => {
                self.ended_in_window.load(Relaxed) >= range.end - range.start
            }
            _ => false,
        }
    }

    /// Returns whether a function's name contains the text of the window.
    fn has_name(&self, driver: &DriverFunctions, function: *mut c_void, text: &str) -> bool {
        let key = function as usize;
        if let Some(known) = self.lock().names.get(&key) {
            return *known;
        }
        let has_name = function_name(driver, function)
            .is_ok_and(|name| name.contains(text) || demangled(&name).contains(text));
        let mut state = self.lock();
        if state.names.len() >= MAX_NAMES {
            state.names.clear();
        }
        state.names.insert(key, has_name);
        has_name
    }

    /// Opens a window; returns false where there is none to open, or it cannot be written.
    fn begin(
        &self,
        driver: &DriverFunctions,
        state: &mut WindowState,
        context: *mut c_void,
    ) -> bool {
        let is_by_program = self.is_by_program.load(Relaxed);
        let path = match is_by_program {
            true => match self.program_windows.begin() {
                Some(path) => path,
                None => return false,
            },
            false => None,
        };
        state.begun += 1;
        let path = path.unwrap_or_else(|| self.request.output_of(state.begun));
        let window = match is_by_program {
            true => &Window::Program,
            false => &self.request.window,
        };
        let Request {
            keep_outputs,
            most_bytes,
            ..
        } = self.request;
        match OpenWindow::begin(driver, context, &path, window, keep_outputs, most_bytes) {
            Ok(open) => {
                self.request.notify(&Notice::Begun(path));
                state.open = Some(open);
                self.is_torn.store(false, Relaxed);
                self.ended_in_window.store(0, Relaxed);
                self.is_open.store(true, Relaxed);
                if let Some(subscription) = subscription::live() {
                    self.switch(subscription, |kind| kind == CallKind::Work, true);
                }
                true
            }
            Err(reason) => {
                self.program_windows.settle(false);
                self.request.notify(&Notice::NotBegun(reason));
                self.window_is_over();
                false
            }
        }
    }

    /// Ends the window, or does not begin it, because of a launch that cannot be captured.
    fn refuse(&self, state: &mut WindowState, refusal: &Refusal) {
        match state.open {
            Some(_) => self.end(state, EndReason::Refused(refusal.to_string())),
            None => {
                if self.is_by_program.load(Relaxed) && self.program_windows.begin().is_some() {
                    self.program_windows.settle(false);
                }
                self.request.notify(&Notice::NotBegun(refusal.to_string()));
                self.window_is_over();
            }
        }
    }

    /// Ends the open window because it cannot go on.
    fn stop(&self, state: &mut WindowState, stop: &Stop) {
        // Freeing would wait for the GPU, which waits for the program.
        let driver = self.driver.get().filter(|_| !stop.leaves_work());
        self.end_with(state, stop.reason(), driver);
    }

    /// Ends the open window: writes the reason and frees what it holds.
    fn end(&self, state: &mut WindowState, reason: EndReason) {
        self.end_with(state, reason, self.driver.get());
    }

    fn end_with(
        &self,
        state: &mut WindowState,
        reason: EndReason,
        driver: Option<&DriverFunctions>,
    ) {
        let Some(open) = state.open.take() else {
            return;
        };
        state.in_launch = None;
        self.program_windows.settle(open.launches() > 0);
        if let EndReason::Failed(reason) = &reason {
            let (capture, reason) = (open.path().to_owned(), reason.clone());
            self.request.notify(&Notice::BrokenOff { capture, reason });
        }
        open.end(reason, driver);
        self.window_is_over();
    }

    /// Makes no other window begin unless the program or a signal asks for it.
    fn window_is_over(&self) {
        self.disarm();
        if let Some(signals) = &self.signals {
            // A window that was refused does not begin again before the next signal.
            signals.turn_off();
        }
    }

    /// Takes the turn for the thread's current call.
    fn take_turn(&self) -> bool {
        if !HAS_TURN.get() {
            HAS_TURN.set(self.turn.take(MAX_WAIT));
        }
        HAS_TURN.get()
    }

    /// Takes the turn for the thread's current call while a window is open.
    fn take_turn_while_open(&self) {
        if !self.is_open.load(Relaxed) {
            return;
        }
        if !self.take_turn() {
            // The call goes on, and what is copied meanwhile cannot be trusted.
            self.is_torn.store(true, Relaxed);
        } else if !self.is_open.load(Relaxed) {
            self.give_turn_back();
        }
    }

    fn give_turn_back(&self) {
        if HAS_TURN.replace(false) {
            self.turn.give_back();
        }
    }

    /// Begins a label of a thread whose text chooses the window.
    pub fn label_begins(&self, text: &str) -> bool {
        let chooses = match &self.request.window {
            Window::Label(wanted) => text.contains(wanted.as_str()),
            _ => false,
        };
        if chooses && self.labels.fetch_add(1, Relaxed) == 0 && self.lock().begun == 0 {
            self.named.fetch_add(1, Relaxed);
            self.arm();
        }
        chooses
    }

    /// Ends a label for which [`Self::label_begins`] returned true.
    pub fn label_ends(&self) {
        if self.labels.fetch_sub(1, Relaxed) == 1 && self.is_armed() {
            self.end_between_launches(EndReason::Complete);
        }
    }

    /// Ends the window at the exit of the process.
    fn process_ends(&self) {
        // The holder of the lock is a thread that the end of the process has stopped or soon will.
        if let Ok(mut state) = self.state.try_lock()
            && let Some(open) = state.open.take()
        {
            let is_whole =
                matches!(self.request.window, Window::All) && !self.is_by_program.load(Relaxed);
            let reason = match is_whole {
                true => EndReason::Complete,
                false => EndReason::ProgramEnded,
            };
            // The driver may be gone already.
            open.end(reason, None);
        }
        self.request.notify(&Notice::CudaEnded {
            launches: self.launches.load(Relaxed),
            named: self.named.load(Relaxed),
            graphs: self.graphs.load(Relaxed),
        });
    }

    /// Handles a call of the driver.
    ///
    /// # Safety
    /// The data is CUPTI's, of this call.
    unsafe fn called(&self, number: u32, data: &CallbackData) {
        let Some(kind) = self.calls.get().and_then(|calls| calls.get(number)) else {
            return;
        };
        // SAFETY: as the caller promises, here and below.
        unsafe {
            if kind.is_about_code() {
                return self.code_call(kind, data);
            }
            if kind.is_about_graphs() {
                return self.graph_call(kind, data);
            }
            match (kind, data.is_enter()) {
                (CallKind::Launch { .. }, true) => {
                    loaded_code::call_begins();
                    self.launch_begins(kind, data);
                }
                (CallKind::Launch { shape, .. }, false) => {
                    if HAS_TURN.get() {
                        self.launch_ends(data.result() == 0);
                    }
                    if loaded_code::is_new_in_call() {
                        self.claim_for_launch(data.parameter(shape.function_parameter()));
                    }
                }
                (CallKind::LaunchGraph { per_thread }, true) => {
                    match self.takes_kernels_of_graphs() && self.is_armed() {
                        true => self.graph_launch_begins(data, per_thread),
                        false if self.takes_into_graph(data, per_thread) => {}
                        false => {
                            self.graphs.fetch_add(1, Relaxed);
                        }
                    }
                    self.take_turn_while_open();
                }
                (_, true) => self.take_turn_while_open(),
                _ => {}
            }
        }
        if !data.is_enter() {
            self.give_turn_back();
            self.drop_idle_callbacks();
        }
    }
}

/// CUPTI's callback at the start and at the end of a call, and when code is loaded.
extern "C" fn callback(_user: *mut c_void, domain: u32, number: u32, data: *const c_void) {
    let Some(control) = control() else { return };
    let done = guard(|| {
        // In a forked child CUDA does not work.
        subscription::live()?;
        // SAFETY: CUPTI passes these structures for resources and for calls.
        unsafe {
            if domain == domain::RESOURCE {
                // Code that gapscope's own calls load is the program's, too.
                if number == resource::MODULE_LOADED {
                    loaded_code::keep(data.cast::<ResourceData>().as_ref()?.descriptor);
                }
                return Some(());
            }
            if INSIDE.replace(true) {
                return Some(());
            }
            control.called(number, data.cast::<CallbackData>().as_ref()?);
        }
        INSIDE.set(false);
        Some(())
    });
    if done.is_none() {
        // A panic must not keep other threads waiting.
        INSIDE.set(false);
        control.give_turn_back();
    }
}

extern "C" fn at_exit() {
    guard(|| {
        if let Some(control) = control() {
            control.process_ends();
        }
    });
}
