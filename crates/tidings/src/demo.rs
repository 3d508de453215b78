//! `tidings serve --demo`: a generated community, loaded through the ledgers, and commands to try.

mod commands;
mod community;

use std::{fs, path::Path, time::Duration};

use tidings_backbone::clock::Stopwatch;
use tokio_util::sync::CancellationToken;

pub use community::Community;

use crate::{
    Error, Result,
    auth::private_file,
    config::Config,
    load::Loader,
    serve::{Role, Server, announce, cancel_on_signal},
    store::Store,
    telemetry::{Tracing, install_metrics},
};

/// Users of the community.
const USERS: u32 = 2_000;
/// Any other seed gives another community; the same always the same.
const SEED: u64 = 0x7119_1265;
/// Follows loaded between two signs of progress.
const STEP_FOLLOWS: usize = 4_096;
/// How long the projectors may take for the community before it is served without.
const SETTLE_TIME_MAX: Duration = Duration::from_secs(60);
/// There while the community is being loaded, so that a demo which was killed is loaded to its end.
const LOADING_FILE: &str = "demo.loading";

/// Serves as [`crate::serve::serve`] does; a data folder without any data gets the community first.
///
/// # Errors
/// As [`Server::start`] and [`Server::run`], and when the community cannot be loaded.
pub async fn serve(config: Config, config_file: Option<&Path>) -> Result<()> {
    let store = Store::open(&config).await?;
    let tracing = Tracing::start(&config, Role::All)?;
    let server = Server::start_on(store.clone(), config, install_metrics()).await?;
    let stop = CancellationToken::new();
    cancel_on_signal(stop.clone());
    let community = Community::generate(USERS, SEED);
    load_if_empty(&community, &store, &server, &stop).await?;
    if !stop.is_cancelled() {
        announce(&server)?;
        let commands = commands::of(&store, server.address(), config_file, community.most_followed()).await?;
        commands::announce(&commands)?;
    }
    let served = server.run(stop).await;
    tracing.end().await;
    served
}

async fn load_if_empty(community: &Community, store: &Store, server: &Server, stop: &CancellationToken) -> Result<()> {
    let loading = store.folder().join(LOADING_FILE);
    let is_empty = store.log().extent().await?.head.0 == 0;
    if !is_empty && !loading.try_exists().map_err(Error::file("looking for", &loading))? {
        return Ok(());
    }
    private_file().create(true).append(true).open(&loading).map_err(Error::file("creating", &loading))?;
    let stopwatch = Stopwatch::start();
    eprintln!("loading a generated community: {USERS} users, {} follows", community.follows.len());
    let mut loader = Loader::new(store.db.clone(), server.app().ledgers.clone());
    loader.register(community.users.iter().copied()).await?;
    let mut loaded = 0;
    for follows in community.follows.chunks(STEP_FOLLOWS) {
        if stop.is_cancelled() {
            return Ok(());
        }
        loader.follow(follows).await?;
        loaded += follows.len();
        eprintln!("{:>3} %, {loaded} follows", loaded * 100 / community.follows.len());
    }
    // What is printed next reads lists and counters.
    tokio::select! {
        settled = server.app().projectors.settle(SETTLE_TIME_MAX) => drop(settled?),
        () = stop.cancelled() => return Ok(()),
    }
    fs::remove_file(&loading).map_err(Error::file("removing", &loading))?;
    eprintln!("loaded in {:.1} s", stopwatch.seconds());
    Ok(())
}
