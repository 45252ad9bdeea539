//! Plots of a run, as SVG.

use crate::claim::Run;
use crate::claim::model::Figure;

pub use chart::NamedPlot;

mod bars;
mod boxes;
mod chart;
mod curve;
mod distribution;
pub mod flame;
#[cfg_attr(not(feature = "profiles"), path = "flame_drawing_missing.rs")]
mod flame_drawing;
mod forest;
pub mod palette;
mod prices;
pub mod small;
mod twins;

/// Every plot of a run: prices and claims first, then its figures, then the A/A twins.
pub fn all(run: &Run) -> Vec<NamedPlot> {
    let mut plots: Vec<NamedPlot> = prices(run).into_iter().chain(claims(run)).collect();
    plots.extend(figures(run));
    plots.extend(twins(run));
    plots
}

/// The price list, as dots on one axis.
pub fn prices(run: &Run) -> Option<NamedPlot> {
    prices::draw(&run.analysis.prices, "prices".to_owned())
}

/// The claims about ratios, as a forest plot.
pub fn claims(run: &Run) -> Option<NamedPlot> {
    forest::draw(&run.analysis, "claims".to_owned())
}

/// The figures of a run, in the order of the experiment file.
pub fn figures(run: &Run) -> Vec<NamedPlot> {
    let mut plots = Vec::new();
    for (index, figure) in run.analysis.figures.iter().enumerate() {
        let number = index + 1;
        let (title, draw): (_, &dyn Fn(String) -> Option<NamedPlot>) = match figure {
            Figure::Curve(curve) => (&curve.title, &|name| curve::draw(curve, name)),
            Figure::Distribution(groups) => {
                (&groups.title, &|name| distribution::draw(groups, name))
            }
            Figure::Box(plot) => (&plot.title, &|name| boxes::draw(plot, name)),
            Figure::Bar(chart) => (&chart.title, &|name| bars::draw(chart, name)),
        };
        plots.extend(draw(format!("{number:02}-{}", file_safe(title))));
    }
    plots
}

/// The A/A comparisons, each a plot of its block ratios.
pub fn twins(run: &Run) -> Vec<NamedPlot> {
    let twins = run.analysis.twins.iter().enumerate();
    twins
        .filter_map(|(index, twin)| twins::draw(twin, format!("twin-{:02}", index + 1)))
        .collect()
}

/// Every plot as a file to write: `(file name, text)`. The names contain experiment and
/// run, so that runs can share a directory. The plots follow the reader's light or dark
/// setting wherever style rules apply.
pub fn files(run: &Run) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let record = &run.stored.run;
    let style = format!("><style>{}</style>", palette::dark_rules());
    for plot in all(run) {
        let stem = format!(
            "{}-{}-{}",
            file_safe(&record.experiment),
            record.id,
            plot.name
        );
        let svg = plot.svg.replacen('>', &style, 1);
        files.push((format!("{stem}.svg"), svg));
    }
    for graph in flame::all(run) {
        let experiment = file_safe(&record.experiment);
        let name = format!("{experiment}-{}-{}.svg", record.id, graph.name);
        files.push((name, graph.svg));
    }
    files
}

const FILE_NAME_MAX: usize = 48;

/// Reduces a text to lower-case ASCII letters, digits and single hyphens; never empty.
fn file_safe(text: &str) -> String {
    let mut name = String::new();
    for character in text.chars() {
        if name.len() >= FILE_NAME_MAX {
            break;
        }
        if character.is_ascii_alphanumeric() {
            name.push(character.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() {
        "plot".to_owned()
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn names_are_safe_for_files() {
        assert_eq!(
            file_safe("Time to copy, by method!"),
            "time-to-copy-by-method"
        );
        assert_eq!(file_safe("../../etc/passwd"), "etc-passwd");
        assert_eq!(file_safe("→"), "plot");
    }

    #[test]
    fn every_figure_becomes_a_plot_and_names_do_not_clash() {
        let sample = sample::copying();
        let plots = all(&sample);
        assert_eq!(plots.len(), 1 + sample.analysis.figures.len() + 1);
        let mut names: Vec<_> = plots.iter().map(|plot| &plot.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), plots.len());
    }

    #[test]
    fn an_empty_run_has_no_plots() {
        assert!(all(&sample::empty()).is_empty());
    }

    #[test]
    fn a_hostile_label_stays_text_in_every_plot() {
        let sample = sample::hostile();
        let plots = all(&sample);
        assert!(plots.len() >= 4);
        for plot in plots {
            assert!(!plot.svg.contains("<script"), "{}", plot.name);
            assert!(!plot.svg.contains('\u{1b}'), "{}", plot.name);
            assert!(!plot.svg.contains('\u{202e}'), "{}", plot.name);
            assert!(plot.svg.contains("&lt;script&gt;"), "{}", plot.name);
        }
    }

    #[test]
    fn odd_values_leave_no_broken_coordinates() {
        let mut sample = sample::copying();
        let odd: [&[f64]; 5] = [
            &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            &[5.0],
            &[3.0, 3.0, 3.0, 3.0, 3.0],
            &[f64::NAN, 1.0],
            &[f64::INFINITY],
        ];
        for figure in &mut sample.analysis.figures {
            match figure {
                Figure::Distribution(groups) => {
                    for (group, values) in groups.groups.iter_mut().zip(odd) {
                        group.values = values.to_vec();
                    }
                }
                Figure::Box(plot) => {
                    let measured = plot.groups[0].measured.as_mut().unwrap();
                    (measured.numbers.low, measured.numbers.lower) = (f64::NAN, 0.0);
                    measured.outliers.push(f64::INFINITY);
                }
                Figure::Bar(chart) => {
                    chart.bars[0].length.as_mut().unwrap().high = f64::INFINITY;
                    chart.bars[1].published = Some(f64::NAN);
                }
                Figure::Curve(curve) => {
                    curve.series[0].points[1].y.value = f64::NAN;
                    curve.series[0].points[2].y.low = f64::NEG_INFINITY;
                    curve.series[0].points[3].y.high = f64::INFINITY;
                    curve.series[1].points.truncate(1);
                }
            }
        }
        sample.analysis.twins[0].block_ratios[2] = f64::NAN;
        if let Some(measured) = &mut sample.analysis.verdicts[1].measured {
            (measured.low, measured.high) = (0.0, f64::INFINITY);
        }
        let plots = all(&sample);
        assert_eq!(plots.len(), 8);
        for plot in plots {
            for broken in ["NaN", "inf"] {
                let drawing = plot.svg.replace(&plot.alt_text, "");
                assert!(!drawing.contains(broken), "{broken} in {}", plot.name);
            }
        }
    }

    #[test]
    fn the_same_run_gives_the_same_files() {
        let sample = sample::copying();
        assert!(files(&sample) == files(&sample));
    }
}
