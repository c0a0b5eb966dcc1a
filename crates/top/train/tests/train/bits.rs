//! Equal bits: of two runs, of any number of threads, of a run that continues.

use crate::{Place, tensors};

#[test]
fn runs_have_the_same_bits_for_any_number_of_threads() {
    let place = Place::new("adagrad");
    let run = |folder: &str, threads: u32| {
        let answer =
            place.train(&format!("--steps 10 --data synthetic:zipf:1.1 --threads {threads} -o {folder}"));
        let bits = answer["measured"]["loss"].as_f64().unwrap().to_bits();
        (bits, answer["evaluations"].clone(), tensors(&place.path(folder)))
    };
    let first = run("a", 1);
    assert_eq!(first, run("b", 1));
    assert_eq!(first, run("c", 2));
}

#[test]
fn a_run_that_continues_has_the_bits_of_one_that_never_stopped() {
    let datas = ["--data synthetic", "--data synthetic --rows 200", "--data synthetic:zipf:1 --rows 320"];
    for optimizer in ["sgd", "adagrad", "adam"] {
        let place = Place::new(optimizer);
        place.write(
            "schedule.toml",
            "warmup = { steps = 5, start = 0.1 }\ndecay = { kind = 'cosine', steps = 20 }\n",
        );
        for (at, data) in datas.iter().enumerate() {
            let options = format!("{data} --seed 5 --rate 0.01 --schedule schedule.toml");
            place.train(&format!("--steps 20 {options} -o whole{at}"));
            place.train(&format!("--steps 10 {options} -o parts{at} --threads 1"));
            // Seed, rate and schedule are those of the checkpoint.
            let resumed = place.train(&format!("--steps 20 {data} -o parts{at} --resume --threads 2"));
            assert_eq!(resumed["first_step"].as_u64(), Some(10));
            let [whole, parts] = ["whole", "parts"].map(|name| tensors(&place.path(&format!("{name}{at}"))));
            assert_eq!(whole.0, 20);
            assert_eq!(whole, parts, "{optimizer} {data}");
        }
    }
}

#[test]
fn evaluations_and_checkpoints_change_nothing() {
    let place = Place::new("adam");
    place.train("--steps 12 -o plain");
    place.train("--steps 12 -o often --eval-every 1 --save-every 2 --keep 2");
    assert_eq!(tensors(&place.path("plain")), tensors(&place.path("often")));
    let kept = steptime_train::checkpoint::list(&place.path("often")).unwrap();
    assert_eq!(kept.iter().map(|(step, _)| *step).collect::<Vec<_>>(), [10, 12]);
}
