//! Builds the memory of Python processes with two threads, of which one runs `inner`, called by `outer`. The memory
//! is laid out by the constants: each is the offset of a structure from the start of the memory, at `BASE`.

use fuzz::targets::interpreter::BASE;

/// The system's id of the thread whose stack is read.
const THREAD: u64 = 77;
/// The type of code objects; the constants from here to `LONG_TABLES` are offsets of structures.
const CODE_TYPE: u64 = 0x80;
const RUNTIME: u64 = 0x100;
const INTERPRETER: u64 = 0x800;
const LOCK: u64 = 0xc00;
const OTHER_STATE: u64 = 0xd00;
const STATE: u64 = 0xf00;
const C_FRAME: u64 = 0x1100;
const FRAMES: u64 = 0x1200;
const CODES: u64 = 0x1400;
const TEXTS: u64 = 0x1700;
const LINES: u64 = 0x1a00;
const LONG_TABLES: u64 = 0x2000;
/// The size of the memory of a sound process.
const END: u64 = 0x1c00;

/// The offsets of fields in a version of Python.
struct Offsets {
    /// The version as Python writes it: major, minor and micro in one byte each, and the release level and serial in
    /// the last.
    version: u64,
    /// For each word of `_Py_DebugOffsets` its index, in the order of [`Self::values`].
    table: Option<[u64; 19]>,
    /// In `_PyRuntime` and interpreters: the first and next interpreter, and the first thread.
    first_interpreter: u64,
    next_interpreter: u64,
    first_thread: u64,
    /// In the lock of the interpreter (the GIL): the thread that holds it, and whether it is held.
    holder: u64,
    locked: u64,
    /// In the state of a thread: the next state, the current frame, the id of the thread, and the chunk of frames.
    thread: [u64; 4],
    /// In a frame: the caller's frame, the code, the instruction, and the owner.
    frame: [u64; 4],
    /// In a code object: the file, the name, the table of lines, the first line, and the instructions.
    code: [u64; 5],
    bytes_data: u64,
    /// In a text: its state, its length and its characters.
    text: [u64; 3],
}

/// The offsets of Python 3.13, without the table; other versions differ from them in some.
const FROM_3_13: Offsets = Offsets {
    version: 0x030d_00f0,
    table: None,
    first_interpreter: 1056,
    next_interpreter: 256,
    first_thread: 264,
    holder: 272,
    locked: 280,
    thread: [8, 72, 160, 232],
    frame: [8, 0, 56, 70],
    code: [112, 128, 136, 68, 200],
    bytes_data: 32,
    text: [32, 16, 40],
};

/// The offsets of Python 3.11 to 3.15.
const ALL: [Offsets; 5] = [
    Offsets {
        version: 0x030b_07f0,
        first_interpreter: 40,
        next_interpreter: 0,
        first_thread: 16,
        holder: 368,
        locked: 376,
        thread: [8, 56, 160, 296],
        frame: [48, 32, 56, 69],
        code: [112, 128, 136, 72, 184],
        text: [32, 16, 48],
        ..FROM_3_13
    },
    Offsets {
        version: 0x030c_01f0,
        first_interpreter: 40,
        next_interpreter: 0,
        first_thread: 72,
        holder: 8,
        locked: 16,
        thread: [8, 56, 144, 232],
        code: [112, 128, 136, 68, 192],
        ..FROM_3_13
    },
    Offsets {
        table: Some([
            17, 18, 21, 23, 25, 26, 29, 30, 31, 33, 35, 37, 38, 39, 43, 66, 68, 69, 70,
        ]),
        ..FROM_3_13
    },
    Offsets {
        version: 0x030e_00f0,
        table: Some([
            18, 19, 24, 26, 28, 29, 32, 33, 34, 36, 40, 42, 43, 44, 48, 76, 78, 79, 80,
        ]),
        ..FROM_3_13
    },
    Offsets {
        version: 0x030f_02f0,
        table: Some([
            18, 19, 24, 26, 31, 32, 40, 41, 42, 44, 48, 50, 51, 52, 56, 88, 90, 91, 92,
        ]),
        ..FROM_3_13
    },
];

impl Offsets {
    /// Returns the second number of the version, such as 13.
    fn minor(&self) -> u64 {
        self.version >> 16 & 255
    }

    /// Returns the offsets that the table has, in the order of `table`.
    fn values(&self) -> Vec<u64> {
        let lock = [self.locked, self.holder];
        let parts: [&[u64]; 6] = [
            &lock,
            &self.thread,
            &self.frame,
            &self.code,
            &[self.bytes_data],
            &self.text,
        ];
        parts.concat()
    }
}

/// The bytes of a process, which grow with what is written.
struct Memory(Vec<u8>);

impl Memory {
    /// Writes bytes at an offset.
    fn put(&mut self, at: u64, bytes: &[u8]) {
        let (at, end) = (at as usize, at as usize + bytes.len());
        self.0.resize(self.0.len().max(end.next_multiple_of(8)), 0);
        self.0[at..end].copy_from_slice(bytes);
    }

    fn word(&mut self, at: u64, word: u64) {
        self.put(at, &word.to_le_bytes());
    }

    /// Writes a text object.
    fn text(&mut self, of: &Offsets, at: u64, text: &str) {
        let [state, length, data] = of.text;
        self.word(at + length, text.len() as u64);
        // The string is compact and ASCII, with one byte for each character.
        self.put(at + state, &[0x64, 0, 0, 0]);
        self.put(at + data, text.as_bytes());
    }

