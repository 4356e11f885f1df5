//! Holds the traces that are served, named ones and those of a program's ranks, and makes the answers that concern
//! several of them.

use crate::Error;
use crate::answers::findings;
use crate::preferences::{Preferences, identity};
use crate::protocol::{Live, Overview, TraceStatus};
use crate::ranks::RankTrace;
use crate::store::Store;
use gapscope_report::source_lines::SourceAccess;
use gapscope_trace::{Names, rank_folders, read_manifest};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The time between two looks at live traces while a request waits for them.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The longest time that a request waits.
const WAIT: Duration = Duration::from_secs(10);

/// The traces that are served, in the order of the overview; none for a capture.
#[derive(Default)]
pub struct Traces {
    stores: Mutex<Stores>,
    /// The paths that were named, as absolute paths.
    opened: Vec<String>,
    /// The folder in which ranks are looked for. It is `None` where several traces are compared.
    recording: Option<PathBuf>,
    /// True where the traces are opened as still being recorded.
    live: bool,
}

/// The traces that have been opened so far.
#[derive(Default)]
struct Stores {
    /// The named traces, followed by those of ranks.
    all: Vec<Arc<Store>>,
    /// The ranks among the traces.
    ranks: Vec<u32>,
}

impl Traces {
    /// Opens a trace with those of its ranks, or several traces that are compared. `sources` says what the page may quote
    /// for the trace in a folder.
    ///
    /// # Errors
    /// A trace cannot be opened, is not complete and not `live`, or the ranks have no common clock.
    pub fn open(
        paths: &[PathBuf],
        live: bool,
        names: Option<&Arc<Names>>,
        sources: impl Fn(&Path) -> SourceAccess,
    ) -> Result<Traces, Error> {
        let recording = match paths {
            [one] => Some(one.clone()),
            _ => None,
        };
        let ranks = recording.as_deref().map(rank_folders).unwrap_or_default();
        if !live {
            common_clock(paths, &ranks)?;
        }
        let mut stores = Stores::default();
        for ListedTrace { name, path, rank } in listed(paths, &ranks, live) {
            let sources = sources(&path);
            match rank {
                Some(rank) => stores.add(rank, &path, live, names, sources)?,
                None => stores
                    .all
                    .push(Store::open(&path, name, live, names, sources)?),
            }
        }
        // The page waits longest for the findings; for ranks it waits for reading.
        if !live && stores.ranks.is_empty() {
            for store in &stores.all {
                store.analyst().begin(|analysed| {
                    findings(analysed);
                });
            }
        }
        Ok(Traces {
            opened: paths.iter().map(|path| absolute(path)).collect(),
            stores: Mutex::new(stores),
            recording,
            live,
        })
    }

    fn stores(&self) -> MutexGuard<'_, Stores> {
        self.stores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the trace at an index.
    pub fn at(&self, index: usize) -> Option<Arc<Store>> {
        self.stores().all.get(index).cloned()
    }

    /// Returns all traces that exist by now, and whether they are ranks of one program. While they are recorded, this
    /// opens the traces of new ranks.
    fn all(&self) -> (Vec<Arc<Store>>, bool) {
        let mut stores = self.stores();
        if let Some(recording) = self.recording.as_deref().filter(|_| self.live) {
            for (rank, path) in rank_folders(recording) {
                // The next look tries again where a trace cannot be opened yet.
                let _ = stores.add(rank, &path, true, None, SourceAccess::Recorded(None));
            }
        }
        (stores.all.clone(), !stores.ranks.is_empty())
    }

    /// Returns the traces of ranks; without them a single trace, which may have ranks inside, and none for traces
    /// that are compared.
    pub fn of_ranks(&self) -> Vec<RankTrace> {
        let (stores, together) = self.all();
        let ranks = self.stores().ranks.clone();
        let before = stores.len().saturating_sub(ranks.len());
        let numbered: Vec<(usize, u32)> = match together {
            true => (before..).zip(ranks).collect(),
            false if stores.len() == 1 => vec![(0, 0)],
            false => Vec::new(),
        };
        (numbered.into_iter())
            .filter_map(|(trace, rank)| {
                let store = stores.get(trace)?.clone();
                Some(RankTrace { trace, rank, store })
            })
            .collect()
    }

