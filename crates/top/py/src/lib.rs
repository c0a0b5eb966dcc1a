//! The native half of the Python package: the command line, answers to queries, and tables for other libraries. The
//! public API is written in Python, in `python/steptime/`.

#![forbid(unsafe_code)]

mod interruptible;
mod table;

// Brings the C ABI of the GPU operators into this library, where `steptime.operators` finds it.
use steptime_cuda_c as _;

/// The native half of steptime.
#[pyo3::pymodule]
mod _core {
    use std::ffi::OsString;
    use std::path::PathBuf;
    use std::sync::Arc;

    use pyo3::prelude::*;
    use steptime_cli::Refusal;

    use crate::interruptible::wait;
    #[pymodule_export]
    use crate::table::arrow_stream;

    /// An input that is opened once, at its first query.
    #[pyclass(frozen)]
    struct Opened(Arc<steptime_cli::CachedInput>);

    #[pymethods]
    impl Opened {
        #[new]
        #[pyo3(signature = (path, step=None, rank=None))]
        fn new(path: PathBuf, step: Option<u32>, rank: Option<u32>) -> Opened {
            Opened(Arc::new(steptime_cli::CachedInput::new(&path, step, rank)))
        }

        /// Opens it now: its files are not read again. Returns two empty strings, or the kind of refusal and its message.
        fn open(&self, py: Python<'_>) -> PyResult<(&'static str, String)> {
            let input = Arc::clone(&self.0);
            Ok(answer_pair(wait(py, move || steptime_cli::open(&input))?.map(|()| String::new())))
        }
    }

    /// Runs a command with arguments by name, a JSON object, and returns an empty string and its output, or the kind of refusal
    /// and its message. `given` is read instead of standard input.
    #[pyfunction]
    fn ask(
        py: Python<'_>,
        command: String,
        arguments: String,
        opened: Vec<PyRef<'_, Opened>>,
        given: String,
    ) -> PyResult<(&'static str, String)> {
        let opened: Vec<Arc<steptime_cli::CachedInput>> =
            opened.iter().map(|each| Arc::clone(&each.0)).collect();
        let answer = wait(py, move || {
            let opened: Vec<&steptime_cli::CachedInput> = opened.iter().map(|each| &**each).collect();
            let (command, arguments, given) = (&*command, &*arguments, &*given);
            steptime_cli::ask(&steptime_cli::Request { command, arguments, given, opened: &opened })
        });
        Ok(answer_pair(answer?))
    }

    /// Runs a command line without standard input, and returns an empty string and its output, or the kind of refusal and its
    /// message.
    #[pyfunction]
    fn capture(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<(&'static str, String)> {
        Ok(answer_pair(wait(py, move || steptime_cli::capture(typed(arguments)))?))
    }

    /// Runs a command line on this terminal and returns its exit code.
    #[pyfunction]
    fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        py.detach(|| steptime_cli::run(typed(arguments)))
    }

    /// Returns the causes of device idle time: the key in an answer, and the printed name.
    #[pyfunction]
    fn idle_causes() -> Vec<(&'static str, &'static str)> {
        steptime_cli::idle_causes().collect()
    }

    /// Returns an empty string and an answer, or the kind of refusal and its message.
    fn answer_pair(answer: Result<String, Refusal>) -> (&'static str, String) {
        match answer {
            Ok(text) => ("", text),
            Err(Refusal::Usage(words)) => ("usage", words),
            Err(Refusal::NotFound(words)) => ("not found", words),
            Err(Refusal::NotApplicable(words)) => ("not applicable", words),
            Err(Refusal::Input(words)) => ("input", words),
        }
    }

    /// Returns a command line with the program's name first.
    fn typed(arguments: Vec<OsString>) -> impl Iterator<Item = OsString> {
        std::iter::once("steptime".into()).chain(arguments)
    }
}
