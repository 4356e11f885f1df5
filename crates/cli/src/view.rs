//! `gapscope view`: serves the timeline page of traces, of a comparison or of a running recording, or writes it as
//! a file.

use crate::args::View;
use crate::failure::{Failure, without_os_error_numbers};
use crate::{exit, kernel_names, page, trace};
use gapscope_companion::state_folder;
use gapscope_timeline::quantity as number;
use gapscope_trace::{Names, rank_folders};
use gapscope_view::{Options, Running, SavedView, Server, write_file};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

impl From<gapscope_view::Error> for Failure {
    fn from(error: gapscope_view::Error) -> Failure {
        Failure::new(without_os_error_numbers(&error.to_string()))
    }
}

/// Serves traces until Ctrl-C.
pub fn run(arguments: &View) -> Result<ExitCode, Failure> {
    let saved = SavedView::open(&arguments.traces)?;
    for path in saved.paths.iter().filter(|_| saved.paths.len() > 1) {
        let of_ranks = rank_folders(path);
        if !of_ranks.is_empty() {
            return Err(trace::choose_rank(path, &of_ranks, "a comparison"));
        }
    }
    let options = Options {
        port: arguments.port,
        page_rows: arguments.page_rows,
        sources: arguments.sources.clone(),
        live: false,
        names: kernel_names::read(arguments.names.as_deref())?,
        ..default_options()
    };
    if let Some(file) = &arguments.html {
        return write_saved(&saved, file, options.names.as_ref());
    }
    let server = Server::open(&saved.paths, options)?;
    serve(server, &saved, !arguments.no_open)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the options that every page is served with.
fn default_options() -> Options {
    Options {
        state: state_folder(),
        ..Options::default()
    }
}

/// Serves a comparison of two traces until Ctrl-C, with a kernel found in both.
pub fn compare(traces: &[PathBuf; 2], kernel: Option<&str>) -> Result<(), Failure> {
    let server = Server::open(traces, default_options())?;
    // The page writes its own address in the same form: `web/src/link.ts`.
    let mut state = vec![("p", "compare"), ("a", "0:all"), ("z", "1:all")];
    state.extend(kernel.map(|kernel| ("q", kernel)));
    serve(server, &SavedView::new(traces, &state), true)
}

/// Prints the page's address, opens the browser if `is_opened`, and serves until Ctrl-C.
fn serve(server: Server, saved: &SavedView, is_opened: bool) -> Result<(), Failure> {
    let names: Vec<String> = saved.paths.iter().map(|path| trace::name(path)).collect();
    let names = names.join(" and ");
    let url = saved.address(server.url());
    page::write(&format!("{names}: {url} until Ctrl-C\n"))?;
    if is_opened {
        open(&url);
    }
    Ok(server.serve()?)
}

/// Writes the page of a trace as one file.
pub fn write_file_of_trace(
    trace: &Path,
    file: &Path,
    names: Option<&Arc<Names>>,
) -> Result<ExitCode, Failure> {
    write_saved(&SavedView::new(&[trace.to_owned()], &[]), file, names)
}

/// Writes a page as one file, and says on stderr how large it is and what it lacks.
fn write_saved(
    saved: &SavedView,
    file: &Path,
    names: Option<&Arc<Names>>,
) -> Result<ExitCode, Failure> {
    let written = write_file(saved, file, names)?;
    let bytes = number::bytes(written.bytes);
    let file = file.display();
    page::note(format!("{file} is written, {bytes}"));
    if let Some(folded) = written.folded {
        page::note(&folded);
    }
    for table in &written.unread {
        page::note(format!("{table}: the page says so too"));
    }
    for sentence in &written.changed {
        let sentence = sentence.trim_end_matches('.');
        page::note(format!("{sentence}; the page says so too"));
    }
    let whole = written.unread.is_empty() && written.changed.is_empty();
    Ok(exit::after_reading(whole))
}

/// Starts to serve the timeline of a running recording; `None` if that fails, which is printed and does not end the
/// recording.
pub fn start_live(output: PathBuf) -> Option<Running> {
    let options = Options {
        live: true,
        ..default_options()
    };
    match Server::open(&[output], options) {
        Ok(server) => {
            let running = server.start();
            page::note(format!("the timeline is at {}", running.url()));
            open(running.url());
            Some(running)
        }
        Err(error) => {
            let error = Failure::from(error);
            page::note(format!("the timeline cannot be shown: {error}"));
            None
        }
    }
}

/// Shows a recording that has ended, until Ctrl-C.
pub fn after_recording(running: Running) {
    let url = running.url();
    page::note(format!("the timeline stays at {url} until Ctrl-C"));
    if let Err(error) = running.until_interrupted() {
        let error = Failure::from(error);
        page::note(&error);
    }
}

/// Opens the browser on a system with a display.
fn open(url: &str) {
    let seen = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let program = match () {
        () if cfg!(target_os = "macos") => "open",
        () if seen("DISPLAY") || seen("WAYLAND_DISPLAY") => "xdg-open",
        () => return,
    };
    let mut command = Command::new(program);
    command
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    match command.spawn() {
        // The browser ends by itself and must not stay a zombie.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(_) => page::note("no browser could be opened; open the address yourself"),
    }
}
