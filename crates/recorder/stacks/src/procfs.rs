//! Reads `/proc`: the processes and threads of Linux, what they are doing, and what files they have mapped.

use gapscope_model::memory_maps::mappings;
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Returns the time of the monotonic clock.
pub fn now_ns() -> i64 {
    nanoseconds(ClockId::Monotonic)
}

/// Returns the processor time of this thread so far.
pub fn worked_ns() -> i64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The folder `/proc`.
#[derive(Debug, Clone)]
pub struct Proc(pub PathBuf);

impl Proc {
    /// Returns the folder of a process.
    pub fn process(&self, pid: u32) -> PathBuf {
        self.0.join(pid.to_string())
    }

    /// Returns when a process started, in ticks since the boot; number and start identify a process. `None`: it has ended.
    pub fn start_ticks(&self, pid: u32) -> Option<u64> {
        let stat = fs::read_to_string(self.process(pid).join("stat")).ok()?;
        let mut fields = after_name(&stat)?.split_ascii_whitespace();
        let has_ended = matches!(fields.next()?, "Z" | "X");
        // The start is field 22; the state is the third.
        let ticks = fields.nth(18)?.parse().ok()?;
        (!has_ended).then_some(ticks)
    }

    /// Returns the descendants of a process that nobody has waited for yet, at most `most` of them.
    pub fn descendants(&self, pid: u32, most: usize) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = 0;
        let mut current = Some(pid);
        while let Some(pid) = current {
            for task in numbers_in(&self.process(pid).join("task")) {
                let path = self.process(pid).join(format!("task/{task}/children"));
                let children = fs::read_to_string(path).unwrap_or_default();
                let children = children.split_ascii_whitespace();
                found.extend(children.filter_map(|child| child.parse::<u32>().ok()));
            }
            if found.len() >= most {
                found.truncate(most);
                break;
            }
            current = found.get(next).copied();
            next += 1;
        }
        found
    }

    /// Returns the number in our PID namespace of the thread with number `inner` in its own.
    pub fn thread_here(&self, pid: u32, inner: u32) -> Option<u32> {
        let tasks = self.process(pid).join("task");
        let folder = |task: u32| tasks.join(task.to_string());
        // Kernels without namespaces have no second number.
        if folder(inner).exists() && inner_number(&folder(inner)).is_none_or(|of| of == inner) {
            return Some(inner);
        }
        numbers_in(&tasks).find(|task| inner_number(&folder(*task)) == Some(inner))
    }

    /// Returns the path of the program, as the process sees it.
    pub fn executable(&self, pid: u32) -> Option<String> {
        let path = fs::read_link(self.process(pid).join("exe")).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    /// Returns the arguments after the program's name.
    pub fn arguments(&self, pid: u32) -> Vec<String> {
        let line = fs::read(self.process(pid).join("cmdline")).unwrap_or_default();
        let line = line.strip_suffix(b"\0").unwrap_or(&line);
        let arguments = line.split(|byte| *byte == 0).skip(1);
        arguments
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .collect()
    }

    /// Guesses why the system does not permit reading a process.
    pub fn why_refused(&self, pid: u32) -> &'static str {
        let owner = |path: PathBuf| fs::metadata(path).ok().map(|data| data.uid());
        let status = fs::read_to_string(self.process(pid).join("status")).unwrap_or_default();
        let uid = status
            .lines()
            .find_map(|line| line.strip_prefix("Uid:"))
            .and_then(|ids| ids.split_ascii_whitespace().next()?.parse::<u32>().ok());
        let own = rustix::process::getuid().as_raw();
        let yama = fs::read_to_string(self.0.join("sys/kernel/yama/ptrace_scope"));
        let yama: u32 = yama
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0);
        match uid {
            Some(uid) if uid != own && own != 0 => {
                "it runs as another user (EPERM): record as that user"
            }
            // Files of a process that is not dumpable belong to root, whoever runs it.
            Some(uid) if uid != 0 && owner(self.process(pid).join("environ")) == Some(0) => {
                "it has made itself not dumpable (EPERM): prctl(PR_SET_DUMPABLE) or a program with capabilities"
            }
            _ if yama >= 2 => "kernel.yama.ptrace_scope forbids it (EPERM): set it to 1 or lower",
            _ if yama == 1 => {
                "the system refused it (EPERM): start the program under gapscope, as kernel.yama.ptrace_scope is 1"
            }
            _ => {
                "the system refused it (EPERM): it is not dumpable, or the container forbids process_vm_readv; allow it with --cap-add=SYS_PTRACE"
            }
        }
    }
}

