//! The experiments that come with the program.

/// An experiment that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Name on the command line.
    pub name: &'static str,
    /// Its experiment file.
    pub toml: &'static str,
}

macro_rules! builtins {
    ($($name:literal),* $(,)?) => {
        /// All of them, in the order in which `toll run` takes them.
        pub const BUILTINS: &[Builtin] = &[$(Builtin {
            name: $name,
            toml: include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"), "/../../experiments/", $name, "/experiment.toml"
            )),
        }),*];
    };
}

builtins![
    "cat", "sweep", "write", "mem", "pressure", "chase", "crossing", "primes", "reclaim",
    "transfer", "device", "userfs",
];

/// The built-in experiment of a name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}
