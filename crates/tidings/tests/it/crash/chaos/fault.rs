//! What befalls a process or a server, and how it is made good.

use std::time::Duration;

use futures::future::join_all;
use rand::{RngExt, rngs::StdRng, seq::SliceRandom as _};
use tidings_testkit::{
    Part, World,
    servers::{Server, Servers},
};
use tokio::time::sleep;

/// Faults that may be there at once.
pub(super) const AT_ONCE_MAX: usize = 3;

/// Something that goes wrong. A duration is how long it stays so; it belongs to the fault.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// A process is killed, and started again.
    Kill(Part, Duration),
    /// A process stands still, and goes on.
    Freeze(Part, Duration),
    /// A process stands still and is killed then, with all that is on its way to it.
    FreezeAndKill(Part, Duration),
    /// A server is killed, and started again.
    KillServer(Server, Duration),
    /// A server is stopped in order, and started again.
    RestartServer(Server),
    /// A server stands still, and goes on.
    FreezeServer(Server, Duration),
    /// Every connection to the database ends, the relay's too.
    CutDatabase,
    /// Every connection to Redis ends.
    CutRedis,
    /// Redis forgets everything.
    FlushRedis,
}

/// The kinds of faults, before it is known how long they last.
#[derive(Clone, Copy, Debug)]
enum Card {
    Kill(Part),
    Freeze(Part),
    FreezeAndKill(Part),
    KillServer(Server),
    RestartServer(Server),
    FreezeServer(Server),
    CutDatabase,
    CutRedis,
    FlushRedis,
}

/// Who suffers it: nobody suffers two faults at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Part(Part),
    Server(Server),
}

/// Deals faults in random order: of processes and of servers by turns, and of each all before any comes up again,
/// so that a short run has seen most.
pub(super) struct Deck {
    parts: &'static [Part],
    /// What is left of those of processes, and of those of servers.
    left: [Vec<Card>; 2],
    is_servers_turn: bool,
    at_once_max: usize,
    rng: StdRng,
}

impl Deck {
    pub(super) fn new(parts: &'static [Part], at_once_max: usize, rng: StdRng) -> Self {
        Self { parts, left: Default::default(), is_servers_turn: false, at_once_max, rng }
    }

    /// Some faults that happen at once, at most `limit`.
    pub(super) fn deal(&mut self, limit: usize) -> Vec<Fault> {
        let wanted = [1, 1, 2, AT_ONCE_MAX][self.rng.random_range(0..4)].min(self.at_once_max);
        let mut victims = Vec::new();
        let mut faults = Vec::new();
        while faults.len() < wanted.min(limit) {
            let card = self.draw();
            if victims.contains(&card.victim()) {
                // Its turn comes later.
                self.left[usize::from(self.is_servers_turn)].insert(0, card);
                break;
            }
            victims.push(card.victim());
            faults.push(self.play(card));
        }
        faults
    }

    fn draw(&mut self) -> Card {
        self.is_servers_turn = !self.is_servers_turn;
        let left = &mut self.left[usize::from(self.is_servers_turn)];
        if left.is_empty() {
            *left = if self.is_servers_turn { of_servers() } else { of_parts(self.parts) };
            left.shuffle(&mut self.rng);
        }
        left.pop().expect("it was filled")
    }

    fn play(&mut self, card: Card) -> Fault {
        match card {
            Card::Kill(part) => Fault::Kill(part, self.up_to(3_000)),
            Card::Freeze(part) => Fault::Freeze(part, self.stillness()),
            Card::FreezeAndKill(part) => Fault::FreezeAndKill(part, self.up_to(3_000)),
            Card::KillServer(server) => Fault::KillServer(server, self.up_to(3_000)),
            Card::RestartServer(server) => Fault::RestartServer(server),
            Card::FreezeServer(server) => Fault::FreezeServer(server, self.stillness()),
            Card::CutDatabase => Fault::CutDatabase,
            Card::CutRedis => Fault::CutRedis,
            Card::FlushRedis => Fault::FlushRedis,
        }
    }

    fn up_to(&mut self, ms: u64) -> Duration {
        Duration::from_millis(self.rng.random_range(0..=ms))
    }

    /// Mostly a moment. Now and then longer than the relay's lease, the consumers' session and the patience
    /// with a silent source; or longer than a request may take.
    fn stillness(&mut self) -> Duration {
        Duration::from_millis(match self.rng.random_range(0..10) {
            0..6 => self.rng.random_range(200..=2_500),
            6..9 => self.rng.random_range(6_500..=9_000),
            _ => self.rng.random_range(10_500..=13_000),
        })
    }
}

fn of_parts(parts: &[Part]) -> Vec<Card> {
    let kinds = [Card::Kill, Card::Freeze, Card::FreezeAndKill];
    kinds.iter().flat_map(|kind| parts.iter().map(|part| kind(*part))).collect()
}

fn of_servers() -> Vec<Card> {
    let kinds = [Card::KillServer, Card::RestartServer, Card::FreezeServer];
    let servers = [Server::Database, Server::Kafka, Server::Redis];
    let ends = kinds.iter().flat_map(|kind| servers.map(kind));
    ends.chain([Card::CutDatabase, Card::CutDatabase, Card::CutRedis, Card::FlushRedis, Card::FlushRedis]).collect()
}

impl Card {
    fn victim(self) -> Victim {
        match self {
            Self::Kill(part) | Self::Freeze(part) | Self::FreezeAndKill(part) => Victim::Part(part),
            Self::KillServer(server) | Self::RestartServer(server) | Self::FreezeServer(server) => {
                Victim::Server(server)
            }
            Self::CutDatabase => Victim::Server(Server::Database),
            Self::CutRedis | Self::FlushRedis => Victim::Server(Server::Redis),
        }
    }
}

impl Fault {
    /// Lets faults happen at once, until all are made good.
    pub(super) async fn all(faults: &[Self], world: &World, servers: &Servers) {
        join_all(faults.iter().map(|fault| fault.happen(world, servers))).await;
    }

    async fn happen(self, world: &World, servers: &Servers) {
        match self {
            Self::Kill(part, time) => {
                world.kill_part(part).await;
                sleep(time).await;
                world.start_part(part, &[]).await;
            }
            Self::Freeze(part, time) => {
                world.pause_part(part);
                sleep(time).await;
                world.resume_part(part);
            }
            Self::FreezeAndKill(part, time) => {
                world.pause_part(part);
                sleep(time).await;
                world.kill_part(part).await;
                world.start_part(part, &[]).await;
            }
            Self::KillServer(server, time) => {
                servers.kill(server).await;
                sleep(time).await;
                servers.start(server).await;
            }
            Self::RestartServer(server) => servers.restart(server).await,
            Self::FreezeServer(server, time) => {
                servers.pause(server).await;
                sleep(time).await;
                servers.resume(server).await;
            }
            Self::CutDatabase => drop(servers.cut_database().await),
            Self::CutRedis => drop(servers.cut_redis().await),
            Self::FlushRedis => servers.flush_redis().await,
        }
    }
}
