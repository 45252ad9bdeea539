//! How long simulations are: in full for `make test-rest`, which sets `TOLL_TESTS=full`.

/// How many runs a simulation makes, of as many as in full. Else it is a tenth of them.
pub fn runs(full: usize) -> usize {
    if is_full() { full } else { full.div_ceil(10) }
}

/// What a tolerance for all runs is multiplied by for as many as there are: a standard error
/// grows by the root of ten.
pub fn widening() -> f64 {
    if is_full() { 1.0 } else { 10_f64.sqrt() }
}

fn is_full() -> bool {
    std::env::var_os("TOLL_TESTS").is_some_and(|tests| tests == "full")
}
