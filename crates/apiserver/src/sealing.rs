//! Secrets at rest: encrypted with AES-256-GCM before they reach the store, under a key beside the data directory.
//!
//! The key file has one key per line, as a name and 32 bytes in base64. The first key encrypts, all of them decrypt:
//! to rotate, put a new key first and start again. What is under an older key is then encrypted anew.

use crate::pki::{PkiError, write_private};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use bytes::{BufMut, Bytes, BytesMut};
use object::base64;
use registry::{Seal, Unreadable};
use std::path::Path;

/// The resources that are encrypted, by the table they are in.
const SEALED: [&str; 1] = ["secrets/"];
/// What an encrypted value starts with. An object starts with a brace, so the two cannot be confused.
const MARK: u8 = 1;
const ID_BYTES: usize = 8;
const KEY_BYTES: usize = 32;

#[derive(Debug)]
pub struct Sealing {
    /// The first one encrypts.
    keys: Vec<Key>,
}

struct Key {
    id: [u8; ID_BYTES],
    cipher: LessSafeKey,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({:02x?})", self.id)
    }
}

impl Key {
    fn new(bytes: &[u8]) -> Option<Self> {
        let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, bytes).ok()?);
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
        let id = digest.as_ref().get(..ID_BYTES)?.try_into().ok()?;
        Some(Key { id, cipher })
    }
}

impl Sealing {
    /// Reads the keys at `path`, or makes one there that only its owner can read.
    pub fn open(path: &Path) -> Result<Self, PkiError> {
        let content = |why: String| PkiError::Content { path: path.to_owned(), why };
        if !path.exists() {
            let mut key = [0; KEY_BYTES];
            aws_lc_rs::rand::fill(&mut key).map_err(|_| content("no key can be made".to_owned()))?;
            write_private(path, format!("key1 {}\n", base64::encode(&key)).as_bytes())?;
        }
        let text = std::fs::read_to_string(path).map_err(|source| PkiError::File { path: path.to_owned(), source })?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let keys = lines.map(|(at, line)| {
            let encoded = line.split_whitespace().nth(1).unwrap_or_default();
            let bytes = base64::decode(encoded).filter(|bytes| bytes.len() == KEY_BYTES);
            bytes
                .and_then(|bytes| Key::new(&bytes))
                .ok_or_else(|| content(format!("line {}: expected a name and {KEY_BYTES} bytes in base64", at + 1)))
        });
        match keys.collect::<Result<Vec<_>, _>>()? {
            keys if keys.is_empty() => Err(content("there is no key in this file".to_owned())),
            keys => Ok(Sealing { keys }),
        }
    }

    fn applies(key: &[u8]) -> bool {
        SEALED.iter().any(|table| key.starts_with(table.as_bytes()))
    }
}

impl Seal for Sealing {
    fn seal(&self, key: &[u8], value: Bytes) -> Bytes {
        let Some(current) = self.keys.first().filter(|_| Sealing::applies(key)) else { return value };
        let mut nonce = [0; NONCE_LEN];
        aws_lc_rs::rand::fill(&mut nonce).expect("the generator of the cryptography works");
        let mut sealed = value.to_vec();
        // The key of the object is sealed with it, so that nobody can pass one secret off as another.
        current
            .cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(key), &mut sealed)
            .expect("an object is far smaller than what can be encrypted at once");
        let mut out = BytesMut::with_capacity(1 + ID_BYTES + NONCE_LEN + sealed.len());
        out.put_u8(MARK);
        out.put_slice(&current.id);
        out.put_slice(&nonce);
        out.put_slice(&sealed);
        out.freeze()
    }

    fn open(&self, key: &[u8], value: &Bytes) -> Result<Bytes, Unreadable> {
        if value.first() != Some(&MARK) {
            return Ok(value.clone());
        }
        let unreadable = |why: &str| Unreadable { key: String::from_utf8_lossy(key).into_owned(), why: why.to_owned() };
        let (Some(id), Some(nonce)) = (value.get(1..1 + ID_BYTES), value.get(1 + ID_BYTES..1 + ID_BYTES + NONCE_LEN))
        else {
            return Err(unreadable("it is cut short"));
        };
        let known = self.keys.iter().find(|key| key.id == id);
        let known = known.ok_or_else(|| unreadable("it is encrypted with a key that is not in the key file"))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| unreadable("it is cut short"))?;
        let mut sealed = value[1 + ID_BYTES + NONCE_LEN..].to_vec();
        let opened = known.cipher.open_in_place(nonce, Aad::from(key), &mut sealed);
        let opened = opened.map_err(|_| unreadable("it has been tampered with, or is damaged"))?;
        Ok(Bytes::copy_from_slice(opened))
    }

    fn is_current(&self, key: &[u8], value: &[u8]) -> bool {
        let current = self.keys.first().map(|key| key.id);
        !Sealing::applies(key)
            || value.first() == Some(&MARK) && value.get(1..1 + ID_BYTES) == current.as_ref().map(|id| &id[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealing(bytes: &[u8]) -> Sealing {
        Sealing { keys: bytes.iter().map(|byte| Key::new(&[*byte; KEY_BYTES]).unwrap()).collect() }
    }

    #[test]
    fn secrets_are_unreadable_at_rest_and_bound_to_their_key() {
        let (key, value) = (b"secrets/default/a".as_slice(), Bytes::from_static(b"{\"data\":\"hush\"}"));
        let seal = sealing(&[1]);
        let sealed = seal.seal(key, value.clone());
        assert!(!sealed.windows(4).any(|window| window == b"hush"));
        assert_ne!(sealed, seal.seal(key, value.clone()), "the same value never looks the same");
        assert_eq!(seal.open(key, &sealed).unwrap(), value);
        assert!(seal.open(b"secrets/default/b", &sealed).is_err());
        let mut damaged = sealed.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        assert!(seal.open(key, &damaged.into()).is_err());
        assert!(seal.open(key, &sealed.slice(..10)).is_err());
        let plain = b"configmaps/default/a".as_slice();
        assert_eq!(seal.seal(plain, value.clone()), value);
        assert_eq!(seal.open(key, &value).unwrap(), value, "what was stored before is still read");
    }

    #[test]
    fn keys_can_be_rotated() {
        let (key, value) = (b"secrets/default/a".as_slice(), Bytes::from_static(b"{}"));
        let old = sealing(&[1]).seal(key, value.clone());
        let rotated = sealing(&[2, 1]);
        assert_eq!(rotated.open(key, &old).unwrap(), value);
        assert!(!rotated.is_current(key, &old) && !rotated.is_current(key, &value));
        let new = rotated.seal(key, value);
        assert!(rotated.is_current(key, &new));
        assert!(sealing(&[1]).open(key, &new).is_err());
    }
}
