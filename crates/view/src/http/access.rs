//! Admits only requests to the server's own address with its token, and writes only from its own page; sets the
//! headers that restrict the page. Every path begins with the token, a random text that only the address of the page
//! has.

use super::Served;
use super::answer::Refusal;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Lets a request through if it may be answered.
pub async fn admit(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let mut response = match check(&served, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns the refusal of a request for another address, without the token, or with a method other than GET that is
/// no permitted write.
fn check(served: &Served, request: &Request) -> Result<(), Refusal> {
    if !names_this_server(request.headers(), served.port) {
        let sentence = "This server answers to its own address only.";
        return Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
    }
    let path = request.uri().path().strip_prefix('/');
    let token = path.and_then(|path| path.split_once('/'));
    if !token.is_some_and(|(token, _)| same(token, &served.token)) {
        return Err(Refusal::not_found());
    }
    if request.method() != Method::GET && !writes(request) {
        let sentence = "Only GET is answered.";
        return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, sentence));
    }
    Ok(())
}

/// Ends of the paths that accept writes.
const WRITABLE: [&str; 3] = ["/notes", "/arrangement", "/queries"];

/// Returns true for a write of the page itself: a form of another page cannot send JSON, and scripts of another page need permission first.
fn writes(request: &Request) -> bool {
    let headers = request.headers();
    let json = headers.get(header::CONTENT_TYPE);
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes);
    let of_ours = |origin: &HeaderValue| origin.as_bytes().strip_prefix(b"http://") == host;
    request.method() == Method::PUT
        && WRITABLE
            .iter()
            .any(|end| request.uri().path().ends_with(end))
        && json.is_some_and(|json| json == "application/json")
        && headers.get(header::ORIGIN).is_none_or(of_ours)
}

/// Returns true where the `Host` header names this server; another site whose name was made to resolve to this address names itself.
fn names_this_server(headers: &HeaderMap, port: u16) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let own = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
    host.is_some_and(|host| own.iter().any(|own| own == host)) && hosts.next().is_none()
}

/// Returns whether the token of a request is right. The comparison takes constant time, so that its duration reveals
/// nothing.
fn same(given: &str, token: &str) -> bool {
    given.len() == token.len()
        && given
            .bytes()
            .zip(token.bytes())
            .fold(0, |all, (a, b)| all | (a ^ b))
            == 0
}

/// The headers of every response: the page may load and ask this server only, is not embedded in others, and is not
/// stored.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];
