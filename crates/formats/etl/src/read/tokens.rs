//! Splits a buffer into records, as little work as possible: position, length, kind, time.

use crate::abi::header::*;
use crate::record::{HeaderKind, Record};
use etwhy_base::Bytes;

/// A record found in a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    /// Order key: ticks, or wall time where files with different clocks are merged.
    pub(crate) key: i64,
    /// Offset in the buffer, its header included.
    pub(crate) at: u32,
    /// Length without padding.
    pub(crate) len: u16,
    /// Header kind.
    pub(crate) kind: HeaderKind,
}

/// Why the splitting of a buffer stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The block is full; go on later.
    Block,
    /// End of data, or padding.
    End,
    /// Something that is no record.
    UnknownHeader,
    /// A size that is too small or too large.
    BadSize,
}

/// What the first u32 of a record tells about its kind.
#[derive(Clone, Copy)]
struct Shape {
    kind: Option<HeaderKind>,
    min_len: u8,
    size_shift: u8,
    time_at: u8,
}

const fn shapes() -> [Shape; 32] {
    let none = Shape { kind: None, min_len: 0, size_shift: 0, time_at: 0 };
    let mut table = [none; 32];
    use HeaderKind::*;
    // Kernel headers have their size at +4, all others at +0.
    table[1] = Shape { kind: Some(System32), min_len: SYSTEM_LEN as u8, size_shift: 32, time_at: 16 };
    table[2] = Shape { kind: Some(System64), min_len: SYSTEM_LEN as u8, size_shift: 32, time_at: 16 };
    table[3] = Shape { kind: Some(Compact32), min_len: COMPACT_LEN as u8, size_shift: 32, time_at: 16 };
    table[4] = Shape { kind: Some(Compact64), min_len: COMPACT_LEN as u8, size_shift: 32, time_at: 16 };
    table[10] = Shape { kind: Some(Full32), min_len: FULL_LEN as u8, size_shift: 0, time_at: 16 };
    table[20] = Shape { kind: Some(Full64), min_len: FULL_LEN as u8, size_shift: 0, time_at: 16 };
    table[11] = Shape { kind: Some(Instance32), min_len: INSTANCE_LEN as u8, size_shift: 0, time_at: 16 };
    table[21] = Shape { kind: Some(Instance64), min_len: INSTANCE_LEN as u8, size_shift: 0, time_at: 16 };
    table[13] = Shape { kind: Some(Error), min_len: 8, size_shift: 0, time_at: 0 };
    table[16] = Shape { kind: Some(PerfInfo32), min_len: PERFINFO_LEN as u8, size_shift: 32, time_at: 8 };
    table[17] = Shape { kind: Some(PerfInfo64), min_len: PERFINFO_LEN as u8, size_shift: 32, time_at: 8 };
    table[18] = Shape { kind: Some(Event32), min_len: EVENT_LEN as u8, size_shift: 0, time_at: 16 };
    table[19] = Shape { kind: Some(Event64), min_len: EVENT_LEN as u8, size_shift: 0, time_at: 16 };
    table
}

static SHAPES: [Shape; 32] = shapes();

/// How far ahead lines are touched, so that a walk over cold memory is bound by bandwidth and not by the
/// latency of each record's header (measured: several times faster on buffers that are not in the cache).
const AHEAD: usize = 4096;
const LINE: usize = 64;

/// Splitter of one buffer; keeps its place between blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokenizer {
    at: usize,
    touched: usize,
    last_ticks: i64,
    /// Messages that carry no timestamp.
    pub(crate) without_time: u64,
}

impl Tokenizer {
    /// A splitter that starts at `at`, the end of the buffer header.
    pub(crate) fn new(at: usize) -> Tokenizer {
        Tokenizer { at, touched: at, last_ticks: 0, without_time: 0 }
    }

