use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use jsonwebtoken::EncodingKey;
use serde_json::{Value, json};
use tidings_event::Timestamp;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

const NOW_SECONDS: i64 = 1_795_965_977;

struct Bench {
    verifier: Verifier,
    key: Arc<SigningKey>,
    clock: Clock,
    auth: config::Auth,
    _folder: tempfile::TempDir,
}

fn auth() -> config::Auth {
    let mut auth = config::load(None, []).unwrap().auth;
    auth.jwks_issuer = "https://issuer.example".to_owned();
    auth
}

async fn bench(external: Option<ExternalKeys>) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let own = KeyFile::in_folder(folder.path());
    let clock = Clock::manual(Timestamp(NOW_SECONDS * 1_000));
    let key = own.get().await.unwrap();
    let auth = auth();
    let verifier = Verifier::new(own, external, auth.clone(), clock.clone());
    Bench { verifier, key, clock, auth, _folder: folder }
}

fn claims() -> Value {
    json!({"iss": "tidings", "aud": "tidings", "sub": "17", "roles": [],
        "iat": NOW_SECONDS, "exp": NOW_SECONDS + 900, "jti": "a"})
}

fn with(claim: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[claim] = value;
    claims
}

impl Bench {
    fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.key.kid.clone()), ..Header::new(Algorithm::RS256) };
        jsonwebtoken::encode(&header, claims, &self.key.encoding).unwrap()
    }

    async fn refused(&self, token: &str) -> &'static str {
        match self.verifier.verify(token).await {
            Err(Rejection::Invalid(why)) => why,
            other => panic!("{token} was not refused: {other:?}"),
        }
    }
}

fn unsigned(header: &Value, claims: &Value, signature: &str) -> String {
    let part = |value: &Value| keys::url_text(value.to_string().as_bytes());
    format!("{}.{}.{signature}", part(header), part(claims))
}

#[tokio::test]
async fn a_minted_token_admits_its_user_and_an_admin_token_the_admin() {
    let bench = bench(None).await;
    let user = Minting { role: Role::User("17".parse().unwrap()), minutes: 15 };
    let token = mint(&bench.key, &bench.auth, &bench.clock, &user).unwrap();
    let identity = bench.verifier.verify(&token).await.unwrap();
    assert_eq!(identity, Identity { subject: "17".into(), user: "17".parse().ok(), admin: false });
    let token = mint(&bench.key, &bench.auth, &bench.clock, &Minting { role: Role::Admin, minutes: 15 }).unwrap();
    let identity = bench.verifier.verify(&token).await.unwrap();
    assert_eq!(identity, Identity { subject: "admin".into(), user: None, admin: true });
}

#[tokio::test]
async fn a_token_without_signature_is_refused_whatever_algorithm_it_names() {
    let bench = bench(None).await;
    for algorithm in ["none", "None", "NONE", "", "RS256", "HS256"] {
        for signature in ["", "AAAA"] {
            let header = json!({"alg": algorithm, "typ": "JWT", "kid": bench.key.kid});
            bench.refused(&unsigned(&header, &claims(), signature)).await;
        }
    }
}

#[tokio::test]
async fn the_public_key_used_as_a_shared_secret_is_refused() {
    let bench = bench(None).await;
    let public = serde_json::to_vec(bench.key.public()).unwrap();
    let jsonwebtoken::jwk::AlgorithmParameters::RSA(parameters) = &bench.key.public().algorithm else {
        panic!("the key is RSA");
    };
    for secret in [public.as_slice(), parameters.n.as_bytes()] {
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let header = Header { kid: Some(bench.key.kid.clone()), ..Header::new(algorithm) };
            let token = jsonwebtoken::encode(&header, &claims(), &EncodingKey::from_secret(secret).unwrap()).unwrap();
            assert_eq!(bench.refused(&token).await, "the token is not signed with RS256");
        }
    }
}

#[tokio::test]
async fn other_algorithms_of_the_same_key_are_refused() {
    let bench = bench(None).await;
    for algorithm in [Algorithm::RS384, Algorithm::RS512, Algorithm::PS256] {
        let token = jsonwebtoken::encode(&Header::new(algorithm), &claims(), &bench.key.encoding).unwrap();
        assert_eq!(bench.refused(&token).await, "the token is not signed with RS256");
    }
}

#[tokio::test]
async fn wrong_and_missing_claims_are_refused() {
    let bench = bench(None).await;
    for (claims, why) in [
        (with("aud", json!("others")), "the token is for another audience"),
        (with("aud", Value::Null), "the token lacks a claim: exp, iss and aud are required"),
        (with("iss", json!("others")), "the token is of an unknown issuer"),
        (with("iss", json!("https://issuer.example")), "the token is of an unknown issuer"),
        (with("exp", json!(NOW_SECONDS)), "the token has expired"),
        (with("exp", json!(0)), "the token has expired"),
        (with("nbf", json!(NOW_SECONDS + 1)), "the token is not valid yet"),
        (with("exp", json!("tomorrow")), "the token is malformed"),
        (with("roles", json!("admin")), "the token is malformed"),
    ] {
        assert_eq!(bench.refused(&bench.sign(&claims)).await, why, "{claims}");
    }
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove("exp");
    bench.refused(&bench.sign(&claims)).await;
}

