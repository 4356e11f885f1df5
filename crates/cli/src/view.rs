//! `gapscope view`, and the timeline of a recording that runs.

use crate::args::View;
use crate::failure::{Failure, without_number};
use crate::{exit, names, page, ranks, trace};
use gapscope_command::state_folder;
use gapscope_timeline::quantity as number;
use gapscope_trace::{Names, rank_folders};
use gapscope_view::{Options, Running, SavedView, Server, write_file};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

impl From<gapscope_view::Error> for Failure {
    fn from(error: gapscope_view::Error) -> Failure {
        Failure::new(without_number(&error.to_string()))
    }
}

/// Serves traces until Ctrl-C.
pub fn run(arguments: &View) -> Result<ExitCode, Failure> {
    let saved = SavedView::open(&arguments.traces)?;
    for path in saved.paths.iter().filter(|_| saved.paths.len() > 1) {
        let of_ranks = rank_folders(path);
        if !of_ranks.is_empty() {
            return Err(ranks::choose(path, &of_ranks, "a comparison"));
        }
    }
    let options = Options {
        port: arguments.port,
        page_rows: arguments.page_rows,
        live: false,
        names: names::read(arguments.names.as_deref())?,
        ..usual()
    };
    if let Some(file) = &arguments.html {
        return saved_to_file(&saved, file, options.names.as_ref());
    }
    let server = Server::open(&saved.paths, options)?;
    serve(server, &saved, !arguments.no_open)?;
    Ok(ExitCode::SUCCESS)
}

/// How every page is served.
fn usual() -> Options {
    Options {
        state: state_folder(),
        ..Options::default()
    }
}

/// Serves two traces until Ctrl-C, compared as a whole, and a kernel found in both.
pub fn compared(traces: &[PathBuf; 2], kernel: Option<&str>) -> Result<(), Failure> {
    let server = Server::open(traces, usual())?;
    // As the page writes its own address: `web/src/link.ts`.
    let mut state = vec![("p", "compare"), ("a", "0:all"), ("z", "1:all")];
    state.extend(kernel.map(|kernel| ("q", kernel)));
    serve(server, &SavedView::new(traces, &state), true)
}

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

/// Writes the page as one file.
pub fn to_file(trace: &Path, file: &Path, names: Option<&Arc<Names>>) -> Result<ExitCode, Failure> {
    saved_to_file(&SavedView::new(&[trace.to_owned()], &[]), file, names)
}

fn saved_to_file(
    saved: &SavedView,
    file: &Path,
    names: Option<&Arc<Names>>,
) -> Result<ExitCode, Failure> {
    let written = write_file(saved, file, names)?;
    let bytes = number::bytes(written.bytes);
    let file = file.display();
    page::say(&format!("gapscope: {file} is written, {bytes}\n"));
    if let Some(folded) = written.folded {
        page::say(&format!("gapscope: {folded}\n"));
    }
    for table in &written.unread {
        page::say(&format!("gapscope: {table}: the page says so too\n"));
    }
    for sentence in &written.changed {
        let sentence = sentence.trim_end_matches('.');
        page::say(&format!("gapscope: {sentence}; the page says so too\n"));
    }
    let whole = written.unread.is_empty() && written.changed.is_empty();
    Ok(exit::of_reading(whole))
}

/// Shows a recording that runs. That it cannot be shown is said and ends nothing.
pub fn live(output: PathBuf) -> Option<Running> {
    let options = Options {
        live: true,
        ..usual()
    };
    match Server::open(&[output], options) {
        Ok(server) => {
            let running = server.start();
            page::say(&format!("gapscope: the timeline is at {}\n", running.url()));
            open(running.url());
            Some(running)
        }
        Err(error) => {
            let error = Failure::from(error);
            page::say(&format!(
                "gapscope: the timeline cannot be shown: {error}\n"
            ));
            None
        }
    }
}

/// Goes on showing a recording that has ended.
pub fn after_recording(running: Running) {
    let url = running.url();
    page::say(&format!(
        "gapscope: the timeline stays at {url} until Ctrl-C\n"
    ));
    if let Err(error) = running.until_interrupted() {
        let error = Failure::from(error);
        page::say(&format!("gapscope: {error}\n"));
    }
}

/// Opens the browser, where there is one to see.
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
        // It ends by itself, and should not stay as a zombie.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(_) => page::say("gapscope: no browser could be opened; open the address yourself\n"),
    }
}
