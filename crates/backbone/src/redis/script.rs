//! Scripts: each is one atomic step of Redis.

use ::redis::{FromRedisValue, RedisResult, ToRedisArgs, aio::MultiplexedConnection};

/// A script in Lua, known to Redis by its digest. A Redis that does not know it is sent its text once.
#[derive(Clone, Debug)]
pub struct Script(::redis::Script);

impl Script {
    /// A script of this text.
    pub fn new(text: &str) -> Self {
        Self(::redis::Script::new(text))
    }

    /// A call of it, without keys and arguments yet.
    pub fn call(&self) -> Call<'_> {
        Call(self.0.prepare_invoke())
    }
}

/// A script with its keys and arguments.
pub struct Call<'s>(::redis::ScriptInvocation<'s>);

impl Call<'_> {
    /// Adds to `KEYS`. The key has its prefix already; see [`super::Redis::key`].
    #[must_use]
    pub fn key(mut self, key: String) -> Self {
        self.0.key(key);
        self
    }

    /// Adds to `ARGV`.
    #[must_use]
    pub fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.0.arg(arg);
        self
    }

    pub(super) async fn invoke<T: FromRedisValue>(&self, connection: &MultiplexedConnection) -> RedisResult<T> {
        self.0.invoke_async(&mut connection.clone()).await
    }
}

impl std::fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Call").finish_non_exhaustive()
    }
}
