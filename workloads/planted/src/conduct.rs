//! Behaves as few programs do, at a point of the run that the command line chooses: limits itself, filters its system
//! calls, closes what it has not opened, or handles every signal. A recorder must not change how such a program ends.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};

use crate::args::{Args, Conduct, Moment};

/// Behaves as the arguments say for this moment.
pub fn at(moment: Moment, args: &Args) -> Result<()> {
    match args.conduct {
        Some(conduct) if args.moment == moment => {
            behave(conduct).with_context(|| format!("{conduct:?} failed"))
        }
        _ => Ok(()),
    }
}

fn behave(conduct: Conduct) -> Result<()> {
    let kill = libc::SECCOMP_RET_KILL_PROCESS;
    match conduct {
        Conduct::FilterKill => filter(&forbidden(), kill, libc::SECCOMP_FILTER_FLAG_TSYNC),
        Conduct::FilterThread => filter(&forbidden(), kill, 0),
        Conduct::FilterWrites => filter(&making(), kill, libc::SECCOMP_FILTER_FLAG_TSYNC),
        Conduct::FilterError => filter(
            &forbidden(),
            libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
        ),
        Conduct::FilterTrap => filter(
            &forbidden(),
            libc::SECCOMP_RET_TRAP,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
        ),
        Conduct::CloseAll => close_all(),
        Conduct::NoDescriptors => limit(libc::RLIMIT_NOFILE, 0),
        Conduct::SmallFiles => limit(libc::RLIMIT_FSIZE, 64 << 10),
        Conduct::NoMemory => limit(libc::RLIMIT_AS, address_space()? + (64 << 20)),
        Conduct::LockMemory => {
            check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })
        }
        Conduct::Chroot => chroot(),
        Conduct::Setuid => {
            check(unsafe { libc::setresgid(65534, 65534, 65534) })?;
            check(unsafe { libc::setresuid(65534, 65534, 65534) })
        }
        Conduct::Signals => handle_signals(),
        Conduct::Forks => forks(),
        Conduct::SandboxedChild => child(|| {
            if behave(Conduct::FilterKill).is_err() {
                unsafe { libc::_exit(7) };
            }
            unsafe { libc::exit(0) }
        }),
        Conduct::Spawns => spawns(),
        Conduct::Unload => (0..3).try_for_each(|_| load_and_unload()),
    }
}

fn check(result: libc::c_int) -> Result<()> {
    match result {
        -1 => Err(std::io::Error::last_os_error().into()),
        _ => Ok(()),
    }
}

/// The calls that a program in a sandbox makes before it enters that, and none after.
fn forbidden() -> Vec<libc::c_long> {
    let mut calls = making();
    calls.extend([
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_faccessat,
        libc::SYS_getdents64,
        libc::SYS_pipe2,
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_execve,
        libc::SYS_kill,
    ]);
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        libc::SYS_open,
        libc::SYS_access,
        libc::SYS_stat,
        libc::SYS_fork,
        libc::SYS_vfork,
    ]);
    calls
}

/// The calls by which files and connections come and go.
fn making() -> Vec<libc::c_long> {
    let mut calls = vec![
        libc::SYS_fallocate,
        libc::SYS_ftruncate,
        libc::SYS_truncate,
        libc::SYS_memfd_create,
        libc::SYS_mkdirat,
        libc::SYS_unlinkat,
        libc::SYS_renameat2,
        libc::SYS_linkat,
        libc::SYS_symlinkat,
        libc::SYS_socket,
        libc::SYS_connect,
        libc::SYS_sendmsg,
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([
        libc::SYS_creat,
        libc::SYS_mkdir,
        libc::SYS_unlink,
        libc::SYS_rename,
    ]);
    calls
}

/// Answers these calls with `action`, and mappings of files too where opening a file is among the calls.
fn filter(calls: &[libc::c_long], action: u32, flags: libc::c_ulong) -> Result<()> {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let end = (libc::BPF_RET | libc::BPF_K) as u16;
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // `seccomp_data`: the number, then the arguments from byte 16 on; the fifth one of mmap is the file.
    let mut program = vec![line(load, 0, 0, 0)];
    for call in calls {
        program.push(line(equal, 0, 1, *call as u32));
        program.push(line(end, 0, 0, action));
    }
    if calls.contains(&libc::SYS_openat) {
        program.push(line(equal, 0, 3, libc::SYS_mmap as u32));
        program.push(line(load, 0, 0, 16 + 4 * 8));
        program.push(line(equal, 1, 0, u32::MAX));
        program.push(line(end, 0, 0, action));
    }
    program.push(line(end, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    let set = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    match set {
        0 => Ok(()),
        _ => bail!(std::io::Error::last_os_error()),
    }
}

fn close_all() -> Result<()> {
    check(unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) } as libc::c_int)?;
    for _ in 0..64 {
        check(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) })?;
    }
    Ok(())
}

