//! Which file a process has mapped at an address.

use std::collections::HashMap;

use toll_wire::CodeAddress;

use super::record::Mapping;

/// Stack values from here on are markers: they say what kind of address
/// follows.
const MARKERS_FROM: u64 = 0_u64.wrapping_sub(4095);
const KERNEL_MARKER: u64 = 0_u64.wrapping_sub(128);

#[derive(Debug, Default)]
pub struct Mappings {
    of_process: HashMap<u32, Vec<(Mapping, Option<u32>)>>,
    files: Vec<String>,
}

impl Mappings {
    /// Returns the mappings of this process, which are not recorded.
    pub fn of_this_process() -> Self {
        let mut mappings = Self::default();
        let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        for mapping in text.lines().filter_map(parse) {
            mappings.add(std::process::id(), mapping);
        }
        mappings
    }

    pub fn add(&mut self, process: u32, mapping: Mapping) {
        let is_of_file = mapping.file.starts_with('/') && !mapping.file.starts_with("//anon");
        let file = (is_of_file || mapping.file == "[vdso]").then(|| {
            let known = self.files.iter().position(|known| *known == mapping.file);
            let index = known.unwrap_or_else(|| {
                self.files.push(mapping.file.clone());
                self.files.len() - 1
            });
            u32::try_from(index).expect("events are limited")
        });
        let of_process = self.of_process.entry(process).or_default();
        of_process.push((mapping, file));
    }

    pub fn clear(&mut self, process: u32) {
        self.of_process.remove(&process);
    }

    pub fn copy(&mut self, parent: u32, child: u32) {
        if let Some(mappings) = self.of_process.get(&parent) {
            self.of_process.insert(child, mappings.clone());
        }
    }

    /// Resolves the addresses of a process's stack to files and offsets in them.
    pub fn resolve(&self, process: u32, stack: &[u64]) -> Vec<CodeAddress> {
        let mut is_kernel = false;
        let mut frames = Vec::new();
        for &address in stack {
            if address >= MARKERS_FROM {
                is_kernel = address == KERNEL_MARKER;
                continue;
            }
            // All addresses but the innermost are return addresses, which may
            // be the first of the next function.
            let address = address.saturating_sub(u64::from(!frames.is_empty()));
            frames.push(if is_kernel {
                CodeAddress::Kernel(address)
            } else {
                self.find(process, address)
            });
        }
        frames
    }

    fn find(&self, process: u32, address: u64) -> CodeAddress {
        let mappings = self.of_process.get(&process);
        // A later mapping covers an earlier one.
        let mut newest_first = mappings.into_iter().flatten().rev();
        let found =
            newest_first.find(|(mapping, _)| (mapping.start..mapping.end).contains(&address));
        match found {
            Some((mapping, Some(file))) => {
                CodeAddress::File(*file, address - mapping.start + mapping.offset)
            }
            _ => CodeAddress::Anonymous,
        }
    }

    pub fn into_files(self) -> Vec<String> {
        self.files
    }
}

/// Parses a line of proc_pid_maps(5); `None` unless the mapping is executable.
fn parse(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let is_code = words.next()?.contains('x');
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let offset = hexadecimal(words.next()?)?;
    is_code.then_some(Mapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset,
        file: words.nth(2).unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_newest_mapping_and_markers_are_no_frames() {
        let mut mappings = Mappings::default();
        let map = |start: u64, offset, file: &str| Mapping {
            start,
            end: start + 0x1000,
            offset,
            file: file.into(),
        };
        mappings.add(7, map(0x1000, 0x400, "/bin/a"));
        mappings.add(7, map(0x1000, 0, "/bin/b"));
        mappings.add(7, map(0x9000, 0, "//anon"));
        mappings.copy(7, 8);
        mappings.clear(7);
        let user = 0_u64.wrapping_sub(512);
        let stack = [KERNEL_MARKER, 0xffff_ffff_8000_0010, user, 0x1011, 0x9001];
        let frames = mappings.resolve(8, &stack);
        let kernel = CodeAddress::Kernel(0xffff_ffff_8000_0010);
        let anonymous = CodeAddress::Anonymous;
        assert_eq!(frames, [kernel, CodeAddress::File(1, 0x10), anonymous]);
        assert_eq!(mappings.resolve(7, &[user, 0x1011]), [anonymous]);
    }

    #[test]
    fn this_process_has_its_program_mapped() {
        let mappings = Mappings::of_this_process();
        let here = this_function();
        let user = 0_u64.wrapping_sub(512);
        let frames = mappings.resolve(std::process::id(), &[user, here]);
        let CodeAddress::File(file, _) = frames[0] else {
            panic!("{frames:?}");
        };
        let own = std::env::current_exe().unwrap();
        assert_eq!(mappings.into_files()[file as usize], own.to_str().unwrap());
    }

    fn this_function() -> u64 {
        this_process_has_its_program_mapped as fn() as usize as u64
    }
}
