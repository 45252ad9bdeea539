//! Joins calls that strace wrote in two parts, with lines of other threads between them.

use std::collections::HashMap;

use super::line::{self, Call, Line, Signal};

/// What a line of strace's output completed.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A thread made a call.
    Call {
        thread: u32,
        /// When the call began, in nanoseconds since the first line; 0 unless strace was asked to
        /// print times.
        begin_ns: u64,
        call: Call,
    },
    /// A signal arrived at a thread, or stopped it.
    Signal {
        thread: u32,
        /// When the signal arrived, on the same clock as calls.
        at_ns: u64,
        signal: Signal,
    },
    Ended {
        thread: u32,
        at_ns: u64,
        /// The call in which the thread ended, if any. That call never returned.
        inside: Option<Begun>,
        /// The signal that ended the thread.
        killed_by: Option<Signal>,
    },
}

/// A call that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    pub name: String,
    /// The call's arguments, as far as strace wrote them.
    pub arguments: String,
    /// When the call began, as in [`Event::Call`].
    pub begin_ns: u64,
}

/// Assembles lines, one after another.
///
/// An assembly holds only the beginning of one call for each thread that is in a call. So strace's
/// output may be of any length.
#[derive(Debug, Default)]
pub struct Assembly {
    begun: HashMap<u32, Begun>,
    now_ns: u64,
    /// Lines that were not understood.
    pub not_understood: u64,
}

impl Assembly {
    pub fn feed(&mut self, text: &str) -> Option<Event> {
        let stamped = line::stamped(text);
        let passed_ns = stamped.and_then(|stamped| stamped.since_last_ns);
        self.now_ns = self.now_ns.saturating_add(passed_ns.unwrap_or(0));
        let Some((thread, line)) = stamped.as_ref().and_then(line::parse) else {
            self.not_understood += 1;
            return None;
        };
        let begin_ns = self.now_ns;
        match line {
            Line::Call(call) => Some(Event::Call {
                thread,
                begin_ns,
                call,
            }),
            Line::Unfinished { name, arguments } => {
                let begun = Begun {
                    name: name.to_owned(),
                    arguments: arguments.to_owned(),
                    begin_ns,
                };
                self.begun.insert(thread, begun);
                None
            }
            Line::Resumed { name, rest } => self.resume(thread, name, rest),
            Line::Signal(signal) => Some(Event::Signal {
                thread,
                at_ns: self.now_ns,
                signal,
            }),
            Line::Superseded => None,
            Line::Ended(killed_by) => Some(Event::Ended {
                thread,
                at_ns: self.now_ns,
                inside: self.begun.remove(&thread),
                killed_by,
            }),
        }
    }

    fn resume(&mut self, thread: u32, name: &str, rest: &str) -> Option<Event> {
        // The thread was killed inside the call: `<... read resumed> <unfinished ...>) = ?`.
        if rest.trim_start().starts_with("<unfinished ...>") {
            return None;
        }
        let begun = self.begun.remove(&thread);
        let event = begun.filter(|begun| begun.name == name).and_then(|begun| {
            Some(Event::Call {
                thread,
                begin_ns: begun.begin_ns,
                call: line::finish(name, &format!("{}{rest}", begun.arguments))?,
            })
        });
        if event.is_none() {
            self.not_understood += 1;
        }
        event
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
                Event::Call { thread, call, .. } => Some((thread, call)),
                Event::Signal { .. } | Event::Ended { .. } => None,
            })
            .collect();
        (calls, assembly.not_understood)
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
    fn a_call_has_the_time_of_its_begin_and_one_that_never_returned_is_told() {
        let lines = "7  0.000000000 read(3</a>,  <unfinished ...>\n\
                     8  0.000000010 close(4</b>) = 0 <0.1>\n\
                     8  0.000000005 pause( <unfinished ...>\n\
                     7  0.000000001 <... read resumed>\"\", 1) = 0 <0.1>\n\
                     8  0.000000001 <... pause resumed> <unfinished ...>) = ?\n\
                     8  0.000000002 +++ killed by SIGKILL +++\n";
        let mut assembly = Assembly::default();
        let events = lines.lines().filter_map(|line| assembly.feed(line));
        let seen: Vec<(u32, String, u64)> = events
            .map(|event| match event {
                Event::Call {
                    thread,
                    begin_ns,
                    call,
                } => (thread, call.name, begin_ns),
                Event::Ended { thread, inside, .. } => {
                    let begun = inside.expect("it was in a call");
                    (thread, begun.name, begun.begin_ns)
                }
                Event::Signal { .. } => panic!("no signal arrived"),
            })
            .collect();
        let call = |thread, name: &str, begin_ns| (thread, name.to_owned(), begin_ns);
        assert_eq!(
            seen,
            [
                call(8, "close", 10),
                call(7, "read", 0),
                call(8, "pause", 15)
            ]
        );
    }

    #[test]
    fn signals_have_the_time_at_which_they_came() {
        let lines = "7  0.000000000 --- SIGUSR1 {si_signo=SIGUSR1} ---\n\
                     7  0.000000010 +++ killed by SIGKILL +++\n";
        let mut assembly = Assembly::default();
        let events: Vec<_> = lines
            .lines()
            .filter_map(|line| assembly.feed(line))
            .collect();
        let signal = |name: &str, details: &str| Signal {
            name: name.into(),
            details: details.into(),
        };
        let arrived = Event::Signal {
            thread: 7,
            at_ns: 0,
            signal: signal("SIGUSR1", "{si_signo=SIGUSR1}"),
        };
        let killed = Event::Ended {
            thread: 7,
            at_ns: 10,
            inside: None,
            killed_by: Some(signal("SIGKILL", "killed")),
        };
        assert_eq!(events, [arrived, killed]);
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
