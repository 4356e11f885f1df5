//! Joins files of one run: exports of Nsight Systems, which have the times of GPU work and calls, and files of PyTorch's
//! profiler, which have operators with shapes, modules, Python's functions and annotations.
//!
//! [`Mixed::list`] finds out whether the inputs are such files. Under Nsight Systems, PyTorch's profiler records no
//! launches, so that both are put on one axis by their wall clocks, and `offset` says how well the launches then lie
//! inside of the operators of their threads. [`Mixed::import`] matches every file before the trace is made, and refuses
//! files that do not fit.

mod matching;

use crate::folder::Folder;
use crate::kineto::joined::{self as kineto, Placed, Tracks};
use crate::nsys::{self, Amend};
use crate::output::{Imported, NewTrace, Output, Progress};
use crate::profile::Profile;
use crate::unpacked::{self, Unpacked};
use crate::{Error, Options};
use gapscope_trace::manifest::{JoinedFile, Rank};
use matching::{Export, Match, best_export};
use std::path::{Path, PathBuf};

/// A file that was given, or is in a folder that was given.
#[derive(Debug, Clone)]
struct Input {
    /// The file, unpacked where Nsight Systems' importer needs that.
    path: PathBuf,
    /// The name of the file that was given, for messages.
    name: String,
    /// The rank that the user names for it.
    rank: Option<u32>,
}

/// Files of both profilers.
pub(crate) struct Mixed {
    exports: Vec<Input>,
    profiles: Vec<Input>,
    /// The folder of unpacked files, which is removed at the end.
    unpacked: Vec<Unpacked>,
}

/// The profiler that made a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Export,
    Profile,
    Other,
}

impl Kind {
    fn parse(path: &Path) -> Kind {
        match path {
            path if nsys::recognises(path) => Kind::Export,
            path if kineto::recognises(path) => Kind::Profile,
            _ => Kind::Other,
        }
    }
}

/// Returns the regular files of a folder that may be of these profilers, by name. Reports of nsys are left out: their
/// exports stand beside them.
fn files_of(folder: &Path) -> Vec<PathBuf> {
    Folder::list(folder, |name| {
        name.contains(".sqlite") || name.contains(".json")
    })
    .files
}