#[tokio::test]
async fn a_remembered_token_still_expires() {
    let bench = bench(None).await;
    let token = bench.sign(&claims());
    bench.verifier.verify(&token).await.unwrap();
    bench.clock.advance(Duration::from_secs(899));
    bench.verifier.verify(&token).await.unwrap();
    bench.clock.advance(Duration::from_secs(1));
    assert_eq!(bench.refused(&token).await, "the token has expired");
}

#[tokio::test]
async fn a_changed_token_is_refused() {
    let bench = bench(None).await;
    let token = bench.sign(&claims());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let (header, _) = signed.split_once('.').unwrap();
    let other = keys::url_text(with("sub", json!("18")).to_string().as_bytes());
    assert_eq!(bench.refused(&format!("{header}.{other}.{signature}")).await, "the token's signature does not match");
}

#[tokio::test]
async fn a_token_of_another_key_or_with_a_demand_is_refused() {
    let (bench, other) = (bench(None).await, bench(None).await);
    assert_eq!(bench.refused(&other.sign(&claims())).await, "the token is signed with an unknown key");
    let unnamed = jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims(), &other.key.encoding).unwrap();
    assert_eq!(bench.refused(&unnamed).await, "the token's signature does not match");
    let header = Header { crit: Some(vec!["exp".to_owned()]), ..Header::new(Algorithm::RS256) };
    let token = jsonwebtoken::encode(&header, &claims(), &bench.key.encoding).unwrap();
    assert_eq!(bench.refused(&token).await, "the token demands an extension that is not understood");
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let bench = bench(None).await;
    for token in ["", ".", "..", "a.b.c", "é.é.é", "\u{0}", &"a".repeat(10_000), &"a.".repeat(4_000)] {
        bench.refused(token).await;
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_verifier_panic_or_admit(token in ".{0,200}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = std::env::temp_dir().join("tidings-no-key-is-ever-made-here");
        let clock = Clock::manual(Timestamp(0));
        let verifier = Verifier::new(KeyFile::in_folder(folder), None, auth(), clock);
        assert!(runtime.block_on(verifier.verify(&token)).is_err());
    }
}

/// Serves `body` as a key set and counts how often it is asked for it.
async fn serve_keys(body: String) -> (reqwest::Url, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap()).parse().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request).await.unwrap();
            let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ";
            stream.write_all(format!("{head}{}\r\n\r\n{body}", body.len()).as_bytes()).await.unwrap();
        }
    });
    (url, asked)
}

#[tokio::test]
async fn tokens_of_the_external_issuer_are_accepted_and_its_keys_fetched_once() {
    let issuer = bench(None).await;
    let clock = Clock::manual(Timestamp(NOW_SECONDS * 1_000));
    let ignored = json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "other"});
    let set = json!({"keys": [ignored, serde_json::to_value(issuer.key.public()).unwrap()]});
    let (url, asked) = serve_keys(set.to_string()).await;
    let external = ExternalKeys::new(url, clock.clone()).unwrap();
    let bench = bench(Some(external)).await;

    let claims = with("iss", json!("https://issuer.example"));
    for second in 0..3 {
        let mut claims = claims.clone();
        claims["iat"] = json!(second);
        assert_eq!(bench.verifier.verify(&issuer.sign(&claims)).await.unwrap().user, "17".parse().ok());
    }
    // Its key does not sign for us, nor ours for it.
    bench.refused(&issuer.sign(&self::claims())).await;
    assert_eq!(bench.refused(&bench.sign(&claims)).await, "the token is signed with an unknown key");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "an unknown key is looked for at most once a minute");

    clock.advance(Duration::from_secs(60));
    bench.refused(&bench.sign(&with("iss", json!("https://issuer.example")))).await;
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_external_issuer_out_of_reach_is_not_the_tokens_fault() {
    let issuer = bench(None).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap()).parse().unwrap();
    drop(listener);
    let clock = Clock::manual(Timestamp(NOW_SECONDS * 1_000));
    let bench = bench(Some(ExternalKeys::new(url, clock).unwrap())).await;
    let token = issuer.sign(&with("iss", json!("https://issuer.example")));
    assert!(matches!(bench.verifier.verify(&token).await, Err(Rejection::Unavailable(_))));
    assert!(bench.verifier.verify(&bench.sign(&claims())).await.is_ok(), "own tokens need nobody");
}

#[tokio::test]
async fn an_oversized_or_broken_key_set_is_refused() {
    let issuer = bench(None).await;
    for body in ["{".to_owned(), format!("{{\"keys\": [], \"x\": \"{}\"}}", "x".repeat(300_000))] {
        let (url, _) = serve_keys(body).await;
        let clock = Clock::manual(Timestamp(NOW_SECONDS * 1_000));
        let bench = bench(Some(ExternalKeys::new(url, clock).unwrap())).await;
        let token = issuer.sign(&with("iss", json!("https://issuer.example")));
        assert!(matches!(bench.verifier.verify(&token).await, Err(Rejection::Unavailable(_))));
    }
}
