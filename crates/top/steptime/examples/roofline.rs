//! Finds the kernels of a step that are farthest from the GPU's limits.

fn main() -> Result<(), steptime::Error> {
    let step = steptime::open("examples/resnet50_32")?;
    let mut kernels = step.predict().roofline()?.kernels;
    kernels.sort_by_key(|kernel| kernel.roof.attainable - kernel.time);
    for kernel in kernels.iter().take(5) {
        let (time, possible) = (kernel.time, kernel.roof.attainable);
        println!("{}: {time}, possible {possible}, bound by {}", kernel.op, kernel.roof.bound.name());
    }
    Ok(())
}