    /// Writes a code object with the texts and line table at these offsets.
    fn code(&mut self, of: &Offsets, at: u64, name: u64, lines: u64) {
        let [file, name_at, lines_at, first_line, _] = of.code;
        self.word(at + 8, BASE + CODE_TYPE);
        self.word(at + file, BASE + TEXTS);
        self.word(at + name_at, BASE + name);
        self.word(at + lines_at, BASE + lines);
        self.put(at + first_line, &10_i32.to_le_bytes());
    }

    /// Writes a frame. `previous` is the frame of the caller, or 0.
    fn frame(&mut self, of: &Offsets, at: u64, code: u64, previous: u64) {
        let [previous_at, code_at, instruction, owner] = of.frame;
        self.word(at + previous_at, address(previous));
        self.word(at + code_at, BASE + code);
        self.word(at + instruction, BASE + code + of.code[4] + 4);
        self.put(at + owner, &[0]);
    }

    /// Makes a frame the current one of the thread.
    fn innermost(&mut self, of: &Offsets, frame: u64) {
        if of.minor() < 13 {
            let behind = if of.minor() == 11 { 8 } else { 0 };
            self.word(STATE + of.thread[1], BASE + C_FRAME);
            self.word(C_FRAME + behind, BASE + frame);
        } else {
            self.word(STATE + of.thread[1], BASE + frame);
        }
    }
}

/// Returns the address of an offset; 0 stands for none.
fn address(at: u64) -> u64 {
    if at == 0 { 0 } else { BASE + at }
}

/// Builds a sound process: the header, an interpreter with two threads, and the stack of one.
fn memory(of: &Offsets) -> Memory {
    let mut memory = Memory(vec![0; END as usize]);
    let lock = match of.minor() {
        11 => RUNTIME,
        12 => LOCK,
        _ => INTERPRETER,
    };
    let waits_at = BASE + lock + of.holder + 16;
    let header = [
        of.version,
        THREAD,
        BASE + RUNTIME,
        BASE + CODE_TYPE,
        waits_at,
    ];
    for (at, word) in (0..).step_by(8).zip(header) {
        memory.word(at, word);
    }
    if let Some(places) = of.table {
        memory.put(RUNTIME, b"xdebugpy");
        let known = [
            (1, of.version),
            (5, of.first_interpreter),
            (8, of.next_interpreter),
            (9, of.first_thread),
        ];
        for (place, offset) in known.into_iter().chain(places.into_iter().zip(of.values())) {
            memory.word(RUNTIME + place * 8, offset);
        }
    }
    memory.word(RUNTIME + of.first_interpreter, BASE + INTERPRETER);
    memory.word(INTERPRETER + of.first_thread, BASE + OTHER_STATE);
    if of.minor() == 12 {
        memory.word(INTERPRETER + 384, BASE + LOCK);
    }
    memory.word(lock + of.holder, BASE + OTHER_STATE);
    memory.put(lock + of.locked, &1_i32.to_le_bytes());
    let [next, _, native_id, _] = of.thread;
    memory.word(OTHER_STATE + next, BASE + STATE);
    memory.word(OTHER_STATE + native_id, THREAD + 1);
    memory.word(STATE + native_id, THREAD);
    for (at, text) in (TEXTS..)
        .step_by(128)
        .zip(["/p/train.py", "outer", "inner"])
    {
        memory.text(of, at, text);
    }
    // The table has an instruction without a line, and one entry of each other kind.
    let lines = [
        0xf8, 0xe9, 2, 0x81, 0, 0xd1, 0, 0, 0xf1, 2, 1, 1, 1, 0xd9, 0, 0,
    ];
    memory.word(LINES + 16, lines.len() as u64);
    memory.put(LINES + of.bytes_data, &lines);
    memory.code(of, CODES, TEXTS + 128, LINES);
    memory.code(of, CODES + 0x100, TEXTS + 256, LINES);
    memory.frame(of, FRAMES, CODES, 0);
    memory.frame(of, FRAMES + 0x80, CODES + 0x100, FRAMES);
    memory.innermost(of, FRAMES + 0x80);
    memory
}

/// Returns the memories of sound and damaged processes by name: the inputs with which fuzzing begins.
pub fn all() -> Vec<(String, Vec<u8>)> {
    let name = |of: &Offsets, what: &str| format!("{what}-3-{}", of.minor());
    let mut all = Vec::new();
    for of in &ALL {
        all.push((name(of, "two-frames"), memory(of).0));
    }
    let of = &ALL[1];
    // The lists of interpreters and threads are endless, and none of them is the one that is looked for.
    let mut circle = memory(of);
    circle.word(INTERPRETER + of.next_interpreter, BASE + INTERPRETER);
    circle.word(OTHER_STATE + of.thread[0], BASE + OTHER_STATE);
    all.push((name(of, "fault-circle"), circle.0));
    // Each code object has a long table.
    let mut long = memory(of);
    long.word(LINES + 16, 1 << 20);
    let mut previous = 0;
    for at in 0..100 {
        let (code, frame) = (LONG_TABLES + at * 0x100, LONG_TABLES + 0x7000 + at * 0x80);
        long.code(of, code, TEXTS + 128, LINES);
        long.frame(of, frame, code, previous);
        previous = frame;
    }
    long.innermost(of, previous);
    all.push((name(of, "fault-long-tables"), long.0));
    // The stack calls itself.
    let mut itself = memory(of);
    itself.word(FRAMES + of.frame[0], BASE + FRAMES + 0x80);
    all.push((name(of, "calls-itself"), itself.0));
    all
}
