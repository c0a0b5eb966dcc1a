//! Accepted and rejected queries of a step.

use std::path::{Path, PathBuf};

use steptime_answers::PredictionReport;
use steptime_predict::{Baseline, Choice, Error, Query, Step, open};
use steptime_trace::{Options, Want};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(name)
}

fn recorded() -> Step {
    open(example("dlrm_default_2048")).expect("an example")
}

fn lone() -> Step {
    open(example("dlrm_default_2048/et.json.gz")).expect("an example")
}

/// Returns the answer of a query.
fn answer_of(query: &Query<'_>) -> PredictionReport {
    PredictionReport::from_query(query).expect("an answer")
}

#[test]
fn a_gpu_prices_every_kernel_by_the_arguments_that_were_read_at_opening() {
    let step = recorded();
    assert!(step.arguments.known() > 0);
    let p = step.predict().on("h200").unwrap().run().unwrap();
    let coverage = p.device.expect("priced").prices.coverage;
    assert!(coverage.fitted > 0.95, "{coverage:?}");
    assert!(p.interval[0] < p.step && p.step < p.interval[1]);
    assert_eq!(p.active + p.idle, p.step);
}

#[test]
fn arguments_that_were_left_out_at_opening_are_not_read_later() {
    let times = Options { want: Want::TIMING, ..Options::default() };
    let step =
        Step::open_with(&example("dlrm_default_2048"), &Choice::default(), &times).expect("an example");
    assert_eq!(step.arguments.known(), 0);
    let p = step.predict().on("a100").unwrap().run().unwrap();
    let coverage = p.device.expect("priced").prices.coverage;
    assert!(coverage.fitted < 0.05, "{coverage:?}");
    assert!(matches!(step.predict().what_if(&[]), Err(Error::NoArguments { .. })));
}

#[test]
fn asked_in_words_is_asked_as_ever() {
    let step = recorded();
    let words = step.predict().run().unwrap();
    let plain =
        steptime_predict::predict(&step, &steptime_predict::Host::Own, &steptime_predict::Kernels::Measured);
    assert_eq!((words.step, words.interval), (plain.step, plain.interval));
    assert_eq!(
        step.predict().baseline(Baseline::KernelSum).unwrap(),
        steptime_predict::baseline(&step, &steptime_predict::Kernels::Measured, Baseline::KernelSum)
    );
}

#[test]
fn hosts_differ() {
    let step = lone();
    let on = || step.predict().on("h200").unwrap();
    let [typical, shipped, slow] = [on(), on().slower(1.0), on().slower(3.0)].map(|q| q.run().unwrap());
    assert!(shipped.step < typical.step && typical.step < slow.step);
    let width = |p: &steptime_predict::Prediction| p.interval[1].as_millis() / p.interval[0].as_millis();
    assert!(width(&typical) > width(&shipped), "of a host that is not known less is known");
}

#[test]
fn what_the_input_does_not_hold_is_refused() {
    let step = lone();
    assert!(matches!(step.predict().run(), Err(Error::NoTiming { .. })), "no times, and no GPU named");
    let profiled = step.predict().on("h200").unwrap().as_profiled().run();
    assert!(matches!(profiled, Err(Error::NoHostTimes { .. })));
    assert!(matches!(step.predict().on("h2000"), Err(Error::NoSuchDevice { .. })));
    let on = || step.predict().on("h200").unwrap();
    assert!([0.0, -1.0, f64::NAN, 1e9].iter().all(|&times| on().slower(times).run().is_err()));
    assert!(matches!(step.predict().roofline(), Err(Error::NoTiming { .. })));
}

