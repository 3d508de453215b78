//! The OpenAPI document, made from the same declarations as the router.

use utoipa::{
    PartialSchema as _, ToSchema as _,
    openapi::{
        ComponentsBuilder, ContentBuilder, HeaderBuilder, InfoBuilder, LicenseBuilder, ObjectBuilder, OpenApi,
        OpenApiBuilder, PathItem, Ref, RefOr, ResponseBuilder, Schema, Type,
        path::{Operation, Paths},
        security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
        tag::TagBuilder,
    },
};

use super::{
    access::Access,
    problem::{Document, FieldError},
    router,
};

const BEARER: &str = "bearer";
const CONSOLE: &str = "console";
const PROBLEM: &str = "Problem";
const RETRY_AFTER: (&str, &str) = ("Retry-After", "Seconds after which to try again");
const DESCRIPTION: &str = "Tidings: a backend for social communities in which a write commits once, as a row and an \
     event in one transaction, and everything else follows from the event.\n\n\
     Errors are problem documents (RFC 9457); `type` leads to a page that says what to do. Ids are strings of digits, \
     times RFC 3339 in UTC. Lists are paged by `limit` and `cursor`; `next_cursor` is null at the end. Within `/v1` \
     nothing is changed in a breaking way; answers may gain fields.";
const TAGS: [(&str, &str); 5] = [
    ("relation", "The follow graph"),
    ("user", "The registry of users"),
    ("admin", "For operators"),
    ("console", "Logging in to the console"),
    ("operation", "Health, metrics and descriptions"),
];

/// The whole document.
pub fn document() -> OpenApi {
    let mut paths = Paths::new();
    let mut components = ComponentsBuilder::new()
        .schema(PROBLEM, Document::schema())
        .schema(FieldError::name(), FieldError::schema())
        .security_scheme(BEARER, bearer())
        .security_scheme(CONSOLE, SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::new("tidings_session"))));
    for route in router::declared() {
        let Some((schemas, documented)) = route.document else { continue };
        components = components.schemas_from_iter(schemas);
        for (path, mut item) in documented.paths {
            operations(&mut item).for_each(|operation| complete(operation, route.access));
            match paths.paths.get_mut(&path) {
                Some(known) => known.merge_operations(item),
                None => drop(paths.paths.insert(path, item)),
            }
        }
    }
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Tidings")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(DESCRIPTION))
                .license(Some(LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build()))
                .build(),
        )
        .paths(paths)
        .components(Some(components.build()))
        .tags(Some(TAGS.map(|(name, text)| TagBuilder::new().name(name).description(Some(text)).build())))
        .build()
}

fn text_schema() -> Option<RefOr<Schema>> {
    Some(ObjectBuilder::new().schema_type(Type::String).build().into())
}

fn bearer() -> SecurityScheme {
    let text = "A JWT signed with RS256: `tidings token --user ID`, or `tidings token --admin`.";
    let http = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").description(Some(text));
    SecurityScheme::Http(http.build())
}

/// The operations of a path.
pub(super) fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten()
}

/// Adds what every operation of this access has: who may call it, and how it can fail.
fn complete(operation: &mut Operation, access: Access) {
    let required = |scheme: &str| SecurityRequirement::new(scheme, Vec::<String>::new());
    operation.security = match access {
        Access::Open => None,
        Access::Me => Some(vec![required(BEARER)]),
        Access::Member | Access::Admin => Some(vec![required(BEARER), required(CONSOLE)]),
    };
    let usual: &[(&str, &str)] = match access {
        Access::Open => &[],
        _ => &[("401", "unauthenticated"), ("403", "forbidden")],
    };
    let everywhere = [("400", "bad-request"), ("500", "internal"), ("503", "busy, unavailable, timeout")];
    let responses = &mut operation.responses.responses;
    for (status, text) in usual.iter().chain(&everywhere) {
        let empty = || ResponseBuilder::new().description(*text).build().into();
        responses.entry((*status).to_owned()).or_insert_with(empty);
    }
    for (status, response) in responses {
        let headers: &[(&str, &str)] = match status.as_str() {
            "401" => &[("WWW-Authenticate", "`Bearer realm=\"tidings\"`, with the error if a token was wrong")],
            "429" => &[
                RETRY_AFTER,
                ("RateLimit-Policy", "As in the answer of 200"),
                ("RateLimit", "As in the answer of 200"),
            ],
            "503" => &[RETRY_AFTER],
            _ => &[],
        };
        let failed = status.starts_with(['4', '5']);
        if let RefOr::T(response) = response
            && failed
            && response.content.is_empty()
        {
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(PROBLEM))).build();
            response.content.insert("application/problem+json".to_owned(), content.into());
            for (name, text) in headers {
                let header = HeaderBuilder::new().schema(text_schema()).description(Some(*text)).build();
                response.headers.insert((*name).to_owned(), header.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn written() -> Value {
        serde_json::from_str(&document().to_json().unwrap()).unwrap()
    }

    #[test]
    fn every_route_of_v1_is_described_with_who_may_call_it() {
        let document = written();
        assert_eq!(document["openapi"], "3.1.0");
        let is_page = |path: &str| path.starts_with("/v1/docs");
        for route in
            router::routes().into_iter().filter(|route| route.path.starts_with("/v1/") && !is_page(&route.path))
        {
            let operation = &document["paths"][&route.path][route.method.to_lowercase()];
            assert!(operation["operationId"].is_string(), "{} {}", route.method, route.path);
            assert_eq!(operation["security"].is_array(), route.access != Access::Open, "{}", route.path);
            // 202 where the answer comes before what was asked for is done.
            let answered = ["200", "202"].iter().any(|status| operation["responses"][*status].is_object());
            assert!(answered, "{}", route.path);
            assert!(operation["responses"]["400"]["content"]["application/problem+json"].is_object());
        }
    }

    #[test]
    fn a_refusal_is_described_with_the_headers_that_say_what_to_do() {
        let document = written();
        let responses = &document["paths"]["/v1/me/following/{user_id}"]["put"]["responses"];
        for (status, names) in [
            ("401", vec!["WWW-Authenticate"]),
            ("429", vec!["RateLimit", "RateLimit-Policy", "Retry-After"]),
            ("503", vec!["Retry-After"]),
        ] {
            let headers: Vec<_> = responses[status]["headers"].as_object().unwrap().keys().collect();
            assert_eq!(headers, names, "{status}");
        }
        let ready = &document["paths"]["/health/ready"]["get"]["responses"]["503"];
        assert!(ready["headers"].is_null() && ready["content"]["application/json"].is_object(), "{ready}");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        fn references(value: &Value, found: &mut Vec<String>) {
            match value {
                Value::Object(map) => map.iter().for_each(|(key, value)| match value {
                    Value::String(text) if key == "$ref" => found.push(text.clone()),
                    value => references(value, found),
                }),
                Value::Array(list) => list.iter().for_each(|value| references(value, found)),
                _ => {}
            }
        }
        let document = written();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
        }
    }

    #[test]
    fn operation_ids_are_unique() {
        let mut ids = std::collections::BTreeSet::new();
        for item in written()["paths"].as_object().unwrap().values() {
            for operation in item.as_object().unwrap().values() {
                assert!(ids.insert(operation["operationId"].to_string()), "{}", operation["operationId"]);
            }
        }
    }
}
