//! Topics that somebody has made before, with partitions of another number than is configured.

use std::{collections::BTreeMap, time::Duration};

use tidings_backbone::kafka::{
    self,
    topics::{self, Purpose},
};
use tidings_testkit::{Kind, Part, World, on_every_distributed_world};

use super::apart;

/// The worlds of tests have three.
const PARTITIONS: i32 = 5;
const LOOK_GAP: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(60);

on_every_distributed_world!(
    a_topic_with_other_partitions_ends_relay_and_project_with_both_numbers_and_an_api_says_so_and_goes_on,
);

/// Where the topics of a world are that has not begun yet.
fn kafka_of(world: &World) -> kafka::Options {
    let command = world.command(&[]);
    let setting = |name: &str| {
        let mut settings = command.get_envs();
        let (_, value) = settings.find(|(key, _)| *key == name).expect("it is set for every process");
        value.unwrap().to_str().unwrap().to_owned()
    };
    kafka::Options {
        brokers: setting("TIDINGS__KAFKA__BROKERS"),
        properties: BTreeMap::new(),
        prefix: setting("TIDINGS__KAFKA__PREFIX"),
        partitions: PARTITIONS,
        replicas: 1,
    }
}

async fn a_topic_with_other_partitions_ends_relay_and_project_with_both_numbers_and_an_api_says_so_and_goes_on(
    kind: Kind,
) {
    let world = World::unstarted(apart(kind)).await;
    let kafka = kafka_of(&world);
    let topic = kafka.topic("relation");
    topics::ensure(&kafka, &[(topic.clone(), Purpose::Events)]).await.unwrap();
    let message = format!("the topic `{topic}` has {PARTITIONS} partitions, 3 are configured");

    world.start_part(Part::Api(1), &[]).await;
    let has_said = async {
        while !world.said(Part::Api(1)).contains(&message) {
            tokio::time::sleep(LOOK_GAP).await;
        }
    };
    let said = tokio::time::timeout(PATIENCE, has_said).await;
    said.unwrap_or_else(|_| panic!("“{message}” was not said: {}", world.said(Part::Api(1))));
    assert!(world.said(Part::Api(1)).contains("ERROR"), "{}", world.said(Part::Api(1)));
    world.register(1..=2).await;
    assert!(world.user(1).await.follow(2).await.changed);

    for role in ["relay", "project"] {
        let mut process = world.spawn(&[role, "--listen", "127.0.0.1:0"]);
        assert!(!process.wait().success(), "{role} ends as one that failed");
        let said = process.said();
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains(&message), "the last that {role} says is why: {said}");
    }
    assert!(world.user(1).await.unfollow(2).await.changed, "commands are committed all the same");
    assert!(world.stop().await.success());
}
