//! Reads a file of Perfetto as a stream of packets (the fields 1 of its outermost message), and recognises such
//! files. A bundle is a packet that holds others compressed; these come out in its place.

use crate::protobuf::{Message, varint};
use crate::{Error, counted};
use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum size of a packet. Longer packets are skipped: the tools write none of that size.
const MAX_PACKET_BYTES: u64 = 256 << 20;
/// The maximum ratio of decompressed to compressed size, which real packets do not reach.
const MAX_COMPRESSION: u64 = 2048;

// Fields of Trace and TracePacket.
const PACKET: u64 = 1;
const COMPRESSED_PACKETS: u32 = 50;
const ZSTD_COMPRESSED_PACKETS: u32 = 133;

/// The damage to a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Damage {
    /// How many bytes of the file were read before reading stopped, packed if the file is.
    pub cut_at: Option<u64>,
    /// The number of packets that were skipped because of their size.
    pub too_long: u64,
    /// The number of bundles of compressed packets that could not be decompressed completely.
    pub compressed: u64,
    /// The number of malformed messages.
    pub torn: u64,
}

/// Reads a file, which may be compressed as a whole (gzip), and passes every packet to `take`. `progress` is called
/// before each, with the position in the file. Returns the damage to the file.
///
/// # Errors
/// The file cannot be opened or read, or `take` returns an error.
pub(super) fn read(
    path: &Path,
    progress: &mut dyn FnMut(u64),
    take: &mut dyn FnMut(Message) -> Result<(), Error>,
) -> Result<Damage, Error> {
    let failed = Error::read(path);
    let used = Arc::new(AtomicU64::new(0));
    let opened = counted::open(path, used.clone()).map_err(failed)?;
    let mut file = BufReader::with_capacity(1 << 20, opened.content);
    let gzip = opened.is_gzip;
    let mut damage = Damage::default();
    let failure = RefCell::new(None);
    let torn = Cell::new(0);
    let mut reader = Stream {
        buffer: Vec::new(),
        torn: &torn,
        damage: &mut damage,
        failure: &failure,
        position: 0,
        whole_bytes: 0,
    };
    let mut each = |message: Message| {
        progress(used.load(Ordering::Relaxed));
        take(message)
    };
    let whole = reader.packets(&mut file, true, &mut each)?;
    let whole_bytes = reader.whole_bytes;
    // A failed decompression is the file's fault, and a failed read is the system's.
    if let Some(source) = failure.into_inner().filter(|_| !gzip) {
        return Err(failed(source));
    }
    if !whole {
        damage.cut_at = Some(match gzip {
            true => used.load(Ordering::Relaxed),
            false => whole_bytes,
        });
    }
    damage.torn = torn.get();
    Ok(damage)
}

/// Returns the size of an input.
pub(super) fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// The callback that receives each packet; its error stops the reading.
type Take<'a> = &'a mut dyn FnMut(Message) -> Result<(), Error>;

/// The state of reading packets from a file, or from a bundle of compressed packets.
struct Stream<'a> {
    /// The packet that is being read.
    buffer: Vec<u8>,
    /// The number of malformed messages.
    torn: &'a Cell<u64>,
    damage: &'a mut Damage,
    /// The error of the system, if reading failed.
    failure: &'a RefCell<Option<io::Error>>,
    /// The number of bytes that were read, and of those up to the end of the last field that was read whole.
    position: u64,
    whole_bytes: u64,
}

