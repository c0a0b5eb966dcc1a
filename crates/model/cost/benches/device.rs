//! Loading a device profile, and pricing a thousand ops with it: bars are 20 ms and 1 ms.

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use steptime_cost::device::{Context, DeviceProfile, ModelChoice, fit};

#[path = "../tests/device/synthetic.rs"]
mod synthetic;

/// The shipped profile; one fitted to synthetic rows if it is missing.
fn profile() -> DeviceProfile {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../profiles/h200");
    if shipped.exists() {
        return DeviceProfile::read(&shipped).expect("the shipped profile can be read");
    }
    fit(&synthetic::observations(6000), &synthetic::spec(), &Default::default())
        .expect("rows that can be fitted")
}

fn bench(criterion: &mut Criterion) {
    let profile = profile();
    let (header, models) = profile.to_parts().expect("a profile that can be written");
    criterion.bench_function("load", |bencher| {
        bencher.iter(|| DeviceProfile::from_parts(black_box(&header), models.as_deref()));
    });
    // About the number of different calls in a step of a large recommender or convolutional net, each four times.
    let rows = synthetic::observations(125);
    let calls: Vec<_> =
        rows.iter().map(|row| (row.call.clone(), Context::after(&row.call, 1 << 20))).collect();
    let step: Vec<_> = calls.iter().map(|(call, ctx)| (call, ctx)).cycle().take(1000).collect();
    criterion.bench_function("price 1000, of which 250 differ", |bencher| {
        bencher.iter(|| profile.price_all(black_box(&step), ModelChoice::Best));
    });
    let rows = synthetic::observations(1000);
    let all: Vec<_> = rows.iter().map(|row| (&row.call, &row.ctx)).take(1000).collect();
    criterion.bench_function("price 1000, all different", |bencher| {
        bencher.iter(|| profile.price_all(black_box(&all), ModelChoice::Best));
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
