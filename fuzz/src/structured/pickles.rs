//! Writes snapshots of PyTorch's memory as Python's pickle does: a history of segments and blocks, ranges, and the state at its end.

use super::Document;
use super::chance::Chance;

/// The microsecond at which the histories begin.
const START_US: u64 = 1_795_651_200_000_000;

/// A pickle that is being written.
struct Pickle<'c> {
    bytes: Vec<u8>,
    chance: &'c mut Chance,
}

impl Pickle<'_> {
    fn number(&mut self, usual: u64) {
        if self.chance.is_odd() {
            // A list, a fraction or nothing stands for a number, and seldom an operation that names code.
            let odd: [&[u8]; 4] = [b"]", b"G\x7f\xf0\0\0\0\0\0\0", b"N", b"cos\nsystem\n"];
            let names_code = self.chance.once_in(64);
            let at = if names_code { 3 } else { self.chance.below(3) };
            return self.bytes.extend(odd[at as usize]);
        }
        let number = self.chance.number(usual);
        self.bytes.extend([0x8a, 8]);
        self.bytes.extend(number.to_le_bytes());
    }

    fn text(&mut self, usual: &str) {
        let text = self.chance.text(usual);
        self.bytes.push(b'X');
        self.bytes.extend((text.len() as u32).to_le_bytes());
        self.bytes.extend(text.as_bytes());
        // The value is remembered.
        self.bytes.push(0x94);
    }

    fn list(&mut self, count: u64, mut part: impl FnMut(&mut Self, u64)) {
        self.bytes.extend(*b"](");
        for at in 0..count {
            // Some parts are the first text of the pickle.
            match self.chance.is_odd() {
                true => self.bytes.extend(*b"h\0"),
                false => part(self, at),
            }
        }
        self.bytes.push(b'e');
    }

    fn begin(&mut self) {
        self.bytes.extend(*b"}(");
    }

    fn end(&mut self) {
        self.bytes.push(b'u');
    }

    /// Writes a key; `false` where its value is missing.
    fn key(&mut self, key: &str) -> bool {
        let is_there = !self.chance.is_odd();
        if is_there {
            self.text(key);
        }
        is_there
    }

    fn number_of(&mut self, key: &str, usual: u64) {
        if self.key(key) {
            self.number(usual);
        }
    }

    fn text_of(&mut self, key: &str, usual: &str) {
        if self.key(key) {
            self.text(usual);
        }
    }

    fn stack(&mut self) {
        if self.key("frames") {
            let depth = self.chance.below(4);
            self.list(depth, |pickle, at| {
                pickle.begin();
                let names = [
                    "forward",
                    "step",
                    "torch::autograd::Engine::evaluate_function",
                ];
                let name = pickle.chance.one_of(&names);
                pickle.text_of("name", name);
                pickle.text_of("filename", "train.py");
                pickle.number_of("line", at + 1);
                pickle.end();
            });
        }
    }
}

/// Writes a snapshot.
pub fn snapshot(chance: &mut Chance) -> Document {
    let mut pickle = Pickle {
        bytes: vec![0x80, 4],
        chance,
    };
    pickle.begin();
    if pickle.key("segments") {
        let count = pickle.chance.below(3);
        pickle.list(count, |pickle, at| {
            pickle.begin();
            pickle.number_of("device", 0);
            pickle.number_of("address", at << 30);
            pickle.number_of("total_size", 4 << 20);
            if pickle.key("blocks") {
                pickle.list(2, |pickle, block| {
                    pickle.begin();
                    pickle.number_of("address", (at << 30) + (block << 20));
                    pickle.number_of("size", 1 << 20);
                    pickle.number_of("requested_size", (1 << 20) - 10);
                    let state = pickle.chance.one_of(&["active_allocated", "inactive"]);
                    pickle.text_of("state", state);
                    pickle.stack();
                    pickle.end();
                });
            }
            pickle.end();
        });
    }
    if pickle.key("device_traces") {
        let devices = 1 + pickle.chance.below(2);
        pickle.list(devices, |pickle, _| {
            let entries = pickle.chance.below(30);
            pickle.list(entries, |pickle, at| entry(pickle, at));
        });
    }
    if pickle.key("external_annotations") {
        let ranges = pickle.chance.below(6);
        pickle.list(ranges, |pickle, at| {
            pickle.begin();
            pickle.text_of("stage", ["START", "END"][at as usize % 2]);
            pickle.text_of("name", "Optimizer.step#SGD.step");
            pickle.number_of("device", 0);
            pickle.number_of("time_us", START_US + at * 7);
            pickle.end();
        });
    }
    pickle.end();
    pickle.bytes.push(b'.');
    Document {
        files: vec![("memory.pickle".to_owned(), pickle.bytes)],
        work: 0,
    }
}

/// Writes an entry of the history.
fn entry(pickle: &mut Pickle, at: u64) {
    let actions = [
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_free",
        "segment_map",
        "segment_unmap",
        "oom",
        "snapshot",
    ];
    pickle.begin();
    let action = pickle.chance.one_of(&actions);
    pickle.text_of("action", action);
    let address = pickle.chance.below(8) << 20;
    pickle.number_of("addr", address);
    pickle.number_of("size", 1 << 20);
    pickle.number_of("stream", 0);
    pickle.number_of("time_us", START_US + at);
    pickle.stack();
    pickle.end();
}
