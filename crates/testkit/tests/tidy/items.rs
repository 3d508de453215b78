//! Functions, public items and test code, found in masked source.

use std::ops::Range;

use crate::workspace::Source;

/// A function with its body.
pub(crate) struct Function {
    pub(crate) name: String,
    /// Where the word `fn` stands.
    pub(crate) offset: usize,
    /// Lines from `fn` to the closing brace.
    pub(crate) lines: usize,
}

/// Every function that has a body, nested ones as well.
pub(crate) fn functions(source: &Source) -> Vec<Function> {
    words(&source.code, "fn")
        .filter_map(|offset| {
            let name = identifier(source.code.get(offset + 3..)?)?;
            let (open, b'{') = first_of(&source.code, offset, b"{;")? else { return None };
            let end = closing(&source.code, open);
            Some(Function { name, offset, lines: source.line(end) + 1 - source.line(offset) })
        })
        .collect()
}

/// What the attribute at `offset` applies to: from its `#` to the end of the item or statement.
pub(crate) fn reach(code: &str, offset: usize) -> Range<usize> {
    let mut start = offset;
    while code[start..].starts_with('#') {
        let after = closing(code, start + code[start..].find('[').unwrap_or(0)) + 1;
        start = after + code[after..].len() - code[after..].trim_start().len();
    }
    let is_statement = ["let ", "return "].iter().any(|word| code[start..].starts_with(word));
    let ends: &[u8] = if is_statement { b";" } else { b"{;," };
    match first_of(code, start, ends) {
        Some((open, b'{')) => offset..closing(code, open) + 1,
        Some((end, _)) => offset..end + 1,
        None => offset..code.len(),
    }
}

/// What is only built for tests.
pub(crate) fn test_regions(source: &Source) -> Vec<Range<usize>> {
    let attributes = ["#[cfg(test)]", "#[test]", "#[tokio::test"];
    attributes
        .iter()
        .flat_map(|attribute| source.code.match_indices(attribute))
        .map(|(offset, _)| reach(&source.code, offset))
        .collect()
}

/// A public item or field.
pub(crate) struct Public {
    pub(crate) offset: usize,
    pub(crate) declaration: String,
    pub(crate) documented: bool,
}

/// Every public item and field outside tests. A module is documented inside its own file.
pub(crate) fn public_items(source: &Source) -> Vec<Public> {
    let tests = test_regions(source);
    let lines: Vec<&str> = source.text.lines().collect();
    words(&source.code, "pub")
        .filter(|offset| !tests.iter().any(|region| region.contains(offset)))
        .filter_map(|offset| {
            let rest = source.code[offset + 3..].strip_prefix(' ')?;
            let is_other = ["use ", "mod "].iter().any(|word| rest.starts_with(word));
            let line = source.line(offset) - 1;
            let declaration = lines[line].trim().trim_end_matches('{').trim_end().to_owned();
            (!is_other).then(|| Public { offset, declaration, documented: is_documented(&lines[..line]) })
        })
        .collect()
}

/// Whether documentation stands at the end of `above`, apart from attributes.
fn is_documented(above: &[&str]) -> bool {
    let mut above = above.iter().rev().map(|line| line.trim());
    while let Some(line) = above.next() {
        if line.starts_with("///") {
            return true;
        }
        if !line.ends_with(']') {
            return false;
        }
        if !line.starts_with("#[") {
            above.find(|line| line.starts_with("#["));
        }
    }
    false
}

/// Offsets of a whole word.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    code.match_indices(word).map(|(offset, _)| offset).filter(move |offset| {
        let before = offset.checked_sub(1).and_then(|before| bytes.get(before));
        !before.is_some_and(is_word) && !bytes.get(offset + word.len()).is_some_and(is_word)
    })
}

/// The identifier at the start of `code`.
pub(crate) fn identifier(code: &str) -> Option<String> {
    let name: String = code.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The first of `wanted` outside round and square brackets, from `from` on.
fn first_of(code: &str, from: usize, wanted: &[u8]) -> Option<(usize, u8)> {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            byte if depth == 0 && wanted.contains(&byte) => return Some((offset, byte)),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return Some((offset, byte)),
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The bracket that closes the one at `open`, or the end.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return offset;
        }
    }
    code.len().saturating_sub(1)
}

#[test]
fn items_are_found_in_source() {
    let text = "/// Documented.\n#[derive(\n    Debug,\n)]\npub struct A {\n    pub b: u8,\n}\n\
                pub(crate) fn c<const N: usize>(x: [u8; N]) -> [u8; 2]\nwhere\n    A: Sized,\n{\n    \"}\"\n}\n\
                #[cfg(test)]\nmod tests {\n    pub fn d() {}\n}\n";
    let source = Source::new(crate::workspace::Text { path: "a.rs".to_owned(), text: text.to_owned() });
    let found: Vec<_> = functions(&source).into_iter().map(|found| (found.name, found.lines)).collect();
    assert_eq!(found, [("c".to_owned(), 6), ("d".to_owned(), 1)]);
    let public: Vec<_> = public_items(&source).into_iter().map(|item| (item.declaration, item.documented)).collect();
    assert_eq!(public, [("pub struct A".to_owned(), true), ("pub b: u8,".to_owned(), false)]);
    assert!(text[test_regions(&source)[0].clone()].ends_with("{}\n}"));
}