/// Returns the number of a task in its own PID namespace; `folder` is the task's folder.
pub fn inner_number(folder: &Path) -> Option<u32> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
}

/// Returns the names in a folder that are numbers.
fn numbers_in(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the part of a `stat` line after the name, which is in parentheses and may contain parentheses.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, rest)| rest)
}

/// Converts the start of a process to the monotonic clock, to a tick of 10 ms.
pub fn start_ns(ticks: u64) -> i64 {
    const NS_PER_TICK: i64 = 10_000_000;
    // The start counts time asleep, the monotonic clock does not.
    let asleep = nanoseconds(ClockId::Boottime) - nanoseconds(ClockId::Monotonic);
    let ticks = i64::try_from(ticks).unwrap_or(0);
    ticks.saturating_mul(NS_PER_TICK).saturating_sub(asleep)
}

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It runs, or waits for a processor.
    Running,
    /// It is blocked in a system call, or without one, as for memory.
    Blocked(Option<SystemCall>),
}

/// A system call that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall {
    pub number: i64,
    /// The first argument; for `futex` the address.
    pub argument: u64,
    /// The stack pointer and the address of the instruction after the call.
    pub stack_pointer: u64,
    pub instruction: u64,
}

/// The file that tells what a thread is doing, kept open.
#[derive(Debug)]
pub struct ActivityFile {
    file: File,
    source: ActivitySource,
}

/// The file that is read: `syscall`, or `stat` where the kernel lacks that, which tells only the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActivitySource {
    Call,
    State,
}

impl ActivityFile {
    /// Opens the file; `folder` is the task's folder.
    pub fn open(folder: &Path) -> io::Result<ActivityFile> {
        let call = File::open(folder.join("syscall")).map(|file| ActivityFile {
            file,
            source: ActivitySource::Call,
        });
        match call {
            // This kernel has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ActivityFile {
                file: File::open(folder.join("stat"))?,
                source: ActivitySource::State,
            }),
            call => call,
        }
    }

    /// Reads what the thread is doing now; fails when the thread has ended.
    pub fn read(&self) -> io::Result<Activity> {
        let mut bytes = [0; 1024];
        let length = self.file.read_at(&mut bytes, 0)?;
        let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
        let doing = match self.source {
            ActivitySource::Call => call(text),
            ActivitySource::State => state(text),
        };
        doing.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// What the system has given a thread so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// How often the thread has been given a processor. A thread that sleeps between two readings has the same number in both.
    pub count: u64,
    /// The time for which the thread waited for its turns.
    pub waited_ns: i64,
}

/// The file that tells the turns of a thread, kept open.
#[derive(Debug)]
pub struct TurnsFile(Option<File>);

impl TurnsFile {
    /// Opens the file; `folder` is the task's folder. A kernel that does not count turns has none.
    pub fn open(folder: &Path) -> TurnsFile {
        TurnsFile(File::open(folder.join("schedstat")).ok())
    }

    /// Reads the turns; `None` where they are not known.
    pub fn read(&self) -> Option<Turns> {
        let mut bytes = [0; 128];
        let length = self.0.as_ref()?.read_at(&mut bytes, 0).ok()?;
        // The time on processors, the time of waiting for one, and the number of turns.
        let text = std::str::from_utf8(&bytes[..length]).ok()?;
        let mut numbers = text.split_ascii_whitespace().skip(1);
        Some(Turns {
            waited_ns: numbers.next()?.parse().ok()?,
            count: numbers.next()?.parse().ok()?,
        })
    }
}

/// Parses `running`, `NUMBER ARGUMENTS.. SP PC`, or `-1 SP PC`.
fn call(text: &str) -> Option<Activity> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Activity::Running);
    }
    let number: i64 = first.parse().ok()?;
    if number < 0 {
        return Some(Activity::Blocked(None));
    }
    let mut words = words.map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let argument = words.next()??;
    let stack_pointer = words.nth(5)??;
    let instruction = words.next()??;
    Some(Activity::Blocked(Some(SystemCall {
        number,
        argument,
        stack_pointer,
        instruction,
    })))
}

