//! Rust source with its comments, or its comments and literals, blanked out in place.
//!
//! Offsets and lines stay as they are, so that what is found in the mask is found in the text.
//! A full parser would be slower to build than all of this test.

/// The two masks of one text; both are as long as the text.
pub(crate) struct Masks {
    /// Without comments.
    pub(crate) bare: String,
    /// Without comments and without what stands inside quotes.
    pub(crate) code: String,
}

/// Blanks out comments and literals.
pub(crate) fn mask(text: &str) -> Masks {
    let bytes = text.as_bytes();
    let (mut bare, mut code) = (bytes.to_vec(), bytes.to_vec());
    let mut at = 0;
    while at < bytes.len() {
        let (end, is_comment) = match piece(bytes, at) {
            Piece::Code(length) => {
                at += length;
                continue;
            }
            Piece::Comment(length) => (at + length, true),
            Piece::Literal(length) => (at + length, false),
        };
        blank(&mut code[at..end]);
        if is_comment {
            blank(&mut bare[at..end]);
        }
        at = end;
    }
    Masks { bare: String::from_utf8(bare).unwrap(), code: String::from_utf8(code).unwrap() }
}

/// What begins at a place, with its length in bytes.
enum Piece {
    Code(usize),
    Comment(usize),
    Literal(usize),
}

fn piece(bytes: &[u8], at: usize) -> Piece {
    let rest = &bytes[at..];
    let in_word = at > 0 && is_word(bytes[at - 1]);
    match rest {
        [b'/', b'/', ..] => Piece::Comment(find(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => Piece::Comment(block_comment(rest)),
        [b'"', ..] => Piece::Literal(quoted(rest, b'"')),
        [b'r' | b'b' | b'c', ..] if !in_word => prefixed(rest),
        [b'\'', b'\\', ..] => Piece::Literal(quoted(rest, b'\'')),
        // A character, unlike a lifetime, has its second quote right behind it.
        [b'\'', first, ..] if rest.get(1 + width(*first)) == Some(&b'\'') => Piece::Literal(2 + width(*first)),
        _ => Piece::Code(1),
    }
}

/// A literal such as `r#".."#`, `b".."`, `br".."` or `b'.'`, if it is one.
fn prefixed(rest: &[u8]) -> Piece {
    let letters = rest.iter().take_while(|byte| matches!(byte, b'r' | b'b' | b'c')).count();
    let hashes = rest[letters..].iter().take_while(|byte| **byte == b'#').count();
    let open = letters + hashes;
    let raw = rest[..letters].contains(&b'r');
    match rest.get(open) {
        Some(b'"') if raw => {
            let mut close = vec![b'"'];
            close.resize(1 + hashes, b'#');
            let body = &rest[open + 1..];
            Piece::Literal(find(body, &close).map_or(rest.len(), |end| open + 1 + end + close.len()))
        }
        Some(quote @ (b'"' | b'\'')) if hashes == 0 && letters == 1 && !raw => {
            Piece::Literal(letters + quoted(&rest[letters..], *quote))
        }
        _ => Piece::Code(letters),
    }
}

/// Length of a literal with escapes that begins with `quote`.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Length of a block comment, in which others may be nested.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Bytes of the UTF-8 character that begins with `first`.
fn width(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

#[test]
fn comments_and_literals_are_told_from_code() {
    let text = r####"let a = "no // comment"; // a "comment" é
/* outer /* inner */ still */ let b = r#"raw " and // text"#; let c = '"'; fn d<'a>(x: &'a str) { b'\''; br"x"; }"####;
    let masks = mask(text);
    assert_eq!(masks.code.len(), text.len());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(&masks.code), "let a = ; let b = ; let c = ; fn d<'a>(x: &'a str) { ; ; }");
    assert!(masks.bare.contains("no // comment") && masks.bare.contains("raw \" and // text"));
    assert!(!masks.bare.contains("a \"comment\"") && !masks.bare.contains("inner"));
}
