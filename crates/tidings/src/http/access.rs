//! Who may call a route. A route is declared with its access, and the router checks it before the
//! route is reached: what is not declared open is closed.

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, Method, header, request::Parts},
    middleware::Next,
    response::Response,
};
use tidings_community::UserId;

use super::{
    input::{Admitted, cookie},
    problem::{Name, Problem},
    state::{App, AppState},
};
use crate::auth::{Identity, Rejection, Secrets, Verifier};

/// The console's cookie.
pub(super) const SESSION_COOKIE: &str = "tidings_session";
/// A page of another origin cannot send it without asking first, and it would be refused.
const CONSOLE_HEADER: &str = "x-tidings-console";

/// Who may call a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody.
    Open,
    /// A user, for himself: a bearer token whose subject is a user.
    Me,
    /// A user or an admin.
    Member,
    /// An admin.
    Admin,
}

impl Access {
    /// Whether the console's cookie is enough. What a user does for himself takes his own token.
    fn takes_cookie(self) -> bool {
        matches!(self, Self::Member | Self::Admin)
    }

    fn admits(self, identity: &Identity) -> Result<(), Problem> {
        let (admitted, detail) = match self {
            Self::Open => (true, ""),
            Self::Me => (identity.user.is_some(), "a token whose subject is a user is needed"),
            Self::Member => (identity.user.is_some() || identity.admin, "a token of a user or an admin is needed"),
            Self::Admin => (identity.admin, "the role `admin` is needed"),
        };
        if admitted { Ok(()) } else { Err(Problem::new(Name::Forbidden).detail(detail)) }
    }
}

/// Lets a request pass to its route, with the [`Identity`] it speaks for.
pub(super) async fn check(
    State((access, app)): State<(Access, AppState)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let identity = authenticate(access, &app, request.method(), request.headers()).await?;
    access.admits(&identity)?;
    request.extensions().get::<Admitted>().inspect(|admitted| admitted.note());
    request.extensions_mut().insert(identity);
    Ok(next.run(request).await)
}

async fn authenticate(access: Access, app: &App, method: &Method, headers: &HeaderMap) -> Result<Identity, Problem> {
    let mut credentials = headers.get_all(header::AUTHORIZATION).iter();
    if let Some(value) = credentials.next() {
        if credentials.next().is_some() {
            return Err(invalid("the `authorization` header must be given once"));
        }
        let text = value.to_str().unwrap_or_default();
        let token = bearer(text).ok_or_else(|| invalid("the `authorization` header must be `Bearer TOKEN`"))?;
        return verify(app, token).await;
    }
    let secret = if access.takes_cookie() { cookie(headers, SESSION_COOKIE) } else { None };
    let Some(secret) = secret else {
        return Err(Problem::new(Name::Unauthenticated));
    };
    let login = blocking(&app.sessions, secret.into_owned(), |sessions, secret| sessions.find(secret)).await?;
    let login = login.ok_or_else(|| invalid("the console login has ended"))?;
    if !method.is_safe() {
        same_origin(headers)?;
    }
    Ok(Identity::console(login))
}

/// Verifies a bearer token.
pub(super) async fn verify(app: &App, token: &str) -> Result<Identity, Problem> {
    verify_by(&app.verifier, token).await
}

/// Admits an admin by a bearer token alone, where there are no console logins.
pub(super) async fn admin_by_token(verifier: &Verifier, headers: &HeaderMap) -> Result<(), Problem> {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| bearer(value.to_str().ok()?));
    let token = token.ok_or_else(|| Problem::new(Name::Unauthenticated))?;
    Access::Admin.admits(&verify_by(verifier, token).await?)
}

async fn verify_by(verifier: &Verifier, token: &str) -> Result<Identity, Problem> {
    verifier.verify(token).await.map_err(|rejection| match &rejection {
        Rejection::Invalid(why) => invalid(why),
        Rejection::Unavailable(_) => Problem::unavailable(&rejection),
    })
}

/// Runs something on secrets, which are files, away from the threads that serve requests.
pub(super) async fn blocking<T: Send + 'static>(
    secrets: &Secrets,
    secret: String,
    run: impl FnOnce(&Secrets, &str) -> crate::Result<T> + Send + 'static,
) -> Result<T, Problem> {
    let secrets = secrets.clone();
    let ran = tokio::task::spawn_blocking(move || run(&secrets, &secret)).await;
    ran.map_err(|error| Problem::internal(&error))?.map_err(Problem::from)
}

fn invalid(why: &'static str) -> Problem {
    Problem::new(Name::Unauthenticated).detail(why)
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// A cookie comes along whoever makes the browser send a request, so a change made with it must
/// say that it comes from the console's own page.
pub(super) fn same_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let from_console = text(CONSOLE_HEADER) == Some("1");
    let site_is_own = text("sec-fetch-site").is_none_or(|site| site == "same-origin");
    let host = text("host").unwrap_or_default();
    let origin_is_own =
        text("origin").is_none_or(|origin| origin.split_once("://").is_some_and(|(_, authority)| authority == host));
    if from_console && site_is_own && origin_is_own {
        Ok(())
    } else {
        let detail = "a change made with the console's cookie must come from the console's own page";
        Err(Problem::new(Name::Forbidden).detail(detail))
    }
}

/// The user who asks, on routes of [`Access::Me`].
pub(super) struct Me(pub(super) UserId);

impl<S: Send + Sync> FromRequestParts<S> for Me {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let user = parts.extensions.get::<Identity>().and_then(|identity| identity.user);
        user.map(|id| Self(id.into())).ok_or_else(|| Problem::new(Name::Forbidden))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_change_by_cookie_must_come_from_the_console() {
        let own = [("x-tidings-console", "1"), ("host", "a:1"), ("origin", "http://a:1")];
        assert!(same_origin(&headers(&own)).is_ok());
        assert!(same_origin(&headers(&own[..2])).is_ok());
        assert!(same_origin(&headers(&own[1..])).is_err());
        for foreign in [
            [("x-tidings-console", "1"), ("host", "a:1"), ("origin", "http://b:1")],
            [("x-tidings-console", "1"), ("host", "a:1"), ("origin", "null")],
            [("x-tidings-console", "1"), ("host", "a:1"), ("sec-fetch-site", "cross-site")],
            [("x-tidings-console", "0"), ("host", "a:1"), ("origin", "http://a:1")],
        ] {
            assert!(same_origin(&headers(&foreign)).is_err(), "{foreign:?}");
        }
    }

    #[test]
    fn a_bearer_token_is_told_from_other_schemes() {
        assert_eq!(bearer("Bearer abc"), Some("abc"));
        assert_eq!(bearer("bearer abc"), Some("abc"));
        assert_eq!(bearer("Basic abc"), None);
        assert_eq!(bearer("Bearer"), None);
    }
}
