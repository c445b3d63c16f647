//! Who is let in. Another site that a browser is on must not read a trace: it knows no token, and neither its name nor
//! that of a host that it has pointed here (DNS rebinding) is one of ours.

use crate::app_state::AppState;
use crate::failure::Failure;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Where the pages may take things from: here. Styles that a script sets one by one need no permission.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    font-src 'self'; connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'";
const HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Lets a request through, or says why not; every answer gets the headers that keep a browser careful.
pub(crate) async fn guard(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    let mut response = match check(&state, &request) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    };
    add_headers(response.headers_mut(), state.allows_frames);
    response
}

fn check(state: &AppState, request: &Request<Body>) -> Result<(), Failure> {
    check_hosts(request.headers(), request.uri(), &state.allowed_hosts)?;
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let what = format!("{} changes things, which nothing here does", request.method());
        return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, what).hint("all requests are GET"));
    }
    Ok(())
}

/// Lets a request through that knows the token.
pub(crate) async fn check_token(State(state): State<Arc<AppState>>, request: Request, next: Next) -> Response {
    if has_token(&state, &request) {
        return next.run(request).await;
    }
    let failure = Failure::new(StatusCode::UNAUTHORIZED, "the token is missing or not the one of this server");
    failure.hint("open the address that `stepscope view` printed").into_response()
}

/// Checks that the request was meant for this host, and comes from a page of it where it comes from a page.
fn check_hosts(headers: &HeaderMap, uri: &Uri, allowed: &[String]) -> Result<(), Failure> {
    let forbidden = |what: String| {
        let failure = Failure::new(StatusCode::FORBIDDEN, what);
        Err(failure.hint("behind a proxy, start `stepscope view` with --allow-host NAME"))
    };
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = uri.authority().map(|authority| authority.as_str()).or(text(header::HOST)).unwrap_or_default();
    let is_allowed = |host: &str| {
        let host = host.to_ascii_lowercase();
        let name = without_port(&host);
        HOSTS.contains(&name) || allowed.iter().any(|allowed| *allowed == host || allowed == name)
    };
    if !is_allowed(host) {
        return forbidden(format!("this server does not go by the name {:?}", short(host)));
    }
    let Some(origin) = text(header::ORIGIN) else { return Ok(()) };
    let authority = origin.split_once("://").map_or("", |(_, authority)| authority);
    // A proxy tells its own name in `Host`; the page's is then one that was allowed.
    let is_ours = authority.eq_ignore_ascii_case(host)
        || allowed.iter().any(|allowed| {
            authority.eq_ignore_ascii_case(allowed) || without_port(authority).eq_ignore_ascii_case(allowed)
        });
    if authority.is_empty() || !is_ours {
        return forbidden(format!("a page of {:?} may not ask this server", short(origin)));
    }
    Ok(())
}

fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

/// `[::1]:80` without its port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !name.ends_with(':') => name,
        _ => host,
    }
}

fn has_token(state: &AppState, request: &Request<Body>) -> bool {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = header.and_then(|value| value.strip_prefix("Bearer "));
    if let Some(offered) = bearer {
        return state.token.is(offered);
    }
    let query = request.uri().query().unwrap_or_default();
    form_urlencoded::parse(query.as_bytes()).any(|(name, value)| name == "token" && state.token.is(&value))
}

fn add_headers(headers: &mut HeaderMap, allows_frames: bool) {
    let policy = if allows_frames { POLICY.to_string() } else { format!("{POLICY}; frame-ancestors 'none'") };
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_str(&policy).expect("plain text"));
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        // A selection can be handed to a page that the user opens.
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin-allow-popups"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    fixed.into_iter().for_each(|(name, value)| drop(headers.insert(name, HeaderValue::from_static(value))));
    if !allows_frames {
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_let_in(host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        origin.into_iter().for_each(|origin| drop(headers.insert(header::ORIGIN, origin.parse().unwrap())));
        check_hosts(&headers, &Uri::from_static("/api/runs"), &["hub.example".to_string()]).is_ok()
    }

    #[test]
    fn only_names_of_this_host_are_answered() {
        for host in
            ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:80", "[::1]", "hub.example", "hub.example:443"]
        {
            assert!(is_let_in(host, None), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:8000",
            "localhost.evil.example",
            "",
            "127.0.0.2",
            "localhost:x",
            "::1",
        ] {
            assert!(!is_let_in(host, None), "{host}");
        }
    }

    #[test]
    fn only_pages_of_this_host_may_ask() {
        assert!(is_let_in("127.0.0.1:8000", Some("http://127.0.0.1:8000")));
        assert!(is_let_in("127.0.0.1:8000", Some("https://hub.example")));
        for origin in ["http://127.0.0.1:9999", "http://localhost:8000", "https://evil.example", "null", "", "http://"]
        {
            assert!(!is_let_in("127.0.0.1:8000", Some(origin)), "{origin}");
        }
    }
}
