//! Which requests are traced.

use super::{Begun, Context, is_on};

/// Traces a share of the requests: whoever sends one that belongs to a trace has decided already.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    ratio: f64,
}

impl Sampling {
    /// Traces this share of the requests that belong to no trace yet, from 0 to 1.
    pub fn new(ratio: f64) -> Self {
        Self { ratio }
    }

    /// Begins the span of a request that came with this `traceparent`; nothing where it is not traced.
    pub fn begin(&self, traceparent: Option<&str>) -> Option<Begun> {
        if !is_on() {
            return None;
        }
        match traceparent.and_then(|text| text.parse::<Context>().ok()) {
            Some(parent) => parent.is_sampled.then(|| Begun::now(Some(parent)).remote()),
            None => self.takes(Context::root()).map(Begun::first),
        }
    }

    /// By the number of the trace, so that everybody who is asked with this ratio says the same.
    fn takes(&self, root: Context) -> Option<Context> {
        let share = root.trace_id.low() as f64 / u64::MAX as f64;
        (share < self.ratio || self.ratio >= 1.0).then_some(root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_share_of_traces() {
        let taken = |ratio| (0..20_000).filter(|_| Sampling::new(ratio).takes(Context::root()).is_some()).count();
        assert_eq!((taken(0.0), taken(1.0)), (0, 20_000));
        let some = taken(0.1);
        assert!((1_700..2_300).contains(&some), "{some}");
    }
}
