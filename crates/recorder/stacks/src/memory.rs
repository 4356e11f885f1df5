//! Reads the memory of another process while it runs (`process_vm_readv`): single pieces with [`Memory`], and many
//! pages in one call with [`Snapshot`].

use libc::{c_ulong, iovec, pid_t};
use std::io;

/// The unit in which [`Snapshot`]s read. The system's pages are as large or larger.
pub const PAGE: u64 = 4096;
/// The most pages of one call; a stack spread over more takes several calls.
const MAX_PAGES: usize = 32;

/// The memory of a process, as long as it lives. Reading it without permission gives `EPERM`.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    pid: pid_t,
}

impl Memory {
    pub fn new(pid: u32) -> Memory {
        // 0 is no process, and no process has a number that does not fit.
        let pid = pid_t::try_from(pid).unwrap_or(0);
        Memory { pid }
    }

    /// Fills the buffer with the bytes at the address; fails when not all are mapped.
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<()> {
        let wanted = into.len();
        match self.read_some(address, into)? {
            read if read == wanted => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EFAULT)),
        }
    }

    /// Fills the start of the buffer up to the first unmapped byte, and returns how many bytes that is.
    pub fn read_some(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let length = into.len();
        self.scatter(&[(address, length)], into)
    }

    /// Reads 8 bytes as a number.
    pub fn word(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads pieces (address and length) one after the other into the buffer, which is as long as all of them, in one
    /// call. Returns the number of bytes up to the first unmapped one.
    fn scatter(&self, pieces: &[(u64, usize)], into: &mut [u8]) -> io::Result<usize> {
        let length: usize = pieces.iter().map(|(_, length)| length).sum();
        assert_eq!(
            length,
            into.len(),
            "the buffer is not as long as the pieces"
        );
        if length == 0 {
            return Ok(0);
        }
        let local = iovec {
            iov_base: into.as_mut_ptr().cast(),
            iov_len: into.len(),
        };
        let mut remote = [iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        }; MAX_PAGES];
        assert!(pieces.len() <= MAX_PAGES, "too many pieces");
        for (remote, (address, length)) in remote.iter_mut().zip(pieces) {
            // The address belongs to the other process and is never dereferenced here.
            remote.iov_base = *address as *mut libc::c_void;
            remote.iov_len = *length;
        }
        // SAFETY: the kernel writes to `local` alone, which is `into`, borrowed for writing and of the stated length. It checks the
        // addresses of the other process itself and fails where they are not mapped there.
        let read = unsafe {
            libc::process_vm_readv(
                self.pid,
                &local,
                1,
                remote.as_ptr(),
                pieces.len() as c_ulong,
                0,
            )
        };
        usize::try_from(read).map_err(|_| io::Error::last_os_error())
    }
}

/// A copy of pages of a process: those known to be needed are read in one call, others on demand.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The address of each page, in the order of `bytes`.
    addresses: Vec<u64>,
    /// Whether each page was read from.
    used: Vec<bool>,
    bytes: Vec<u8>,
    /// The index of the page that was read from last.
    last: usize,
}

impl Snapshot {
    /// Starts over with these pages, of which at most [`MAX_PAGES`] are read now.
    pub fn take(&mut self, memory: Memory, pages: &[u64]) -> io::Result<()> {
        self.addresses.clear();
        self.used.clear();
        self.last = 0;
        let pages = &pages[..pages.len().min(MAX_PAGES)];
        let mut pieces = [(0, 0); MAX_PAGES];
        for (piece, page) in pieces.iter_mut().zip(pages) {
            *piece = (*page, PAGE as usize);
        }
        self.bytes.resize(pages.len() * PAGE as usize, 0);
        let read = memory.scatter(&pieces[..pages.len()], &mut self.bytes)?;
        // The pages after a missing one are read on demand.
        let whole = read / PAGE as usize;
        self.addresses.extend_from_slice(&pages[..whole]);
        self.bytes.truncate(whole * PAGE as usize);
        self.used.resize(whole, false);
        Ok(())
    }

    /// Returns the pages that were read from.
    pub fn used(&self) -> impl Iterator<Item = u64> {
        let pages = self.addresses.iter().zip(&self.used);
        pages.filter(|(_, used)| **used).map(|(page, _)| *page)
    }

    /// Fills the buffer from the pages.
    pub fn read(&mut self, memory: Memory, address: u64, into: &mut [u8]) -> io::Result<()> {
        let (mut address, mut rest) = (address, into);
        while !rest.is_empty() {
            let page = address & !(PAGE - 1);
            let offset = (address - page) as usize;
            let bytes = self.page(memory, page)?;
            let length = rest.len().min(bytes.len() - offset);
            let (now, later) = rest.split_at_mut(length);
            now.copy_from_slice(&bytes[offset..offset + length]);
            rest = later;
            address = match address.checked_add(length as u64) {
                Some(address) => address,
                None => return Err(io::Error::from_raw_os_error(libc::EFAULT)),
            };
        }
        Ok(())
    }

    /// Returns the bytes of a page, which is read from the process if the copy does not have it.
    fn page(&mut self, memory: Memory, page: u64) -> io::Result<&[u8]> {
        let known = if self.addresses.get(self.last) == Some(&page) {
            Some(self.last)
        } else {
            self.addresses.iter().position(|address| *address == page)
        };
        let index = match known {
            Some(index) => index,
            None => {
                if self.addresses.len() >= MAX_PAGES * 8 {
                    return Err(io::Error::from_raw_os_error(libc::EFAULT));
                }
                let start = self.bytes.len();
                self.bytes.resize(start + PAGE as usize, 0);
                if let Err(error) = memory.read(page, &mut self.bytes[start..]) {
                    self.bytes.truncate(start);
                    return Err(error);
                }
                self.addresses.push(page);
                self.used.push(false);
                self.addresses.len() - 1
            }
        };
        self.last = index;
        self.used[index] = true;
        let start = index * PAGE as usize;
        Ok(&self.bytes[start..start + PAGE as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_is_read_across_pages() {
        let bytes: Vec<u8> = (0..3 * PAGE).map(|at| (at % 251) as u8).collect();
        let memory = Memory::new(std::process::id());
        let start = bytes.as_ptr() as u64;
        let mut snapshot = Snapshot::default();
        let first = start.next_multiple_of(PAGE);
        snapshot.take(memory, &[first]).unwrap();
        assert_eq!(snapshot.used().count(), 0);
        let mut read = vec![0; PAGE as usize];
        let address = first + 100;
        snapshot.read(memory, address, &mut read).unwrap();
        let offset = (address - start) as usize;
        assert_eq!(read, bytes[offset..offset + read.len()]);
        assert_eq!(snapshot.used().collect::<Vec<_>>(), [first, first + PAGE]);
    }

    #[test]
    fn memory_that_is_not_mapped_is_an_error() {
        let memory = Memory::new(std::process::id());
        let mut snapshot = Snapshot::default();
        snapshot.take(memory, &[0, PAGE]).unwrap_err();
        for address in [0, 16, u64::MAX - 4] {
            let refused = snapshot.read(memory, address, &mut [0; 8]).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EFAULT));
        }
        let gone = Memory::new(u32::MAX).word(16).unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ESRCH));
    }
}
