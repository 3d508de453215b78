//! The parking lot as an operator meets it: by requests and by commands, with a trace of everything he did.

use std::sync::{Arc, Mutex};

use reqwest::Method;
use serde_json::{Value, json};
use tidings_testkit::{Caller, Kind, World, caller::sent, on_every_world};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpListener,
};

use crate::{database::Hand, world_on};

const TWO_QUICK_TRIES: &[(&str, &str)] =
    &[("projector.retry_attempts", "2"), ("projector.retry_gap_ms", "10"), ("projector.retry_gap_max_ms", "10")];

on_every_world!(
    a_dead_key_is_looked_at_redriven_too_early_and_then_when_it_was_mended,
    what_the_requests_do_the_commands_do,
    a_webhook_is_told_of_a_key_that_died,
);

/// A world in which what user 4 does cannot be applied: he has followed 1, and then 2 and 3.
pub(crate) async fn with_poison(kind: Kind, settings: &[(&str, &str)]) -> (World, Hand) {
    let settings: Vec<_> = TWO_QUICK_TRIES.iter().chain(settings).copied().collect();
    let world = world_on(kind, &settings).await;
    world.register(1..=6).await;
    let mut hand = Hand::in_database_of(&world).await;
    hand.refuse("follower", "NEW.from_user_id = 4").await;
    for to in 1..=3 {
        world.user(4).await.follow(to).await;
        world.drain().await;
    }
    world.user(5).await.follow(1).await;
    world.drain().await;
    (world, hand)
}

async fn only_parked(admin: &Caller<'_>, query: &str) -> Value {
    let mut answer = admin.read(&format!("/v1/admin/parked{query}")).await;
    let items = answer["items"].as_array_mut().unwrap();
    assert_eq!(items.len(), 1, "{items:?}");
    items.remove(0)
}

async fn a_dead_key_is_looked_at_redriven_too_early_and_then_when_it_was_mended(kind: Kind) {
    let (world, mut hand) = with_poison(kind, &[]).await;
    let admin = world.admin().await;
    let key = only_parked(&admin, "?projector=relation&event_type=relation.followed&error=poison&state=dead").await;
    assert_eq!((&key["key"], &key["waiting"], &key["attempts"]), (&json!("4"), &json!(3), &json!(2)));
    assert!(key["next_attempt_at"].is_null() && key["died_at"].is_string(), "{key}");
    for nobody in ["?state=retrying", "?key=5", "?error=Poison", "?parked_before=2020-01-01T00:00:00Z"] {
        assert_eq!(admin.read(&format!("/v1/admin/parked{nobody}")).await["items"], json!([]), "{nobody}");
    }

    // Paged, and as they will be applied.
    let events = admin.pages("/v1/admin/parked/events?projector=relation&key=4", 1).await;
    let whom: Vec<&Value> = events.iter().map(|event| &event["event"]["data"]["to"]).collect();
    assert_eq!(whom, ["1", "2", "3"], "{events:?}");
    assert_eq!((&events[0]["event_id"], &events[0]["readable"]), (&key["event_id"], &json!(true)));

    let redrive = async |body: Value| admin.post("/v1/admin/parked/redrive", &body).await;
    let plan = redrive(json!({ "state": "dead", "events_per_second": 2, "dry_run": true })).await.json(200);
    assert_eq!((&plan["keys"], &plan["waiting"], &plan["takes_ms"]), (&json!(1), &json!(3), &json!(1_500)));
    assert_eq!((&plan["dry_run"], &plan["items"][0]["key"]), (&json!(true), &json!("4")));
    assert_eq!(only_parked(&admin, "").await, key, "nothing changed");
    redrive(json!({ "key": "5" })).await.is_problem(404, "not-found");
    let fewer = json!({ "until": plan["until"], "keys": 0 });
    redrive(json!({ "state": "dead", "shown": fewer })).await.is_problem(409, "redrive-refused");

    let shown = json!({ "until": plan["until"], "keys": 1 });
    let asked = json!({ "projector": "relation", "key": "4", "reason": "perhaps", "shown": shown });
    let redriven = redrive(asked).await.json(200);
    assert_eq!((&redriven["dry_run"], &redriven["keys"]), (&json!(false), &json!(1)));
    world.drain().await;
    let again = only_parked(&admin, "").await;
    assert_eq!((&again["state"], &again["attempts"], &again["waiting"]), (&json!("dead"), &json!(1), &json!(3)));

    hand.admit().await;
    let once = async |caller: &Caller<'_>, body: Value| {
        let request = caller.request(Method::POST, "/v1/admin/parked/redrive").header("idempotency-key", "all-1");
        sent(request.json(&body)).await
    };
    let all = json!({ "all": true });
    assert_eq!(once(&admin, json!({ "all": true, "dry_run": true })).await.json(200)["keys"], json!(1));
    let redriven = once(&admin, all.clone()).await.json(200);
    world.drain().await;
    assert_eq!(world.parked().await, [Value::Null; 0]);
    assert_eq!(once(&admin, all).await.json(200), redriven, "though there is nothing any more");
    once(&admin, json!({ "state": "dead" })).await.is_problem(422, "idempotency-key-reused");
    assert_eq!((world.counters(1).await, world.counters(4).await), ((0, 2), (3, 0)));
    world.verify().await;

    let audit = admin.pages("/v1/admin/audit", 1).await;
    assert_eq!(audit.len(), 2, "a dry run and what was refused are no actions: {audit:?}");
    assert_eq!((&audit[0]["actor"], &audit[0]["action"]), (&json!("admin"), &json!("parking.redrive")));
    assert_eq!((&audit[0]["details"]["waiting"], &audit[0]["key"]), (&json!(3), &Value::Null));
    assert_eq!((&audit[1]["reason"], &audit[1]["key"]), (&json!("perhaps"), &json!("4")));
}

