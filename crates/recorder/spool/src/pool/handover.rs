//! Hands a pool from the process that keeps the pools (`gapscope-keeper`) to one that finds none: a hook asks by connecting to a
//! socket in the spool ([`ask`]), and the keeper answers with a descriptor ([`Handover::answer`]). The links by which pools are
//! otherwise found lead nowhere in another PID namespace, and there are only so many of them.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The socket's name in the spool.
const SOCKET: &str = "pools";
/// The longest wait of a program for the keeper's answer. That takes far less than a millisecond, unless processors are so busy that the
/// keeper waits for its turn: with fifty busy processes on two processors 200 ms were too few.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest wait of a program for the socket, which the keeper makes anew where somebody has deleted it.
const PATIENCE_FOR_SOCKET: Duration = Duration::from_millis(200);
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

    /// Returns true while processes find the socket in the spool `root`.
    pub fn is_found(root: &Path) -> bool {
        root.join(SOCKET).exists()
    }

    /// Calls `make` for each process that waits, and hands it the file that this returns; without one, the process sees the
    /// end of the connection.
    pub fn answer(&self, mut make: impl FnMut() -> Option<File>) {
        while let Ok((stream, _)) = self.0.accept() {
            if let Some(file) = make() {
                // A process that has ended meanwhile leaves its pool unclaimed.
                let _ = send(&stream, file.as_fd());
            }
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
    let stream = connect(root, &socket_in(&folder))?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    receive(&stream).filter(super::is_sealed)
}

/// Connects to the socket of the spool `root`, and waits for a while where there is none although somebody keeps pools; `None` where nobody
/// listens.
fn connect(root: &Path, socket: &Path) -> Option<UnixStream> {
    let begun = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Some(stream),
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && begun.elapsed() < PATIENCE_FOR_SOCKET
                    && has_pools(root) =>
            {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            Err(_) => return None,
        }
    }
}

/// Returns true where the spool `root` names pools.
fn has_pools(root: &Path) -> bool {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.any(|name| super::is_name_of_pool(&name))
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

fn receive(stream: &UnixStream) -> Option<File> {
    let mut byte = [0];
    let mut byte = IoSliceMut::new(&mut byte);
    let mut descriptor = Descriptor { bytes: [0; 32] };
    let mut message = message((&raw mut byte).cast(), &mut descriptor);
    // SAFETY: as in `send`. A received descriptor is new and has no other owner.
    unsafe {
        if libc::recvmsg(stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) != 1 {
            return None;
        }
        let header = libc::CMSG_FIRSTHDR(&message).as_ref()?;
        let is_descriptor = header.cmsg_level == libc::SOL_SOCKET
            && header.cmsg_type == libc::SCM_RIGHTS
            && header.cmsg_len as u64 >= u64::from(libc::CMSG_LEN(DESCRIPTOR_BYTES));
        let number = libc::CMSG_DATA(header).cast::<RawFd>();
        is_descriptor.then(|| File::from_raw_fd(number.read_unaligned()))
    }
}
