//! The GPU times of a command buffer, as Metal gives them after its end.

/// The state of a command buffer after its end.
///
/// ```
/// # use gapscope_sdk::metal::Completion;
/// let failed = Completion { finished: true, error: Some("GPU timeout".to_owned()), ..Completion::default() };
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    /// The command buffer has ended, with or without an error.
    pub finished: bool,
    /// The error in Metal's words.
    pub error: Option<String>,
    /// `GPUStartTime`: seconds of Mach's absolute clock; 0 before the end.
    pub gpu_start_s: f64,
    /// `GPUEndTime`, on the same clock.
    pub gpu_end_s: f64,
    #[doc(hidden)]
    pub more_fields_may_come: (),
}

/// The interval in which the GPU ran a command buffer, in nanoseconds of the host's clock.
///
/// ```
/// use gapscope_sdk::metal::{Completion, GpuTime};
///
/// let ended = Completion { finished: true, gpu_start_s: 12.5, gpu_end_s: 12.500_25, ..Completion::default() };
/// let GpuTime { start_ns, end_ns, .. } = GpuTime::from_completion(&ended).unwrap();
/// assert_eq!(end_ns - start_ns, 250_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuTime {
    /// The start.
    pub start_ns: u64,
    /// The end.
    pub end_ns: u64,
}

/// A reason why the times of a command buffer are unknown.
///
/// ```
/// use gapscope_sdk::metal::{Completion, GpuTime, UnknownTime};
///
/// assert_eq!(GpuTime::from_completion(&Completion::default()), Err(UnknownTime::NotFinished));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownTime {
    /// The command buffer had not ended.
    #[error("the command buffer had not ended")]
    NotFinished,
    /// Metal gave no times, as for an empty command buffer.
    #[error("Metal gave no GPU times (an empty command buffer has none)")]
    Absent,
    /// The times are not numbers, or end before they start.
    #[error("Metal gave impossible GPU times")]
    Impossible,
}

/// A command buffer that failed.
///
/// ```
/// # use gapscope_sdk::metal::CommandBufferError;
/// let error = CommandBufferError::new("step", "GPU timeout");
/// assert_eq!(error.to_string(), "the command buffer `step` failed: GPU timeout");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the command buffer `{label}` failed: {reason}")]
#[non_exhaustive]
pub struct CommandBufferError {
    /// The label of the command buffer.
    pub label: String,
    /// The error of Metal.
    pub reason: String,
}

impl CommandBufferError {
    /// Makes an error of the label of a command buffer and Metal's error.
    ///
    /// ```
    /// # use gapscope_sdk::metal::CommandBufferError;
    /// assert_eq!(CommandBufferError::new("step", "GPU timeout").label, "step");
    /// ```
    pub fn new(label: impl Into<String>, reason: impl Into<String>) -> CommandBufferError {
        CommandBufferError {
            label: label.into(),
            reason: reason.into(),
        }
    }
}

impl GpuTime {
    /// Returns the times of a command buffer that has ended.
    ///
    /// # Errors
    /// The reason why they are unknown.
    ///
    /// ```
    /// use gapscope_sdk::metal::{Completion, GpuTime, UnknownTime};
    ///
    /// let mut ended = Completion { finished: true, gpu_start_s: 12.5, gpu_end_s: 12.500_25, ..Completion::default() };
    /// assert_eq!(GpuTime::from_completion(&ended).unwrap().duration_ns(), 250_000);
    /// (ended.gpu_start_s, ended.gpu_end_s) = (0.0, 0.0);
    /// assert_eq!(GpuTime::from_completion(&ended), Err(UnknownTime::Absent));
    /// ```
    pub fn from_completion(completion: &Completion) -> Result<GpuTime, UnknownTime> {
        if !completion.finished {
            return Err(UnknownTime::NotFinished);
        }
        let (start, end) = (completion.gpu_start_s, completion.gpu_end_s);
        if start == 0.0 || end == 0.0 {
            return Err(UnknownTime::Absent);
        }
        // The nanoseconds of 100 days fit a float's 53 bits with a precision of 1 ns.
        let possible = |seconds: f64| seconds.is_finite() && seconds > 0.0 && seconds < 1e10;
        if !possible(start) || !possible(end) || end < start {
            return Err(UnknownTime::Impossible);
        }
        let ns = |seconds: f64| (seconds * 1e9).round() as u64;
        Ok(GpuTime {
            start_ns: ns(start),
            end_ns: ns(end),
        })
    }

    /// Returns the length of the interval.
    ///
    /// ```
    /// # use gapscope_sdk::metal::GpuTime;
    /// fn is_long(time: GpuTime) -> bool { time.duration_ns() > 1_000_000 }
    /// ```
    pub fn duration_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}
