//! Randomness that can be repeated: every seed is printed, and `TIDINGS_TEST_SEED` sets it.

use rand::{SeedableRng, rngs::StdRng};

/// A generator for the test `name`. A failing test shows the seed that repeats it.
pub fn generator(name: &str) -> StdRng {
    let given = std::env::var("TIDINGS_TEST_SEED").ok();
    let seed = given.map_or_else(rand::random, |text| text.parse().expect("TIDINGS_TEST_SEED is a number"));
    eprintln!("{name}: TIDINGS_TEST_SEED={seed} repeats this");
    StdRng::seed_from_u64(seed)
}
