//! Projectors that no program has any more.

use tidings_backbone::{
    audit::{self, Actor},
    projector::{Forgotten, NotForgotten, State},
};
use tidings_testkit::{database::Engine, on_every_engine};

use crate::world::{Fault, Recorder, World, quick};

on_every_engine!(a_projector_that_is_gone_is_forgotten_and_what_is_known_or_waits_is_not);

async fn a_projector_that_is_gone_is_forgotten_and_what_is_known_or_waits_is_not(engine: Engine) {
    let world = World::on(engine).await;
    world.record_order().await;
    let (former, recorder) = (Recorder::new("former"), Recorder::new("recorder"));
    former.fail("a", 1, Fault::Error, u32::MAX);
    let old = world.start(&former, quick(1));
    world.emit("switch.turned", [("a".to_owned(), 1), ("b".to_owned(), 1)]).await;
    old.settle().await;

    let me = Actor::new("cli:ada");
    let new = world.start(&recorder, quick(1));
    new.settle().await;
    let forget = async |name: &str| new.handle.forget(name, &me, None).await.unwrap();
    assert_eq!(
        old.handle.forget("former", &me, None).await.unwrap(),
        Err(NotForgotten::Registered("former".to_owned()))
    );
    assert_eq!(forget("recorder@2").await, Err(NotForgotten::Registered("recorder".to_owned())));
    assert_eq!(forget("nobody").await, Err(NotForgotten::Unknown("nobody".to_owned())));
    let parked = NotForgotten::Parked { projector: "former".to_owned(), keys: 1 };
    assert_eq!(forget("former").await, Err(parked.clone()));
    // Whoever asks first hears the same, and changes nothing.
    let would_forget = async |name: &str| new.handle.would_forget(name).await.unwrap();
    assert_eq!(would_forget("recorder@2").await, Err(NotForgotten::Registered("recorder".to_owned())));
    assert_eq!(would_forget("nobody").await, Err(NotForgotten::Unknown("nobody".to_owned())));
    assert_eq!(would_forget("former").await, Err(parked));
    let names = async || {
        let statuses = new.handle.statuses().await.unwrap();
        statuses.into_iter().map(|status| (status.name, status.state)).collect::<Vec<_>>()
    };
    let former_is_there = ("former".to_owned(), State::Unregistered);
    assert!(names().await.contains(&former_is_there));
    old.stop().await;
    world.execute("DELETE FROM parked_event").await;
    world.execute("DELETE FROM parked_key").await;

    assert_eq!(would_forget("former").await, Ok(Forgotten { positions: 1 }));
    assert_eq!(forget("former").await, Ok(Forgotten { positions: 1 }));
    assert_eq!(names().await, [("recorder".to_owned(), State::Running)]);
    let records = audit::list(world.db.read().await.unwrap().conn(), None, 10).await.unwrap();
    assert_eq!(records.len(), 1, "what was refused is no action: {records:?}");
    assert_eq!((&*records[0].action, records[0].projector.as_deref()), ("projector.forget", Some("former")));
    new.stop().await;
}
