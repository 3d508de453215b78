//! Users: registered once, found by id and handle.

use serde_json::{Value, json};

use crate::World;

/// The default.
pub const SETTINGS: &[(&str, &str)] = &[];
const USERS: &str = "/v1/admin/users";

async fn register(world: &World, body: Value) -> crate::Answer {
    world.admin().await.post(USERS, &body).await
}

/// The same id with the same handle is the same user, and no event.
pub async fn registering_again_changes_nothing(world: &World) {
    let ada = json!({ "user_id": "17", "handle": "ada" });
    let first = register(world, ada.clone()).await.json(201);
    assert_eq!(first, json!({ "user_id": "17", "handle": "ada", "ordinal": 0, "changed": true }));
    let head = world.head().await;
    let again = register(world, ada).await.json(200);
    assert_eq!(again, json!({ "user_id": "17", "handle": "ada", "ordinal": 0, "changed": false }));
    assert_eq!(world.head().await, head);
}

/// Neither can be taken from its user; a refusal uses up no ordinal.
pub async fn an_id_and_a_handle_belong_to_one_user(world: &World) {
    register(world, json!({ "user_id": "17", "handle": "ada" })).await.json(201);
    let head = world.head().await;
    register(world, json!({ "user_id": "17", "handle": "eve" })).await.is_problem(409, "user-exists");
    register(world, json!({ "user_id": "18", "handle": "ada" })).await.is_problem(409, "handle-taken");
    register(world, json!({ "handle": "ada" })).await.is_problem(409, "handle-taken");
    assert_eq!(world.head().await, head);
    assert_eq!(register(world, json!({ "user_id": "18", "handle": "eve" })).await.json(201)["ordinal"], 1);
}

/// One past the highest, and the highest possible id leaves none.
pub async fn a_user_without_an_id_gets_the_next_one(world: &World) {
    register(world, json!({ "user_id": "41", "handle": "ada" })).await.json(201);
    assert_eq!(register(world, json!({ "handle": "bob" })).await.json(201)["user_id"], "42");
    register(world, json!({ "user_id": "9223372036854775807", "handle": "last" })).await.json(201);
    register(world, json!({ "handle": "none" })).await.is_bad("user_id");
}

/// By both, for users and admins.
pub async fn users_are_found_by_id_and_by_handle(world: &World) {
    register(world, json!({ "user_id": "17", "handle": "ada" })).await.json(201);
    let ada = json!({ "user_id": "17", "handle": "ada" });
    for caller in [world.user(17).await, world.admin().await] {
        assert_eq!(caller.read("/v1/users/17").await, ada);
        assert_eq!(caller.read("/v1/users?handle=ada").await, ada);
        caller.get("/v1/users/18").await.is_problem(404, "unknown-user");
        caller.get("/v1/users?handle=eve").await.is_problem(404, "unknown-user");
    }
}
