//! One line on stderr while a recording runs, when stderr is a terminal.

use gapscope_analysis::quantity as number;
use gapscope_recorder::{Progress, Session};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::{Duration, Instant};

/// How often the line is drawn anew.
const EVERY: Duration = Duration::from_millis(250);
/// The report must not wait for the line.
const PAUSE: Duration = Duration::from_millis(10);

/// Shows how a recording goes until it is finished; returns at once when stderr is no terminal.
pub fn show(session: &Session) {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if bar.is_hidden() {
        return;
    }
    let style = ProgressStyle::with_template("{wide_msg}");
    bar.set_style(style.expect("the template is constant"));
    let mut drawn = Instant::now();
    while !session.is_finished() {
        if drawn.elapsed() >= EVERY {
            bar.set_message(text(&session.progress()));
            drawn = Instant::now();
        }
        std::thread::sleep(PAUSE);
    }
    bar.finish_and_clear();
}

fn text(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs();
    let elapsed = format!("{}:{:02}", seconds / 60, seconds % 60);
    if !progress.recording {
        return format!("gapscope  {elapsed}  waiting to record");
    }
    if progress.processes == 0 {
        return format!("gapscope  {elapsed}  no Vulkan yet");
    }
    let busy = match progress.gpu_busy_share {
        Some(share) => number::share(share),
        None => "–".to_owned(),
    };
    format!(
        "gapscope  {elapsed}  {}  GPU busy {busy}  {}",
        number::of(progress.dispatches, "dispatch", "dispatches"),
        number::bytes(progress.bytes_written),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_known() {
        let mut progress = Progress {
            elapsed: Duration::from_secs(63),
            recording: true,
            processes: 1,
            dispatches: 12_345,
            gpu_busy_share: Some(0.372),
            bytes_written: 5 << 20,
        };
        assert_eq!(
            text(&progress),
            "gapscope  1:03  12,345 dispatches  GPU busy 37.2 %  5.00 MiB"
        );
        progress.gpu_busy_share = None;
        assert!(text(&progress).contains("GPU busy –"));
        progress.processes = 0;
        assert_eq!(text(&progress), "gapscope  1:03  no Vulkan yet");
        progress.recording = false;
        assert_eq!(text(&progress), "gapscope  1:03  waiting to record");
    }
}
