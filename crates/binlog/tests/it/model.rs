//! Tables and rows made up, and how a server would write them: written from the formats' descriptions,
//! without the code under test.

use proptest::{prelude::*, sample::select};

/// A column: the server's code for its type, the metadata, whether signs are told of it.
#[derive(Clone, Debug)]
pub(crate) struct ModelColumn {
    pub(crate) code: u8,
    pub(crate) metadata: Vec<u8>,
    /// Of a number, whether it is unsigned.
    pub(crate) unsigned: Option<bool>,
}

/// A value: its bytes in a row, and the text that [`crate::samples::text`] gives for it.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) bytes: Vec<u8>,
    pub(crate) text: String,
}

/// A column and a value for each row; nothing for NULL.
pub(crate) type ModelCells = (ModelColumn, Vec<Option<Cell>>);

/// A column with `rows` values.
pub(crate) fn column(rows: usize) -> impl Strategy<Value = ModelCells> {
    prop_oneof![
        integer(rows),
        decimal(rows),
        text(rows),
        blob(rows),
        time(rows),
        date_time(rows),
        timestamp(rows),
        small(rows),
    ]
}

fn cells(
    rows: usize,
    code: u8,
    metadata: Vec<u8>,
    unsigned: Option<bool>,
    cell: impl Strategy<Value = Cell>,
) -> impl Strategy<Value = ModelCells> {
    let cells = prop::collection::vec(prop::option::weighted(0.8, cell), rows);
    cells.prop_map(move |cells| (ModelColumn { code, metadata: metadata.clone(), unsigned }, cells))
}

fn integer(rows: usize) -> impl Strategy<Value = ModelCells> {
    (select(vec![(1u8, 1usize), (2, 2), (9, 3), (3, 4), (8, 8)]), any::<bool>()).prop_flat_map(
        move |((code, size), unsigned)| {
            let cell = any::<u64>().prop_map(move |number| {
                let unused = 64 - 8 * size as u32;
                let (unsigned_value, signed) = (number << unused >> unused, (number << unused) as i64 >> unused);
                let text = if unsigned { format!("{unsigned_value}u") } else { signed.to_string() };
                Cell { bytes: number.to_le_bytes()[..size].to_vec(), text }
            });
            cells(rows, code, Vec::new(), Some(unsigned), cell)
        },
    )
}

fn decimal(rows: usize) -> impl Strategy<Value = ModelCells> {
    let size = (1u8..=65).prop_flat_map(|precision| (Just(precision), 0..=precision.min(30)));
    size.prop_flat_map(move |(precision, scale)| {
        let digits = prop::collection::vec(0u8..10, usize::from(precision));
        let cell = (digits, any::<bool>()).prop_map(move |(digits, is_negative)| {
            let (whole, fraction) = digits.split_at(usize::from(precision - scale));
            let is_negative = is_negative && digits.iter().any(|digit| *digit > 0);
            let join = |digits: &[u8]| digits.iter().map(|digit| char::from(b'0' + digit)).collect::<String>();
            let shown = join(whole).trim_start_matches('0').to_owned();
            let shown = if shown.is_empty() { "0".to_owned() } else { shown };
            let point = if scale > 0 { format!(".{}", join(fraction)) } else { String::new() };
            let text = format!("{}{shown}{point}d", if is_negative { "-" } else { "" });
            Cell { bytes: decimal_bytes(whole, fraction, is_negative), text }
        });
        cells(rows, 246, vec![precision, scale], Some(false), cell)
    })
}

/// Nine digits take four bytes, fewer take fewer; short groups are at the outer ends.
fn decimal_bytes(whole: &[u8], fraction: &[u8], is_negative: bool) -> Vec<u8> {
    let sizes = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    let number = |digits: &[u8]| digits.iter().fold(0u32, |number, digit| number * 10 + u32::from(*digit));
    let mut bytes = Vec::new();
    let mut push = |digits: &[u8]| {
        bytes.extend_from_slice(&number(digits).to_be_bytes()[4 - sizes[digits.len()]..]);
    };
    let (short, groups) = whole.split_at(whole.len() % 9);
    push(short);
    groups.chunks(9).for_each(&mut push);
    fraction.chunks(9).for_each(&mut push);
    if is_negative {
        bytes.iter_mut().for_each(|byte| *byte = !*byte);
    }
    bytes[0] ^= 0x80;
    bytes
}

