//! The configurations that the pages of the documentation print.

use tidings_backbone::{Clock, relay::Config};

/// The pieces of a page that are configurations of a relay.
fn configurations(page: &str) -> Vec<String> {
    let pieces = page.split("```toml\n").skip(1).map(|piece| piece.split("```").next().unwrap().to_owned());
    pieces.filter(|piece| piece.contains("source =")).collect()
}

#[tokio::test]
async fn every_configuration_of_a_page_makes_a_relay() {
    let pages = [
        ("relay.md", 5, include_str!("../../../../../docs/relay.md")),
        ("from-canal.md", 1, include_str!("../../../../../docs/from-canal.md")),
        ("from-debezium.md", 1, include_str!("../../../../../docs/from-debezium.md")),
    ];
    for (name, count, page) in pages {
        let configurations = configurations(page);
        assert_eq!(configurations.len(), count, "{name}");
        for text in configurations {
            let config: Config = toml::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            let relay = config.relay(Clock::system()).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            let shown = format!("{config:?} {relay:?}");
            assert!(!shown.contains(":secret") && !shown.contains("whsec_"), "{name}: {shown}");
        }
    }
}

#[test]
fn what_is_not_known_or_missing_is_told() {
    let whole = configurations(include_str!("../../../../../docs/relay.md")).remove(0);
    for (from, to, told) in [
        ("group =", "grupp =", "grupp"),
        ("[sink]", "[sinc]", "sinc"),
        ("event_id =", "event_ident =", "event_ident"),
        ("kind = \"kafka\"", "kind = \"rabbit\"", "rabbit"),
    ] {
        assert!(whole.contains(from), "{from}");
        let error = toml::from_str::<Config>(&whole.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}