#[test]
fn without_arguments_measured_times_carry_over_or_there_is_no_answer() {
    let mut step = open(example("dlrm_default_2048/kineto.json.gz")).expect("a trace");
    let coverage = |p: steptime_predict::Prediction| p.device.expect("priced").prices.coverage;
    let same = coverage(step.predict().on("h200").unwrap().run().unwrap());
    assert!(same.measured > 0.5, "on the GPU recorded on kernels keep their time: {same:?}");
    let other = coverage(step.predict().on("a100").unwrap().run().unwrap());
    assert!(other.scaled > 0.5, "{other:?}");
    assert!(matches!(step.predict().roofline(), Err(Error::NoArguments { .. })));
    step.graph.device = Some("a GPU that nobody knows".into());
    let error = step.predict().on("a100").unwrap().run().unwrap_err();
    assert!(matches!(error, Error::NoArguments { .. }), "{error}");
}

#[test]
fn a_roofline_is_of_every_kernel() {
    let roofline = recorded().predict().roofline().unwrap();
    assert_eq!((roofline.device.as_str(), roofline.predicted), ("h200", false));
    assert!(roofline.kernels.len() > 100);
    assert!(roofline.kernels.iter().all(|kernel| kernel.roof.attainable.as_micros() > 0.0));
}

#[test]
fn an_answer_is_what_the_question_said() {
    let step = lone();
    let answer = answer_of(&step.predict().on("h200").unwrap());
    assert_eq!(
        (answer.host.as_str(), answer.kernels.as_str(), answer.method),
        ("default", "h200", "simulate")
    );
    assert!(
        answer.warnings.iter().any(|said| said.contains("a typical host is assumed")),
        "nothing was said of it"
    );
    let said = answer_of(&step.predict().on("h200").unwrap().on_a_typical_host());
    assert_eq!(
        (said.step_ms, said.host_slower_than.clone()),
        (answer.step_ms, answer.host_slower_than.clone())
    );
    assert!(said.warnings.iter().all(|said| !said.contains("a typical host is assumed")), "it was asked for");
    let simple = answer_of(&recorded().predict().by(Baseline::KernelSum));
    assert_eq!((simple.method, simple.interval_ms, simple.ops), ("kernel-sum", None, None));
}

#[test]
fn an_execution_trace_alone_does_not_say_whether_products_ran_in_tf32() {
    let mut step = lone();
    let answer = |step: &Step, gpu| answer_of(&step.predict().on(gpu).unwrap());
    let says = |answer: &PredictionReport| answer.warnings.iter().any(|said| said.contains("--tf32"));
    let unknown = answer(&step, "h200");
    assert!(says(&unknown), "{:?}", unknown.warnings);
    assert!(!says(&answer(&step, "v100")), "it has no TF32");
    step.meta.get_or_insert_default().matmul_tf32 = Some(false);
    let without = answer(&step, "h200");
    assert!(!says(&without) && without.step_ms == unknown.step_ms);
    step.meta.get_or_insert_default().matmul_tf32 = Some(true);
    let with = answer(&step, "h200");
    assert!(!says(&with) && with.active_ms < without.active_ms, "{:?} ms", with.active_ms);
    let resnet = open(example("resnet50_32/et.json.gz")).expect("an example");
    assert!(!says(&answer(&resnet, "h200")), "convolutions say it themselves");
}

#[test]
fn each_gpu_answers_as_if_asked_alone() {
    let step = lone();
    let each = step.predict().on_each(["h200", "a100"]).unwrap();
    let together: Vec<_> = each.iter().map(answer_of).collect();
    let alone = answer_of(&step.predict().on("a100").unwrap());
    assert_eq!(together[1], alone);
    assert_ne!(together[0].step_ms, alone.step_ms);
}

#[test]
fn the_recordings_own_host_has_no_factor_and_a_lone_trace_has_none() {
    let step = recorded();
    assert!(matches!(step.predict().slower(2.0).run(), Err(Error::FactorOfNoProfile)));
    let slow = step.predict().on_a_typical_host().slower(2.0).run().unwrap();
    assert!(slow.step > step.predict().on_a_typical_host().slower(1.0).run().unwrap().step);
    let own = lone().predict().on("h200").unwrap().on_its_own_host().run().map(|p| p.step);
    assert!(matches!(own, Err(Error::NoHostTimes { .. })), "{own:?}");
}