fn limit(resource: libc::__rlimit_resource_t, most: u64) -> Result<()> {
    let limit = libc::rlimit {
        rlim_cur: most,
        rlim_max: most,
    };
    check(unsafe { libc::setrlimit(resource, &limit) })
}

/// Returns the bytes of address space that the process uses.
fn address_space() -> Result<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = pages.split(' ').next().unwrap_or_default().parse()?;
    Ok(pages * 4096)
}

fn chroot() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("planted-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let path = CString::new(folder.as_os_str().as_encoded_bytes())?;
    check(unsafe { libc::chdir(path.as_ptr()) })?;
    std::fs::remove_dir(&folder)?;
    check(unsafe { libc::chroot(c".".as_ptr()) })
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_signal(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

fn handle_signals() -> Result<()> {
    let stack = Box::leak(vec![0u8; 64 << 10].into_boxed_slice());
    let stack = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: stack.len(),
    };
    check(unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) })?;
    for signal in 1..libc::SIGRTMAX() {
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = count_signal as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        // Two cannot be handled, and some belong to the C library.
        unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) };
    }
    let each = libc::timeval {
        tv_sec: 0,
        tv_usec: 1000,
    };
    let timer = libc::itimerval {
        it_interval: each,
        it_value: each,
    };
    check(unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) })
}

/// Forks a child that does `work`, which does not return, and waits for it.
fn child(work: impl FnOnce()) -> Result<()> {
    let child = unsafe { libc::fork() };
    check(child)?;
    if child == 0 {
        work();
        unsafe { libc::_exit(9) };
    }
    wait_for(child)
}

fn wait_for(child: libc::pid_t) -> Result<()> {
    let mut status = 0;
    check(unsafe { libc::waitpid(child, &mut status, 0) })?;
    match status {
        0 => Ok(()),
        _ => bail!("the child ended with status {status:#x}"),
    }
}

fn forks() -> Result<()> {
    for number in 0..200 {
        child(|| unsafe {
            match number % 20 {
                0 => {
                    let words = [c"true".as_ptr(), std::ptr::null()];
                    libc::execve(c"/bin/true".as_ptr(), words.as_ptr(), words[1..].as_ptr());
                }
                1..10 => libc::exit(0),
                _ => libc::_exit(0),
            }
        })?;
    }
    Ok(())
}

/// The arguments and the empty environment of a program that does nothing.
const TRUE: &CStr = c"/bin/true";

extern "C" fn execute(_: *mut c_void) -> c_int {
    let words = [TRUE.as_ptr(), std::ptr::null()];
    unsafe {
        libc::execve(TRUE.as_ptr(), words.as_ptr(), words[1..].as_ptr());
        libc::_exit(9)
    }
}

fn spawns() -> Result<()> {
    for _ in 0..20 {
        let words = [TRUE.as_ptr().cast_mut(), std::ptr::null_mut()];
        let mut spawned = 0;
        let error = unsafe {
            libc::posix_spawn(
                &mut spawned,
                TRUE.as_ptr(),
                std::ptr::null(),
                std::ptr::null(),
                words.as_ptr(),
                words[1..].as_ptr(),
            )
        };
        if error != 0 {
            bail!(std::io::Error::from_raw_os_error(error));
        }
        wait_for(spawned)?;
        // The C library's `vfork` cannot be called from Rust; these are its flags.
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let mut stack = vec![0u8; 64 << 10];
        let top = unsafe { stack.as_mut_ptr().add(stack.len()) };
        let child = unsafe { libc::clone(execute, top.cast(), flags, std::ptr::null_mut()) };
        check(child)?;
        wait_for(child)?;
    }
    Ok(())
}

fn load_and_unload() -> Result<()> {
    let entry = unsafe { ash::Entry::load() }?;
    let instance = unsafe { entry.create_instance(&ash::vk::InstanceCreateInfo::default(), None) }?;
    unsafe {
        instance.enumerate_physical_devices()?;
        instance.destroy_instance(None);
    }
    Ok(())
}
