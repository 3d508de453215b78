//! SIGTERM under load: what is in flight ends, nothing is lost or doubled, the exit status is 0.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

use tidings_testkit::random;

use super::{Togglers, nothing_is_lost_or_doubled, progress};
use crate::world;

#[tokio::test]
async fn an_orderly_end_under_load_loses_and_doubles_nothing_and_exits_with_0() {
    let world = world(&[("rate.follow_capacity", "1000000")]).await;
    let mut togglers = Togglers::new(&world, 1..=30, &[], &mut random::generator("orderly end")).await;
    let ends = async |acknowledged: &_| {
        for _ in 0..6 {
            progress(acknowledged, 150).await;
            let status = world.stop().await;
            assert_eq!(status.code(), Some(0));
            world.start().await;
        }
        progress(acknowledged, 50).await;
    };
    togglers.toggle_during(ends).await;
    togglers.everything_acknowledged_holds().await;
    let users: Vec<u64> = (1..=30).collect();
    nothing_is_lost_or_doubled(&world, &togglers.versions(), &users).await;
}

#[tokio::test]
async fn a_request_in_flight_when_the_end_begins_is_answered() {
    let world = world(&[]).await;
    world.register(1..=2).await;
    let admin = world.admin().await;
    // Waits as long as it is asked to, unless the server ends: then it is answered as things stand.
    let mut hand = crate::database::Hand::in_database_of(&world).await;
    hand.refuse("follower", "1 = 1").await;
    world.user(1).await.follow(2).await;
    world.passed().await;
    let waiting = admin.get("/v1/admin/flow?settle_ms=60000");
    let ending = async {
        // The one that asks is in flight itself.
        while world.metric("tidings_http_requests_in_flight").await < 2.0 {}
        world.stop().await
    };
    let (flow, status) = futures::future::join(waiting, ending).await;
    assert_eq!(flow.json(200)["settled"], false);
    assert!(status.success());
}

#[tokio::test]
async fn a_head_that_was_half_sent_does_not_hold_up_the_end() {
    // Far longer than the test waits for the end of a server.
    let world = world(&[("http.shutdown_timeout_ms", "600000"), ("http.header_read_timeout_ms", "600000")]).await;
    let mut silent = TcpStream::connect(world.url().trim_start_matches("http://")).unwrap();
    silent.write_all(b"GET /health/live HTTP/1.1\r\nhost: tid").unwrap();
    // It is the server's once the server counts it beside the one that asks.
    while world.metric("tidings_http_connections").await < 2.0 {}
    assert!(world.stop().await.success());
    assert_eq!(silent.read_to_end(&mut Vec::new()).unwrap_or(0), 0, "nothing is answered to half a request");
}

#[tokio::test]
async fn who_asks_for_readiness_has_time_to_notice_before_connections_are_refused() {
    let world = world(&[("http.shutdown_delay_ms", "1500")]).await;
    let nobody = world.nobody();
    let noticing = async {
        while nobody.get("/health/ready").await.status == 200 {}
        // Each on a connection of its own, as from somebody who has not noticed yet.
        for _ in 0..5 {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let answer = client.get(format!("{}/health/live", world.url())).send().await.unwrap();
            assert_eq!(answer.status(), 200);
        }
    };
    let ((), status) = futures::future::join(noticing, world.stop()).await;
    assert!(status.success());
}
