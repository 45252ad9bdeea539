//! Finds the names of the functions that contain a profile's addresses.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use toll_core::explain::SYSTEM_CALL_RETURN;
use toll_core::run::{ProfileRecord, ProfiledFunction};
use toll_wire::{Activity, CodeAddress, Profile};

use super::symbolizer::Symbolizer;

/// x86's `syscall`.
const SYSTEM_CALL_INSTRUCTION: [u8; 2] = [0x0f, 0x05];

/// Adds the stacks of profiles to a record, with names of functions.
pub struct Symbols {
    symbolizer: Symbolizer,
    functions: HashMap<ProfiledFunction, u32>,
    stacks: HashMap<Vec<u32>, u32>,
    /// Known functions, by file and offset, or by kernel address.
    known: HashMap<(Option<String>, u64), ProfiledFunction>,
}

impl Symbols {
    /// Starts with no names. Fails if this machine cannot find names of functions; the error says
    /// why and what to do.
    pub fn new() -> Result<Self, String> {
        Ok(Self {
            symbolizer: Symbolizer::new()?,
            functions: HashMap::new(),
            stacks: HashMap::new(),
            known: HashMap::new(),
        })
    }

    /// Adds a trial's stacks to a record. Returns the activity, the stack's number and the time in
    /// nanoseconds, for each stack.
    pub fn add(
        &mut self,
        profile: &Profile,
        record: &mut ProfileRecord,
    ) -> Vec<(Activity, u32, u64)> {
        self.look_up(profile);
        let mut times: BTreeMap<(Activity, u32), f64> = BTreeMap::new();
        for stack in &profile.stacks {
            let returns =
                stack.activity == Activity::OnCpu && returns_from_call(profile, &stack.frames);
            let marker = returns.then(|| kernel_function(Some(SYSTEM_CALL_RETURN.to_owned())));
            let named = stack
                .frames
                .iter()
                .map(|frame| self.function(profile, *frame));
            let functions: Vec<ProfiledFunction> = marker.into_iter().chain(named).collect();
            let numbers = functions
                .into_iter()
                .map(|function| number(&mut self.functions, &mut record.functions, function));
            let numbers: Vec<u32> = numbers.collect();
            let stack_number = number(&mut self.stacks, &mut record.stacks, numbers);
            *times.entry((stack.activity, stack_number)).or_default() += stack.time_ns;
        }
        let whole = times
            .into_iter()
            .map(|((activity, stack), time_ns)| (activity, stack, time_ns.round() as u64));
        whole.filter(|(_, _, time_ns)| *time_ns > 0).collect()
    }

    fn function(&self, profile: &Profile, frame: CodeAddress) -> ProfiledFunction {
        self.known[&key(profile, frame)].clone()
    }

    /// Looks up the addresses that are not known yet, file by file. Opening a file takes longer
    /// than finding all of its functions.
    fn look_up(&mut self, profile: &Profile) {
        let mut wanted: BTreeMap<Option<String>, BTreeSet<u64>> = BTreeMap::new();
        let frames = profile.stacks.iter().flat_map(|stack| &stack.frames);
        for frame in frames {
            let key = key(profile, *frame);
            if !self.known.contains_key(&key) {
                wanted.entry(key.0).or_default().insert(key.1);
            }
        }
        for (file, addresses) in wanted {
            let addresses: Vec<u64> = addresses.into_iter().collect();
            let names = self.symbolizer.names(file.as_deref(), &addresses);
            for (address, name) in addresses.into_iter().zip(names) {
                let function = match &file {
                    None => kernel_function(name),
                    Some(file) => ProfiledFunction {
                        name,
                        file: Some(bare_name(file)),
                    },
                };
                self.known.insert((file.clone(), address), function);
            }
        }
    }
}

fn kernel_function(name: Option<String>) -> ProfiledFunction {
    ProfiledFunction { name, file: None }
}

/// Returns file and offset of an address, or the kernel's address; an empty name means no file.
fn key(profile: &Profile, frame: CodeAddress) -> (Option<String>, u64) {
    match frame {
        CodeAddress::Kernel(address) => (None, address),
        CodeAddress::File(file, offset) => {
            let file = profile.files.get(file as usize);
            (Some(file.cloned().unwrap_or_default()), offset)
        }
        CodeAddress::Anonymous => (Some(String::new()), 0),
    }
}

fn bare_name(file: &str) -> String {
    let file = file.trim_end_matches(" (deleted)");
    let name = Path::new(file).file_name();
    name.map_or_else(
        || file.to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Whether the innermost instruction follows a system call. Interrupts are off while the kernel
/// returns, so the timer's samples of that time appear at this instruction.
fn returns_from_call(profile: &Profile, frames: &[CodeAddress]) -> bool {
    let Some(CodeAddress::File(file, offset)) = frames.first() else {
        return false;
    };
    let (Some(path), Some(before)) = (profile.files.get(*file as usize), offset.checked_sub(2))
    else {
        return false;
    };
    let mut bytes = [0; 2];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, before));
    cfg!(target_arch = "x86_64") && read.is_ok() && bytes == SYSTEM_CALL_INSTRUCTION
}

/// Returns the index of a value in a list; appends the value if it is new.
fn number<T: Clone + Eq + std::hash::Hash>(
    numbers: &mut HashMap<T, u32>,
    list: &mut Vec<T>,
    one: T,
) -> u32 {
    *numbers.entry(one).or_insert_with_key(|one| {
        list.push(one.clone());
        u32::try_from(list.len() - 1).expect("a probe's answer is limited")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use toll_wire::ProfiledStack;

    #[cfg(feature = "profiles")]
    #[test]
    fn addresses_of_files_and_of_no_file_get_the_names_that_there_are() {
        let own = std::env::current_exe().unwrap();
        let profile = Profile {
            files: vec![own.to_str().unwrap().into(), "/no/such/file.so".into()],
            stacks: vec![ProfiledStack {
                activity: Activity::OnCpu,
                frames: vec![
                    CodeAddress::File(1, 64),
                    CodeAddress::Anonymous,
                    CodeAddress::File(0, own_function_offset()),
                ],
                time_ns: 5.4,
            }],
            ..Profile::default()
        };
        let mut record = ProfileRecord::default();
        let mut symbols = Symbols::new().unwrap();
        let times = symbols.add(&profile, &mut record);
        assert_eq!(times, [(Activity::OnCpu, 0, 5)]);
        assert_eq!(symbols.add(&profile, &mut record), times);
        let [library, anonymous, own] = &record.functions[..] else {
            panic!("{:?}", record.functions);
        };
        assert_eq!(
            (library.name.as_ref(), library.file.as_deref()),
            (None, Some("file.so"))
        );
        assert_eq!(anonymous.file.as_deref(), Some(""));
        assert!(
            own.name.as_ref().unwrap().contains("own_function_offset"),
            "{own:?}"
        );
    }

    /// Offset of this function in the file of the running program.
    #[inline(never)]
    fn own_function_offset() -> u64 {
        let address = own_function_offset as fn() -> u64 as usize as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let offset = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let (start, end) = words.next()?.split_once('-')?;
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let is_here = (number(start)?..number(end)?).contains(&address);
            let mapped_from = number(words.nth(1)?)?;
            is_here.then(|| address - number(start).unwrap() + mapped_from)
        };
        maps.lines().find_map(offset).unwrap()
    }
}