async fn what_the_requests_do_the_commands_do(kind: Kind) {
    let (world, mut hand) = with_poison(kind, &[]).await;
    // The first event of the pair is discarded below, and what comes after it is applied.
    world.user(4).await.unfollow(1).await;
    world.drain().await;
    let said = async |arguments: &[&str]| -> Value { serde_json::from_str(&world.run(arguments).await).unwrap() };
    let list = said(&["parked", "list", "--state", "dead", "--json"]).await;
    let admin = world.admin().await;
    let shown = only_parked(&admin, "").await;
    assert_eq!(list, json!({ "items": [shown], "more": false }), "one shape for both");
    let table = world.run(&["parked", "list"]).await;
    assert!(table.contains("relation") && table.contains("dead") && table.contains("poison"), "{table}");

    let show = said(&["parked", "show", "relation", "4", "--json", "-n", "2"]).await;
    assert_eq!((show["events"].as_array().unwrap().len(), &show["more"]), (2, &json!(true)));
    let last = &show["events"][1];
    let (part, offset) = (last["part"].as_str().unwrap(), last["offset"].to_string());
    let rest = said(&["parked", "show", "relation", "4", "--json", "--after", part, &offset]).await;
    assert_eq!(rest["events"].as_array().unwrap().len(), 2);
    assert!(world.run(&["parked", "show", "relation", "4"]).await.contains(&offset));
    let first = show["events"][0]["event_id"].as_str().unwrap();
    let in_the_log = admin.read(&format!("/v1/admin/events/{first}")).await;
    assert_eq!(show["events"][0]["event"], in_the_log["event"], "as it is elsewhere");

    let plan = world.run(&["parked", "redrive", "--all", "--dry-run"]).await;
    assert!(plan.contains("1 key with 4 waiting events would be tried again"), "{plan}");
    // Nobody is there to be asked here.
    for refused in [
        &["parked", "redrive", "--all"][..],
        &["parked", "redrive", "--yes"],
        &["parked", "redrive", "--all", "--key", "4", "--yes"],
        &["parked", "redrive", "--key", "5", "--yes"],
        &["parked", "redrive", "--state", "alive", "--yes"],
        &["parked", "discard", "relation", "4", "--event-id", first, "--yes"],
        &["parked", "discard", "relation", "4", "--event-id", first, "--reason", "poison"],
        &["parked", "discard", "relation", "5", "--event-id", first, "--reason", "poison", "--yes"],
        &["parked", "discard", "relation", "4", "--offset", "999999", "--reason", "poison", "--yes"],
        &["parked", "show", "relation", "5"],
    ] {
        let output = world.output(refused).await;
        assert!(!output.status.success(), "{refused:?}");
    }
    assert_eq!(only_parked(&admin, "").await, shown, "nothing changed");

    let discarded =
        said(&["parked", "discard", "relation", "4", "--event-id", first, "--reason", "poison", "--yes", "--json"])
            .await;
    assert_eq!((&discarded["was_head"], &discarded["freed"]), (&json!(true), &json!(false)));
    assert_eq!(discarded["event"], show["events"][0]);
    world.drain().await;
    assert_eq!(only_parked(&admin, "").await["waiting"], json!(3), "the next one fails as well");
    let warned = world.run(&["rebuild", "start", "relation", "--dry-run"]).await;
    assert!(warned.contains("1 event that an operator discarded is applied again"), "{warned}");
    let silent = world.run(&["rebuild", "start", "relation", "--from", "facts", "--dry-run"]).await;
    assert!(!silent.contains("discarded"), "{silent}");
    hand.admit().await;
    let said = world.run(&["parked", "redrive", "--projector", "relation", "--key", "4", "--yes"]).await;
    assert!(said.contains("1 key with 3 waiting events is tried again"), "{said}");
    world.drain().await;
    assert_eq!(world.parked().await, [Value::Null; 0]);
    assert_eq!(world.counters(1).await, (0, 1), "whatever is missing, nobody is counted who does not follow");
    // Since when the pair is known stood in the discarded event alone. That it is missing is no secret.
    let report: Value = serde_json::from_slice(&world.output(&["verify", "--json"]).await.stdout).unwrap();
    assert_eq!((&report["differences"], &report["examples"][0]["subject"]), (&json!(1), &json!("4:1")), "{report}");
    let told = String::from_utf8(world.output(&["verify"]).await.stdout).unwrap();
    assert!(told.contains(": 1 difference\n"), "one is none of several: {told}");

    what_was_done_is_told(&world, &show["events"][0]["event"]).await;
}

