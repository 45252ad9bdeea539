//! The HTML report in a browser.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use toll_testing::{Bench, PATIENCE, has, has_program, lacks, skip};

const SCREENSHOT_BYTES_MIN: usize = 20_000;

/// Runs headless Chromium on a page without access to any network.
fn chromium(bench: &Bench, page: &Path, arguments: &[&str]) -> Option<Output> {
    let Some(program) = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|program| has_program(program))
    else {
        skip("no Chromium; install the package chromium");
        return None;
    };
    let seconds = PATIENCE.as_secs().to_string();
    let output = Command::new("timeout")
        .args(["-k", "5", &seconds, program])
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--enable-logging=stderr",
            "--v=0",
            "--host-resolver-rules=MAP * ~NOTFOUND",
        ])
        .arg(format!(
            "--user-data-dir={}",
            bench.path("browser").display()
        ))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .envs(bench.environment())
        .stdin(Stdio::null())
        .output()
        .expect("the browser can be started");
    assert!(output.status.success(), "{output:#?}");
    Some(output)
}

/// Makes a report that contains verdicts, plots and hostile texts.
fn report(bench: &Bench) -> std::path::PathBuf {
    let experiment = r#"
format = 1
name = "page"
title = "Pages <script>document.title='broken into'</script>"
question = "Is <img src=x onerror=alert(1)> shown as text?"
metric = "slept"
[workload]
kind = "command"
command = "echo slept {seconds}"
[metrics.slept]
pattern = 'slept ([0-9.]+)'
unit = "s"
better = "lower"
[[factor]]
name = "seconds"
levels = ["0.001", "0.002", "0.004"]
[[claim]]
id = "page.longer"
text = "Four are longer than one & \"quoted\" </td>"
of = { seconds = "0.004" }
to = { seconds = "0.001" }
direction = "greater"
[[figure]]
title = "Time <b>bold</b>"
kind = "curve"
factor = "seconds"
[[figure]]
title = "Trials"
kind = "distribution"
factor = "seconds"
"#;
    bench.write("page.toml", experiment);
    let page = bench.path("page.html");
    bench.ok(&[
        "run",
        "-q",
        "-r",
        "8",
        "--html",
        page.to_str().unwrap(),
        "page.toml",
    ]);
    page
}

#[test]
fn the_page_stands_on_its_own_and_a_browser_shows_it_without_complaint() {
    let bench = Bench::new();
    let page = report(&bench);
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.starts_with("<!doctype html>"));
    // A URL that a reader can copy is not a reference.
    let outside = [
        "http:", "https:", "//cdn", "src=\"", "@import", "url(", "<link", "<script",
    ];
    lacks(&text, &outside);
    let Some(output) = chromium(&bench, &page, &["--dump-dom"]) else {
        return;
    };
    let dom = String::from_utf8_lossy(&output.stdout);
    has(
        &dom,
        &[
            "class=\"verdicts stack\"",
            "page.longer",
            "supported",
            "&lt;script&gt;",
        ],
    );
    lacks(&dom, &["<script", "<img"]);
    let drawings = dom.matches("<svg").count();
    assert!(drawings >= 3, "{drawings} drawings");
    lacks(&String::from_utf8_lossy(&output.stderr), &["CONSOLE"]);

    let picture = bench.path("page.png");
    let option = format!("--screenshot={}", picture.display());
    chromium(&bench, &page, &[&option, "--window-size=1200,1600"]).expect("Chromium is installed");
    let picture = std::fs::read(picture).unwrap();
    assert!(picture.starts_with(b"\x89PNG\r\n\x1a\n"));
    // The width and the height follow the PNG signature and the head of the IHDR chunk.
    let number = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert_eq!(number(16), 1200);
    assert!(number(20) > 1000);
    // A blank page of this size compresses to a tenth of this.
    let bytes = picture.len();
    assert!(bytes > SCREENSHOT_BYTES_MIN, "{bytes} bytes");
}

/// A script that reports how far any element reaches past the right edge of the page.
const MEASURE_OVERFLOW: &str = "<script>addEventListener('load', () => {
  const width = document.documentElement.clientWidth;
  for (const all of document.querySelectorAll('details')) all.open = true;
  let worst = '';
  for (const one of document.querySelectorAll('body *')) {
    const right = one.getBoundingClientRect().right;
    if (right > width + 1) worst = one.tagName + ' ' + one.className + ' at ' + right;
  }
  document.title = 'width ' + width + ' overflow ' + (worst || 'none');
});</script></body>";

#[test]
fn nothing_is_cut_off_on_a_phone_nor_on_a_screen() {
    let bench = Bench::new();
    let mut pages = vec![report(&bench)];
    bench.ok(
        "run -q -r 7 --html two.html true 'sh -c \"echo a long command line of many words; true\"'",
    );
    pages.push(bench.path("two.html"));
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let measured = bench.write("measured.html", &text.replace("</body>", MEASURE_OVERFLOW));
        for width in [500, 1200] {
            let size = format!("--window-size={width},900");
            let Some(output) = chromium(&bench, &measured, &["--dump-dom", &size]) else {
                return;
            };
            let dom = String::from_utf8_lossy(&output.stdout);
            let found = dom
                .split("<title>")
                .nth(1)
                .and_then(|rest| rest.split('<').next());
            let is_whole =
                |found: &str| found.starts_with("width ") && found.ends_with(" overflow none");
            assert!(
                found.is_some_and(is_whole),
                "{found:?} of {}",
                page.display()
            );
        }
    }
}