fn text(rows: usize) -> impl Strategy<Value = ModelCells> {
    // VARCHAR, VAR_STRING and CHAR; the latter hides two bits of its length, inverted, in its type.
    (select(vec![15u8, 253, 254]), 1u16..1024).prop_flat_map(move |(code, bytes_max)| {
        let [low, high] = bytes_max.to_le_bytes();
        let metadata = if code == 254 { vec![254 ^ high << 4, low] } else { vec![low, high] };
        let length = usize::from(bytes_max.min(300));
        let cell = "[a-z]{0,30}".prop_filter_map("too long", move |text| {
            let length_bytes = if bytes_max < 256 { 1 } else { 2 };
            let mut bytes = (text.len() as u16).to_le_bytes()[..length_bytes].to_vec();
            bytes.extend_from_slice(text.as_bytes());
            (text.len() <= length).then(|| Cell { bytes, text: format!("'{text}'") })
        });
        cells(rows, code, metadata, None, cell)
    })
}

fn blob(rows: usize) -> impl Strategy<Value = ModelCells> {
    // BLOB and GEOMETRY.
    (select(vec![252u8, 255]), 1u8..=4).prop_flat_map(move |(code, length_bytes)| {
        let cell = prop::collection::vec(any::<u8>(), 0..40).prop_map(move |mut value| {
            // Ends with a zero byte, so that the text is always hexadecimal.
            value.push(0);
            let digits = crate::samples::hex(&value);
            let mut bytes = (value.len() as u32).to_le_bytes()[..usize::from(length_bytes)].to_vec();
            bytes.extend_from_slice(&value);
            Cell { bytes, text: if code == 252 { format!("x{digits}") } else { format!("geometry {digits}") } }
        });
        cells(rows, code, vec![length_bytes], None, cell)
    })
}

/// Digits of a fraction, and microseconds that have no more.
fn fraction() -> impl Strategy<Value = (u8, u32)> {
    (0u8..=6, 0u32..1_000_000).prop_map(|(digits, micros)| {
        let unit = 10u32.pow(6 - u32::from(digits));
        (digits, micros / unit * unit)
    })
}

/// The fraction's part of a text.
fn shown_fraction(digits: u8, micros: u32) -> String {
    match digits {
        0 => String::new(),
        _ => format!(".{micros:06}")[..=usize::from(digits)].to_owned(),
    }
}

/// The bytes of a fraction, which a negative time has negative.
fn fraction_bytes(digits: u8, micros: i64) -> Vec<u8> {
    match digits {
        0 => Vec::new(),
        1..=2 => vec![(micros / 10_000) as u8],
        3..=4 => ((micros / 100) as u16).to_be_bytes().to_vec(),
        _ => micros.to_be_bytes()[5..].to_vec(),
    }
}

fn time(rows: usize) -> impl Strategy<Value = ModelCells> {
    (0u8..=6).prop_flat_map(move |digits| {
        let parts = (any::<bool>(), 0i64..=838, 0i64..60, 0i64..60, 0u32..1_000_000);
        let cell = parts.prop_map(move |(is_negative, hours, minutes, seconds, micros)| {
            let unit = 10u32.pow(6 - u32::from(digits));
            let micros = micros / unit * unit;
            let absolute = (hours << 12 | minutes << 6 | seconds) << 24 | i64::from(micros);
            let is_negative = is_negative && absolute > 0;
            let packed = if is_negative { -absolute } else { absolute };
            // As the server packs it: the whole rounded down, the remainder with the number's sign.
            let bytes = if digits > 4 {
                (packed + 0x8000_0000_0000).to_be_bytes()[2..].to_vec()
            } else {
                let whole = ((packed >> 24) + 0x80_0000).to_be_bytes()[5..].to_vec();
                [whole, fraction_bytes(digits, packed % (1 << 24))].concat()
            };
            let sign = if is_negative { "-" } else { "" };
            let fraction = shown_fraction(digits, micros);
            Cell { bytes, text: format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}") }
        });
        cells(rows, 19, vec![digits], None, cell)
    })
}

fn date_time(rows: usize) -> impl Strategy<Value = ModelCells> {
    (0u8..=6).prop_flat_map(move |digits| {
        let date = (0u64..10_000, 0u64..13, 0u64..32);
        let cell =
            (date, 0u64..24, 0u64..60, 0u64..60, fraction()).prop_map(move |(date, hour, minute, second, fraction)| {
                let (year, month, day) = date;
                let unit = 10u32.pow(6 - u32::from(digits));
                let micros = fraction.1 / unit * unit;
                let packed = (year * 13 + month) << 22 | day << 17 | hour << 12 | minute << 6 | second;
                let whole = (packed + 0x80_0000_0000).to_be_bytes()[3..].to_vec();
                let bytes = [whole, fraction_bytes(digits, i64::from(micros))].concat();
                let fraction = shown_fraction(digits, micros);
                Cell {
                    bytes,
                    text: format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction}"),
                }
            });
        cells(rows, 18, vec![digits], None, cell)
    })
}

