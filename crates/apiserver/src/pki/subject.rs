//! Puts the subject of a request into a certificate as it is, byte for byte: what writes certificates here keeps only
//! one of several organizations, and for Kubernetes each of them is a group.

use super::PkiError;
use super::requests::invalid;
use rcgen::SigningKey;
use x509_parser::prelude::{FromDer, X509Certificate, X509CertificationRequest};

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;

/// The same certificate for the subject of a request, signed anew. All are DER.
pub(super) fn with_subject(certificate: &[u8], request: &[u8], key: &impl SigningKey) -> Result<Vec<u8>, PkiError> {
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(invalid)?;
    let (_, request) = X509CertificationRequest::from_der(request).map_err(invalid)?;
    let (signed, old) = (parsed.tbs_certificate.as_ref(), parsed.tbs_certificate.subject.as_raw());
    // Both are parts of the same bytes.
    let at = old.as_ptr() as usize - signed.as_ptr() as usize;
    let parts = [
        &signed[header_length(signed)..at],
        request.certification_request_info.subject.as_raw(),
        &signed[at + old.len()..],
    ];
    let renamed = element(SEQUENCE, &parts.concat());
    let old_signature = bit_string(&parsed.signature_value.data);
    let algorithm = &certificate[header_length(certificate) + signed.len()..certificate.len() - old_signature.len()];
    let signature = bit_string(&key.sign(&renamed)?);
    Ok(element(SEQUENCE, &[&renamed, algorithm, &signature].concat()))
}

fn bit_string(bits: &[u8]) -> Vec<u8> {
    // No bit of the last byte is unused.
    element(BIT_STRING, &[&[0], bits].concat())
}

/// A tag, the length, the content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    let mut element = vec![tag];
    match content.len() {
        0..128 => element.extend(significant),
        _ => {
            element.push(0x80 | u8::try_from(significant.len()).unwrap_or(u8::MAX));
            element.extend(significant);
        }
    }
    element.extend(content);
    element
}

/// How long tag and length of an element are.
fn header_length(element: &[u8]) -> usize {
    match element.get(1) {
        Some(long) if *long >= 0x80 => 2 + usize::from(*long & 0x7f),
        _ => 2,
    }
}
