//! The identity of a span and its trace, as W3C Trace Context writes it.

use std::{fmt, str::FromStr};

use rand::RngExt as _;

/// Identity of a trace: 32 hexadecimal digits, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId([u8; 16]);

/// Identity of a span in its trace: 16 hexadecimal digits, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId([u8; 8]);

/// A span as its children know it. As text it is a `traceparent` of version 00.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    /// The trace.
    pub trace_id: TraceId,
    /// The span in it.
    pub span_id: SpanId,
    /// Whether the spans of this trace are collected.
    pub is_sampled: bool,
}

/// The text is no `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a traceparent is written 00-{{32 hex}}-{{16 hex}}-{{2 hex}}, in small letters and not all zero")]
pub struct InvalidContext;

/// Characters of a `traceparent`.
pub(super) const CONTEXT_CHARS: usize = 55;
const SAMPLED: u8 = 1;

impl TraceId {
    /// A new one, at random.
    pub fn random() -> Self {
        Self(random())
    }

    /// Its bytes, the highest first.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// Its lower half, which is random in traces of any origin: what ratios are measured by.
    pub fn low(self) -> u64 {
        self.0[8..].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

impl SpanId {
    /// A new one, at random.
    pub fn random() -> Self {
        Self(random())
    }

    /// Its bytes, the highest first.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0
    }
}

#[expect(clippy::disallowed_methods, reason = "ids of spans decide nothing that a test or a replay must repeat")]
fn random<const BYTES: usize>() -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    // Zero means "none".
    while bytes == [0; BYTES] {
        rand::rng().fill(&mut bytes);
    }
    bytes
}

impl Context {
    /// The first span of a new trace that is collected.
    pub fn root() -> Self {
        Self { trace_id: TraceId::random(), span_id: SpanId::random(), is_sampled: true }
    }

    /// A new span in the same trace.
    #[must_use]
    pub fn child(self) -> Self {
        Self { span_id: SpanId::random(), ..self }
    }

    /// The context of a text that is one, if it is sampled.
    pub(super) fn sampled(text: Option<&str>) -> Option<Self> {
        text?.parse().ok().filter(|context: &Self| context.is_sampled)
    }
}

impl FromStr for Context {
    type Err = InvalidContext;

    /// A later version may have more behind the flags; what is before them stays.
    fn from_str(text: &str) -> Result<Self, InvalidContext> {
        let known = text.get(..CONTEXT_CHARS).ok_or(InvalidContext)?;
        let mut parts = known.split('-');
        let [version, trace_id, span_id, flags] = std::array::from_fn(|_| parts.next().unwrap_or_default());
        let rest = &text[CONTEXT_CHARS..];
        let is_whole = rest.is_empty() || (version != "00" && rest.starts_with('-'));
        if version == "ff" || !is_whole || parts.next().is_some() {
            return Err(InvalidContext);
        }
        let [_version] = bytes(version)?;
        let [flags] = bytes(flags)?;
        let (trace_id, span_id) = (bytes(trace_id)?, bytes(span_id)?);
        if trace_id == [0; 16] || span_id == [0; 8] {
            return Err(InvalidContext);
        }
        Ok(Self { trace_id: TraceId(trace_id), span_id: SpanId(span_id), is_sampled: flags & SAMPLED != 0 })
    }
}

fn bytes<const BYTES: usize>(text: &str) -> Result<[u8; BYTES], InvalidContext> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(InvalidContext),
    };
    let text = text.as_bytes();
    if text.len() != 2 * BYTES {
        return Err(InvalidContext);
    }
    let mut bytes = [0; BYTES];
    for (byte, digits) in bytes.iter_mut().zip(text.chunks(2)) {
        *byte = digit(digits[0])? << 4 | digit(digits[1])?;
    }
    Ok(bytes)
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, self.span_id, u8::from(self.is_sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_context_is_read_back_from_its_text() {
        let context: Context = TEXT.parse().unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), TEXT);
        let root = Context::root();
        assert_eq!(root.to_string().parse(), Ok(root));
        assert_eq!((root.child().trace_id, root.child() == root), (root.trace_id, false));
    }

    #[test]
    fn flags_that_are_not_known_and_later_versions_do_not_hide_what_is() {
        let flags: Context = TEXT.replace("-01", "-03").parse().unwrap();
        assert!(flags.is_sampled);
        let unsampled: Context = TEXT.replace("-01", "-02").parse().unwrap();
        assert!(!unsampled.is_sampled);
        let later = format!("{}-more", TEXT.replacen("00", "cc", 1));
        assert_eq!(later.parse::<Context>().unwrap().to_string(), TEXT);
    }

    #[test]
    fn what_is_no_context_is_refused() {
        for wrong in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "0-04bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47é-00f067aa0ba902b7-01x",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
        ] {
            assert_eq!(wrong.parse::<Context>(), Err(InvalidContext), "{wrong}");
        }
    }
}
