//! How long simulations are: full length for `make test-rest`, which sets `TOLL_TESTS=full`.

/// Returns the number of runs of a simulation: all `full` of them at full length, otherwise a
/// tenth.
pub fn runs(full: usize) -> usize {
    if is_full() { full } else { full.div_ceil(10) }
}

/// Returns the factor on a tolerance that holds for the full number of runs. With a tenth of the
/// runs, a standard error grows by the root of ten.
pub fn widening() -> f64 {
    if is_full() { 1.0 } else { 10_f64.sqrt() }
}

fn is_full() -> bool {
    std::env::var_os("TOLL_TESTS").is_some_and(|tests| tests == "full")
}
