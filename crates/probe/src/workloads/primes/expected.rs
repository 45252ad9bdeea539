//! Computes the count to expect, by another algorithm.

use toll_wire::{Failure, PrimesRequest, RandomSource};

use super::core::in_range;
use crate::failure;
use crate::random::split_mix;

/// Standard deviations by which a count of random numbers may deviate: chance
/// alone exceeds them once in 5e8 trials.
const DEVIATIONS: f64 = 6.0;

/// Which numbers up to a limit are prime (the sieve of Eratosthenes).
pub struct Expected {
    n: u32,
    is_prime: Vec<bool>,
}

impl Expected {
    pub fn new(n: u32) -> Self {
        let n_index = n as usize;
        let mut is_prime = vec![true; n_index + 1];
        is_prime[..2].fill(false);
        let mut prime = 2;
        while prime * prime <= n_index {
            if is_prime[prime] {
                is_prime[prime * prime..]
                    .iter_mut()
                    .step_by(prime)
                    .for_each(|is_prime| *is_prime = false);
            }
            prime += 1;
        }
        Self { n, is_prime }
    }

    /// Counts the primes among numbers up to the limit.
    pub fn count(&self, numbers: &[u32]) -> u64 {
        let is_prime = |number: &&u32| self.is_prime.get(**number as usize) == Some(&true);
        numbers.iter().filter(is_prime).count() as u64
    }

    /// Counts the primes among the numbers that a seed produces.
    pub fn seeded(&self, seed: u64) -> u64 {
        let mut state = seed;
        let number = |_| in_range((split_mix(&mut state) >> 32) as u32, self.n);
        let numbers: Vec<u32> = (0..self.n).map(number).collect();
        self.count(&numbers)
    }

    /// Returns the range that contains the count of `n` random numbers, up to a
    /// negligible probability.
    fn plausible(&self) -> (f64, f64) {
        let n = f64::from(self.n);
        let primes = self.is_prime.iter().filter(|is_prime| **is_prime).count();
        let share = primes as f64 / (n - 1.0);
        let slack = DEVIATIONS * (n * share * (1.0 - share)).sqrt() + 1.0;
        (n * share - slack, n * share + slack)
    }

    /// Checks a count that was returned without its numbers.
    pub fn check(&self, request: &PrimesRequest, primes: u64) -> Result<(), Failure> {
        let wrong = |expected: String| {
            Err(failure::failed(format!(
                "cannot trust the count: {primes} primes among {} numbers instead of {expected}; \
                 see the kernel log",
                request.n
            )))
        };
        if request.random == RandomSource::Seeded {
            let expected = self.seeded(request.seed);
            return if primes == expected {
                Ok(())
            } else {
                wrong(expected.to_string())
            };
        }
        let (least, most) = self.plausible();
        if (least..=most).contains(&(primes as f64)) && primes <= u64::from(request.n) {
            Ok(())
        } else {
            wrong(format!("{least:.0} to {most:.0}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sieve_finds_the_primes() {
        let primes = Expected::new(30);
        let found: Vec<u32> = (0..=30).filter(|n| primes.count(&[*n]) == 1).collect();
        assert_eq!(found, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
    }

    #[test]
    fn random_counts_are_plausible_near_the_share_of_primes_only() {
        // 9,592 of the 99,999 numbers are prime.
        let (least, most) = Expected::new(100_000).plausible();
        assert!(least > 9_000.0 && most < 10_200.0, "{least} to {most}");
        let (least, most) = Expected::new(2).plausible();
        assert!(least <= 2.0 && most >= 2.0);
    }
}
