//! Names and identities that the server makes up.

use ambient::Random;

/// Letters and digits that form no words and are not mistaken for each other.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_CHARS: usize = 5;
/// The longest name that fits everywhere a name is used.
const MAX_GENERATED_CHARS: usize = 63;

/// A name from `metadata.generateName`.
pub(crate) fn generate(base: &str, random: &Random) -> String {
    let base: String = base.chars().take(MAX_GENERATED_CHARS - SUFFIX_CHARS).collect();
    let letter = |_| char::from(ALPHABET[usize::try_from(random.below(ALPHABET.len() as u64)).unwrap_or(0)]);
    base.chars().chain((0..SUFFIX_CHARS).map(letter)).collect()
}

/// A random UUID.
pub(crate) fn uid(random: &Random) -> String {
    let mut bytes = [0; 16];
    random.fill(&mut bytes);
    // Version 4, variant 1.
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for half in [byte >> 4, byte & 0xf] {
            text.push(char::from_digit(u32::from(half), 16).unwrap_or('0'));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_names_are_cut_to_fit() {
        let random = Random::seeded(1);
        let name = generate("web-", &random);
        assert!(name.starts_with("web-") && name.len() == 9, "{name}");
        assert_eq!(generate(&"x".repeat(100), &random).len(), 63);
        assert_ne!(generate("a", &random), generate("a", &random));
    }

    #[test]
    fn identities_are_uuids() {
        let uid = uid(&Random::seeded(1));
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
        assert!("89ab".contains(&uid[19..20]));
    }
}
