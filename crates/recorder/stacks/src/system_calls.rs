//! Names the system calls that threads wait in; others keep their number.

use std::borrow::Cow;

/// Returns the name of a system call of this architecture.
pub fn name(number: i64) -> Cow<'static, str> {
    macro_rules! named {
        ($($constant:ident $name:literal,)*) => {
            [$((libc::$constant as i64, $name),)*]
        };
    }
    let common = named! {
        SYS_accept "accept", SYS_accept4 "accept4", SYS_clock_nanosleep "clock_nanosleep", SYS_close "close",
        SYS_connect "connect", SYS_copy_file_range "copy_file_range", SYS_epoll_pwait "epoll_pwait", SYS_fallocate "fallocate",
        SYS_fcntl "fcntl", SYS_fdatasync "fdatasync", SYS_flock "flock", SYS_fsync "fsync", SYS_futex "futex",
        SYS_getdents64 "getdents64", SYS_io_getevents "io_getevents", SYS_io_uring_enter "io_uring_enter",
        SYS_ioctl "ioctl", SYS_madvise "madvise", SYS_mmap "mmap", SYS_mprotect "mprotect", SYS_msgrcv "msgrcv",
        SYS_msgsnd "msgsnd", SYS_munmap "munmap", SYS_nanosleep "nanosleep", SYS_openat "openat",
        SYS_ppoll "ppoll", SYS_pread64 "pread64", SYS_preadv "preadv", SYS_pselect6 "pselect6",
        SYS_pwrite64 "pwrite64", SYS_read "read", SYS_readv "readv", SYS_recvfrom "recvfrom",
        SYS_recvmmsg "recvmmsg", SYS_recvmsg "recvmsg", SYS_rt_sigtimedwait "rt_sigtimedwait",
        SYS_sched_yield "sched_yield", SYS_semtimedop "semtimedop", SYS_sendfile "sendfile", SYS_sendmsg "sendmsg",
        SYS_sendto "sendto", SYS_splice "splice", SYS_sync "sync", SYS_wait4 "wait4", SYS_waitid "waitid",
        SYS_write "write", SYS_writev "writev",
    };
    #[cfg(target_arch = "x86_64")]
    let own = named! {
        SYS_epoll_wait "epoll_wait", SYS_open "open", SYS_pause "pause", SYS_poll "poll", SYS_select "select",
    };
    #[cfg(not(target_arch = "x86_64"))]
    let own: [(i64, &'static str); 0] = [];
    let all = common.into_iter().chain(own);
    let found = all.into_iter().find(|(known, _)| *known == number);
    match found {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn calls_have_names_or_numbers() {
        assert_eq!(name(libc::SYS_futex), "futex");
        assert_eq!(name(libc::SYS_ioctl), "ioctl");
        assert_eq!(name(99_999), "99999");
    }
}