    /// Makes the overview of all traces.
    ///
    /// # Errors
    /// A trace could not be read.
    pub fn overview(&self, preferences: &Preferences) -> Result<Overview, Error> {
        let (stores, ranks) = self.all();
        let program = self.recording.as_deref().filter(|_| ranks).map(name);
        let traces = stores.iter().map(|store| store.overview());
        let mut overview = Overview::new(traces.collect::<Result<_, _>>()?, program, None);
        overview.opened = Some(self.opened.clone());
        overview.keeps = Some(preferences.are_kept());
        if preferences.are_kept() {
            let arranged = preferences.arrangements();
            for (trace, store) in overview.traces.iter_mut().zip(&stores) {
                let identity = identity(&*store.snapshot()?, store.name());
                trace.arranged = arranged.get(&identity).cloned();
            }
        }
        Ok(overview)
    }

    /// Returns the folders of all traces, or `None` while one of them is recorded.
    ///
    /// # Errors
    /// A trace could not be read.
    pub fn recorded(&self) -> Result<Option<Vec<PathBuf>>, Error> {
        let (stores, _) = self.all();
        for store in &stores {
            if store.status()?.live {
                return Ok(None);
            }
        }
        let folders = stores.iter().map(|store| store.folder().to_owned());
        Ok(Some(folders.collect()))
    }

    /// Waits until a trace has another generation (a number that grows with each change) than `known` has for it, or
    /// there are more traces; for some seconds, and not at all when nothing is recorded.
    ///
    /// # Errors
    /// A trace could not be read.
    pub fn wait_for_more(&self, known: &[u64]) -> Result<Live, Error> {
        let asked = Instant::now();
        loop {
            let (stores, _) = self.all();
            let states = stores.iter().map(|store| store.status());
            let states: Vec<TraceStatus> = states.collect::<Result<_, _>>()?;
            let same = states.iter().map(|state| &state.generation).eq(known);
            if !same || !states.iter().any(|state| state.live) || asked.elapsed() >= WAIT {
                return Ok(Live { traces: states });
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Stores {
    /// Opens the trace of a rank, unless it is open already.
    fn add(
        &mut self,
        rank: u32,
        path: &Path,
        live: bool,
        names: Option<&Arc<Names>>,
        sources: SourceAccess,
    ) -> Result<(), Error> {
        if self.ranks.contains(&rank) {
            return Ok(());
        }
        let store = Store::open(path, rank_name(rank), live, names, sources)?;
        self.all.push(store);
        self.ranks.push(rank);
        Ok(())
    }
}

/// A trace among those that are shown together.
pub struct ListedTrace {
    /// Name of the trace.
    pub name: String,
    /// Folder of the trace.
    pub path: PathBuf,
    /// Rank of the trace.
    pub rank: Option<u32>,
}

/// Lists the traces of paths, followed by those of `ranks`.
pub fn listed(paths: &[PathBuf], ranks: &[(u32, PathBuf)], live: bool) -> Vec<ListedTrace> {
    // A folder of ranks that were gathered by hand is not a trace itself.
    let is_trace = |path: &&PathBuf| ranks.is_empty() || live || path.join("trace.json").is_file();
    let trace = |path: &PathBuf, name, rank| ListedTrace {
        name,
        path: path.clone(),
        rank,
    };
    let named = paths.iter().filter(is_trace);
    let named = named.map(|path| trace(path, name(path), None));
    let of_ranks = ranks.iter();
    let of_ranks = of_ranks.map(|(rank, path)| trace(path, rank_name(*rank), Some(*rank)));
    named.chain(of_ranks).collect()
}

fn rank_name(rank: u32) -> String {
    format!("rank {rank}")
}

/// Returns an absolute path as text.
fn absolute(path: &Path) -> String {
    let full = path.canonicalize().unwrap_or(path.to_owned());
    full.display().to_string()
}

/// Returns the name of a folder without the path before it.
pub fn name(folder: &Path) -> String {
    let full = folder.canonicalize().unwrap_or(folder.to_owned());
    let name = full.file_name().unwrap_or(folder.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Checks that traces of ranks are on one clock: then they have the same start. The error names the first of `paths`.
pub fn common_clock(paths: &[PathBuf], ranks: &[(u32, PathBuf)]) -> Result<(), Error> {
    let mut starts = Vec::with_capacity(ranks.len());
    for (_, path) in ranks {
        starts.push(read_manifest(path)?.start_ns);
    }
    match starts.windows(2).all(|two| two[0] == two[1]) {
        true => Ok(()),
        false => Err(Error::Apart {
            path: paths[0].clone(),
            first: ranks[0].1.clone(),
        }),
    }
}
