//! A bucket of an object store: as much of the S3 protocol as a query engine's client speaks to read. It lists, and gives whole objects, their
//! lengths and ranges of them; requests must be signed, but the signature is not checked.

use crate::Result;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The key that requests must be signed with.
pub const KEY: &str = "gapscope";
/// The bucket, as paths of requests begin.
const BUCKET: &str = "/traces";
/// The folder in it that the ranks are in.
const FOLDER: &str = "run/";

/// A server of one bucket, for as long as the process runs.
pub struct Bucket {
    /// Where it listens.
    pub url: String,
    counts: Arc<Counts>,
}

/// What was asked for.
#[derive(Debug)]
pub struct Requests {
    pub lists: usize,
    pub ranges: usize,
}

#[derive(Default)]
struct Counts {
    lists: AtomicUsize,
    ranges: AtomicUsize,
}

/// An object: its key, its file, and that file's length in bytes.
#[derive(Clone)]
struct Object {
    key: String,
    file: PathBuf,
    bytes: u64,
}

impl Bucket {
    /// Serves the files below a folder.
    pub fn new(folder: &Path) -> Result<Bucket> {
        let mut objects = Vec::new();
        add(folder, FOLDER, &mut objects)?;
        objects.sort_by(|a, b| a.key.cmp(&b.key));
        let objects: Arc<[Object]> = objects.into();
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let counts = Arc::new(Counts::default());
        let of_server = counts.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(std::io::Result::ok) {
                let (objects, counts) = (objects.clone(), of_server.clone());
                // A client that goes away in the midst of an answer is no error.
                std::thread::spawn(move || serve(stream, &objects, &counts).ok());
            }
        });
        Ok(Bucket { url, counts })
    }

    pub fn requests(&self) -> Requests {
        Requests {
            lists: self.counts.lists.load(Ordering::Relaxed),
            ranges: self.counts.ranges.load(Ordering::Relaxed),
        }
    }
}

fn add(folder: &Path, prefix: &str, objects: &mut Vec<Object>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let key = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type()?.is_dir() {
            true => add(&entry.path(), &format!("{key}/"), objects)?,
            false => objects.push(Object {
                key,
                bytes: entry.metadata()?.len(),
                file: entry.path(),
            }),
        }
    }
    Ok(())
}

/// Answers the requests of a connection.
fn serve(stream: TcpStream, objects: &[Object], counts: &Counts) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let (mut signed, mut range) = (false, None);
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim_end().split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => signed = value.contains(&format!("Credential={KEY}/")),
                "range" => range = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = decoded(path);
        let key = path
            .strip_prefix(BUCKET)
            .map(|key| key.trim_start_matches('/'));
        match key {
            _ if !signed => answer(&mut stream, "403 Forbidden", "", b"")?,
            Some("") => {
                counts.lists.fetch_add(1, Ordering::Relaxed);
                answer(&mut stream, "200 OK", "", list(objects, query).as_bytes())?;
            }
            Some(key) => match objects.iter().find(|object| object.key == key) {
                Some(object) => {
                    counts
                        .ranges
                        .fetch_add(usize::from(range.is_some()), Ordering::Relaxed);
                    give(&mut stream, object, range.as_deref(), method == "HEAD")?;
                }
                None => answer(&mut stream, "404 Not Found", "", b"")?,
            },
            None => answer(&mut stream, "404 Not Found", "", b"")?,
        }
    }
}

fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) -> std::io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n"
    )?;
    stream.write_all(body)
}

/// An object, or a range of it.
fn give(
    stream: &mut TcpStream,
    object: &Object,
    range: Option<&str>,
    head: bool,
) -> std::io::Result<()> {
    let tags = format!(
        "ETag: \"{}\"\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
        object.bytes
    );
    if head {
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{tags}\r\n",
            object.bytes
        );
    }
    let asked = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
    let last = object.bytes.saturating_sub(1);
    let (start, end) = match asked {
        // The last so many bytes.
        Some(("", count)) => (
            object.bytes.saturating_sub(count.parse().unwrap_or(0)),
            last,
        ),
        Some((start, end)) => (
            start.parse().unwrap_or(0),
            end.parse().unwrap_or(last).min(last),
        ),
        None => (0, last),
    };
    let mut file = File::open(&object.file)?;
    file.seek(SeekFrom::Start(start))?;
    let mut body = Vec::new();
    file.take((end + 1).saturating_sub(start))
        .read_to_end(&mut body)?;
    match asked {
        Some(_) => {
            let range = format!(
                "Content-Range: bytes {start}-{end}/{}\r\n{tags}",
                object.bytes
            );
            answer(stream, "206 Partial Content", &range, &body)
        }
        None => answer(stream, "200 OK", &tags, &body),
    }
}

/// ListObjectsV2, in one page.
fn list(objects: &[Object], query: &str) -> String {
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .map(|(_, value)| decoded(value))
    };
    let prefix = parameter("prefix").unwrap_or_default();
    let delimiter = parameter("delimiter").filter(|text| !text.is_empty());
    let after = parameter("start-after").unwrap_or_default();
    let (mut contents, mut folders) = (String::new(), Vec::new());
    for object in objects {
        let Some(rest) = object.key.strip_prefix(&prefix) else {
            continue;
        };
        if object.key <= after {
            continue;
        }
        let folder = delimiter.as_deref().and_then(|by| rest.split_once(by));
        match folder {
            Some((folder, _)) => folders.push(format!("{prefix}{folder}/")),
            None => contents.push_str(&format!(
                "<Contents><Key>{}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"{}\"</ETag><Size>{}</Size></Contents>",
                object.key, object.bytes, object.bytes
            )),
        }
    }
    folders.dedup();
    let folders: String = (folders.iter())
        .map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"))
        .collect();
    format!(
        "<ListBucketResult><IsTruncated>false</IsTruncated>{contents}{folders}</ListBucketResult>"
    )
}

/// Text whose bytes may be written as `%3D`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = after
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        let (byte, left) = match (first, code) {
            (b'%', Some(byte)) => (byte, &after[2..]),
            _ => (*first, after),
        };
        bytes.push(byte);
        rest = left;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
