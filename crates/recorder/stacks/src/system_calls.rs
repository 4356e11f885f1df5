//! Names the system calls that threads wait in (the number of a call goes in, `futex` comes out); others keep their
//! number as text.

use std::borrow::Cow;

/// Returns the name of a system call of this architecture.
pub fn name(number: i64) -> Cow<'static, str> {
    macro_rules! named {
        ($($name:ident)*) => {
            [$((libc::$name as i64, &stringify!($name)["SYS_".len()..]),)*]
        };
    }
    let common = named! {
        SYS_accept SYS_accept4 SYS_clock_nanosleep SYS_close SYS_connect SYS_copy_file_range SYS_epoll_pwait
        SYS_fallocate SYS_fcntl SYS_fdatasync SYS_flock SYS_fsync SYS_futex SYS_getdents64 SYS_io_getevents
        SYS_io_uring_enter SYS_ioctl SYS_madvise SYS_mmap SYS_mprotect SYS_msgrcv SYS_msgsnd SYS_munmap SYS_nanosleep
        SYS_openat SYS_ppoll SYS_pread64 SYS_preadv SYS_pselect6 SYS_pwrite64 SYS_read SYS_readv SYS_recvfrom
        SYS_recvmmsg SYS_recvmsg SYS_rt_sigtimedwait SYS_sched_yield SYS_semtimedop SYS_sendfile SYS_sendmsg
        SYS_sendto SYS_splice SYS_sync SYS_wait4 SYS_waitid SYS_write SYS_writev
    };
    #[cfg(target_arch = "x86_64")]
    let own = named! { SYS_epoll_wait SYS_open SYS_pause SYS_poll SYS_select };
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
