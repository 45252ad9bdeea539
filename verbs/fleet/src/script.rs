//! The script that measures on one node.

use std::path::Path;
use std::time::Duration;

use crate::slurm::JOB_NAME;

/// The user's options for Slurm.
#[derive(Debug, Default)]
pub struct SlurmRequest<'a> {
    pub partition: Option<&'a str>,
    pub constraint: Option<&'a str>,
    pub time_limit: Option<Duration>,
}

/// Slurm sends SIGTERM this many seconds before the end of a job's time limit, or of the grace time
/// of a preempted job. `toll` then drops the running trial and keeps all earlier trials.
const WARNING_S: u32 = 60;

/// Returns the options of sbatch for a job array whose tasks have a node each.
pub fn sbatch_options(directory: &Path, request: &SlurmRequest) -> Vec<String> {
    let mut options = vec![
        format!("--job-name={JOB_NAME}"),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
        "--exclusive".to_owned(),
        // Requests all of the node's memory.
        "--mem=0".to_owned(),
        "--requeue".to_owned(),
        format!("--signal=B:TERM@{WARNING_S}"),
        format!("--output={}/logs/%N.log", directory.display()),
        "--open-mode=append".to_owned(),
    ];
    options.extend(request.partition.map(|name| format!("--partition={name}")));
    options.extend(request.constraint.map(|one| format!("--constraint={one}")));
    options.extend(request.time_limit.map(time_limit));
    options
}

/// Returns the option of sbatch for a time limit, rounded up to whole minutes.
pub fn time_limit(limit: Duration) -> String {
    format!("--time={}", limit.as_secs().div_ceil(60).max(1))
}

/// Returns the script. `directory` is where the job finds the submission. `work_dir` is a local
/// directory of the node.
pub fn script(directory: &Path, work_dir: &Path, options: &[String]) -> String {
    let directives = options.iter().map(|option| format!("#SBATCH {option}\n"));
    let directives: String = directives.collect();
    let directory = directory.display();
    let work_dir = work_dir.to_string_lossy();
    let work_dir = shlex::try_quote(&work_dir).expect("an argument has no null byte");
    format!(
        "\
#!/bin/sh
{directives}
# Measures the experiments in submission.json on this machine, or continues their runs.
# Jobs start this script; without a scheduler, start it on each machine.
node=${{SLURMD_NODENAME:-${{NODE_NAME:-$(uname -n)}}}}
# Other machines may share home directories, so this directory is on a disk of this machine.
own={work_dir}/toll-$(id -u)
mkdir -p {work_dir}
[ -d \"$own\" ] || mkdir -m 700 \"$own\" || exit
# Everyone may write to /var/tmp, so the directory may be another user's.
if [ ! -O \"$own\" ] || [ -L \"$own\" ]; then
    echo \"cannot work in $own: it is not this user's directory; submit with another --work-dir\" >&2
    exit 1
fi
export TOLL_WORK_DIR=\"$own/work\" XDG_STATE_HOME=\"$own/state\"
mkdir -p \"$TOLL_WORK_DIR\" \"$XDG_STATE_HOME\" || exit
exec {directory}/bin/toll fleet work {directory} --node \"$node\"
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_has_whole_minutes_and_at_least_one() {
        for (seconds, option) in [(0, "--time=1"), (60, "--time=1"), (61, "--time=2")] {
            assert_eq!(time_limit(Duration::from_secs(seconds)), option);
        }
    }

    #[test]
    fn the_script_holds_every_option_and_quotes_the_work_directory() {
        let request = SlurmRequest {
            partition: Some("long"),
            constraint: Some("intel&ssd"),
            time_limit: Some(Duration::from_secs(7200)),
        };
        let options = sbatch_options(Path::new("/shared/f"), &request);
        let script = script(Path::new("/shared/f"), Path::new("/a b"), &options);
        let directives = script.lines().filter(|line| line.starts_with("#SBATCH "));
        assert!(directives.eq(options.iter().map(|option| format!("#SBATCH {option}"))));
        assert!(options.contains(&"--constraint=intel&ssd".to_owned()));
        assert!(script.contains("\nown='/a b'/toll-$(id -u)\n"), "{script}");
    }
}
