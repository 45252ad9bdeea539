//! Finds functions of programs by the content of the pages that were executed.
//!
//! Addresses alone identify nothing: processes share them, and the host does not know
//! what is mapped where. A page's content identifies the file and the place in it.

use std::collections::HashMap;

use object::elf::PF_X;
use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind};

const PAGE_BYTES: usize = 4096;

/// Executable pages and functions of ELF files.
#[derive(Debug, Default)]
pub struct Programs {
    files: Vec<ProgramFile>,
    /// Index of each page's file, and the page's address in it, by [`identity`].
    pages: HashMap<u64, (usize, u64)>,
}

#[derive(Debug)]
struct ProgramFile {
    name: String,
    /// Functions, sorted by address.
    functions: Vec<Function>,
}

#[derive(Debug)]
struct Function {
    begin: u64,
    /// The first address after the function. Without one, the function ends where the next one
    /// begins.
    end: Option<u64>,
    name: String,
}

impl Programs {
    /// Adds a program or library under a name. Ignores content that is not an ELF
    /// file.
    pub fn add(&mut self, name: &str, content: &[u8]) {
        if let Ok(elf) = object::File::parse(content) {
            self.add_pages(name, content, &elf, functions(&elf, content.len()));
        }
    }

    /// Adds a program that counts as a whole, without its functions.
    pub fn add_as_one(&mut self, name: &str, content: &[u8]) {
        if let Ok(elf) = object::File::parse(content) {
            self.add_pages(name, content, &elf, Vec::new());
        }
    }

    fn add_pages(
        &mut self,
        name: &str,
        content: &[u8],
        elf: &object::File,
        functions: Vec<Function>,
    ) {
        let number = self.files.len();
        // Segments may overlap.
        let mut is_added = vec![false; content.len().div_ceil(PAGE_BYTES)];
        for segment in elf.segments() {
            let is_executable = matches!(
                segment.flags(),
                SegmentFlags::Elf { p_flags, .. } if p_flags & PF_X != 0
            );
            let (offset, bytes) = segment.file_range();
            let Some(end) = offset.checked_add(bytes).filter(|_| is_executable) else {
                continue;
            };
            let [first, behind] = [offset / PAGE_BYTES as u64, end.div_ceil(PAGE_BYTES as u64)]
                .map(|index| usize::try_from(index).unwrap_or(usize::MAX));
            let base = segment.address().wrapping_sub(offset);
            let pages = content.chunks(PAGE_BYTES).enumerate().take(behind);
            for (index, page) in pages.skip(first) {
                if std::mem::replace(&mut is_added[index], true) {
                    continue;
                }
                let identity = identity(page);
                // The plugin reports 0 for a page that it cannot read, and for a page of zeros.
                if identity != 0 {
                    let address = base.wrapping_add((index * PAGE_BYTES) as u64);
                    self.pages.entry(identity).or_insert((number, address));
                }
            }
        }
        self.files.push(ProgramFile {
            name: name.to_owned(),
            functions,
        });
    }

    /// Returns the function of a block, and whether the block is its start; `page` is
    /// the identity of the page, `address` that of the block in the guest.
    pub(super) fn at(&self, page: u64, address: u64) -> (String, bool) {
        let Some((number, page_address)) = self.pages.get(&page) else {
            return ("programs, without a file".to_owned(), false);
        };
        let file = &self.files[*number];
        let address = page_address.wrapping_add(address % PAGE_BYTES as u64);
        let behind = file
            .functions
            .partition_point(|function| function.begin <= address);
        let function = behind
            .checked_sub(1)
            .map(|index| &file.functions[index])
            .filter(|function| function.end.is_none_or(|end| address < end));
        match function {
            Some(function) => (
                format!("{} [{}]", function.name, file.name),
                function.begin == address,
            ),
            None if file.functions.is_empty() => (format!("[{}]", file.name), false),
            None => (format!("without a symbol [{}]", file.name), false),
        }
    }
}

/// Returns the functions of a file; if it is stripped, those that it exports. Their names
/// together are at most `names_bytes_max` long, since names may overlap in the file.
fn functions(elf: &object::File, names_bytes_max: usize) -> Vec<Function> {
    let mut left = names_bytes_max;
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    let defined = symbols.filter(|one| one.kind() == SymbolKind::Text && one.is_definition());
    let function = |symbol: object::Symbol| {
        let size = Some(symbol.size()).filter(|size| *size > 0);
        let name = symbol.name().ok()?;
        left = left.checked_sub(name.len())?;
        Some(Function {
            begin: symbol.address(),
            end: size.map(|size| symbol.address().saturating_add(size)),
            name: name.to_owned(),
        })
    };
    let mut all: Vec<Function> = defined.filter_map(function).collect();
    // Of several names for one address, takes the one that programs use: `read`, not
    // `__read`.
    let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
    all.sort_by(|a, b| {
        let key = |one: &Function| (one.begin, underscores(&one.name));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    all.dedup_by_key(|one| one.begin);
    all
}

/// Hashes the content of a page; zeros follow the end of a file.
/// `crates/toll/plugin/count_blocks.c` does the same for pages in the guest.
fn identity(page: &[u8]) -> u64 {
    let mut whole = [0; PAGE_BYTES];
    whole[..page.len()].copy_from_slice(page);
    let words = whole.chunks_exact(8);
    words.fold(0, |hash, word| {
        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        let hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^ (hash >> 32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_its_functions_and_what_is_no_program_none() {
        let content = std::fs::read("/proc/self/exe").unwrap();
        let mut programs = Programs::default();
        programs.add("notes", b"not a program");
        programs.add("program", &content);
        let elf = object::File::parse(&*content).unwrap();
        let known = functions(&elf, content.len());
        let main = known.iter().find(|one| one.name == "main").unwrap();
        let few = functions(&elf, 1000);
        assert!(few.iter().map(|one| one.name.len()).sum::<usize>() <= 1000);
        let segments: Vec<_> = elf.segments().collect();
        let holds_it = |one: &&object::Segment| {
            (one.address()..one.address() + one.size()).contains(&main.begin)
        };
        let segment = segments.iter().find(holds_it).unwrap();
        let offset = main.begin - segment.address() + segment.file_range().0;
        let page = content
            .chunks(PAGE_BYTES)
            .nth(usize::try_from(offset).unwrap() / PAGE_BYTES)
            .unwrap();
        // Wherever a process maps it, the offset in its page is the same.
        let address = 0x7fff_0000_0000 + main.begin % PAGE_BYTES as u64;
        let page = identity(page);
        let expected = ("main [program]".to_owned(), true);
        assert_eq!(programs.at(page, address), expected);
        let mut as_one = Programs::default();
        as_one.add_as_one("init", &content);
        assert_eq!(as_one.at(page, address), ("[init]".to_owned(), false));
        let nowhere = ("programs, without a file".to_owned(), false);
        assert_eq!(programs.at(page + 1, address), nowhere);
        assert_eq!(Programs::default().at(0, 0), nowhere);
    }
}
