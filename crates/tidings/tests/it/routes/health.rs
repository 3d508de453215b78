//! What an unready server says of itself.

use serde_json::json;

use crate::{database::Hand, embedded};

#[tokio::test]
async fn a_server_whose_database_is_broken_says_so_with_its_checks() {
    let world = embedded(&[]).await;
    assert_eq!(world.nobody().get("/health/ready").await.json(200)["status"], "ready");
    let mut hand = Hand::in_database_of(&world).await;
    hand.run("ALTER TABLE outbox RENAME TO gone").await;

    let answer = world.nobody().get("/health/ready").await;
    let expected = json!({
        "status": "unready",
        "checks": [{ "name": "serving", "ok": true }, { "name": "database", "ok": false }],
    });
    assert_eq!(answer.json(503), expected);
    world.nobody().get("/health/live").await.json(200);

    hand.run("ALTER TABLE gone RENAME TO outbox").await;
    assert_eq!(world.nobody().get("/health/ready").await.json(200)["status"], "ready");
}
