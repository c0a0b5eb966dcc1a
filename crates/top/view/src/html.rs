//! The page: one HTML file with its style, its script and its data.

use std::fmt::Write;
use std::io::{self, Write as _};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

use crate::page_data::StepViews;

/// Script, built by `web/check`.
const SCRIPT: &str = include_str!("../../../../web/dist/viewer.js");
/// Style sheet.
const STYLE: &str = include_str!("../../../../web/dist/viewer.css");

/// Use of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode<'a> {
    /// A file, which makes no request.
    File,
    /// A page served by a [`Server`](crate::Server), which answers its requests.
    Served(&'a Devices),
}

/// GPUs to choose from on a served page, in the order shown: names, and `None` for the recorded one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Devices {
    /// All GPUs.
    pub all: Vec<Option<String>>,
    /// Index of the page's initial GPU.
    pub chosen: usize,
}

/// Returns the page of a step, which loads nothing: its data are embedded, deflated.
///
/// # Errors
/// If an answer cannot be written as JSON.
pub fn page(viewed: &StepViews, mode: Mode<'_>) -> io::Result<String> {
    let (head, block) = parts(viewed)?;
    let (mode, connect, devices) = match mode {
        Mode::File => ("file", "'none'", String::new()),
        Mode::Served(devices) => {
            let devices = packed(&serde_json::to_vec(devices)?)?;
            let devices = format!("<script type=\"text/plain\" id=\"devices\">{devices}</script>\n");
            ("served", "'self'", devices)
        }
    };
    let title = escaped(viewed.title());
    let mut page = String::with_capacity(head.len() + block.len() + SCRIPT.len() + STYLE.len() + 4096);
    // The policy makes the browser refuse requests: no picture, no font, no script is loaded from outside.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\" data-mode=\"{mode}\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
         style-src 'unsafe-inline'; img-src data:; connect-src {connect}; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title} - steptime</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<div id=\"app\"><p class=\"loading\" role=\"status\">Reading {title} ...</p>\
         <noscript><p class=\"loading\">This page needs JavaScript.</p></noscript></div>\n\
         <script type=\"text/plain\" id=\"head\">{head}</script>\n\
         <script type=\"text/plain\" id=\"block\">{block}</script>\n{devices}\
         <script>{SCRIPT}</script>\n</body>\n</html>\n"
    );
    Ok(page)
}

/// Returns the data of a page alone: the two texts embedded in the page of the same step, one per line.
///
/// # Errors
/// As [`page`].
pub fn data(viewed: &StepViews) -> io::Result<String> {
    let (head, block) = parts(viewed)?;
    Ok(format!("{head}\n{block}\n"))
}

/// Returns the head and the block of columns, packed.
fn parts(viewed: &StepViews) -> io::Result<(String, String)> {
    let (head, block) = viewed.parts()?;
    Ok((packed(&head)?, packed(block)?))
}

/// Deflates bytes and encodes them in base64.
fn packed(bytes: &[u8]) -> io::Result<String> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_text() {
        assert_eq!(escaped("</title><script>'\"&"), "&lt;/title&gt;&lt;script&gt;&#39;&quot;&amp;");
    }

    #[test]
    fn the_script_does_not_end_itself() {
        // The built script is inside a script element, the style inside a style element.
        assert!(!SCRIPT.to_ascii_lowercase().contains("</script"), "viewer.js holds </script");
        assert!(!SCRIPT.contains("<!--"), "viewer.js holds <!--");
        assert!(!STYLE.to_ascii_lowercase().contains("</style"), "viewer.css holds </style");
    }
}
