//! Several ranks, on a CPU: the numbers of one device, checkpoints for any number of ranks, failures.

use crate::{Place, tensors};

/// A model with tables of different loads.
fn place(optimizer: &str) -> Place {
    Place::with_model(&format!(
        "name = 'tiny'\nmodel = 'dlrm'\nbatch = 36\ndense = 4\nbottom_mlp = [8, 4]\ntop_mlp = [8, 1]
tables = [{{ rows = 50, columns = 4, lookups = 3 }}, {{ rows = 7, columns = 4 }}, {{ rows = 20, columns = 4 }}]
optimizer = {{ name = '{optimizer}' }}\n"
    ))
}

/// Elements of all tensors of the last checkpoint, by name.
fn elements(place: &Place, folder: &str) -> Vec<(String, Vec<f32>)> {
    let floats = |bits: Vec<u32>| bits.into_iter().map(f32::from_bits).collect();
    let mut all: Vec<_> =
        tensors(&place.path(folder)).1.into_iter().map(|(name, bits)| (name, floats(bits))).collect();
    all.sort_by(|one: &(String, Vec<f32>), other| one.0.cmp(&other.0));
    all
}

/// Checks that the tensors of two checkpoints are near one another, relative to their largest elements.
fn near(one: &[(String, Vec<f32>)], other: &[(String, Vec<f32>)]) {
    assert_eq!(one.len(), other.len());
    for ((name, own), (same, wanted)) in one.iter().zip(other) {
        assert_eq!((name, own.len()), (same, wanted.len()));
        let most = wanted.iter().fold(f32::MIN_POSITIVE, |most, x| most.max(x.abs()));
        let apart = own.iter().zip(wanted).fold(0.0_f32, |apart, (a, b)| apart.max((a - b).abs()));
        assert!(apart <= 2e-6 * most, "{name}: {apart} of {most}");
    }
}

#[test]
fn ranks_train_the_model_of_one_device() {
    for optimizer in ["sgd", "adagrad"] {
        let place = place(optimizer);
        let options = "--steps 10 --data synthetic:zipf:1.1 --rate 0.05";
        let one = place.train(&format!("{options} -o one"));
        for ranks in [2, 3] {
            let all = place.train(&format!("{options} --gpus {ranks} -o ranks{ranks}"));
            near(&elements(&place, &format!("ranks{ranks}")), &elements(&place, "one"));
            let loss = |answer: &serde_json::Value| answer["measured"]["loss"].as_f64().expect("a loss");
            assert!((loss(&all) - loss(&one)).abs() < 1e-5, "{} {}", loss(&all), loss(&one));
            let auc = |answer: &serde_json::Value| answer["evaluations"][0]["auc"].as_f64().expect("an AUC");
            assert!((auc(&all) - auc(&one)).abs() < 1e-3);
            assert_eq!(all["evaluations"][0]["samples"], one["evaluations"][0]["samples"]);
            let reports = all["ranks"].as_array().expect("ranks");
            assert_eq!(reports.len(), ranks);
            assert!(reports.iter().all(|rank| rank["median_ms"].as_f64().is_some_and(|ms| ms > 0.0)));
        }
        place.train(&format!("{options} --gpus 2 -o again"));
        assert_eq!(
            tensors(&place.path("again")),
            tensors(&place.path("ranks2")),
            "each run has the same bits"
        );
    }
}

#[test]
fn a_checkpoint_continues_on_another_number_of_ranks() {
    let place = place("adagrad");
    place.write(
        "columns.json",
        r#"{"plan": {"sparse": {
            "t_0": {"sharding_type": "column_wise", "compute_kernel": "fused", "ranks": [1, 0], "shards": [
                {"shard_offsets": [0, 0], "shard_sizes": [50, 2], "placement": "rank:1/cuda:1"},
                {"shard_offsets": [0, 2], "shard_sizes": [50, 2], "placement": "rank:0/cuda:0"}]},
            "t_1": {"sharding_type": "table_wise", "compute_kernel": "fused", "ranks": [1], "shards": [
                {"shard_offsets": [0, 0], "shard_sizes": [7, 4], "placement": "rank:1/cuda:1"}]},
            "t_2": {"sharding_type": "data_parallel", "compute_kernel": "dense", "ranks": [0, 1], "shards": null}}}}"#,
    );
    let data = "--data synthetic --rows 180 --seed 5 --rate 0.05";
    place.train(&format!("--steps 12 {data} -o whole"));
    place.train(&format!("--steps 4 {data} -o parts --gpus 3"));
    place.train(&format!("--steps 8 {data} -o parts --gpus 2 --placement columns.json --resume"));
    place.train(&format!("--steps 12 {data} -o parts --resume"));
    near(&elements(&place, "parts"), &elements(&place, "whole"));
}

#[test]
fn impossible_jobs_are_refused() {
    let place = place("sgd");
    let cases = [
        ("--gpus 5", "which cannot be divided evenly among 5 GPUs"),
        ("--gpus 2 --record run.json", "--record is for one GPU"),
        ("--gpus 2 --host-memory", "--host-memory is for one GPU"),
        ("--gpus 2 --placement none.json", "`steptime shard MODEL --gpus 2 -o none.json` writes it"),
        ("--gpus 2 --exchanges direct", "--exchanges is for several GPUs"),
        ("--exchanges nccl", "--exchanges is for several GPUs"),
    ];
    for (options, words) in cases {
        let error = place.failure(&format!("model.toml --steps 2 {options}"));
        assert!(error.contains(words), "{options}: {error}");
    }
}

#[test]
fn a_loss_that_diverges_ends_all_ranks() {
    let place = place("sgd");
    let error = place.failure("model.toml --steps 50 --rate 1e30 --gpus 2");
    assert!(error.contains("The run has diverged"), "{error}");
}
