use super::*;
use crate::config::{Config, load, masked};

fn from_environment(variables: &[(&str, &str)]) -> Result<Config> {
    load(None, variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

fn from_file(text: &str, variables: &[(&str, &str)]) -> Result<Config> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tidings.toml");
    std::fs::write(&file, text).unwrap();
    load(Some(&file), variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

const DATABASE: (&str, &str) = ("TIDINGS__DATABASE__URL", "mysql://app@db.example:3306/tidings");
const KAFKA: (&str, &str) = ("TIDINGS__KAFKA__BROKERS", "a:9092,b:9092");

#[test]
fn database_and_kafka_together_make_it_distributed_and_neither_embedded() {
    assert_eq!(from_environment(&[]).unwrap().mode(), Mode::Embedded);
    let config = from_environment(&[DATABASE, KAFKA]).unwrap();
    assert_eq!((config.mode(), config.relay_group()), (Mode::Distributed, "tidings"));
    let config = from_environment(&[DATABASE, KAFKA, ("TIDINGS__RELAY__GROUP", "mine")]).unwrap();
    assert_eq!(config.relay_group(), "mine");
}

#[test]
fn half_of_it_is_an_error_that_names_the_missing_key() {
    for (given, key) in [(DATABASE, "kafka.brokers"), (KAFKA, "database.url")] {
        let message = from_environment(&[given]).unwrap_err().to_string();
        assert!(message.contains(&format!("`{key}`")) && message.contains("is empty although"), "{message}");
    }
    let message = from_environment(&[("TIDINGS__REDIS__URL", "redis://a:1/0")]).unwrap_err().to_string();
    assert!(message.contains("`redis.url`") && message.contains("embedded"), "{message}");
}

#[test]
fn a_wrong_value_names_its_key_and_shows_no_secret() {
    for (name, value, key) in [
        ("TIDINGS__DATABASE__URL", "mysql://u:hunter2@db/", "database.url"),
        ("TIDINGS__DATABASE__URL", "postgres://u:hunter2@db/x", "database.url"),
        ("TIDINGS__DATABASE__URL", "mysql://u:hunter2@db/x?sslmod=1", "database.url"),
        ("TIDINGS__DATABASE__WRITERS_MAX", "0", "database.writers_max"),
        ("TIDINGS__KAFKA__BROKERS", "a", "kafka.brokers"),
        ("TIDINGS__KAFKA__BROKERS", "a:9092,", "kafka.brokers"),
        ("TIDINGS__KAFKA__BROKERS", ":9092", "kafka.brokers"),
        ("TIDINGS__KAFKA__PREFIX", "a b", "kafka.prefix"),
        ("TIDINGS__KAFKA__PREFIX", "", "kafka.prefix"),
        ("TIDINGS__KAFKA__PARTITIONS", "0", "kafka.partitions"),
        ("TIDINGS__KAFKA__REPLICAS", "-1", "kafka.replicas"),
        ("TIDINGS__REDIS__URL", "http://:hunter2@a/", "redis.url"),
        ("TIDINGS__RELAY__MODE", "guess", "relay.mode"),
        ("TIDINGS__RELAY__START", "middle", "relay.start"),
        ("TIDINGS__RELAY__FORMAT", "xml", "relay.format"),
        ("TIDINGS__RELAY__FORMATS__RELATION", "xml", "relay.formats.relation"),
        ("TIDINGS__RELAY__GROUP", "a/b", "relay.group"),
        ("TIDINGS__HTTP__OPS_LISTEN", "here", "http.ops_listen"),
    ] {
        let message = from_environment(&[DATABASE, KAFKA, (name, value)]).unwrap_err().to_string();
        assert!(message.contains(&format!("`{key}`")), "{name}={value}: {message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn a_password_comes_from_a_variable_or_a_file_and_is_shown_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "hunter2@/\n").unwrap();
    let in_file = ("TIDINGS__DATABASE__PASSWORD_FILE", file.to_str().unwrap());
    let in_variable = ("TIDINGS__DATABASE__PASSWORD", "hunter2@/");
    for given in [in_file, in_variable] {
        let config = from_environment(&[DATABASE, KAFKA, given]).unwrap();
        let address = config.database.address().unwrap();
        assert_eq!(address.reveal(), "mysql://app:hunter2%40%2F@db.example:3306/tidings");
        for shown in [masked(&config).unwrap(), format!("{config:?}"), format!("{address} {address:?}")] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
    for given in [&[in_file, in_variable][..], &[in_variable, ("TIDINGS__DATABASE__URL", "mysql://u:pw@db/x")]] {
        let message = from_environment(&[&[DATABASE, KAFKA], given].concat()).unwrap_err().to_string();
        assert!(message.contains("`database.password"), "{message}");
    }
    std::fs::remove_file(&file).unwrap();
    assert!(from_environment(&[DATABASE, KAFKA, in_file]).unwrap().database.address().is_err());
}

#[test]
fn secrets_in_addresses_and_properties_are_masked_and_the_rest_is_shown() {
    let file = "[kafka.properties]\n\"security.protocol\" = \"SASL_SSL\"\nsasl.username = \"app\"\nlinger.ms = 5\n";
    let variables = [
        ("TIDINGS__DATABASE__URL", "mysql://app:hunter2@db.example/tidings"),
        KAFKA,
        ("TIDINGS__KAFKA__PROPERTIES__SASL__PASSWORD", "hunter2"),
        ("TIDINGS__REDIS__URL", "redis://:hunter2@cache.example:6379/0"),
    ];
    let config = from_file(file, &variables).unwrap();
    let properties = config.kafka.properties.reveal();
    let expected =
        [("linger.ms", "5"), ("sasl.password", "hunter2"), ("sasl.username", "app"), ("security.protocol", "SASL_SSL")];
    assert!(properties.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(expected), "{properties:?}");
    let shown = masked(&config).unwrap();
    for part in ["mysql://app:***@db.example/tidings", "SASL_SSL", "\"app\"", "redis://:***@cache.example:6379/0"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("hunter2") && !format!("{config:?}").contains("hunter2"), "{shown}");
    assert_eq!(from_file(&shown, &[]).unwrap().mode(), Mode::Distributed, "what is shown can be read");
}

#[test]
fn a_family_has_the_format_it_is_given_and_others_the_usual() {
    let config = from_file("[relay.formats]\nrelation = \"cloudevents-protobuf\"\n", &[]).unwrap();
    assert_eq!(config.relay.format_of("relation"), EventFormat::CloudEventsProtobuf);
    assert_eq!(config.relay.format_of("account"), EventFormat::CloudEventsJson);
}