impl Mixed {
    /// Returns the files of both profilers among the inputs; `None` if the inputs are not of both, or others are among
    /// them.
    ///
    /// # Errors
    /// A packed file cannot be unpacked, or the ranks that the user names do not fit the files.
    pub(crate) fn list(inputs: &[PathBuf], options: &Options) -> Result<Option<Mixed>, Error> {
        let has_folder = inputs.iter().any(|input| input.is_dir());
        if inputs.len() < 2 && !has_folder {
            return Ok(None);
        }
        let files: Vec<PathBuf> = (inputs.iter())
            .flat_map(|input| match input.is_dir() {
                true => files_of(input),
                false => vec![input.clone()],
            })
            .collect();
        let is_export = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.contains(".sqlite") || nsys::recognises(path)
        };
        // Most imports have files of one kind, which need not be opened here.
        if files.len() < 2 || !files.iter().any(is_export) || files.iter().all(is_export) {
            return Ok(None);
        }
        let mut mixed = Mixed {
            exports: Vec::new(),
            profiles: Vec::new(),
            unpacked: Vec::new(),
        };
        for (index, file) in files.iter().enumerate() {
            let mut path = file.clone();
            let mut kind = Kind::parse(&path);
            if kind == Kind::Other
                && let Some(unpacked) = unpacked::unpack(std::slice::from_ref(file))?
            {
                path.clone_from(&unpacked.inputs[0]);
                kind = Kind::parse(&path);
                mixed.unpacked.push(unpacked);
            }
            let name = file.file_name().unwrap_or(file.as_os_str());
            let input = Input {
                path,
                name: name.to_string_lossy().into_owned(),
                rank: match options.ranks.len() == files.len() && !has_folder {
                    true => options.ranks.get(index).copied(),
                    false => None,
                },
            };
            match kind {
                Kind::Export => mixed.exports.push(input),
                Kind::Profile => mixed.profiles.push(input),
                Kind::Other if has_folder => {}
                Kind::Other => return Ok(None),
            }
        }
        if mixed.exports.is_empty() || mixed.profiles.is_empty() {
            return Ok(None);
        }
        mixed.take_ranks(options, files.len())?;
        Ok(Some(mixed))
    }

    /// Gives the exports the ranks that the user names for them alone.
    fn take_ranks(&mut self, options: &Options, files: usize) -> Result<(), Error> {
        let ranks = &options.ranks;
        let refuse = |reason: String| Err(Error::Ranks { reason });
        if ranks.len() == self.exports.len() {
            for (export, rank) in self.exports.iter_mut().zip(ranks) {
                export.rank = Some(*rank);
            }
        } else if !ranks.is_empty() && self.exports.iter().any(|export| export.rank.is_none()) {
            return refuse(format!(
                "ranks named: {}, exports of Nsight Systems: {}, files: {files}; name a rank for each export, or for each file in the order of the files",
                ranks.len(),
                self.exports.len()
            ));
        }
        for (index, export) in self.exports.iter().enumerate() {
            let others = &self.exports[..index];
            if let Some(rank) = export.rank
                && others.iter().any(|other| other.rank == export.rank)
            {
                return refuse(format!(
                    "rank {rank} is named for two exports of Nsight Systems"
                ));
            }
        }
        Ok(())
    }

    /// Imports the files into one trace, or into those of ranks.
    ///
    /// # Errors
    /// A file does not fit, or its import fails.
    pub(crate) fn import(
        &self,
        output: &Path,
        options: &Options,
        progress: Progress,
    ) -> Result<Imported, Error> {
        let mut output = Output::new(output, progress);
        let result = self.read(options, &mut output);
        output.end(result)
    }

    fn read(&self, options: &Options, output: &mut Output) -> Result<(), Error> {
        if let Some(report) = (self.exports.iter()).find(|export| nsys::is_report(&export.path)) {
            // The importer says what to do with it.
            return (nsys::IMPORTER.read)(std::slice::from_ref(&report.path), options, output);
        }
        let read = |export: &Input| {
            let launches = nsys::launches(&export.path, options)?;
            Ok::<_, Error>(Export {
                name: export.name.clone(),
                rank: export.rank,
                launches,
            })
        };
        let exports: Vec<Export> = self.exports.iter().map(read).collect::<Result<_, _>>()?;
        let mut joining = Joining {
            files: exports.iter().map(|_| Vec::new()).collect(),
            ranks: vec![None; exports.len()],
            notes: Vec::new(),
            bytes: bytes(self.exports.iter().chain(&self.profiles)),
        };
        for profile in &self.profiles {
            let tracks = kineto::tracks(&profile.path)?;
            let has_segments = tracks.tracks.iter().any(|track| !track.segments.is_empty());
            if !has_segments && self.profiles.len() > 1 {
                // The front end of a server has a profile of its own.
                joining.notes.push(format!(
                    "{} was left out: it has no operators.",
                    profile.name
                ));
                continue;
            }
            let (export, matched) = best_export(&profile.name, &tracks, profile.rank, &exports)?;
            joining.take(export, profile, &tracks, matched)?;
        }
        if joining.files.iter().all(Vec::is_empty) {
            return Err(Error::NotJoined {
                reason: "no file of PyTorch's profiler has operators (events of the category cpu_op): record them with ProfilerActivity.CPU, or import the export of Nsight Systems alone".to_owned(),
            });
        }
        let paths: Vec<PathBuf> = self
            .exports
            .iter()
            .map(|export| export.path.clone())
            .collect();
        let (mut options, origin) = joining.ranks(&self.exports, options);
        for unpacked in &self.unpacked {
            options = unpacked::with_unread_ends(&options, Some(unpacked));
        }
        nsys::read_amended(&paths, &options, origin, &mut joining, output)
    }
}

/// Returns the size of files.
fn bytes<'a>(inputs: impl Iterator<Item = &'a Input>) -> u64 {
    let sizes = inputs.map(|input| std::fs::metadata(&input.path).map_or(0, |facts| facts.len()));
    sizes.sum()
}

/// The files that are joined to each export.
struct Joining {
    /// The files of each export, with how sure the match is.
    files: Vec<Vec<Joined>>,
    /// The rank that the files of each export say.
    ranks: Vec<Option<Rank>>,
    notes: Vec<String>,
    /// The size of all files.
    bytes: u64,
}

/// A file that is joined to an export.
struct Joined {
    placed: Placed,
    matched: Match,
}

impl Joining {
    /// Takes a file for an export.
    ///
    /// # Errors
    /// It is of another rank than the user says, or another file has the same ranges.
    fn take(
        &mut self,
        export: usize,
        profile: &Input,
        tracks: &Tracks,
        matched: Match,
    ) -> Result<(), Error> {
        let refuse = |reason: String| Err(Error::NotJoined { reason });
        if let (Some(named), Some(own)) = (profile.rank, tracks.rank)
            && named != own.rank
        {
            return refuse(format!(
                "{} says that it is of rank {}, not {named}",
                profile.name, own.rank
            ));
        }
        for other in &self.files[export] {
            if other.matched.repeats(&matched) {
                return refuse(format!(
                    "{} and {} have operators of the same thread at the same time: give one of them",
                    other.placed.name, profile.name
                ));
            }
        }
        let is_first = self.files[export].is_empty();
        let rank = &mut self.ranks[export];
        // An export of a whole machine may have several ranks, and is of none of them.
        *rank = tracks.rank.filter(|_| is_first || *rank == tracks.rank);
        let placed = Placed {
            path: profile.path.clone(),
            name: profile.name.clone(),
            number: self.files[export].len() as u32,
            shift_ns: matched.shift_ns,
            drift: matched.drift,
            processes: matched.processes.clone(),
            threads: matched.threads.clone(),
        };
        self.files[export].push(Joined { placed, matched });
        Ok(())
    }

