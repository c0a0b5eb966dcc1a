//! A host that was slow while recording is detected, and does not bend the profile.

use steptime_cost::{HostCosts, Probe, Process};
use steptime_graph::StepGraph;
use steptime_trace::Nanos;

use crate::recordings::{example, fit, graph, slower};

fn total(graph: &StepGraph, profile: &steptime_cost::HostProfile) -> f64 {
    let costs = HostCosts::from_profile(graph, profile, Process::Profiled);
    costs.gaps.iter().copied().sum::<Nanos>().as_micros()
}

#[test]
fn a_recording_twice_as_slow_is_seen_as_such() {
    const NAMES: [&str; 5] =
        ["dlrm_default_2048", "resnet50_32", "dlrm_ddp_2048", "dlrm_default_fused_2048", "dlrm_mlperf_2048"];
    let traces = NAMES.map(example);
    let graphs: Vec<StepGraph> = traces.iter().map(graph).collect();
    let slow = graph(&slower(traces[0].clone(), 2));
    let mut recordings: Vec<(&str, &StepGraph)> = NAMES.into_iter().zip(&graphs).collect();
    let quiet = fit(&recordings);
    recordings.push(("slow", &slow));
    let mixed = fit(&recordings);

    let slowness: Vec<f64> = mixed.recordings.iter().map(|r| r.slowness).collect();
    let times = slowness[5] / slowness[0];
    assert!((1.9..2.1).contains(&times), "{times} of {slowness:?}");
    for graph in &graphs {
        // The typical host of six recordings is not quite that of five.
        let moved = total(graph, &mixed) / total(graph, &quiet);
        assert!((0.95..1.05).contains(&moved), "{moved} {slowness:?}");
    }
    let (dlrm, resnet) = (&graphs[0], &graphs[1]);
    let ratio = |profile| total(resnet, profile) / total(dlrm, profile);
    let bent = ratio(&mixed) / ratio(&quiet);
    assert!((0.98..1.02).contains(&bent), "one against the other: {bent}");
    assert!(mixed.spread >= quiet.spread, "a host like that is possible now");
}

#[test]
fn a_recording_left_out_changes_nothing() {
    let traces = ["dlrm_default_2048", "resnet50_32"].map(example);
    let [dlrm, resnet] = [0, 1].map(|i| graph(&traces[i]));
    let slow = graph(&slower(traces[1].clone(), 3));
    let training = |name: &str, graph, excluded| steptime_cost::Training {
        name: name.into(),
        graph,
        excluded,
        home: true,
        probe: None,
        between: Nanos::ZERO,
    };
    let none = steptime_cost::ProfilerCost::NONE;
    let all = [training("a", &dlrm, false), training("slow", &slow, true), training("b", &resnet, false)];
    let with = steptime_cost::fit_host(&all, &none, &none).expect("a profile");
    let without = fit(&[("a", &dlrm), ("b", &resnet)]);
    assert_eq!((&with.gaps, with.warmth), (&without.gaps, without.warmth));
    assert_eq!(with.recordings.iter().map(|r| r.excluded).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(with.recordings[2].slowness, without.recordings[1].slowness);
    let none_left = steptime_cost::fit_host(&all[1..2], &none, &none);
    assert!(matches!(none_left, Err(steptime_cost::Error::NothingToFit)));
}

#[test]
fn other_hosts_add_gaps_at_the_speed_of_the_profile_s_own() {
    let traces = ["dlrm_default_2048", "resnet50_32"].map(example);
    let [dlrm, resnet] = [0, 1].map(|i| graph(&traces[i]));
    let slow = graph(&slower(traces[0].clone(), 3));
    let probe = Probe { step_cpu_us: 3000.0, ..Probe::default() };
    let training = |name: &str, graph, home, probe| steptime_cost::Training {
        name: name.into(),
        graph,
        excluded: false,
        home,
        probe,
        between: Nanos::ZERO,
    };
    let none = steptime_cost::ProfilerCost::NONE;
    let all = [
        training("home", &dlrm, true, None),
        training("slow", &slow, false, Some(probe)),
        training("away", &resnet, false, None),
    ];
    let profile = steptime_cost::fit_host(&all, &none, &none).expect("a profile");
    let alone = fit(&[("home", &dlrm)]);
    assert!(profile.gaps.len() > alone.gaps.len(), "the other host's ops are known");
    let slowness: Vec<f64> = profile.recordings.iter().map(|r| r.slowness).collect();
    assert_eq!(slowness[0], 1.0);
    assert!(slowness[1] > 1.5, "{slowness:?}");
    let reference = 3000.0 / slowness[1];
    assert!((profile.reference.step_cpu_us / reference - 1.0).abs() < 0.01, "{:?}", profile.reference);
    let nowhere = [training("away", &resnet, false, None)];
    assert!(steptime_cost::fit_host(&nowhere, &none, &none).is_ok(), "none at home: all stand for it");
}
