//! Checks the kernel configuration fragments that users write.

/// Characters that a value may have besides letters and digits. Kconfig writes values into files
/// that make includes and shells read. So a character that make or a shell expands is refused.
const VALUE_CHARACTERS: &str = " ._,:=+/@%~()[]*-";

/// Checks that each line is a comment, or a setting that Kconfig accepts.
///
/// # Errors
///
/// The first wrong line, and what is wrong with it.
pub(super) fn check(content: &[u8]) -> Result<(), String> {
    for (index, line) in content.split(|byte| *byte == b'\n').enumerate() {
        let line = String::from_utf8_lossy(line);
        check_line(&line).map_err(|why| format!("line {}, {line:?}, {why}", index + 1))?;
    }
    Ok(())
}

fn check_line(line: &str) -> Result<(), &'static str> {
    const FORM: &str = "sets no option; write CONFIG_NAME=VALUE or # CONFIG_NAME is not set";
    if line.trim().is_empty() {
        return Ok(());
    }
    if let Some(comment) = line.strip_prefix('#') {
        let comment = comment.trim();
        // Kconfig interprets only this form of comment, and ignores similar ones.
        let looks_obeyed = comment.starts_with("CONFIG_") && comment.contains("is not set");
        let is_obeyed = line
            .strip_prefix("# ")
            .and_then(|rest| rest.strip_suffix(" is not set"))
            .is_some_and(is_option);
        return if looks_obeyed && !is_obeyed {
            Err(FORM)
        } else {
            Ok(())
        };
    }
    let (option, value) = line.split_once('=').ok_or(FORM)?;
    if !is_option(option) {
        return Err(FORM);
    }
    let quoted = value.strip_prefix('"');
    let inner = match quoted {
        Some(rest) => rest.strip_suffix('"').ok_or("has a quote without an end")?,
        None => value,
    };
    let is_taken = |c: char| c.is_ascii_alphanumeric() || VALUE_CHARACTERS.contains(c);
    if !inner.chars().all(is_taken) {
        return Err(
            "has a value with a character that make or a shell would expand; use letters, digits, \
             blanks and any of ._,:=+/@%~()[]*-",
        );
    }
    if quoted.is_none()
        && (inner.is_empty() || !inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
    {
        return Err("has a value that is neither a number nor y, m or n; put a string in quotes");
    }
    Ok(())
}

fn is_option(word: &str) -> bool {
    let is_further = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.strip_prefix("CONFIG_")
        .is_some_and(|name| !name.is_empty() && name.chars().all(is_further))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kconfig_obeys_is_taken() {
        let text = "# a comment\n\nCONFIG_SMP=y\nCONFIG_NR_CPUS=64\nCONFIG_BASE=0xffff8\n\
                    CONFIG_LEVEL=-1\n# CONFIG_VT is not set\n#CONFIG_OFF=y\n\
                    CONFIG_CC_VERSION_TEXT=\"gcc (Debian 12.2.0-14) 12.2.0\"\nCONFIG_EMPTY=\"\"\n";
        assert_eq!(check(text.as_bytes()), Ok(()));
        for own in [
            include_bytes!("../../../kernel/configs/guest.config").as_slice(),
            include_bytes!("../../../kernel/configs/debug.config"),
        ] {
            assert_eq!(check(own), Ok(()));
        }
    }

    #[test]
    fn a_line_that_kconfig_would_drop_is_named() {
        for line in [
            "SMP=y",
            " CONFIG_SMP=y",
            "CONFIG_SMP",
            "CONFIG_SMP y",
            "CONFIG_SMP = y",
            "CONFIG_SMP=",
            "CONFIG_=y",
            "CONFIG_A-B=y",
            "CONFIG_SMP=y\r",
            "CONFIG_SMP=yes please",
            "#CONFIG_VT is not set",
            "# CONFIG_VT is not set ",
            "# CONFIG_VT is not set.",
            "-CONFIG_SMP=y",
        ] {
            let text = format!("CONFIG_FIRST=y\n{line}\n");
            let why = check(text.as_bytes()).expect_err(line);
            assert!(why.starts_with(&format!("line 2, {line:?}")), "{why}");
        }
        assert!(check(b"CONFIG_A=\"\xff\"").is_err());
    }
}