    /// Returns the options with the ranks of several exports, and where the ranks are from unless the user named them.
    fn ranks(&self, exports: &[Input], options: &Options) -> (Options, Option<&'static str>) {
        let with = |ranks: Vec<u32>| Options {
            ranks,
            ..options.clone()
        };
        let named: Option<Vec<u32>> = exports.iter().map(|export| export.rank).collect();
        if let Some(named) = named {
            return (with(named), None);
        }
        let own: Vec<u32> = self.ranks.iter().flatten().map(|rank| rank.rank).collect();
        let is_distinct = |(index, rank): (usize, &u32)| !own[..index].contains(rank);
        if exports.len() < 2 || own.is_empty() || !own.iter().enumerate().all(is_distinct) {
            return (with(Vec::new()), None);
        }
        // Exports whose files say no rank have those that are left.
        let mut left = (0..).filter(|rank| !own.contains(rank));
        let ranks = self.ranks.iter().map(|rank| match rank {
            Some(rank) => Some(rank.rank),
            None => left.next(),
        });
        let origin = match own.len() == exports.len() {
            true => "the files of PyTorch's profiler say the ranks",
            false => {
                "the files of PyTorch's profiler say some ranks, and the others are numbered in the order of the exports"
            }
        };
        (with(ranks.flatten().collect()), Some(origin))
    }
}

impl Amend for Joining {
    fn amend(
        &mut self,
        export: usize,
        shift_ns: i64,
        mut profile: Profile,
        mut new: NewTrace,
        output: &Output,
    ) -> Result<(Profile, NewTrace), Error> {
        let is_alone = profile.inventory.processes().count() == 1;
        let rank = &mut profile.inventory.manifest.rank;
        match (*rank, self.ranks[export]) {
            // The file says also how many ranks there are.
            (Some(given), Some(own)) if given.rank == own.rank => *rank = Some(own),
            (None, Some(own)) if is_alone => *rank = Some(own),
            _ => {}
        }
        if self.files[export].is_empty() {
            let note = "No file of PyTorch's profiler is of the run of this export, which has no operators therefore.";
            profile.inventory.note(note);
        }
        for joined in &self.files[export] {
            let placed = Placed {
                shift_ns: joined.placed.shift_ns.saturating_add(shift_ns),
                ..joined.placed.clone()
            };
            (profile, new) = kineto::add(&placed, profile, new, (0, self.bytes), output)?;
            let inventory = &mut profile.inventory;
            inventory.note(format!(
                "{} of PyTorch's profiler (Kineto) was joined: its operators, functions of Python and annotations are on the times of Nsight Systems, from which all calls and GPU work are.",
                placed.name
            ));
            if let Some(other) = joined.matched.fit.repetition {
                inventory.note(format!(
                    "The launches repeat themselves: {:.1} % of those {} lie inside the operators of {}, too. That the file is of this repetition rests on the clocks of both files alone.",
                    other.share * 100.0,
                    other.distance(),
                    placed.name
                ));
            }
            let facts = joined.matched.facts(&placed.name);
            inventory.manifest.joined_files.push(facts);
        }
        for note in &self.notes {
            profile.inventory.note(note.clone());
        }
        Ok((profile, new))
    }
}

impl Match {
    /// Returns what the manifest says of the match of a file.
    fn facts(&self, file: &str) -> JoinedFile {
        JoinedFile {
            file: file.to_owned(),
            launches: self.fit.launches,
            launches_inside: self.fit.inside,
            offset_ns: self.fit.offset_ns,
            offset_error_ns: self.fit.error_ns,
            drift_ns_per_s: self.fit.drift.ns_per_s,
            next_best_share: [
                self.fit.next_best_share,
                self.fit.repetition.map(|other| other.share),
            ]
            .into_iter()
            .flatten()
            .max_by(f64::total_cmp),
            matched_threads: !self.threads.is_empty(),
            own_launches: self.own_launches,
            own_launches_matched: self.own_launches_matched,
        }
    }
}
