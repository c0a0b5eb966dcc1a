//! Opens the page in a browser. All users of the machine can see a program's arguments, and the address holds a token: the
//! browser opens a file that only its user may read, which redirects to the address.

use std::io;
use std::time::Duration;

/// Time after which a started browser has read the file.
const STARTED: Duration = Duration::from_secs(60);

/// Opens an address in the user's browser.
///
/// # Errors
/// If there is no browser, or no file can be made.
pub fn open(address: &str) -> io::Result<()> {
    let folder = private()?;
    let file = folder.path().join("open.html");
    std::fs::write(&file, leading_to(address))?;
    open::that_detached(&file)?;
    std::thread::Builder::new().spawn(move || {
        std::thread::sleep(STARTED);
        drop(folder);
    })?;
    Ok(())
}

/// Creates a folder that only its user may read.
fn private() -> io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("steptime-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir()
}

/// Returns a page that redirects to an address at once.
fn leading_to(address: &str) -> String {
    format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\"><a href=\"{address}\">the step</a>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = private().expect("a folder");
        assert_eq!(folder.path().metadata().expect("it").permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn the_file_leads_to_the_address() {
        let page = leading_to("http://127.0.0.1:1/token/");
        assert!(page.contains("content=\"0; url=http://127.0.0.1:1/token/\""), "{page}");
    }
}
