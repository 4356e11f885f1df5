//! Hands a pool from the process that keeps the pools (`gapscope-keeper`) to one that finds none: a hook asks by connecting to a
//! socket in the spool ([`ask`]), and the keeper answers with a descriptor ([`Handover::renew`]). The links by which pools are
//! otherwise found lead nowhere in another PID namespace, and there are only so many of them.

use std::ffi::OsStr;
use std::fs::{DirEntry, File};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The socket's name in the spool.
const SOCKET: &str = "pools";
/// The longest wait of a program for the keeper's answer, and for the socket, which the keeper makes anew where somebody has deleted it.
/// Either takes far less than a millisecond, unless processors are so busy that the keeper waits for its turn: with forty busy processes on
/// two processors 200 ms were too few.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest wait for the socket where no link to a pool can be followed, so that the keeper has ended or is in another PID namespace.
const PATIENCE_WITHOUT_POOLS: Duration = Duration::from_millis(200);
/// The time between two looks for the socket.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The end of the socket at which the keeper answers.
#[derive(Debug)]
pub struct Handover(UnixListener);

impl Handover {
    /// Makes the socket of the spool `root`, in place of an earlier one.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen(root: &Path) -> io::Result<Handover> {
        let folder = open_folder(root)?;
        let path = socket_in(&folder);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        Ok(Handover(listener))
    }

    /// Calls `make` for each process that waits, and hands it the file that this returns; without one, the process sees the
    /// end of the connection. A socket that somebody has deleted from the spool `root` is made anew first, so that no process
    /// waits at the deleted one when that is closed.
    pub fn renew(&mut self, root: &Path, mut make: impl FnMut() -> Option<File>) {
        let is_found = root.join(SOCKET).exists();
        let new = (!is_found).then(|| Handover::listen(root).ok()).flatten();
        while let Ok((stream, _)) = self.0.accept() {
            if let Some(file) = make() {
                // A process that has ended meanwhile leaves its pool unclaimed.
                let _ = send(&stream, file.as_fd());
            }
        }
        if let Some(new) = new {
            *self = new;
        }
    }
}

impl AsFd for Handover {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Asks the keeper of the spool `root` for a pool; `None` where nobody answers, or where this process filters its system
/// calls, so that these could end it.
pub(super) fn ask(root: &Path) -> Option<File> {
    if crate::filters::has_own() {
        return None;
    }
    let folder = open_folder(root).ok()?;
    let socket = socket_in(&folder);
    let begun = Instant::now();
    loop {
        match ask_once(&socket) {
            Ok(file) => return file.filter(super::is_sealed),
            Err(error)
                if is_between_sockets(&error)
                    && patience(root).is_some_and(|longest| begun.elapsed() < longest) =>
            {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            Err(_) => return None,
        }
    }
}

/// Returns the file that is handed over at a socket; `None` where the keeper has none to give.
fn ask_once(socket: &Path) -> io::Result<Option<File>> {
    let stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    receive(&stream)
}

/// Returns true for the errors that a process can meet while the keeper makes a deleted socket anew: there is no socket, nobody
/// listens at it any more, or it was closed while the process waited.
fn is_between_sockets(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset
    )
}

/// Returns the longest wait for the socket of the spool `root`; `None` where the spool names no pool, so that nobody keeps any.
fn patience(root: &Path) -> Option<Duration> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let is_pool = |name: &OsStr| name.to_str().is_some_and(super::is_name_of_pool);
    let pools = entries.filter(|entry| is_pool(&entry.file_name()));
    let can_be_followed = |entry: DirEntry| entry.path().exists();
    pools
        .map(can_be_followed)
        .max()
        .map(|is_kept| match is_kept {
            true => PATIENCE,
            false => PATIENCE_WITHOUT_POOLS,
        })
}

fn open_folder(root: &Path) -> io::Result<File> {
    let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).custom_flags(flags).open(root)
}

/// Returns a short path of the socket, because the path of a socket has at most 107 bytes.
fn socket_in(folder: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))
}

/// The room for a message's one descriptor, aligned like a header.
#[repr(C)]
union Descriptor {
    bytes: [u8; 32],
    _aligned: libc::cmsghdr,
}

/// The bytes of a descriptor in a message.
const DESCRIPTOR_BYTES: u32 = size_of::<RawFd>() as u32;

/// Returns a message of one byte, with the room for a descriptor.
fn message(byte: *mut libc::iovec, descriptor: &mut Descriptor) -> libc::msghdr {
    // SAFETY: the all-zero bytes are a valid value of the type.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = byte;
    message.msg_iovlen = 1;
    message.msg_control = std::ptr::from_mut(descriptor).cast();
    // SAFETY: the function only computes a number.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(DESCRIPTOR_BYTES) } as _;
    message
}

fn send(stream: &UnixStream, file: BorrowedFd<'_>) -> io::Result<()> {
    let mut byte = IoSlice::new(&[0]);
    let mut descriptor = Descriptor { bytes: [0; 32] };
    let message = message((&raw mut byte).cast(), &mut descriptor);
    // SAFETY: an `IoSlice` has the layout of an `iovec`; the message has room for one header with a descriptor, and all that
    // it names lives until the end of the call.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(DESCRIPTOR_BYTES) as _;
        let number = libc::CMSG_DATA(header).cast::<RawFd>();
        number.write_unaligned(file.as_raw_fd());
        libc::sendmsg(stream.as_raw_fd(), &message, libc::MSG_NOSIGNAL)
    };
    match sent {
        1 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the file of a message; `None` where the message has none, or the other side has closed the connection.
fn receive(stream: &UnixStream) -> io::Result<Option<File>> {
    let mut byte = [0];
    let mut byte = IoSliceMut::new(&mut byte);
    let mut descriptor = Descriptor { bytes: [0; 32] };
    let mut message = message((&raw mut byte).cast(), &mut descriptor);
    // SAFETY: as in `send`. A received descriptor is new and has no other owner.
    unsafe {
        match libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) {
            1 => {}
            0 => return Ok(None),
            _ => return Err(io::Error::last_os_error()),
        }
        let Some(header) = libc::CMSG_FIRSTHDR(&message).as_ref() else {
            return Ok(None);
        };
        let is_descriptor = header.cmsg_level == libc::SOL_SOCKET
            && header.cmsg_type == libc::SCM_RIGHTS
            && header.cmsg_len as u64 >= u64::from(libc::CMSG_LEN(DESCRIPTOR_BYTES));
        let number = libc::CMSG_DATA(header).cast::<RawFd>();
        Ok(is_descriptor.then(|| File::from_raw_fd(number.read_unaligned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_socket_that_is_deleted_again_and_again_answers_everybody() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = folder.path();
        std::fs::write(root.join(pool::spare_name(0)), "").expect("a name of a pool");
        let file = pool::create("handed-over").expect("a pool");
        let ends = AtomicBool::new(false);
        let make = || Some(file.try_clone().expect("a descriptor"));
        let asks = || (0..500).all(|_| ask(root).is_some());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut handover = Handover::listen(root).expect("a socket");
                while !ends.load(Ordering::Relaxed) {
                    handover.renew(root, make);
                }
            });
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let _ = std::fs::remove_file(root.join(SOCKET));
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let askers: Vec<_> = (0..4).map(|_| scope.spawn(asks)).collect();
            let answered: Vec<bool> = askers
                .into_iter()
                .map(|asker| asker.join().expect("no panic"))
                .collect();
            ends.store(true, Ordering::Relaxed);
            assert_eq!(answered, [true; 4]);
        });
    }
}
