//! Turns an experiment into a comparison of two kernels.

use toll_wire::{Role, metrics_with};

use super::guest::PLACE;
use super::overrides::{LevelOverride, apply_levels};
use super::{Experiment, Level, Selector, SpecError, WorkloadKind};

const TIME: &str = "duration_ns";

const COMMAND_LINE: &str = "command_line";

/// Kernel command lines for the two sides when a kernel is compared with itself. The
/// kernel ignores parameters of a module that it does not have.
const SIDES: [&str; 2] = ["toll.side=a", "toll.side=b"];

impl Experiment {
    /// Moves all trials into guests of two kernels, and compares each treatment with the one that
    /// has the other kernel and the same other levels. Drops the experiment's own questions, since
    /// its claims compare other things. `accelerators` are levels: `icount`, and `kvm` for times.
    pub fn compare_kernels(
        &mut self,
        base: &str,
        new: &str,
        accelerators: &[&str],
    ) -> Result<(), SpecError> {
        self.move_into_guest();
        self.ask_nothing();
        let of_guest = |name: &str, levels: &[&str]| LevelOverride {
            name: name.to_owned(),
            levels: levels.iter().map(|text| Level::new(text)).collect(),
            is_size: false,
        };
        let mut chosen = vec![of_guest("accelerator", accelerators)];
        if self.factor(PLACE).is_some() {
            chosen.push(of_guest(PLACE, &[super::guest::IN_GUEST]));
        }
        let (side, levels) = if base == new {
            chosen.push(of_guest("kernel", &[base]));
            (COMMAND_LINE, self.sides_of_one_kernel()?)
        } else {
            ("kernel", [base, new].map(str::to_owned))
        };
        chosen.push(of_guest(side, &levels.each_ref().map(String::as_str)));
        apply_levels(self, &chosen)?;
        self.reference = Some(Selector::from([(side.to_owned(), Level::new(&levels[0]))]));
        let has_time = accelerators.iter().any(|word| *word != "icount");
        // The path length comes first. Times are compared only where they mean something.
        let metrics: Vec<String> = metrics_with(Role::BetweenKernels)
            .map(|metric| metric.name)
            .chain(has_time.then_some(TIME))
            .filter(|metric| self.can_have(metric))
            .map(str::to_owned)
            .collect();
        self.compare_in(&metrics);
        Ok(())
    }

    /// Returns the command lines of the two sides when a kernel is compared with itself.
    fn sides_of_one_kernel(&self) -> Result<[String; 2], SpecError> {
        let varied = self.factor(COMMAND_LINE).map(|one| one.levels.as_slice());
        let own = match varied {
            Some([_, _, ..]) => {
                return Err(SpecError {
                    origin: self.name.clone(),
                    line: None,
                    message: "cannot compare a kernel with itself: the sides differ only in \
                              command_line, which the experiment varies, too; choose one of its \
                              levels with -L"
                        .into(),
                });
            }
            Some(levels) => levels.first(),
            None => self.fixed(COMMAND_LINE),
        };
        let own = own.map_or("", |own| own.text.as_str());
        Ok(SIDES.map(|side| format!("{own} {side}").trim().to_owned()))
    }

    /// Whether a workload of the experiment has a metric.
    fn can_have(&self, metric: &str) -> bool {
        let has = |kind: WorkloadKind| kind.metrics().iter().any(|known| known == metric);
        has(self.workload.kind) || self.rows.iter().any(|row| has(row.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::blocks_needed;
    use crate::plan::{Plan, pairs};
    use crate::spec::builtin::{BUILTINS, KERNEL};

    fn compared(toml: &str, base: &str, new: &str) -> (Experiment, Plan) {
        let mut experiment = crate::spec::parse(toml, "it", "standard").unwrap();
        let done = experiment.compare_kernels(base, new, &["icount"]);
        done.unwrap_or_else(|error| panic!("{}: {error}", experiment.name));
        let plan = Plan::new(&experiment, 1).unwrap();
        (experiment, plan)
    }

    #[test]
    fn each_treatment_has_its_own_under_the_other_kernel() {
        for (base, new) in [("toll", "stock"), ("toll", "toll")] {
            let (mut experiment, plan) = compared(KERNEL.toml, base, new);
            let pairs = pairs(&experiment, &plan.treatments);
            let own = plan.treatments.iter().filter(|one| one.twin_of.is_none());
            assert_eq!(2 * pairs.len(), own.count());
            for (one, to) in pairs {
                let [one, to] = [one, to].map(|index| &plan.treatments[index]);
                assert_ne!(one.boot(), to.boot());
                assert_eq!(one.levels["row"], to.levels["row"]);
                assert_eq!(to.levels["kernel"].text, base);
            }
            // With a fixed number of blocks, looks take no share of the error rate.
            experiment.run.min_blocks = experiment.run.max_blocks;
            let needed = blocks_needed(&experiment, &plan.treatments).unwrap();
            assert_eq!(needed, 15);
        }
    }

    #[test]
    fn a_kernel_beside_itself_keeps_the_command_line_of_an_experiment() {
        let set = |line: &str| {
            let line = format!("[guest]\ncommand_line = {line:?}");
            KERNEL.toml.replace("[guest]", &line)
        };
        let (_, plan) = compared(&set("threadirqs"), "toll", "toll");
        let lines: std::collections::BTreeSet<&str> = plan
            .treatments
            .iter()
            .map(|one| one.levels["command_line"].text.as_str())
            .collect();
        let expected = ["threadirqs toll.side=a", "threadirqs toll.side=b"];
        assert_eq!(lines, expected.into());
    }

    #[test]
    fn experiments_of_guests_are_compared_without_their_claims() {
        for name in ["primes", "reclaim", "crossing"] {
            let builtin = BUILTINS.iter().find(|one| one.name == name).unwrap();
            let (experiment, plan) = compared(builtin.toml, "toll", "stock");
            assert!(experiment.claims.is_empty());
            assert!(!pairs(&experiment, &plan.treatments).is_empty(), "{name}");
            let in_guest = plan.treatments.iter().all(|one| one.boot().is_some());
            assert!(in_guest, "{name}");
        }
    }

    #[test]
    fn the_built_in_set_covers_most_of_the_system_calls() {
        let experiment = crate::spec::parse(KERNEL.toml, "kernel", "standard").unwrap();
        let programs = experiment.rows.iter().filter_map(|row| {
            let text = row.parameters.get("program")?.text.clone();
            Some(toll_wire::Program::try_from(text).unwrap())
        });
        let programs: Vec<_> = programs.collect();
        let names = programs.iter().flat_map(toll_wire::Program::names);
        let names: std::collections::BTreeSet<&str> = names.collect();
        // The table of Linux 6.12 has 374, some 20 of which no kernel implements.
        assert!(names.len() >= 260, "{}", names.len());
    }
}
