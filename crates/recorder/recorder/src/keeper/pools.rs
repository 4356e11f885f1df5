//! Makes the pools of a spool (memory into which hooks write, `gapscope_spool::pool`) and holds them: some that wait to be
//! claimed, others on demand.

use crate::procfs;
use gapscope_spool::pool::handover::Handover;
use gapscope_spool::pool::{self, Pool, SPARES};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The descriptors that a process needs besides those of pools.
const OTHER_DESCRIPTORS: u64 = 16;

/// The pools of a spool, in the process that makes them.
#[derive(Debug)]
pub struct Pools {
    root: PathBuf,
    /// The number of this process in `/proc`.
    own_number: u32,
    /// The most pools that this process holds.
    most: u64,
    /// The pools that wait to be claimed, by slot; absent where none could be made.
    spares: Vec<Option<KeptPool>>,
    claimed: Vec<KeptPool>,
    /// The number of pools so far.
    made: u64,
    /// Answers processes that find no pool; absent where the system refuses the socket.
    handover: Option<Handover>,
}

/// A pool that this process holds.
#[derive(Debug)]
struct KeptPool {
    pool: Pool,
    /// Keeps the memory.
    file: File,
    /// Its name in the spool.
    path: PathBuf,
}

impl Pools {
    /// Makes the first pools of the spool `root`, an absolute path.
    pub fn new(root: &Path) -> Pools {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let mut pools = Pools {
            root: root.to_owned(),
            own_number: procfs::own_number(),
            most: descriptors.saturating_sub(OTHER_DESCRIPTORS),
            spares: (0..SPARES).map(|_| None).collect(),
            claimed: Vec::new(),
            made: 0,
            handover: Handover::listen(root).ok(),
        };
        pools.renew();
        pools
    }

    /// Makes new pools for those that have been claimed, hands pools to processes that ask for one, and lets those go that nobody
    /// reads any more.
    pub fn renew(&mut self) {
        self.claimed.retain(|kept| {
            let keep = !kept.pool.is_finished();
            if !keep {
                let _ = fs::remove_file(&kept.path);
            }
            keep
        });
        for slot in 0..self.spares.len() {
            let is_claimed = |kept: &KeptPool| kept.pool.is_claimed();
            if let Some(claimed) = self.spares[slot].take_if(|kept| is_claimed(kept)) {
                self.claimed.push(claimed);
            }
            if self.spares[slot].is_none() {
                self.spares[slot] = self.make_spare(slot as u32).ok();
            }
        }
        // Somebody may have deleted a link before the session has seen it.
        for kept in self.claimed.iter().chain(self.spares.iter().flatten()) {
            if !kept.path.is_symlink() {
                let _ = std::os::unix::fs::symlink(self.link_to(&kept.file), &kept.path);
            }
        }
        if let Some(mut handover) = self.handover.take() {
            handover.renew(&self.root.clone(), || {
                let kept = self.make().ok()?;
                let file = kept.file.try_clone();
                self.claimed.push(kept);
                file.ok()
            });
            self.handover = Some(handover);
        }
    }

    /// Waits until a process asks for a pool, `other` becomes readable, or this time has passed.
    pub fn wait(&self, other: Option<BorrowedFd<'_>>, longest: Duration) {
        let handover = self.handover.as_ref().map(|handover| handover.as_fd());
        let watched = handover.into_iter().chain(other);
        let mut watched: Vec<PollFd<'_>> = watched
            .map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect();
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: longest.subsec_nanos().into(),
        };
        if poll(&mut watched, Some(&timeout)).is_err() {
            std::thread::sleep(longest);
        }
    }

    /// Makes a pool and names it for hooks.
    fn make_spare(&mut self, slot: u32) -> io::Result<KeptPool> {
        let kept = self.make()?;
        let new = self.root.join("spare.new");
        let _ = fs::remove_file(&new);
        std::os::unix::fs::symlink(self.link_to(&kept.file), &new)?;
        fs::rename(&new, self.root.join(pool::spare_name(slot)))?;
        Ok(kept)
    }

    /// Makes a pool and names it for the session.
    fn make(&mut self) -> io::Result<KeptPool> {
        let held = self.spares.iter().flatten().count() + self.claimed.len();
        if held as u64 >= self.most {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let (own, number) = (self.own_number, self.made);
        self.made += 1;
        let file = pool::create(&format!("gapscope-{own}-{number}"))?;
        let path = self.root.join(pool::pool_name(own, number));
        std::os::unix::fs::symlink(self.link_to(&file), &path)?;
        // The name is not used, because somebody may have deleted it by now.
        let pool = Pool::map_whole(&file)?;
        Ok(KeptPool { pool, file, path })
    }

    /// Returns the path of an open file of this process, for others.
    fn link_to(&self, file: &File) -> String {
        format!("/proc/{}/fd/{}", self.own_number, file.as_raw_fd())
    }
}
