//! Sinks as a configuration names them.

use tidings_backbone::{
    Clock,
    relay::{Sink, sink::Options},
};

#[test]
fn each_kind_is_read_strictly_and_opened_without_being_reached() {
    let kinds = [
        r#"{"kind": "kafka", "brokers": "127.0.0.1:1", "properties": {"sasl.password": "hidden"}}"#,
        r#"{"kind": "redis", "url": "redis://user:hidden@127.0.0.1:1"}"#,
        r#"{"kind": "webhook", "url": "https://example.org/hook", "file": "checkpoint",
            "secret": "whsec_aGlkZGVuaGlkZGVuaGlkZGVuaGlkZGVu"}"#,
        r#"{"kind": "stdout", "file": "checkpoint"}"#,
    ];
    for kind in kinds {
        let options: Options = serde_json::from_str(kind).unwrap();
        assert!(!format!("{options:?}").contains("hidden"), "{options:?}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sink = runtime.block_on(async { Sink::open(&options, "group", &Clock::system()) }).unwrap();
        assert!(!format!("{sink:?}").contains("hidden"), "{sink:?}");
        let wrong = kind.replacen("\"kind\"", "\"unknown\": 1, \"kind\"", 1);
        assert!(serde_json::from_str::<Options>(&wrong).is_err(), "{wrong}");
    }
}
