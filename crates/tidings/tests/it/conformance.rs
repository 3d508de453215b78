//! The conformance suite, on every world.

tidings_testkit::conformance_suite!(crate::world_on);
