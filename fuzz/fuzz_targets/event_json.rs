//! Whatever bytes the JSON decoder takes for an event, writing that event and reading it again gives
//! the same one; and no bytes make it panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tidings_event::{Error, cloudevents::json};

fuzz_target!(|bytes: &[u8]| {
    let Ok(event) = json::decode(bytes) else {
        return;
    };
    match json::encode(&event, "/fuzz") {
        Ok(encoded) => {
            let again = json::decode(encoded.as_bytes()).expect("what was written is read");
            assert_eq!(again, event);
        }
        // The written form can be longer than the read one, and so pass the limit.
        Err(Error::TooLarge { .. }) => {}
        Err(error) => panic!("what was read is not written: {error}"),
    }
});
