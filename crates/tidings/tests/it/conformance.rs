//! The conformance suite, on the world that the environment chooses.

tidings_testkit::conformance_suite!(crate::world);
