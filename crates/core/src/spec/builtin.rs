//! The experiments that come with the program.

/// An experiment that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Name on the command line.
    pub name: &'static str,
    pub toml: &'static str,
}

impl Builtin {
    /// Returns the experiment's heading without parsing the whole file, so that listing all
    /// experiments is fast.
    pub fn title(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Head {
            title: String,
        }
        // Keys before the first table belong to the document itself.
        let end = self.toml.find("\n[").unwrap_or(self.toml.len());
        Some(toml::from_str::<Head>(&self.toml[..end]).ok()?.title)
    }
}

macro_rules! builtin {
    ($name:literal) => {
        Builtin {
            name: $name,
            toml: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/experiments/",
                $name,
                "/experiment.toml"
            )),
        }
    };
}

macro_rules! builtins {
    ($($name:literal),* $(,)?) => {
        /// The experiments that `toll run` runs without names, in this order.
        pub const BUILTINS: &[Builtin] = &[$(builtin!($name)),*];
    };
}

/// The experiment that `toll kernel ab` runs. It says nothing about a single kernel, so
/// `toll run` without names leaves it out.
pub const KERNEL: Builtin = builtin!("kernel");

/// The experiment that measures the reports' calls on the kernels of Debian's suites. It downloads
/// these kernels, so it runs only by name.
pub const VERSIONS: Builtin = builtin!("versions");

builtins![
    // Prices come first, then the experiments that decide most claims per minute
    // (bench/results/replay.md).
    "prices", "transfer", "mem", "write", "crossing", "cat", "userfs", "sweep", "chase",
    "pressure", // Those that need guests come last: guests may first need a kernel.
    "foreign", "primes", "device", "reclaim",
];

/// Returns the experiments that `toll run NAME` knows.
pub fn with_names() -> impl Iterator<Item = &'static Builtin> {
    BUILTINS.iter().chain([&VERSIONS])
}

/// Returns the built-in experiment with a name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    let mut all = with_names().chain([&KERNEL]);
    all.find(|builtin| builtin.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_title_are_those_of_the_whole_experiment() {
        for builtin in with_names().chain([&KERNEL]) {
            let whole = crate::spec::parse(builtin.toml, builtin.name, "standard").unwrap();
            assert_eq!(builtin.name, whole.name);
            assert_eq!(builtin.title(), Some(whole.title), "{}", builtin.name);
        }
    }

    #[test]
    fn prices_come_first_and_what_needs_guests_last() {
        assert_eq!(BUILTINS[0].name, "prices");
        let boots = BUILTINS.iter().map(|builtin| {
            let whole = crate::spec::parse(builtin.toml, builtin.name, "quick").unwrap();
            let plan = crate::plan::Plan::new(&whole, 1).unwrap();
            plan.treatments.iter().any(|one| one.boot().is_some())
        });
        assert!(boots.is_sorted());
    }

    #[test]
    fn what_is_stored_of_an_experiment_is_read_as_it_was() {
        for builtin in with_names().chain([&KERNEL]) {
            let whole = crate::spec::parse(builtin.toml, builtin.name, "full").unwrap();
            let stored = serde_json::to_string(&whole).unwrap();
            let read: crate::spec::Experiment = serde_json::from_str(&stored).unwrap();
            read.check().unwrap();
            // JSON may lose the last bit of a figure's scaled numbers.
            let compared = [&read, &whole].map(|one| (&one.claims, &one.derived, &one.tables));
            assert!(compared[0] == compared[1], "{}", builtin.name);
            assert!(read.advice == whole.advice, "{}", builtin.name);
        }
    }
}
