//! Which parts of a difference are listed.

/// Largest share of a difference that unlisted parts may have.
const UNEXPLAINED: f64 = 0.01;

/// Keeps the largest parts of a difference, the largest first, until they explain it. The sizes of
/// the other parts add up to at most 1 % of it, so no large ones among them can cancel out.
pub fn keep_until_explained<T>(parts: &mut Vec<T>, size: impl Fn(&T) -> f64, difference: f64) {
    parts.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut left_out = 0.0;
    let is_little = |part: &&T| {
        left_out += size(part);
        left_out <= UNEXPLAINED * difference
    };
    let little = parts.iter().rev().take_while(is_little).count();
    parts.truncate(parts.len() - little);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cancels_out_is_listed() {
        let kept = |sizes: &[f64], difference| {
            let mut parts = sizes.to_vec();
            keep_until_explained(&mut parts, |size| *size, difference);
            parts
        };
        assert_eq!(kept(&[0.5, 800.0, 0.4, 900.0], 100.0), [900.0, 800.0]);
        assert_eq!(kept(&[900.0, 0.6, 0.5], 100.0), [900.0, 0.6]);
        assert_eq!(kept(&[3.0, 1.0], 0.0), [3.0, 1.0]);
        assert!(kept(&[], 0.0).is_empty());
    }
}
