//! The random source: a ChaCha stream from a seed, shared by everything that draws from it.
//!
//! Not for keys: those come from the TLS provider's own generator.

use parking_lot::Mutex;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;

/// A handle to a seeded stream; clones draw from the same stream.
#[derive(Clone, Debug)]
pub struct Random(Arc<Mutex<ChaCha8Rng>>);

impl Random {
    pub fn seeded(seed: u64) -> Self {
        Random(Arc::new(Mutex::new(ChaCha8Rng::seed_from_u64(seed))))
    }

    /// Seeded by the operating system.
    #[allow(clippy::disallowed_methods, reason = "this module is the one that asks for entropy")]
    pub fn from_entropy() -> Self {
        let mut seed = [0; 32];
        rand::TryRng::try_fill_bytes(&mut rand::rngs::SysRng, &mut seed)
            .expect("the operating system provides entropy");
        Random(Arc::new(Mutex::new(ChaCha8Rng::from_seed(seed))))
    }

    /// A stream of its own, determined by this one: for a component whose draws must not shift its neighbours'.
    pub fn fork(&self) -> Self {
        Random::seeded(self.next())
    }

    pub fn next(&self) -> u64 {
        self.0.lock().next_u64()
    }

    /// A number in `0..bound`; `bound` must not be zero.
    pub fn below(&self, bound: u64) -> u64 {
        self.0.lock().random_range(0..bound)
    }

    /// True with the given probability.
    pub fn chance(&self, probability: f64) -> bool {
        self.0.lock().random_bool(probability.clamp(0.0, 1.0))
    }

    pub fn fill(&self, bytes: &mut [u8]) {
        self.0.lock().fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_stream() {
        let draw = |seed| {
            let random = Random::seeded(seed);
            (random.next(), random.fork().below(1000), random.chance(0.5), random.next())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7).0, draw(8).0);
    }

    #[test]
    fn a_fork_does_not_shift_its_origin_however_much_it_draws() {
        let (a, b) = (Random::seeded(1), Random::seeded(1));
        a.fork().fill(&mut [0; 512]);
        b.fork();
        assert_eq!(a.next(), b.next());
    }
}
