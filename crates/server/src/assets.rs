//! The pages' files, as they were built into the program: packed, and each under a name that changes with its content.

use crate::failure::Failure;
use crate::packing::takes;
use axum::http::StatusCode;
use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use std::io::Read;

/// One file.
struct Asset {
    /// Its path below the root.
    path: &'static str,
    /// Its media type.
    kind: &'static str,
    /// What is in it, packed by gzip.
    packed: &'static [u8],
    /// Stands for its content.
    etag: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// The page that stands for all: what it shows is in the address.
const INDEX: &str = "index.html";
/// The folder whose files never change under one name.
const HASHED: &str = "assets/";

/// The file that a request names.
pub(crate) async fn asset(uri: Uri, headers: HeaderMap) -> Response {
    let path = uri.path().trim_start_matches('/');
    let path = if path.is_empty() { INDEX } else { path };
    let Some(asset) = ASSETS.iter().find(|asset| asset.path == path) else {
        return Failure::not_found("there is no such page").into_response();
    };
    let cache = if path.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let about = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, cache),
        (header::ETAG, asset.etag),
        (header::VARY, "accept-encoding"),
    ];
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|known| known.trim() == asset.etag) {
        return (StatusCode::NOT_MODIFIED, about).into_response();
    }
    if takes(&headers, "gzip") {
        return (about, [(header::CONTENT_ENCODING, "gzip")], asset.packed).into_response();
    }
    let mut bytes = Vec::new();
    // It was packed when the program was built.
    let read = GzDecoder::new(asset.packed).read_to_end(&mut bytes);
    read.map_or_else(|_| StatusCode::INTERNAL_SERVER_ERROR.into_response(), |_| (about, bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_page_without_scripts_or_styles_in_its_text() {
        let index = ASSETS.iter().find(|asset| asset.path == INDEX).expect("a page");
        let mut text = String::new();
        GzDecoder::new(index.packed).read_to_string(&mut text).expect("packed text");
        assert!(text.to_lowercase().starts_with("<!doctype html>"), "{text}");
        for forbidden in ["<style", " style=", "javascript:", "http://", "https://"] {
            assert!(!text.contains(forbidden), "{forbidden} in {text}");
        }
        let scripts = text.match_indices("<script").map(|(at, _)| text[at..].split('>').next().unwrap_or_default());
        scripts.for_each(|tag| assert!(tag.contains("src="), "{tag}"));
    }
}
