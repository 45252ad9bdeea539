//! Colours by role, for light and dark grounds.

use std::fmt::Write as _;

use crate::claim::model::Outcome;

/// Colours by role. Within a palette no two roles share a colour: a light plot turns dark by
/// replacing each colour, so each colour must identify one role.
#[derive(Debug)]
pub struct Palette {
    /// The ground of the plot.
    pub surface: &'static str,
    /// Text.
    pub ink: &'static str,
    /// Secondary text.
    pub muted: &'static str,
    /// Grid lines below the data.
    pub grid: &'static str,
    /// Reference lines, such as a ratio of 1.
    pub reference: &'static str,
    pub published: &'static str,
    pub supported: &'static str,
    pub refuted: &'static str,
    pub undecided: &'static str,
    pub not_testable: &'static str,
    /// Measured series, distinct for readers with any colour vision; after
    /// Okabe and Ito, darkened for contrast with white.
    pub series: [&'static str; 6],
}

/// Dark ink on white. Text has a contrast of at least 4.5, marks at least 3.
pub const LIGHT: Palette = Palette {
    surface: "#ffffff",
    ink: "#1c2128",
    muted: "#59636e",
    grid: "#e4e8ec",
    reference: "#8b949e",
    published: "#9a4f96",
    supported: "#1a7f37",
    refuted: "#c4232c",
    undecided: "#966600",
    not_testable: "#6a737d",
    series: [
        "#0b62b0", "#b84a00", "#00795a", "#8a6a00", "#5a4fcf", "#97326f",
    ],
};

/// Light ink on a dark ground.
pub const DARK: Palette = Palette {
    surface: "#161b22",
    ink: "#e6edf3",
    muted: "#9da7b3",
    grid: "#2b323b",
    reference: "#6e7681",
    published: "#d79bd2",
    supported: "#4ac26b",
    refuted: "#ff7b72",
    undecided: "#dfa92f",
    not_testable: "#949ea8",
    series: [
        "#62adff", "#ff9a57", "#3fcf9f", "#e0bb3c", "#a9a2ff", "#f08cc8",
    ],
};

/// Middle tones for a terminal, whose ground is not known.
pub const TERMINAL: Palette = Palette {
    surface: "#000000",
    ink: "#8a8f98",
    muted: "#868b94",
    grid: "#777b82",
    reference: "#7a7f87",
    published: "#b56fb0",
    supported: "#2f9e52",
    refuted: "#d9534f",
    undecided: "#b98a1e",
    not_testable: "#80858e",
    series: [
        "#3b8fd9", "#d8752e", "#22a37a", "#ab8a1f", "#8077e0", "#c75a9b",
    ],
};

impl Palette {
    pub fn outcome(&self, outcome: Outcome) -> &'static str {
        match outcome {
            Outcome::Supported => self.supported,
            Outcome::Refuted => self.refuted,
            Outcome::Undecided => self.undecided,
            Outcome::NotTestable => self.not_testable,
        }
    }

    fn roles(&self) -> impl Iterator<Item = &'static str> {
        [
            self.surface,
            self.ink,
            self.muted,
            self.grid,
            self.reference,
            self.published,
            self.supported,
            self.refuted,
            self.undecided,
            self.not_testable,
        ]
        .into_iter()
        .chain(self.series)
    }
}

/// Class on the root of every plot, to which the dark rules are confined.
pub const PLOT_CLASS: &str = "toll-plot";

/// Style rules that turn a light plot dark. Rules override the attributes that carry the light
/// colours, so the drawing itself stays unchanged; where rules are ignored (a README, an office
/// suite), the plot is light.
pub fn dark_rules() -> String {
    let mut rules = String::from("@media screen and (prefers-color-scheme:dark){");
    for (light, dark) in LIGHT.roles().zip(DARK.roles()) {
        for property in ["fill", "stroke"] {
            let _ = write!(
                rules,
                ".{PLOT_CLASS} [{property}=\"{light}\"],.{PLOT_CLASS}[{property}=\"{light}\"]{{{property}:{dark}}}"
            );
        }
    }
    rules.push('}');
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(hex: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    /// Contrast ratio as WCAG 2.1 defines it.
    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_text_and_mark_stands_out_from_its_ground() {
        for palette in [LIGHT, DARK] {
            let text = [
                palette.ink,
                palette.muted,
                palette.published,
                palette.supported,
                palette.refuted,
                palette.undecided,
                palette.not_testable,
            ];
            for color in text.into_iter().chain(palette.series) {
                let ratio = contrast(color, palette.surface);
                assert!(ratio >= 4.5, "{color} on {}: {ratio}", palette.surface);
            }
            assert!(contrast(palette.reference, palette.surface) >= 3.0);
        }
    }

    #[test]
    fn no_two_roles_share_a_color() {
        for palette in [LIGHT, DARK] {
            let mut colors: Vec<_> = palette.roles().collect();
            colors.sort_unstable();
            let count = colors.len();
            colors.dedup();
            assert_eq!(colors.len(), count);
        }
    }
}
