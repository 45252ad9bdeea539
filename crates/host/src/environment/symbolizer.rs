//! Finds the names at addresses with `blazesym`.

use blazesym::symbolize::source::{Elf, Kernel, Source};
use blazesym::symbolize::{self, Input, Symbolized};

pub struct Symbolizer(symbolize::Symbolizer);

impl Symbolizer {
    #[expect(
        clippy::unnecessary_wraps,
        reason = "a toll without the feature profiles has none"
    )]
    pub fn new() -> Result<Self, String> {
        Ok(Self(symbolize::Symbolizer::default()))
    }

    /// Returns the names at offsets in a file, or at addresses of the kernel if `file` is `None`. A
    /// file that cannot be read has no names.
    pub fn names(&self, file: Option<&str>, addresses: &[u64]) -> Vec<Option<String>> {
        let found = match file {
            None => self.0.symbolize(
                &Source::Kernel(Kernel::default()),
                Input::AbsAddr(addresses),
            ),
            Some(path) if path.starts_with('/') => {
                let elf = Elf::new(path);
                let input = Input::FileOffset(addresses);
                self.0.symbolize(&Source::Elf(elf), input)
            }
            Some(_) => return vec![None; addresses.len()],
        };
        match found {
            Ok(found) => found.into_iter().map(name).collect(),
            Err(_) => vec![None; addresses.len()],
        }
    }
}

fn name(found: Symbolized<'_>) -> Option<String> {
    match found {
        Symbolized::Sym(symbol) => Some(symbol.name.into_owned()),
        Symbolized::Unknown(_) => None,
    }
}
