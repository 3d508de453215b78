//! How texts are encoded.

use std::borrow::Cow;

/// How a text is encoded, as far as it can be read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Charset {
    /// Not at all: these are bytes.
    Binary,
    /// ASCII.
    Ascii,
    /// What the servers call latin1: Windows-1252, its five gaps filled with control characters.
    Latin1,
    /// utf8mb3 or utf8mb4.
    Utf8,
    /// ucs2 or utf16, the most significant byte first.
    Utf16,
    /// utf16le.
    Utf16Le,
    /// utf32, the most significant byte first.
    Utf32,
    /// One that is not read here.
    Other,
}

impl Charset {
    /// The one of a collation, by the collation's number in either server. MariaDB has each collation once
    /// more without padding, 1024 further on, and those of Unicode 14 from 2048.
    pub(super) fn of_collation(number: u16) -> Self {
        match number {
            63 => Self::Binary,
            11 | 65 | 1035 | 1089 => Self::Ascii,
            5 | 8 | 15 | 31 | 47..=49 | 94 | 1032 | 1071 => Self::Latin1,
            33 | 76 | 83 | 192..=215 | 223 | 576..=607 | 1057 | 1107 | 1216..=1238 | 2048..=2303 => Self::Utf8,
            45 | 46 | 224..=247 | 255..=323 | 608..=639 | 1069 | 1070 | 1248..=1270 | 2304..=2559 => Self::Utf8,
            35 | 90 | 128..=151 | 159 | 640..=671 | 1059 | 1114 | 1152..=1174 | 2560..=2815 => Self::Utf16,
            54 | 55 | 101..=124 | 672..=703 | 1078 | 1079 | 1125..=1147 | 2816..=3071 => Self::Utf16,
            56 | 62 | 1080 | 1086 => Self::Utf16Le,
            60 | 61 | 160..=183 | 736..=767 | 1084 | 1085 | 1184..=1206 | 3072..=3327 => Self::Utf32,
            _ => Self::Other,
        }
    }

    /// The one of that name, as `CHARACTER_SET_NAME` has it.
    pub fn of_name(name: &str) -> Self {
        match name {
            "binary" => Self::Binary,
            "ascii" => Self::Ascii,
            "latin1" => Self::Latin1,
            "utf8" | "utf8mb3" | "utf8mb4" => Self::Utf8,
            "ucs2" | "utf16" => Self::Utf16,
            "utf16le" => Self::Utf16Le,
            "utf32" => Self::Utf32,
            _ => Self::Other,
        }
    }

    /// The text of those bytes; nothing if they are none of this kind, or the kind is not read here.
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Self::Binary | Self::Other => None,
            Self::Ascii | Self::Utf8 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Self::Latin1 if bytes.is_ascii() => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Self::Latin1 => Some(bytes.iter().map(|byte| latin1(*byte)).collect()),
            Self::Utf16 => utf16(bytes, u16::from_be_bytes),
            Self::Utf16Le => utf16(bytes, u16::from_le_bytes),
            Self::Utf32 => {
                let (chars, []) = bytes.as_chunks::<4>() else {
                    return None;
                };
                chars.iter().map(|char| char::from_u32(u32::from_be_bytes(*char))).collect()
            }
        }
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'_, str>> {
    let (units, []) = bytes.as_chunks::<2>() else {
        return None;
    };
    let chars = char::decode_utf16(units.iter().map(|bytes| unit(*bytes)));
    chars.collect::<Result<String, _>>().ok().map(Cow::Owned)
}

fn latin1(byte: u8) -> char {
    /// 0x80 to 0x9f.
    const WINDOWS: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}