/// Parses the state in a line of `stat`; `None` for a thread that has ended.
fn state(stat: &str) -> Option<Activity> {
    match after_name(stat)?.split_ascii_whitespace().next()? {
        "R" => Some(Activity::Running),
        "X" | "Z" => None,
        _ => Some(Activity::Blocked(None)),
    }
}

/// A file that a process has mapped, once for each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// The address of the file's first byte: that of the lowest mapping less its offset in the file.
    pub base: u64,
    /// The end of the highest mapping.
    pub end: u64,
    /// The path as the process sees it.
    pub path: String,
}

/// Returns the mapped files. Of a file that is mapped at two places far apart, as a program may do by itself, the first counts.
pub fn mapped_files(maps: &[u8]) -> Vec<MappedFile> {
    let mut files: Vec<MappedFile> = Vec::new();
    for mapping in mappings(maps) {
        let Some(path) = mapping.path.map(String::from_utf8_lossy) else {
            continue;
        };
        match files.last_mut().filter(|last| last.path == path) {
            Some(last) => last.end = mapping.end.max(last.end),
            None => {
                files.extend(
                    mapping
                        .start
                        .checked_sub(mapping.offset)
                        .map(|base| MappedFile {
                            base,
                            end: mapping.end,
                            path: path.into_owned(),
                        }),
                )
            }
        }
    }
    files
}

/// Opens a file that a process has mapped; `folder` is the folder of the process.
pub fn open_mapped(folder: &Path, path: &str) -> Option<File> {
    // The process may be in another mount namespace.
    let inside = folder.join("root").join(path.trim_start_matches('/'));
    // Paths of a process with a root of its own are as we see them. Only the program itself can be opened after it was replaced.
    let program = folder.join("exe");
    File::open(inside)
        .or_else(|_| File::open(path))
        .or_else(|error| match fs::read_link(&program) {
            Ok(target) if target == Path::new(path) => File::open(&program),
            _ => Err(error),
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_does_is_read() {
        assert_eq!(call("running\n"), Some(Activity::Running));
        assert_eq!(
            call("-1 0x7ffe2d25a408 0x7f9e12345678\n"),
            Some(Activity::Blocked(None))
        );
        let text = "202 0x7f2 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe2d25a408 0x7f9e12345678\n";
        assert_eq!(
            call(text),
            Some(Activity::Blocked(Some(SystemCall {
                number: 202,
                argument: 0x7f2,
                stack_pointer: 0x7ffe_2d25_a408,
                instruction: 0x7f9e_1234_5678,
            })))
        );
        for torn in ["", "202", "202 0x1 0x2", "x", "202 a b c d e f g h"] {
            assert_eq!(call(torn), None, "{torn}");
        }
        assert_eq!(state("12 (a ) R b) S 1"), Some(Activity::Blocked(None)));
        assert_eq!(state("12 (a) R 1"), Some(Activity::Running));
    }

    #[test]
    fn mappings_of_a_file_are_one() {
        let maps = b"\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 12 /usr/bin/a b
55d0c0001000-55d0c0005000 r-xp 00001000 08:01 12 /usr/bin/a b
55d0c1000000-55d0c1005000 rw-p 00000000 00:00 0 [heap]
7f0000002000-7f0000004000 r-xp 00002000 08:01 13 /lib/c.so (deleted)
7ff000000000-7ff000001000 r-xp 00000000 00:00 0
nonsense
";
        let of = |base, end, path: &str| MappedFile {
            base,
            end,
            path: path.to_owned(),
        };
        assert_eq!(
            mapped_files(maps),
            [
                of(0x55d0_c000_0000, 0x55d0_c000_5000, "/usr/bin/a b"),
                of(0x7f00_0000_0000, 0x7f00_0000_4000, "/lib/c.so (deleted)"),
            ]
        );
    }

    #[test]
    fn this_process_is_found() {
        let proc = Proc(PathBuf::from("/proc"));
        let pid = std::process::id();
        let ticks = proc.start_ticks(pid).unwrap();
        let age = now_ns() - start_ns(ticks);
        assert!((-1_000_000_000..600_000_000_000).contains(&age), "{age} ns");
        assert_eq!(proc.thread_here(pid, pid), Some(pid));
        assert_eq!(proc.start_ticks(u32::MAX), None);
        let doing = ActivityFile::open(&proc.process(pid).join(format!("task/{pid}"))).unwrap();
        doing.read().unwrap();
    }
}