    /// Where the splitter stands.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Appends up to `max` records of `buffer` (whose valid data ends with the slice) to `out`.
    #[inline]
    pub(crate) fn block(&mut self, buffer: &[u8], max: usize, out: &mut Vec<Token>) -> Stop {
        let mut touch = 0u8;
        let stop = loop {
            if out.len() >= max {
                break Stop::Block;
            }
            while self.touched < self.at + AHEAD {
                touch ^= buffer.u8_at(self.touched).unwrap_or(0);
                self.touched += LINE;
            }
            let Some(word) = buffer.u64_at(self.at) else { break Stop::End };
            let marker = word as u32;
            let (kind, min_len, len, ticks);
            if marker >> 24 == u32::from(FLAGS_TRACE_HEADER) {
                let Some(shape) = SHAPES.get((marker >> 16 & 0xFF) as usize) else {
                    break Stop::UnknownHeader;
                };
                let Some(k) = shape.kind else { break Stop::UnknownHeader };
                kind = k;
                min_len = usize::from(shape.min_len);
                len = (word >> shape.size_shift & 0xFFFF) as usize;
                ticks = if shape.time_at == 0 {
                    self.last_ticks
                } else {
                    match buffer.i64_at(self.at + usize::from(shape.time_at)) {
                        Some(ticks) => ticks,
                        None => break Stop::BadSize,
                    }
                };
            } else if marker >> 24 & 0xD0 == u32::from(FLAGS_MESSAGE) {
                kind = HeaderKind::Message;
                min_len = MESSAGE_LEN;
                len = (marker & 0xFFFF) as usize;
                ticks = match message_ticks(buffer, self.at) {
                    Some(ticks) => ticks,
                    None => {
                        self.without_time += 1;
                        self.last_ticks
                    }
                };
            } else if marker == 0 || marker == u32::MAX {
                break Stop::End;
            } else {
                break Stop::UnknownHeader;
            }
            if len < min_len || self.at + len > buffer.len() {
                break Stop::BadSize;
            }
            self.last_ticks = ticks;
            out.push(Token { key: ticks, at: self.at as u32, len: len as u16, kind });
            self.at += (len + 7) & !7;
        };
        std::hint::black_box(touch);
        stop
    }
}

/// Bytes of a buffer's data (the header stripped) up to the first record that goes back in time or says what the one before it
/// said. What is unpacked behind the end of a packed buffer is made of pieces of its records.
pub(crate) fn until_repeated(data: &[u8]) -> usize {
    let (mut tokenizer, mut tokens) = (Tokenizer::new(0), Vec::new());
    while tokenizer.block(data, 256, &mut tokens) == Stop::Block && tokens.len() >= 256 {
        if let Some(at) = repeated(data, &tokens) {
            return at;
        }
        // The last one is compared with the first of the next block.
        tokens.drain(..tokens.len() - 1);
    }
    repeated(data, &tokens).unwrap_or(data.len())
}

fn repeated(data: &[u8], tokens: &[Token]) -> Option<usize> {
    let bytes = |token: &Token| data.sub(token.at as usize, usize::from(token.len));
    let mut pairs = tokens.iter().zip(tokens.iter().skip(1));
    let (_, second) = pairs.find(|(a, b)| b.key < a.key || (b.key == a.key && bytes(a) == bytes(b)))?;
    Some(second.at as usize)
}

/// Timestamp of the WPP message at `at`; `None` if it carries none.
fn message_ticks(buffer: &[u8], at: usize) -> Option<i64> {
    let flags = buffer.u16_at(at + MESSAGE_OPTIONS)?;
    if flags & MESSAGE_FLAG_TIMESTAMP == 0 {
        return None;
    }
    let mut offset = at + MESSAGE_LEN;
    for (flag, len) in MESSAGE_PARTS {
        if flag == MESSAGE_FLAG_TIMESTAMP {
            break;
        }
        let shadowed = flag == MESSAGE_FLAG_COMPONENTID && flags & MESSAGE_FLAG_GUID != 0;
        if flags & flag != 0 && !shadowed {
            offset += len;
        }
    }
    buffer.i64_at(offset)
}

/// Timestamp of the first record of a buffer's data (the header stripped); `None` if there is no record.
pub(crate) fn first_ticks(data: &[u8]) -> Option<i64> {
    let word = data.u64_at(0)?;
    let marker = word as u32;
    if marker >> 24 == u32::from(FLAGS_TRACE_HEADER) {
        let shape = SHAPES.get((marker >> 16 & 0xFF) as usize)?;
        shape.kind?;
        data.i64_at(usize::from(shape.time_at))
    } else if marker >> 24 & 0xD0 == u32::from(FLAGS_MESSAGE) {
        Some(message_ticks(data, 0).unwrap_or(0))
    } else {
        None
    }
}

/// Ticks of the record of a token, where its key is something else.
pub(crate) fn ticks_of(bytes: &[u8], kind: HeaderKind, or: i64) -> i64 {
    match kind {
        HeaderKind::Message => message_ticks(bytes, 0).unwrap_or(or),
        HeaderKind::Error => or,
        k if k.is_perfinfo() => bytes.i64_at(PERFINFO_TIME).unwrap_or(or),
        _ => bytes.i64_at(COMMON_TIME).unwrap_or(or),
    }
}

/// The first record of a buffer's data, for the session header.
pub(crate) fn first_record(data: &[u8]) -> Option<Record<'_>> {
    let mut tokens = Vec::new();
    Tokenizer::new(0).block(data, 1, &mut tokens);
    let token = tokens.first()?;
    let at = token.at as usize;
    Some(Record {
        bytes: data.sub(at, usize::from(token.len))?,
        kind: token.kind,
        ticks: token.key,
        cpu: 0,
        logger_id: 0,
        file: 0,
    })
}
