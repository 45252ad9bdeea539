//! What a place reports of one count.

/// A count, and the durations of its parts where the place reports them.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    pub primes: u64,
    pub allocate_ns: Option<u64>,
    pub draw_ns: Option<u64>,
    /// Time of counting, and of printing if that is requested.
    pub count_ns: Option<u64>,
    /// Time of the whole operation by the place's own clock, if the place reports no parts.
    pub whole_ns: Option<u64>,
}

impl Counted {
    pub fn from_primes(primes: u64) -> Self {
        Self {
            primes,
            allocate_ns: None,
            draw_ns: None,
            count_ns: None,
            whole_ns: None,
        }
    }

    /// Returns the time that the place's own readings cover; 0 if it makes
    /// none.
    pub fn inside_ns(&self) -> u64 {
        let parts_ns = self.parts().map(|(_, part_ns)| part_ns);
        parts_ns.chain(self.whole_ns).sum()
    }

    /// Returns the known parts, by the names of their metrics.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        [
            ("allocate_duration_ns", self.allocate_ns),
            ("draw_duration_ns", self.draw_ns),
            ("count_duration_ns", self.count_ns),
        ]
        .into_iter()
        .filter_map(|(name, part)| Some((name, part?)))
    }
}
