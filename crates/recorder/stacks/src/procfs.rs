//! What Linux says of processes and threads in `/proc`.

use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Now, on the monotonic clock.
pub fn now_ns() -> i64 {
    nanoseconds(ClockId::Monotonic)
}

/// Processor time of this thread so far.
pub fn worked_ns() -> i64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

fn nanoseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// `/proc`, and the folders of processes in it.
#[derive(Debug, Clone)]
pub struct Proc(pub PathBuf);

impl Proc {
    pub fn process(&self, pid: u32) -> PathBuf {
        self.0.join(pid.to_string())
    }

    /// When a process started, in ticks since the system did: with its number this tells it from any other. `None`: it has ended.
    pub fn start_ticks(&self, pid: u32) -> Option<u64> {
        let stat = fs::read_to_string(self.process(pid).join("stat")).ok()?;
        let mut fields = after_name(&stat)?.split_ascii_whitespace();
        let has_ended = matches!(fields.next()?, "Z" | "X");
        // Field 22; the state is the third.
        let ticks = fields.nth(18)?.parse().ok()?;
        (!has_ended).then_some(ticks)
    }

    /// The processes that a process has started and not yet waited for, and theirs.
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

    /// The number here of the thread of a process that calls itself `inner`.
    pub fn thread_here(&self, pid: u32, inner: u32) -> Option<u32> {
        let tasks = self.process(pid).join("task");
        let folder = |task: u32| tasks.join(task.to_string());
        // Kernels without namespaces do not name a second number.
        if folder(inner).exists() && inner_number(&folder(inner)).is_none_or(|of| of == inner) {
            return Some(inner);
        }
        numbers_in(&tasks).find(|task| inner_number(&folder(*task)) == Some(inner))
    }

    /// The path of the program, as the process sees it.
    pub fn executable(&self, pid: u32) -> Option<String> {
        let path = fs::read_link(self.process(pid).join("exe")).ok()?;
        Some(path.to_string_lossy().into_owned())
    }

    /// The arguments after the name of the program.
    pub fn arguments(&self, pid: u32) -> Vec<String> {
        let line = fs::read(self.process(pid).join("cmdline")).unwrap_or_default();
        let line = line.strip_suffix(b"\0").unwrap_or(&line);
        let arguments = line.split(|byte| *byte == 0).skip(1);
        arguments
            .map(|argument| String::from_utf8_lossy(argument).into_owned())
            .collect()
    }

    /// Why a process may not be looked into, as far as that can be seen.
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
            // What is not dumpable belongs to root here, whoever runs it.
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

/// The number that a task has in its own PID namespace; `folder` is that of the task.
pub fn inner_number(folder: &Path) -> Option<u32> {
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let numbers = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().last()?.parse().ok()
}

fn numbers_in(folder: &Path) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The name is in parentheses, and may have any characters, parentheses too.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, rest)| rest)
}

/// The start of a process on the monotonic clock, to a tick of 10 ms.
pub fn start_ns(ticks: u64) -> i64 {
    const NS_PER_TICK: i64 = 10_000_000;
    // The start time counts time asleep, the monotonic clock does not.
    let asleep = nanoseconds(ClockId::Boottime) - nanoseconds(ClockId::Monotonic);
    let ticks = i64::try_from(ticks).unwrap_or(0);
    ticks.saturating_mul(NS_PER_TICK).saturating_sub(asleep)
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doing {
    /// It runs, or waits for a processor.
    Running,
    /// It is blocked: in a system call, or, without one, for memory.
    Blocked(Option<Call>),
}

/// A system call that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub number: i64,
    /// The first argument: of `futex` the address.
    pub argument: u64,
    pub stack_pointer: u64,
    pub instruction: u64,
}

/// The file of a thread that says what it does, kept open.
#[derive(Debug)]
pub struct Doings {
    file: File,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Call,
    State,
}

