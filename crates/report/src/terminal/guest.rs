//! Kernel logs of guests.

use toll_core::run::BootRecord;
use toll_document::{Document, Paint};

/// Shows the logs of boots, each below its block and levels.
pub fn kernel_logs(boots: &[BootRecord]) -> Document {
    let plain = Paint::Plain;
    let mut text = Document::default();
    for boot in boots {
        let levels: Vec<String> = boot
            .levels
            .iter()
            .filter(|(_, level)| !level.is_empty())
            .map(|(name, level)| format!("{name}={level}"))
            .collect();
        let title = format!(
            "==> block {}: {} ({})",
            boot.block + 1,
            levels.join(" "),
            boot.started_at
        );
        text += Document::line(title, plain);
        text += Document::lines(&boot.error, plain);
        text += Document::lines(boot.log.lines(), plain);
        if let Some(partner) = &boot.partner {
            text += Document::line("--> its partner", plain);
            text += Document::lines(partner.log.lines(), plain);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use toll_core::run::PartnerRecord;
    use toll_document::Style;

    #[test]
    fn a_log_reaches_no_terminal_unescaped() {
        let boot = BootRecord {
            log: "one\n\u{1b}]0;title\u{7}two\n".into(),
            error: Some("it \u{1b}[31mpanicked".into()),
            ..BootRecord::default()
        };
        let paired = BootRecord {
            partner: Some(PartnerRecord {
                log: "three\u{1b}[2J\n".into(),
                ..PartnerRecord::default()
            }),
            ..boot.clone()
        };
        let style = Style::new(true, 80, true);
        let text = kernel_logs(&[boot, paired]).show(style);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(text.matches("==> block 1").count(), 2);
        assert_eq!(text.lines().count(), 10);
        assert!(text.contains("--> its partner\nthree"), "{text}");
    }
}
