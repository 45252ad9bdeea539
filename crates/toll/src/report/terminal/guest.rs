//! What the kernels of guests told.

use crate::report::sanitize::sanitize;
use crate::store::BootRecord;

/// The logs of boots, each under what was booted for which block.
pub fn kernel_logs(boots: &[BootRecord]) -> String {
    let mut text = String::new();
    for boot in boots {
        let levels: Vec<String> = boot
            .levels
            .iter()
            .filter(|(_, level)| !level.is_empty())
            .map(|(name, level)| format!("{name}={level}"))
            .collect();
        text.push_str(&sanitize(&format!(
            "==> block {}: {} ({})",
            boot.block + 1,
            levels.join(" "),
            boot.started_at
        )));
        text.push('\n');
        if let Some(error) = &boot.error {
            text.push_str(&sanitize(error));
            text.push('\n');
        }
        add_log(&mut text, &boot.log);
        if let Some(partner) = &boot.partner {
            text.push_str("--> its partner\n");
            add_log(&mut text, &partner.log);
        }
    }
    text
}

fn add_log(text: &mut String, log: &str) {
    for line in log.lines() {
        text.push_str(&sanitize(line));
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::PartnerRecord;

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
        let text = kernel_logs(&[boot, paired]);
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(text.matches("==> block 1").count(), 2);
        assert_eq!(text.lines().count(), 10);
        assert!(text.contains("--> its partner\nthree"), "{text}");
    }
}
