//! Signed tokens: JSON Web Tokens with ES256, the one algorithm this server signs and believes.

use crate::pki::{PkiError, to_pem, write_private};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use object::{Value, View, base64, json};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// So many tokens are remembered whose signature has been checked.
const MAX_REMEMBERED: usize = 10_000;

pub struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
    /// The claims of tokens whose signature is good, by the digest of the token: checking it again costs more than
    /// everything else about a request.
    verified: Mutex<HashMap<[u8; 32], Arc<Value>>>,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Reads the key at `path`, or makes one there that only its owner can read.
    pub fn open(path: &Path) -> Result<Self, PkiError> {
        let content = |why: &str| PkiError::Content { path: path.to_owned(), why: why.to_owned() };
        if !path.exists() {
            let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
            let made = made.map_err(|_| content("no key can be made"))?;
            write_private(path, to_pem("PRIVATE KEY", made.as_ref()).as_bytes())?;
        }
        let text = std::fs::read_to_string(path).map_err(|source| PkiError::File { path: path.to_owned(), source })?;
        let encoded: String = text.lines().filter(|line| !line.starts_with("-----")).collect();
        let der = base64::decode(&encoded).ok_or_else(|| content("this is no PEM"))?;
        SigningKey::from_pkcs8(&der).ok_or_else(|| content("this is no P-256 key"))
    }

    /// A key that was made before.
    pub fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).ok()?;
        let id = base64::encode_url(digest(&SHA256, pair.public_key().as_ref()).as_ref());
        Some(SigningKey { pair, id, verified: Mutex::default() })
    }

    /// A key for one process: whatever it signs is worthless afterwards.
    pub fn ephemeral() -> Self {
        SigningKey::from_pkcs8(&SigningKey::ephemeral_pkcs8()).expect("a key that was just made can be read")
    }

    /// The same in a form that can be read again: making one takes a while.
    pub fn ephemeral_pkcs8() -> Vec<u8> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        made.expect("the generator of the cryptography works").as_ref().to_vec()
    }

    /// A token that says this; none if signing fails.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let header = json!({ "alg": "ES256", "kid": self.id });
        let message = format!(
            "{}.{}",
            base64::encode_url(header.to_string().as_bytes()),
            base64::encode_url(claims.to_string().as_bytes())
        );
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).ok()?;
        Some(format!("{message}.{}", base64::encode_url(signature.as_ref())))
    }

    /// What a token says, if it was signed with this key. Whether it is still good is for the caller to see.
    pub(crate) fn verify(&self, token: &str) -> Option<Arc<Value>> {
        let known: [u8; 32] = digest(&SHA256, token.as_bytes()).as_ref().try_into().ok()?;
        if let Some(claims) = self.verified.lock().get(&known) {
            return Some(claims.clone());
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let header = object::json::parse(&base64::decode_url(header)?).ok()?;
        if header.text("alg") != "ES256" || header.text("kid") != self.id {
            return None;
        }
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        key.verify(message.as_bytes(), &base64::decode_url(signature)?).ok()?;
        let claims = Arc::new(object::json::parse(&base64::decode_url(claims)?).ok()?);
        let mut verified = self.verified.lock();
        if verified.len() >= MAX_REMEMBERED {
            verified.clear();
        }
        verified.insert(known, claims.clone());
        Some(claims)
    }

    /// The public key, as others need it to check tokens.
    pub(crate) fn key_set(&self) -> Value {
        // An uncompressed point: a byte that says so, then both coordinates.
        let point = self.pair.public_key().as_ref();
        let coordinate = |range: std::ops::Range<usize>| base64::encode_url(point.get(range).unwrap_or_default());
        json!({ "keys": [{
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": coordinate(1..33), "y": coordinate(33..65),
        }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_believed_only_as_it_was_signed() {
        let key = SigningKey::ephemeral();
        let token = key.sign(&json!({ "sub": "somebody" })).unwrap();
        assert_eq!(key.verify(&token).unwrap().text("sub"), "somebody");
        assert_eq!(key.verify(&token).unwrap().text("sub"), "somebody", "and again, remembered");
        let other = SigningKey::ephemeral();
        assert!(other.verify(&token).is_none());
        let parts: Vec<&str> = token.split('.').collect();
        let forged = base64::encode_url(json!({ "sub": "admin" }).to_string().as_bytes());
        let unsigned = base64::encode_url(json!({ "alg": "none", "kid": key.id }).to_string().as_bytes());
        for bad in [
            format!("{}.{forged}.{}", parts[0], parts[2]),
            format!("{unsigned}.{forged}."),
            format!("{}.{}", parts[0], parts[1]),
            String::new(),
            "a.b.c".to_owned(),
        ] {
            assert!(key.verify(&bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_key_is_made_once_and_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = std::env::temp_dir().join(format!("setpoint-key-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("sa.key");
        let token = SigningKey::open(&path).unwrap().sign(&json!({})).unwrap();
        assert!(SigningKey::open(&path).unwrap().verify(&token).is_some());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