impl Doings {
    /// `folder`: that of the task.
    pub fn open(folder: &Path) -> io::Result<Doings> {
        let call = File::open(folder.join("syscall")).map(|file| Doings {
            file,
            kind: Kind::Call,
        });
        match call {
            // A kernel without this file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Doings {
                file: File::open(folder.join("stat"))?,
                kind: Kind::State,
            }),
            call => call,
        }
    }

    pub fn read(&self) -> io::Result<Doing> {
        let mut bytes = [0; 1024];
        let length = self.file.read_at(&mut bytes, 0)?;
        let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default();
        let doing = match self.kind {
            Kind::Call => call(text),
            Kind::State => state(text),
        };
        doing.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

/// `running`, `NUMBER ARGUMENTS.. SP PC`, or `-1 SP PC`.
fn call(text: &str) -> Option<Doing> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next()?;
    if first == "running" {
        return Some(Doing::Running);
    }
    let number: i64 = first.parse().ok()?;
    if number < 0 {
        return Some(Doing::Blocked(None));
    }
    let mut words = words.map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let argument = words.next()??;
    let stack_pointer = words.nth(5)??;
    let instruction = words.next()??;
    Some(Doing::Blocked(Some(Call {
        number,
        argument,
        stack_pointer,
        instruction,
    })))
}

fn state(stat: &str) -> Option<Doing> {
    match after_name(stat)?.split_ascii_whitespace().next()? {
        "R" => Some(Doing::Running),
        "X" | "Z" => None,
        _ => Some(Doing::Blocked(None)),
    }
}

/// A file that a process has mapped, once for each file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped {
    /// The address of the file's first byte: of the lowest mapping, less its offset in the file.
    pub base: u64,
    /// The end of the highest mapping.
    pub end: u64,
    /// As the process sees it.
    pub path: String,
}

/// The files in `/proc/PID/maps`. One that is mapped at two places far apart, as a program may do by itself, is known at the first.
pub fn mapped(maps: &str) -> Vec<Mapped> {
    let mut files: Vec<Mapped> = Vec::new();
    for line in maps.lines() {
        if let Some(file) = mapping(line) {
            match files.last_mut().filter(|last| last.path == file.path) {
                Some(last) => last.end = file.end.max(last.end),
                None => files.push(file),
            }
        }
    }
    files
}

fn mapping(line: &str) -> Option<Mapped> {
    let mut rest = line;
    let mut field = || {
        let (field, after) = rest.trim_start().split_once(' ')?;
        rest = after;
        Some(field)
    };
    let (start, end) = field()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let _permissions = field()?;
    let offset = hex(field()?)?;
    let _device = field()?;
    let _inode = field()?;
    let path = rest.trim_start();
    path.starts_with('/').then_some(())?;
    Some(Mapped {
        base: hex(start)?.checked_sub(offset)?,
        end: hex(end)?,
        path: path.to_owned(),
    })
}

/// Opens a file that a process has mapped. `folder`: that of the process.
pub fn open_mapped(folder: &Path, path: &str) -> Option<File> {
    // As the process sees it: it may be in another mount namespace.
    let inside = folder.join("root").join(path.trim_start_matches('/'));
    // The system names files of a process with a root of its own as we see them. What was replaced while it runs is its program alone.
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
        assert_eq!(call("running\n"), Some(Doing::Running));
        assert_eq!(
            call("-1 0x7ffe2d25a408 0x7f9e12345678\n"),
            Some(Doing::Blocked(None))
        );
        let text = "202 0x7f2 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe2d25a408 0x7f9e12345678\n";
        assert_eq!(
            call(text),
            Some(Doing::Blocked(Some(Call {
                number: 202,
                argument: 0x7f2,
                stack_pointer: 0x7ffe_2d25_a408,
                instruction: 0x7f9e_1234_5678,
            })))
        );
        for torn in ["", "202", "202 0x1 0x2", "x", "202 a b c d e f g h"] {
            assert_eq!(call(torn), None, "{torn}");
        }
        assert_eq!(state("12 (a ) R b) S 1"), Some(Doing::Blocked(None)));
        assert_eq!(state("12 (a) R 1"), Some(Doing::Running));
    }

    #[test]
    fn mappings_of_a_file_are_one() {
        let maps = "\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 12 /usr/bin/a b
55d0c0001000-55d0c0005000 r-xp 00001000 08:01 12 /usr/bin/a b
55d0c1000000-55d0c1005000 rw-p 00000000 00:00 0 [heap]
7f0000002000-7f0000004000 r-xp 00002000 08:01 13 /lib/c.so (deleted)
7ff000000000-7ff000001000 r-xp 00000000 00:00 0
nonsense
";
        let of = |base, end, path: &str| Mapped {
            base,
            end,
            path: path.to_owned(),
        };
        assert_eq!(
            mapped(maps),
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
        let doing = Doings::open(&proc.process(pid).join(format!("task/{pid}"))).unwrap();
        doing.read().unwrap();
    }
}