impl Stream<'_> {
    /// Passes all packets of a stream to `take`. Returns false if the stream is cut or damaged. `outermost` is false
    /// inside a compressed bundle.
    fn packets(
        &mut self,
        from: &mut dyn BufRead,
        outermost: bool,
        take: Take,
    ) -> Result<bool, Error> {
        loop {
            self.whole_bytes = self.position;
            let tag = match self.varint(from) {
                Ok(Some(tag)) => tag,
                Ok(None) => return Ok(true),
                Err(()) => return Ok(false),
            };
            let length = match tag & 7 {
                0 => match self.varint(from) {
                    Ok(Some(_)) => continue,
                    _ => return Ok(false),
                },
                1 => 8,
                2 => match self.varint(from) {
                    Ok(Some(length)) => length,
                    _ => return Ok(false),
                },
                5 => 4,
                _ => return Ok(false),
            };
            let is_packet = tag == PACKET << 3 | 2;
            if !is_packet || length > MAX_PACKET_BYTES {
                self.damage.too_long += u64::from(is_packet);
                let skipped = io::copy(&mut from.take(length), &mut io::sink());
                self.position += *skipped.as_ref().unwrap_or(&0);
                match skipped {
                    Ok(skipped) if skipped == length => continue,
                    Ok(_) => return Ok(false),
                    Err(error) => {
                        self.failure.replace(Some(error));
                        return Ok(false);
                    }
                }
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            // The buffer grows with the bytes that exist, because the packet may claim any length.
            let read = from.take(length).read_to_end(&mut buffer);
            self.position += buffer.len() as u64;
            let whole = match read {
                Ok(read) => read as u64 == length,
                Err(error) => {
                    self.failure.replace(Some(error));
                    false
                }
            };
            if whole {
                self.packet(&buffer, outermost, take)?;
            }
            if buffer.capacity() > 1 << 22 {
                buffer = Vec::new();
            }
            self.buffer = buffer;
            if !whole {
                return Ok(false);
            }
        }
    }

    /// Passes a packet, or the packets of a compressed bundle, to `take`.
    fn packet(&mut self, bytes: &[u8], outermost: bool, take: Take) -> Result<(), Error> {
        // The first bytes identify bundles, which have no other field.
        let torn = Cell::new(0);
        let first = Message::new(bytes, &torn).fields().next();
        let Some((number @ (COMPRESSED_PACKETS | ZSTD_COMPRESSED_PACKETS), value)) = first else {
            return take(Message::new(bytes, self.torn));
        };
        let inner = value.message().map_or(&[][..], Message::bytes);
        // No tool writes a bundle inside a bundle.
        if !outermost {
            self.damage.compressed += 1;
            return Ok(());
        }
        let most = (inner.len() as u64 + 64) * MAX_COMPRESSION;
        let failure = RefCell::new(None);
        let mut nested = Stream {
            buffer: Vec::new(),
            torn: self.torn,
            damage: &mut *self.damage,
            failure: &failure,
            position: 0,
            whole_bytes: 0,
        };
        let decoder: Box<dyn Read> = if number == COMPRESSED_PACKETS {
            Box::new(flate2::bufread::ZlibDecoder::new(inner))
        } else {
            match zstd::Decoder::with_buffer(inner) {
                Ok(decoder) => Box::new(decoder),
                Err(_) => {
                    self.damage.compressed += 1;
                    return Ok(());
                }
            }
        };
        let mut decoded = BufReader::with_capacity(1 << 16, decoder.take(most));
        let whole = nested.packets(&mut decoded, false, take)?;
        let spent = decoded.into_inner().limit() == 0;
        if !whole || spent || failure.into_inner().is_some() {
            self.damage.compressed += 1;
        }
        Ok(())
    }

    /// Reads a varint. Returns `None` at the end of the stream and an error inside a varint.
    fn varint(&mut self, from: &mut dyn BufRead) -> Result<Option<u64>, ()> {
        let mut bytes = [0; 10];
        for place in 0..bytes.len() {
            let next = match from.fill_buf() {
                Ok(buffer) => buffer.first().copied(),
                Err(error) => {
                    self.failure.replace(Some(error));
                    return Err(());
                }
            };
            let Some(byte) = next else {
                return if place == 0 { Ok(None) } else { Err(()) };
            };
            from.consume(1);
            self.position += 1;
            bytes[place] = byte;
            if byte & 0x80 == 0 {
                return Ok(varint(&mut &bytes[..=place]));
            }
        }
        Err(())
    }
}

/// Returns true if the first bytes of a file are packets: all fields may be those of packets, and at least one
/// distinguishes them from other messages.
pub(super) fn recognises(mut bytes: &[u8]) -> bool {
    let torn = Cell::new(0);
    let mut known = 0;
    while !bytes.is_empty() {
        let Some(tag) = varint(&mut bytes) else {
            break;
        };
        let Some(length) = varint(&mut bytes).and_then(|length| usize::try_from(length).ok())
        else {
            break;
        };
        if tag != PACKET << 3 | 2 {
            return false;
        }
        let whole = length <= bytes.len();
        let (packet, rest) = bytes.split_at(length.min(bytes.len()));
        bytes = rest;
        torn.set(0);
        let fields = Message::new(packet, &torn).fields();
        let plausible = fields
            .map(|(number, value)| plausibility(number, value.message().is_some()))
            .try_fold(0, |sum, one| one.map(|one| sum + one));
        match plausible {
            Some(found) if torn.get() == 0 || !whole => known += found,
            _ => return false,
        }
    }
    known > 0
}

/// Rates a field of a packet: 1 if the field distinguishes packets from other messages, 0 if packets and other
/// messages may have the field, `None` if no packet has it.
fn plausibility(number: u32, is_bytes: bool) -> Option<u32> {
    let told = match number {
        // Fields that are numbers: uid, timestamp, sequence, flags, state, clock.
        3 | 8 | 10 | 13 | 41 | 42 | 58 | 79 => !is_bytes,
        6 | 11 | 12 | 50 | 52 | 53 | 59 | 60 | 133 => is_bytes,
        1..=999 => return Some(0),
        _ => return None,
    };
    told.then_some(1)
}
