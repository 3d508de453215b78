//! Signatures as Standard Webhooks 1.0 says (symmetric, `v1`).

use aws_lc_rs::{digest, hmac};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, de};

use crate::relay::Record;

/// A secret that is shared with a receiver. It is never shown.
#[derive(Clone)]
pub struct Secret(hmac::Key);

const PREFIX: &str = "whsec_";

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The text itself stands in no error.
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("a secret is `whsec_` and the Base64 of 24 to 64 bytes"))
    }
}

impl Secret {
    /// Reads `whsec_` and the Base64 of 24 to 64 bytes.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(PREFIX)?).ok()?;
        (24..=64).contains(&bytes.len()).then(|| Self(hmac::Key::new(hmac::HMAC_SHA256, &bytes)))
    }

    /// The header `webhook-signature` of a message sent at this second.
    pub(crate) fn sign(&self, id: &str, seconds: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{seconds}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

/// The identity of a record: its event's, or one made of its content where it has several events.
pub(super) fn id(record: &Record) -> String {
    // A dot parts what is signed.
    if !record.event_id.is_empty() && !record.event_id.contains('.') {
        return record.event_id.to_string();
    }
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [Some(record.topic.as_bytes()), record.key.as_deref(), record.value.as_deref()] {
        context.update(&part.map_or(0, <[u8]>::len).to_be_bytes());
        context.update(part.unwrap_or_default());
    }
    context.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification, which its libraries test too.
    #[test]
    fn signatures_are_those_of_the_specification() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_is_read_strictly_and_never_shown() {
        assert!(Secret::parse("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").is_none());
        assert!(Secret::parse("whsec_MfKQ").is_none());
        let error = serde_json::from_str::<Secret>("\"whsec_short\"").unwrap_err().to_string();
        assert!(!error.contains("short"), "{error}");
        let secret: Secret = serde_json::from_str("\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_record_of_several_events_has_an_id_of_its_own() {
        let record = |value: &str| Record { value: Some(value.as_bytes().to_vec()), ..Record::default() };
        assert_eq!(id(&record("a")), id(&record("a")));
        assert_ne!(id(&record("a")), id(&record("b")));
        assert_eq!(id(&Record { event_id: "7".into(), ..record("a") }), "7");
    }
}
