//! Filters the system calls of the program: from then on, one that opens a file ends it.

/// Sets the filter for all threads.
pub fn set() {
    let (load, equal, end) = (
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        (libc::BPF_RET | libc::BPF_K) as u16,
    );
    let line = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The number of the call is the first field.
    let mut program = vec![line(load, 0, 0, 0)];
    for call in [libc::SYS_openat, libc::SYS_openat2, libc::SYS_memfd_create] {
        program.push(line(equal, 0, 1, call as u32));
        program.push(line(end, 0, 0, libc::SECCOMP_RET_KILL_PROCESS));
    }
    program.push(line(end, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the program lives until the end of the call, which copies it.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    assert_eq!(set, 0, "the system refuses the filter");
}
