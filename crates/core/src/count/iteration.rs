//! Functions of the kernel that an iteration of a trial executed.

use std::collections::BTreeMap;

use super::{ENTRY_BYTES, Symbols, records, word};

/// The name for all instructions outside of the kernel.
pub const PROGRAMS: &str = "programs";

/// Maximum number of instructions that the two clock reads add to a region, besides the timed work.
const CLOCK_INSTRUCTIONS: f64 = 5_000.0;

/// Largest share of the path length that entering and leaving idle time adds to a region. The path
/// length itself does not include these instructions.
const IDLE_SHARE: f64 = 0.1;

/// Returns the instructions by function of the iteration with the median path length; of an even
/// number, the smaller of the two in the middle. Empty if no counted region has this length.
///
/// `bytes` are what the plugin wrote during the trial: regions of iterations, of warm-ups, and of
/// other work.
///
/// # Errors
/// Fails with what is wrong with the bytes.
pub fn functions_in_the_middle(
    bytes: &[u8],
    symbols: &Symbols,
    path_lengths: &[f64],
) -> Result<BTreeMap<String, u64>, String> {
    let mut sorted = path_lengths.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(middle) = sorted.get(sorted.len().saturating_sub(1) / 2) else {
        return Ok(BTreeMap::new());
    };
    let total = |record: &&[u8]| -> f64 {
        let entries = record.chunks_exact(ENTRY_BYTES);
        entries.map(|entry| word(entry, 3)).sum::<u64>() as f64
    };
    let records = records(bytes)?;
    let totals: Vec<f64> = records.iter().map(total).collect();
    // The clock takes the same number of instructions in all iterations. With the right number,
    // every iteration has a matching region.
    let misfit = |clock: f64| -> f64 {
        let nearest = |length: &f64| {
            let distances = totals.iter().map(|total| (total - length - clock).abs());
            distances.fold(f64::INFINITY, f64::min)
        };
        path_lengths.iter().map(nearest).sum()
    };
    let clocks = totals.iter().map(|total| total - middle).enumerate();
    let fitting = clocks
        .filter(|(_, clock)| (0.0..CLOCK_INSTRUCTIONS + IDLE_SHARE * middle).contains(clock))
        .min_by(|(_, a), (_, b)| misfit(*a).total_cmp(&misfit(*b)).then(a.total_cmp(b)));
    let Some((index, _)) = fitting else {
        return Ok(BTreeMap::new());
    };
    let record = records[index];
    let mut functions: BTreeMap<String, u64> = BTreeMap::new();
    for entry in record.chunks_exact(ENTRY_BYTES) {
        let (address, count) = (word(entry, 0), word(entry, 3));
        // The kernel has the upper half of the addresses.
        let name = match address >> 63 {
            0 => PROGRAMS,
            _ => symbols.at(address).0,
        };
        match functions.get_mut(name) {
            Some(sum) => *sum += count,
            None => {
                functions.insert(name.to_owned(), count);
            }
        }
    }
    Ok(functions)
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;

    #[test]
    fn the_region_that_is_as_long_as_the_iteration_in_the_middle_is_taken() {
        let kernel = 0xffff_ffff_8100_0000;
        let symbols = Symbols::read("ffffffff81000000 T vfs_read\nffffffff81000100 t fget");
        // Ten instructions of each region are the clock's.
        let region = |count| {
            record(&[
                [kernel, 0, 1, count],
                [kernel + 0x100, 0, 1, 7],
                [64, 1, 1, 3],
            ])
        };
        let regions = [5, 20_000, 90_000, 50_004, 50_000];
        let bytes = regions.map(region).concat();
        let functions =
            |lengths: &[f64]| functions_in_the_middle(&bytes, &symbols, lengths).unwrap();
        let expected = [("fget", 7), (PROGRAMS, 3), ("vfs_read", 50_004)];
        let expected = expected.map(|(name, count)| (name.to_owned(), count));
        let lengths = [90_000.0, 50_004.0, 50_000.0];
        assert_eq!(functions(&lengths), expected.into());
        assert_eq!(functions(&[20_000.0, 90_000.0])["vfs_read"], 20_000);
        // The region entered and left idle time.
        assert_eq!(functions(&[84_000.0])["vfs_read"], 90_000);
        assert!(functions(&[70_000.0]).is_empty() && functions(&[]).is_empty());
        assert!(functions_in_the_middle(&bytes[1..], &symbols, &[1.0]).is_err());
    }
}
