//! Scratch: what-if from the command line.
use steptime::aten::optimizer::Form;
use steptime::rewrite::{CudaGraph, FuseEmbeddingBags, Optimizer, ResizeBatch, Rule, Tf32};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let step = steptime::open(&args[1]).unwrap();
    let mut rules: Vec<Box<dyn Rule>> = Vec::new();
    for arg in &args[2..] {
        match arg.as_str() {
            "cuda-graph" => rules.push(Box::new(CudaGraph)),
            "tf32" => rules.push(Box::new(Tf32)),
            "fuse-embedding-bags" => rules.push(Box::new(FuseEmbeddingBags)),
            "fuse-optimizer" => rules.push(Box::new(Optimizer { form: Form::Fused })),
            "foreach-optimizer" => rules.push(Box::new(Optimizer { form: Form::Foreach })),
            "loop-optimizer" => rules.push(Box::new(Optimizer { form: Form::Loop })),
            "none" => {}
            n => rules.push(Box::new(ResizeBatch::to(n.parse().unwrap()))),
        }
    }
    let rules: Vec<&dyn Rule> = rules.iter().map(|r| &**r).collect();
    match step.predict().what_if(&rules) {
        Ok(w) => println!(
            "{{\"before\":{},\"after\":{},\"active_before\":{},\"active\":{},\"why\":{:?},\"low\":{},\"high\":{}}}",
            w.before.step.as_millis(),
            w.after.step.as_millis(),
            w.before.active.as_millis(),
            w.after.active.as_millis(),
            w.audits.iter().map(|a| (a.why.clone(), a.counts)).collect::<Vec<_>>(),
            w.after.interval[0].as_millis(),
            w.after.interval[1].as_millis()
        ),
        Err(e) => println!("{{\"error\":{:?}}}", e.to_string()),
    }
}
