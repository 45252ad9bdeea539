//! Calls that other threads' lines cut in two, made whole.

use std::collections::HashMap;

use super::line::{self, Call, Line};

/// What came out of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A thread made a call.
    Call {
        /// Number of the thread.
        thread: u32,
        /// The call.
        call: Call,
    },
    /// A thread ended; a call that it was in never returned.
    Ended {
        /// Number of the thread.
        thread: u32,
    },
}

/// Puts lines together, one after the other.
///
/// It holds one beginning of a call for each thread that is in one, and
/// nothing else, so the output may be of any length.
#[derive(Debug, Default)]
pub struct Assembly {
    begun: HashMap<u32, (String, String)>,
    not_understood: u64,
}

impl Assembly {
    /// Takes the next line.
    pub fn feed(&mut self, text: &str) -> Option<Event> {
        let Some((thread, line)) = line::parse(text) else {
            self.not_understood += 1;
            return None;
        };
        match line {
            Line::Call(call) => Some(Event::Call { thread, call }),
            Line::Unfinished { name, arguments } => {
                self.begun
                    .insert(thread, (name.to_owned(), arguments.to_owned()));
                None
            }
            Line::Resumed { name, rest } => self.resume(thread, name, rest),
            Line::Event => None,
            Line::Ended => {
                self.begun.remove(&thread);
                Some(Event::Ended { thread })
            }
        }
    }

    fn resume(&mut self, thread: u32, name: &str, rest: &str) -> Option<Event> {
        let begun = self.begun.remove(&thread);
        // Killed inside the call: `<... read resumed> <unfinished ...>) = ?`.
        if rest.trim_start().starts_with("<unfinished ...>") {
            return None;
        }
        let call = match begun {
            Some((begun, arguments)) if begun == name => {
                line::finish(name, &format!("{arguments}{rest}"))
            }
            _ => None,
        };
        if call.is_none() {
            self.not_understood += 1;
        }
        call.map(|call| Event::Call { thread, call })
    }

    /// Lines that were not understood.
    #[must_use]
    pub fn not_understood(&self) -> u64 {
        self.not_understood
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::line::CallResult;
    use super::*;

    /// From a real run of `sh -c 'python3 … | cat'`.
    const TWO_AT_ONCE: &str = r#"7592  read(3</usr/lib/x86_64-linux-gnu/libtinfo.so.6.4>,  <unfinished ...>
7593  <... read resumed>""..., 832)     = 832 <0.000212229>
7593  read(3</etc/locale.alias>,  <unfinished ...>
7592  <... read resumed>""..., 832)     = 832 <0.000277472>
7593  <... read resumed>""..., 4096)    = 2996 <0.000603855>
7593  read(0<pipe:[949548]>,  <unfinished ...>
7592  +++ killed by SIGTERM +++
7593  <... read resumed> <unfinished ...>) = ?
7593  +++ exited with 0 +++
"#;

    fn calls(lines: &str) -> (Vec<(u32, Call)>, u64) {
        let mut assembly = Assembly::default();
        let calls = lines
            .lines()
            .filter_map(|line| assembly.feed(line))
            .filter_map(|event| match event {
                Event::Call { thread, call } => Some((thread, call)),
                Event::Ended { .. } => None,
            })
            .collect();
        (calls, assembly.not_understood())
    }

    #[test]
    fn halves_find_each_other_by_thread() {
        let begun_before = "7593  read(3</x>,  <unfinished ...>\n";
        let (calls, not_understood) = calls(&format!("{begun_before}{TWO_AT_ONCE}"));
        assert_eq!(not_understood, 0);
        let threads: Vec<u32> = calls.iter().map(|(thread, _)| *thread).collect();
        assert_eq!(threads, [7593, 7592, 7593]);
        assert_eq!(calls[2].1.arguments[0], "3</etc/locale.alias>");
        assert_eq!(calls[2].1.result, CallResult::Value(2996));
    }

    #[test]
    fn a_thread_that_executes_a_program_goes_on_as_the_first() {
        let (calls, not_understood) = calls(
            "21955 execve(\"/bin/true\", [...], 0x7fff4642d1c0 /* 35 vars */ <pid changed to 21946 ...>\n\
             21946 +++ superseded by execve in pid 21955 +++\n\
             21946 <... execve resumed>)             = ?\n\
             21946 +++ exited with 0 +++\n",
        );
        assert_eq!(not_understood, 0);
        let [(thread, call)] = calls.as_slice() else {
            panic!("{calls:?}")
        };
        assert_eq!((*thread, call.name.as_str()), (21946, "execve"));
    }

    #[test]
    fn an_end_without_a_beginning_is_not_understood() {
        let (calls, not_understood) = calls(TWO_AT_ONCE);
        assert_eq!((calls.len(), not_understood), (2, 1));
    }

    proptest! {
        #[test]
        fn no_lines_make_it_panic(lines in proptest::collection::vec(
            r#"[12] (read\(|<\.\.\. read resumed>|\+\+\+ x \+\+\+|nonsense)[0-9<>",() =]{0,20}( <unfinished \.\.\.>)?"#, 0..20)
        ) {
            let mut assembly = Assembly::default();
            for line in &lines {
                let _ = assembly.feed(line);
            }
            prop_assert!(assembly.begun.len() <= 2);
        }
    }
}
