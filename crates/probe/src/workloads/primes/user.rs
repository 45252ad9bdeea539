//! Counting in user space.

use std::io;
use std::mem::MaybeUninit;

use toll_wire::{Failure, RandomSource};

use super::core::{count, draw, in_range};
use super::counted::Counted;
use super::print::Printer;
use crate::clock;
use crate::failure::OrFail;

unsafe extern "C" {
    /// rand(3), which the published program called for each number.
    fn rand() -> libc::c_int;
    fn srand(seed: libc::c_uint);
}

/// Draws numbers and counts the primes among them, as `toll_primes_work` does
/// in the kernel: with clock readings in between, and the memory freed at the
/// end.
pub fn count_primes(
    n: u32,
    random: RandomSource,
    seed: u64,
    printer: Option<&mut Printer>,
) -> Result<Counted, Failure> {
    let n = n as usize;
    let started = clock::now_ns();
    // As with malloc, no page of a large array is present yet.
    let mut numbers: Vec<u32> = Vec::with_capacity(n);
    let allocated = clock::now_ns();
    draw_into(&mut numbers, n, random, seed)?;
    let drawn = clock::now_ns();
    let primes = count(&numbers);
    if let Some(printer) = printer {
        printer.print(primes)?;
    }
    let counted = clock::now_ns();
    Ok(Counted {
        primes,
        allocate_ns: Some(allocated - started),
        draw_ns: Some(drawn - allocated),
        count_ns: Some(counted - drawn),
        whole_ns: None,
    })
}

/// Draws `n` numbers into an empty vector that has room for them.
pub fn draw_into(
    numbers: &mut Vec<u32>,
    n: usize,
    random: RandomSource,
    seed: u64,
) -> Result<(), Failure> {
    assert!(numbers.is_empty(), "numbers are drawn once");
    fill(&mut numbers.spare_capacity_mut()[..n], random, seed)?;
    // SAFETY: `fill` has filled the first `n` places.
    unsafe { numbers.set_len(n) };
    Ok(())
}

/// Fills all places with numbers from 2 to the number of places.
pub fn fill(
    places: &mut [MaybeUninit<u32>],
    random: RandomSource,
    seed: u64,
) -> Result<(), Failure> {
    let n = u32::try_from(places.len()).expect("n is limited");
    match random {
        RandomSource::Seeded => draw(places, seed),
        RandomSource::Bulk => {
            random_bytes(places)?;
            for place in places {
                // SAFETY: `random_bytes` has filled it, and any bits are a number.
                let word = unsafe { place.assume_init() };
                place.write(in_range(word, n));
            }
        }
        RandomSource::Each => {
            for place in places {
                // SAFETY: rand(3) takes no argument; only this thread calls it.
                let word = unsafe { rand() }.unsigned_abs();
                place.write(2 + word % (n - 1));
            }
        }
    }
    Ok(())
}

/// Seeds rand(3).
pub fn seed_rand(seed: u64) {
    // SAFETY: srand(3) takes a plain number; only this thread calls it.
    unsafe { srand(seed as libc::c_uint) };
}

/// Fills all places with random bits (getrandom(2)).
fn random_bytes(places: &mut [MaybeUninit<u32>]) -> Result<(), Failure> {
    let length = size_of_val(places);
    let start: *mut u8 = places.as_mut_ptr().cast();
    let mut filled = 0;
    while filled < length {
        let rest = start.wrapping_add(filled).cast();
        // SAFETY: the rest of the places may be written to.
        let got = unsafe { libc::getrandom(rest, length - filled, 0) };
        match usize::try_from(got) {
            Ok(bytes) => filled += bytes,
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error).failed_by("draw numbers by getrandom", "see the kernel log");
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::expected::Expected;
    use super::*;

    #[test]
    fn every_source_fills_all_places_with_numbers_in_range() {
        for random in [RandomSource::Seeded, RandomSource::Bulk, RandomSource::Each] {
            for n in [2, 3, 5000] {
                let mut numbers = Vec::with_capacity(n);
                draw_into(&mut numbers, n, random, 1).unwrap();
                let is_in_range = |number: &u32| (2..=n as u32).contains(number);
                assert!(numbers.iter().all(is_in_range), "{random:?} {n}");
            }
        }
    }

    #[test]
    fn the_count_is_that_of_the_independent_algorithm() {
        let counted = count_primes(1000, RandomSource::Seeded, 9, None).unwrap();
        assert_eq!(counted.primes, Expected::new(1000).seeded(9));
        assert!(counted.count_ns.is_some());
    }
}