fn timestamp(rows: usize) -> impl Strategy<Value = ModelCells> {
    (0u8..=6).prop_flat_map(move |digits| {
        let cell = (0u32..86_400, 0u32..1_000_000).prop_map(move |(second, micros)| {
            let unit = 10u32.pow(6 - u32::from(digits));
            let micros = micros / unit * unit;
            // A day that is known: 2024-02-29.
            let seconds = 1_709_164_800 + second;
            let bytes = [seconds.to_be_bytes().to_vec(), fraction_bytes(digits, i64::from(micros))].concat();
            let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
            let fraction = shown_fraction(digits, micros);
            Cell { bytes, text: format!("2024-02-29 {hour:02}:{minute:02}:{second:02}{fraction}Z") }
        });
        cells(rows, 17, vec![digits], None, cell)
    })
}

/// BIT, ENUM, SET, YEAR, DATE, DOUBLE.
fn small(rows: usize) -> impl Strategy<Value = ModelCells> {
    (0usize..6, 1u8..=64).prop_flat_map(move |(which, bits)| {
        let set_bytes = bits.div_ceil(8);
        let (code, metadata, unsigned) = match which {
            0 => (16, vec![bits % 8, bits / 8], None),
            1 => (254, vec![247, 1 + bits % 2], None),
            2 => (254, vec![248, set_bytes], None),
            3 => (13, Vec::new(), Some(true)),
            4 => (10, Vec::new(), None),
            _ => (5, vec![8], Some(false)),
        };
        let size = usize::from(set_bytes);
        let cell = any::<u64>().prop_map(move |number| match which {
            0 => {
                let number = number >> (64 - bits);
                Cell { bytes: number.to_be_bytes()[8 - size..].to_vec(), text: format!("b{number:b}") }
            }
            1 if bits % 2 == 0 => Cell { bytes: vec![number as u8], text: format!("enum {}", number as u8) },
            1 => Cell { bytes: (number as u16).to_le_bytes().to_vec(), text: format!("enum {}", number as u16) },
            2 => {
                let number = number >> (64 - 8 * size);
                Cell { bytes: number.to_le_bytes()[..size].to_vec(), text: format!("set {number:b}") }
            }
            3 => {
                let byte = number as u8;
                let year = if byte == 0 { 0 } else { 1900 + u16::from(byte) };
                Cell { bytes: vec![byte], text: format!("year {year}") }
            }
            4 => {
                let (year, month, day) = (number % 10_000, number / 10_000 % 13, number / 200_000 % 32);
                let packed = year << 9 | month << 5 | day;
                Cell { bytes: packed.to_le_bytes()[..3].to_vec(), text: format!("{year:04}-{month:02}-{day:02}") }
            }
            _ => {
                let double = f64::from(number as u32) / 8.0;
                Cell { bytes: double.to_le_bytes().to_vec(), text: format!("{double:?}") }
            }
        });
        cells(rows, code, metadata, unsigned, cell)
    })
}

/// The body of a table map of id 1, with signs.
pub(crate) fn table_map(columns: &[ModelColumn]) -> Vec<u8> {
    let mut body = vec![1, 0, 0, 0, 0, 0, 1, 0, 1, b's', 0, 1, b't', 0, columns.len() as u8];
    body.extend(columns.iter().map(|column| column.code));
    let metadata: Vec<u8> = columns.iter().flat_map(|column| column.metadata.clone()).collect();
    body.push(metadata.len() as u8);
    body.extend(metadata);
    body.extend(vec![0xff; columns.len().div_ceil(8)]);
    let signs: Vec<bool> = columns.iter().filter_map(|column| column.unsigned).collect();
    let mut bytes = vec![0u8; signs.len().div_ceil(8)];
    for (position, _) in signs.iter().enumerate().filter(|(_, unsigned)| **unsigned) {
        bytes[position / 8] |= 0x80 >> (position % 8);
    }
    body.extend([1, bytes.len() as u8]);
    body.extend(bytes);
    body
}

/// Bits, the least significant of the first byte first.
pub(crate) fn bitmap(bits: impl IntoIterator<Item = bool>) -> Vec<u8> {
    let bits: Vec<bool> = bits.into_iter().collect();
    bits.chunks(8).map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit))).collect()
}

/// One image of a row: the columns that are `present`, as bytes and as text.
pub(crate) fn image(row: &[Option<&Cell>], present: &[bool]) -> (Vec<u8>, String) {
    let there = || row.iter().zip(present).filter(|(_, present)| **present).map(|(cell, _)| cell);
    let mut bytes = bitmap(there().map(|cell| cell.is_none()));
    there().flatten().for_each(|cell| bytes.extend_from_slice(&cell.bytes));
    let texts: Vec<String> = row
        .iter()
        .zip(present)
        .map(|(cell, present)| match cell {
            _ if !present => "absent".to_owned(),
            None => "null".to_owned(),
            Some(cell) => cell.text.clone(),
        })
        .collect();
    (bytes, texts.join(" | "))
}