/// By the audit, and by the metrics of every process, none of which has done it.
async fn what_was_done_is_told(world: &World, event: &Value) {
    let audit = world.run(&["audit", "--json"]).await;
    let records: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let actions: Vec<&Value> = records.iter().map(|record| &record["action"]).collect();
    assert_eq!(actions, ["parking.redrive", "parking.discard"], "the newest first");
    assert!(records.iter().all(|record| record["actor"].as_str().unwrap().starts_with("cli:")), "{records:?}");
    assert_eq!(records[1]["details"]["event"], *event, "kept whole");
    let admin = world.admin().await;
    assert_eq!(records, *admin.read("/v1/admin/audit").await["items"].as_array().unwrap(), "one shape for both");
    assert!(world.run(&["audit", "-n", "1"]).await.contains("parking.redrive"));
    for (part, page) in world.metrics().await {
        for line in [
            "tidings_discarded_events_total{projector=\"relation\"} 1",
            "tidings_actions_total{action=\"parking.discard\"} 1",
            "tidings_actions_total{action=\"parking.redrive\"} 1",
            "tidings_actions_total{action=\"rebuild.start\"} 0",
        ] {
            assert!(page.lines().any(|told| told == line), "{part:?} tells {line}: {page}");
        }
    }
}

/// Takes what is posted, and answers 204.
async fn receiver() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/alerts", listener.local_addr().unwrap());
    let got: Arc<Mutex<Vec<Value>>> = Arc::default();
    let bodies = Arc::clone(&got);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = BufReader::new(stream);
            let (mut length, mut line) = (0, String::new());
            while stream.read_line(&mut line).await.unwrap() > 2 {
                if let Some((_, value)) = line.to_lowercase().split_once("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            bodies.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            let answer = b"HTTP/1.1 204 No Content\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
        }
    });
    (url, got)
}

async fn a_webhook_is_told_of_a_key_that_died(kind: Kind) {
    let (url, got) = receiver().await;
    let secret = ("alerts.webhook_secret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let (world, _hand) = with_poison(kind, &[("alerts.webhook_url", &url), secret]).await;
    let told = || got.lock().unwrap().first().cloned();
    let told = tokio::time::timeout(std::time::Duration::from_secs(60), async {
        loop {
            if let Some(told) = told() {
                return told;
            }
            world.drain().await;
        }
    });
    let told = told.await.expect("nobody was told");
    assert_eq!((&told["type"], &told["data"]["key"]), (&json!("key.died"), &json!("4")));
    assert!(told["data"]["error"].as_str().unwrap().contains("poison"), "{told}");
    assert_eq!(world.metric("tidings_alerts_failed_total").await, 0.0);
}
