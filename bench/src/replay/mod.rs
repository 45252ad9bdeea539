//! Shows which claims the plans of the built-in experiments can decide. Whole runs are simulated
//! with a machine's recorded noise, and judged by the code that judges real runs.

mod nodes;
mod noise;
mod pace;
pub mod promises;
mod setup;
mod simulate;
mod table;
mod target;
mod times;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use nodes::Origin;
pub use noise::Noise;
pub use pace::Pace;
pub use setup::{Setup, Studied};
pub use simulate::{Case, Effort, Truth, simulate};
pub use table::render;

/// Noise of the machine that measured this tree last.
pub const RECORDED_NOISE: &str = include_str!("../../replay-noise.json");

/// The results of all simulations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Document {
    pub date: String,
    pub command_line: String,
    /// Name of the machine whose noise was drawn.
    pub machine: String,
    pub runs: usize,
    pub seed: u64,
    /// Duration of the simulation in seconds.
    pub seconds: f64,
    pub plans: Vec<Planned>,
    pub cases: Vec<Case>,
}

/// An experiment in a profile, with the plan for its runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Planned {
    pub experiment: String,
    pub profile: String,
    pub min_blocks: u32,
    pub max_blocks: u32,
    pub time_budget_s: f64,
    /// Time of a block in seconds. If absent, the time budget ends no simulated run.
    pub block_s: Option<f64>,
    pub claims: Vec<Claimed>,
    /// Claims that are not simulated, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A claim that is simulated.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claimed {
    pub id: String,
    pub origin: Origin,
    #[serde(default)]
    pub is_check: bool,
    /// The reason in the experiment file why the claim's plan has too little power.
    pub underpowered: Option<String>,
}

/// The experiments and claims to simulate.
pub struct Choice<'a> {
    pub experiments: &'a [String],
    pub profiles: &'a [String],
    /// Beginning of the ids of the claims to simulate; `None` for all claims.
    pub claim: Option<&'a str>,
    pub effort: Effort,
}

/// Simulates the chosen experiments and profiles. `tell` receives a line for each.
pub fn replay(
    choice: &Choice,
    noise: &Noise,
    tell: &mut dyn FnMut(&str),
) -> Result<Document, String> {
    let begin = std::time::Instant::now();
    let (mut plans, mut cases) = (Vec::new(), Vec::new());
    for name in choice.experiments {
        for profile in choice.profiles {
            let from = begin.elapsed();
            let mut setup = Setup::new(name, profile, noise)?;
            if let Some(start) = choice.claim {
                setup.study(start);
            }
            if setup.claims.is_empty() && setup.left_out.is_empty() {
                continue;
            }
            let (found, obstacles) = simulate(&setup, choice.effort);
            cases.extend(found);
            plans.push(Planned::from_setup(&setup, obstacles));
            tell(&format!(
                "{name}, {profile}: {} claims in {:.1} s",
                setup.claims.len(),
                (begin.elapsed() - from).as_secs_f64()
            ));
        }
    }
    Ok(Document {
        date: jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
        command_line: std::env::args().collect::<Vec<_>>().join(" "),
        machine: noise.machine.clone(),
        runs: choice.effort.runs,
        seed: choice.effort.seed,
        seconds: begin.elapsed().as_secs_f64().round(),
        plans,
        cases,
    })
}

impl Planned {
    fn from_setup(setup: &Setup, obstacles: Vec<(String, String)>) -> Self {
        let run = &setup.run.experiment.run;
        let claims = setup.claims.iter().map(|studied| Claimed {
            id: studied.claim.id.clone(),
            origin: studied.origin,
            is_check: studied.claim.is_check,
            underpowered: studied.claim.underpowered.clone(),
        });
        Self {
            experiment: setup.name.clone(),
            profile: setup.profile.clone(),
            min_blocks: run.min_blocks,
            max_blocks: run.max_blocks,
            time_budget_s: run.time_budget_s,
            block_s: setup.block_s,
            claims: claims.collect(),
            left_out: setup.left_out.iter().cloned().chain(obstacles).collect(),
        }
    }
}

impl Document {
    /// Reads files that [`Document::to_json`] wrote. Several files are merged under the head of
    /// the first file. If several files have the same claim, the first one counts.
    ///
    /// # Errors
    /// If no file is given, or one cannot be read or parsed.
    pub fn read(paths: &[PathBuf]) -> Result<Self, String> {
        let mut documents = paths.iter().map(|path| {
            let cannot = |why: String| format!("cannot read {}: {why}", path.display());
            let text = std::fs::read_to_string(path).map_err(|error| cannot(error.to_string()))?;
            serde_json::from_str::<Self>(&text).map_err(|error| cannot(error.to_string()))
        });
        let mut all = documents
            .next()
            .ok_or("cannot read results: no file is given")??;
        for document in documents {
            let document = document?;
            all.command_line += &format!("; {}", document.command_line);
            all.seconds += document.seconds;
            all.plans.extend(document.plans);
            all.cases.extend(document.cases);
        }
        Ok(all)
    }

    /// Returns the document as JSON, with one plan or case per line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string(self).expect("it is plain data");
        json.replace("{\"experiment\"", "\n{\"experiment\"") + "\n"
    }
}
