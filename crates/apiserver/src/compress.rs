//! Compression of large answers, for clients that ask for it.

use crate::body::Body;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{Stream, StreamExt};
use http::{HeaderMap, HeaderValue, Response, header};
use std::io::Write;

/// What is smaller is not worth the time.
const MIN_BYTES: usize = 128 << 10;

pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && parts.next() != Some("q=0")
    })
}

/// The same response, compressed if it is large. Streams are: only large lists are streamed.
pub(crate) fn gzip(response: Response<Body>) -> Response<Body> {
    if response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = match body {
        Body::Whole(Some(bytes)) if bytes.len() >= MIN_BYTES => {
            let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
            let written = encoder.write_all(&bytes).and_then(|()| encoder.finish());
            match written {
                Ok(compressed) => Body::whole(compressed),
                Err(_) => return Response::from_parts(parts, Body::Whole(Some(bytes))),
            }
        }
        Body::Stream(stream) => Body::stream(compressed(stream)),
        small => return Response::from_parts(parts, small),
    };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(parts, body)
}

fn compressed(
    stream: impl Stream<Item = Bytes> + Send + Unpin + 'static,
) -> impl Stream<Item = Bytes> + Send + 'static {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    futures::stream::unfold(Some((stream, encoder)), |state| async move {
        let (mut stream, mut encoder) = state?;
        loop {
            match stream.next().await {
                Some(bytes) => {
                    // Writing to memory cannot fail.
                    encoder.write_all(&bytes).ok()?;
                    if encoder.get_ref().len() >= MIN_BYTES / 2 {
                        let ready = std::mem::take(encoder.get_mut());
                        return Some((Bytes::from(ready), Some((stream, encoder))));
                    }
                }
                None => return Some((Bytes::from(encoder.finish().ok()?), None)),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::io::Read;

    #[tokio::test]
    async fn large_answers_survive_and_small_ones_stay() {
        let large: Vec<u8> = (0..MIN_BYTES * 2).map(|n| (n % 251) as u8).collect();
        let whole = Body::whole(large.clone());
        let streamed =
            Body::stream(futures::stream::iter(large.chunks(1000).map(Bytes::copy_from_slice).collect::<Vec<_>>()));
        for body in [whole, streamed] {
            let response = gzip(Response::new(body));
            assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
            let compressed = response.into_body().collect().await.unwrap().to_bytes();
            let mut read = Vec::new();
            flate2::read::GzDecoder::new(&compressed[..]).read_to_end(&mut read).unwrap();
            assert_eq!(read, large);
        }
        assert!(!gzip(Response::new(Body::whole("small"))).headers().contains_key(header::CONTENT_ENCODING));
    }
}
