//! A client that sends requests exactly as given.

use crate::traces::{Folder, SMALL};
use gapscope_view::{Options, Running, Server};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

/// A server and its client.
pub struct Client {
    running: Running,
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// `/TOKEN/`.
    pub root: String,
}

/// A response.
pub struct Response {
    pub status: u16,
    /// The header in small letters.
    pub head: String,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(traces: &[PathBuf]) -> Client {
        Client::with(traces, Options::default())
    }

    /// Serves the trace [`SMALL`], which lies in the returned folder.
    pub fn small() -> (Folder, Client) {
        let folder = Folder::new();
        let client = Client::new(&[folder.trace("small", SMALL)]);
        (folder, client)
    }

    pub fn with(traces: &[PathBuf], options: Options) -> Client {
        let running = Server::open(traces, options).unwrap().start();
        let rest = running.url().strip_prefix("http://").unwrap();
        let (host, token) = rest.split_once('/').unwrap();
        let (host, root) = (host.to_owned(), format!("/{token}"));
        Client {
            running,
            host,
            root,
        }
    }

    pub fn url(&self) -> &str {
        self.running.url()
    }

    /// Sends a request of these bytes.
    pub fn raw(&self, request: &str) -> Response {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let mut fours = bytes.windows(4);
        let end = fours.position(|four| four == b"\r\n\r\n").unwrap();
        let head = str::from_utf8(&bytes[..end]).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = bytes.split_off(end + 4);
        Response { status, head, body }
    }

    /// Gets a path without changing it.
    pub fn path(&self, path: &str) -> Response {
        self.raw(&format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.host
        ))
    }

    /// Sends a request to a path of the server's interface, and returns the status.
    pub fn send(&self, method: &str, key: &str, headers: &str, body: &str) -> Response {
        let (root, host, length) = (&self.root, &self.host, body.len());
        self.raw(&format!(
            "{method} {root}api/{key} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        ))
    }

    /// Gets an answer as the page does.
    pub fn key(&self, key: &str) -> Response {
        self.path(&format!("{}api/{key}", self.root))
    }

    pub fn status(&self, key: &str) -> u16 {
        self.key(key).status
    }

    /// Gets the bytes of an answer that must be there.
    fn answer(&self, key: &str) -> Vec<u8> {
        let response = self.key(key);
        assert_eq!(response.status, 200, "{key}: {}", response.text());
        response.body
    }

    /// Gets JSON that must be there.
    pub fn json(&self, key: &str) -> Value {
        serde_json::from_slice(&self.answer(key)).unwrap()
    }

    /// Gets a frame that must be there.
    pub fn frame(&self, key: &str) -> Frame {
        Frame::from_bytes(self.answer(key))
    }
}

impl Response {
    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Returns why a server of these traces cannot be opened.
pub fn refusal(traces: &[PathBuf], options: Options) -> String {
    let refused = Server::open(traces, options);
    refused.err().expect("it is refused").to_string()
}

/// A frame as the page reads it.
pub struct Frame {
    pub header: Value,
    data: Vec<u8>,
}

impl Frame {
    pub fn from_bytes(mut bytes: Vec<u8>) -> Frame {
        assert_eq!(&bytes[..4], b"GSC1");
        let length = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        assert_eq!(length % 8, 0);
        let header = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let data = bytes.split_off(8 + length);
        Frame { header, data }
    }

    pub fn data(&self) -> &[u8] {
        &self.data
    }

    pub fn rows(&self) -> usize {
        self.header["rows"].as_u64().unwrap() as usize
    }

    /// Returns a column as numbers.
    pub fn column(&self, name: &str) -> Vec<f64> {
        let columns = self.header["columns"].as_array().unwrap();
        let mut columns = columns.iter();
        let column = columns.find(|column| column["name"] == name).unwrap();
        let at = column["offset"].as_u64().unwrap() as usize;
        let bytes = |row: usize, size: usize| &self.data[at + row * size..][..size];
        (0..self.rows())
            .map(|row| match column["type"].as_str().unwrap() {
                "f64" => f64::from_le_bytes(bytes(row, 8).try_into().unwrap()),
                "u32" => u32::from_le_bytes(bytes(row, 4).try_into().unwrap()).into(),
                "u8" => bytes(row, 1)[0].into(),
                other => panic!("type {other}"),
            })
            .collect()
    }

    /// Returns the start of each lane, and the end of the last.
    pub fn lanes(&self) -> Vec<usize> {
        serde_json::from_value(self.header["lanes"].clone()).unwrap()
    }

    /// Returns the table and the row in it of each row.
    pub fn places(&self) -> Vec<(String, usize)> {
        let tables = self.header["tables"].as_array().unwrap();
        let places = self.column("row").into_iter();
        places
            .map(|place| {
                let place = place as u32;
                let table = tables[(place >> 30) as usize].as_str().unwrap();
                (table.to_owned(), (place & 0x3fff_ffff) as usize)
            })
            .collect()
    }
}
