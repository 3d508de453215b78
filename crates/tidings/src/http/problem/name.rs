//! The kinds of problem. Each has a page in `docs/errors`, compiled in, that says what to do.

use axum::http::StatusCode;

/// Declares every kind: name in the `type` URI, status, title. A kind without a page does not compile.
macro_rules! names {
    ($($variant:ident $slug:literal $status:ident $title:literal,)*) => {
        /// What kind of problem it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Name {
            $(#[doc = $title] $variant,)*
        }

        impl Name {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in the `type` URI.
            pub fn slug(self) -> &'static str {
                match self { $(Self::$variant => $slug,)* }
            }

            /// The status it is answered with.
            pub fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            /// What it is, for people; the same for each occurrence.
            pub fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// Its page, in Markdown.
            pub fn page(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../../../../docs/errors/", $slug, ".md")),)*
                }
            }
        }
    };
}

names! {
    BadRequest "bad-request" BAD_REQUEST "The request is malformed",
    Unauthenticated "unauthenticated" UNAUTHORIZED "Valid credentials are needed",
    Forbidden "forbidden" FORBIDDEN "The credentials do not allow this",
    NotFound "not-found" NOT_FOUND "There is nothing here",
    UnknownUser "unknown-user" NOT_FOUND "The user is not registered",
    MethodNotAllowed "method-not-allowed" METHOD_NOT_ALLOWED "The method is not allowed here",
    HandleTaken "handle-taken" CONFLICT "The handle belongs to another user",
    UserExists "user-exists" CONFLICT "The id belongs to another user",
    RedriveRefused "redrive-refused" CONFLICT "The redrive would do more than was shown",
    RebuildRefused "rebuild-refused" CONFLICT "The rebuild cannot be done",
    ReconciliationRefused "reconciliation-refused" CONFLICT "The reconciliation cannot be done",
    BodyTooLarge "body-too-large" PAYLOAD_TOO_LARGE "The body is too large",
    UriTooLong "uri-too-long" URI_TOO_LONG "The path and query are too long",
    UnsupportedMediaType "unsupported-media-type" UNSUPPORTED_MEDIA_TYPE "The body is of an unsupported type",
    Yourself "yourself" UNPROCESSABLE_ENTITY "Nobody follows himself",
    IdempotencyKeyReused "idempotency-key-reused" UNPROCESSABLE_ENTITY "The idempotency key belongs to another request",
    RateLimited "rate-limited" TOO_MANY_REQUESTS "Too many requests",
    HeadersTooLarge "headers-too-large" REQUEST_HEADER_FIELDS_TOO_LARGE "The headers are too large",
    Internal "internal" INTERNAL_SERVER_ERROR "Something went wrong inside",
    Busy "busy" SERVICE_UNAVAILABLE "The server has too much to do",
    Unavailable "unavailable" SERVICE_UNAVAILABLE "Something the server depends on is down",
    SearchGaveUp "search-gave-up" SERVICE_UNAVAILABLE "There is too much to look through",
    Timeout "timeout" SERVICE_UNAVAILABLE "The request took too long",
}

impl Name {
    /// The kind with this name in its `type` URI.
    pub fn from_slug(slug: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|name| name.slug() == slug)
    }

    /// Whether the request was turned away for the sake of others, or because it could not be served now.
    pub(in crate::http) fn is_shed(self) -> bool {
        matches!(self, Self::RateLimited | Self::Busy | Self::Unavailable | Self::Timeout)
    }

    /// The kind for a failure that nothing said more about.
    pub(super) fn from_status(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Self::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Self::MethodNotAllowed,
            StatusCode::PAYLOAD_TOO_LARGE => Self::BodyTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Self::UnsupportedMediaType,
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Self::HeadersTooLarge,
            StatusCode::SERVICE_UNAVAILABLE => Self::Unavailable,
            StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => Self::Timeout,
            status if status.is_client_error() => Self::BadRequest,
            _ => Self::Internal,
        }
    }
}
