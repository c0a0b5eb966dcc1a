//! Files of an input are opened once, and those that an answer does not need are not opened.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

use crate::{root, steptime, text};

const EXAMPLE: &str = "examples/dlrm_default_2048";
const JOB: &str = "examples/jobs/dlrm_4096_x4";

/// Runs a command and returns the number of times that each file of a folder, and of the folders in it, was opened.
fn opened(folder: &Path, args: &[&str]) -> BTreeMap<String, usize> {
    let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).expect("a queue of events");
    let inner = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let folders = std::iter::once(folder.to_owned()).chain(inner.filter(|path| path.is_dir()));
    // Without the ends of reading, two openings in a row are one event.
    let flags = WatchFlags::OPEN | WatchFlags::CLOSE;
    let watch = |path: std::path::PathBuf| (inotify::add_watch(&queue, &path, flags).expect("a watch"), path);
    let watched: BTreeMap<i32, std::path::PathBuf> = folders.map(watch).collect();
    steptime(&[&["predict"], args].concat()).assert().success();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&queue, &mut buffer);
    let mut counts = BTreeMap::new();
    while let Ok(event) = events.next() {
        let Some(name) = event.file_name().filter(|_| event.events().contains(ReadFlags::OPEN)) else {
            continue;
        };
        let path = watched[&event.wd()].join(name.to_str().expect("a name"));
        if path.is_file() {
            let name = path.strip_prefix(folder).expect("a file within").display().to_string();
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

/// Copies a folder and the folders in it: other tests read the examples at the same time.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("an example") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() { copy(&path, &to) } else { fs::copy(&path, &to).map(|_| ()).expect("a copy") }
    }
}

#[track_caller]
fn check(input: &Path, watched: &Path, options: &[&str], expected: &[&str]) {
    let expected: BTreeMap<String, usize> = expected.iter().map(|name| ((*name).to_owned(), 1)).collect();
    assert_eq!(opened(watched, &[&[text(input)], options].concat()), expected, "{options:?}");
}

const H100: &[&str] = &["--device", "h100"];
const FILES: [&str; 3] = ["et.json.gz", "kineto.json.gz", "meta.json"];

#[test]
fn a_recording_and_a_folder_of_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("recording");
    copy(&root().join(EXAMPLE), &inner);
    let within = FILES.map(|file| format!("recording/{file}"));
    for options in [&[], H100] {
        check(&inner, &inner, options, &FILES);
        check(folder.path(), folder.path(), options, &within.each_ref().map(String::as_str));
    }
}

#[test]
fn single_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to) in [("et.json.gz", "a.json.gz"), ("kineto.json.gz", "b.json.gz")] {
        fs::copy(root().join(EXAMPLE).join(from), folder.path().join(to)).expect("a copy");
    }
    check(&folder.path().join("a.json.gz"), folder.path(), H100, &["a.json.gz"]);
    check(&folder.path().join("b.json.gz"), folder.path(), &[], &["b.json.gz"]);
    check(&folder.path().join("b.json.gz"), folder.path(), H100, &["b.json.gz"]);
}

#[test]
fn ranks_need_their_ops_for_another_gpu_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    copy(&root().join(JOB), folder.path());
    let of_ranks = |files: &[&str]| -> Vec<String> {
        (0..4).flat_map(|rank| files.iter().map(move |file| format!("rank{rank}/{file}"))).collect()
    };
    for (options, files) in [(&[][..], &FILES[1..]), (H100, &FILES[..])] {
        let expected = of_ranks(files);
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(folder.path(), folder.path(), options, &expected);
    }
}

#[test]
fn ranks_without_common_collectives_are_not_opened_again_for_one_step() {
    let folder = tempfile::tempdir().expect("a folder");
    for rank in ["rank0", "rank1"] {
        copy(&root().join(EXAMPLE), &folder.path().join(rank));
    }
    let expected = ["rank0", "rank1"].map(|rank| FILES.map(|file| format!("{rank}/{file}"))).concat();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    for options in [&[], H100] {
        check(folder.path(), folder.path(), options, &expected);
    }
}
