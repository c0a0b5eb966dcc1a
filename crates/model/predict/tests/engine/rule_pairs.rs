//! All pairs of rules on all examples: neither rule undoes the other, in either order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steptime_aten::Lowering;
use steptime_aten::kernel::Precision;
use steptime_predict::{Choice, Step};
use steptime_rewrite::{
    self, Accumulate, Audit, Checkpoint, DataParallel, Error, Facts, Fp16, Rule, Streams,
};

/// Inputs in a folder of `examples/`.
fn examples(folder: &str, is: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples").join(folder);
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    all.retain(|path| is(path));
    all.sort();
    all
}

/// Recordings in a folder of `examples/`.
fn recordings(folder: &str) -> Vec<PathBuf> {
    examples(folder, |path| path.join("et.json.gz").is_file())
}

fn rules() -> Vec<Box<dyn Rule>> {
    let mut rules = steptime_rewrite::all();
    rules.extend([
        Box::new(Fp16) as Box<dyn Rule>,
        Box::new(Checkpoint::default()),
        Box::new(Streams { count: 2 }),
        Box::new(Accumulate { batches: 2 }),
        Box::new(DataParallel::new(8)),
    ]);
    rules
}

/// Visible effects of a rule on the step.
#[derive(Debug, PartialEq)]
struct Effect {
    /// Ops by name, by the rule that inserted them, and by whether they are captured.
    ops: BTreeMap<String, BTreeMap<(Option<&'static str>, bool), usize>>,
    /// Products that are not in 16 bits.
    wide: usize,
    captured: usize,
    ahead: usize,
    beside: usize,
}

impl Effect {
    fn measure(step: &steptime_step::StepIr, ops: &steptime_aten::OpSet) -> Effect {
        let running = step.running();
        let mut names = BTreeMap::new();
        for &op in &running {
            let row = &step.ops[op];
            let by = if let steptime_step::Origin::Inserted(rule) = row.origin { Some(rule) } else { None };
            let by_rule: &mut BTreeMap<_, usize> = names.entry(row.name.clone()).or_default();
            let captured = step.around(op).any(|around| step.ops[around].captured);
            *by_rule.entry((by, captured)).or_default() += 1;
        }
        let is_wide = |&&op: &&steptime_step::OpId| {
            let lowered = step.lower(op, ops);
            let precision = lowered.and_then(|lowered| match &*lowered {
                Lowering::Kernel(call) => call.kernel.precision(),
                _ => None,
            });
            precision.is_some_and(|precision| !matches!(precision, Precision::Bf16 | Precision::F16))
        };
        let count =
            |is: &dyn Fn(&steptime_step::Op) -> bool| running.iter().filter(|&&op| is(&step.ops[op])).count();
        Effect {
            ops: names,
            wide: running.iter().filter(is_wide).count(),
            captured: count(&|op| op.captured),
            ahead: count(&|op| op.ahead),
            beside: count(&|op| op.stream > 0),
        }
    }

    /// The part of this effect of a single rule that is missing after two rules; `before` is the step without rules. Ops inserted by the
    /// `other` rule are its own effect, and captured where this rule captures.
    fn lost(&self, before: &Effect, both: &Effect, other: &str, narrows: bool) -> Vec<String> {
        let new =
            self.ops.keys().filter(|name| !before.ops.contains_key(*name) && !both.ops.contains_key(*name));
        let captures = self.captured > before.captured;
        let remains = |name: &str| {
            let by_rule = both.ops.get(name).into_iter().flatten();
            by_rule.into_iter().any(|(&(by, captured), _)| by != Some(other) || captures && !captured)
        };
        let gone = before.ops.keys().filter(|name| !self.ops.contains_key(*name) && remains(name));
        let mut lost: Vec<String> = new.map(|name| format!("no {name}")).collect();
        lost.extend(gone.map(|name| format!("still {name}")));
        if narrows && both.wide > self.wide {
            lost.push(format!("{} products in 32 bits, {} by itself", both.wide, self.wide));
        }
        for (what, alone, both) in [
            ("captured", self.captured, both.captured),
            ("copied ahead", self.ahead, both.ahead),
            ("beside", self.beside, both.beside),
        ] {
            if alone > 0 && both == 0 {
                lost.push(format!("none {what}"));
            }
        }
        lost
    }
}

/// The step after some rules, with the effects of each.
fn after(
    recorded: &Step,
    base: &steptime_step::StepIr,
    rules: &[&dyn Rule],
) -> Result<(steptime_step::StepIr, Vec<Audit>), steptime_rewrite::RuleError> {
    let modules = recorded.modules();
    let facts = Facts { modules: Some(&modules), ..Facts::new(&recorded.ops, recorded.batch()) };
    steptime_rewrite::applied(base, rules, &facts)
}

fn found(audits: &[Audit], rule: &str) -> bool {
    audits
        .iter()
        .any(|audit| audit.rule == rule && audit.why.iter().any(|why| why.starts_with("nothing is left")))
}

/// Checks that no pair of rules that each apply to an example is refused, or loses an effect of either; `least` is the smallest number of pairs.
fn no_pair_loses_an_effect(examples: &[PathBuf], least: usize) {
    let rules = rules();
    let (mut pairs, mut lost) = (0, Vec::new());
    for path in examples {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let recorded = Step::open_with(path, &Choice::default(), &steptime_trace::Options::default())
            .expect("an example");
        let base = recorded.arguments.editable(&recorded.graph);
        let before = Effect::measure(&base, &recorded.ops);
        let alone: Vec<(&dyn Rule, Effect)> = rules
            .iter()
            .filter_map(|rule| match after(&recorded, &base, &[&**rule]) {
                Ok((step, _)) => Some((&**rule, Effect::measure(&step, &recorded.ops))),
                Err(refused) => {
                    assert!(!matches!(refused.source, Error::Patch(_)), "{name}: {refused}");
                    None
                }
            })
            .collect();
        for (at, (one, effect)) in alone.iter().enumerate() {
            for (other, others) in &alone[at + 1..] {
                pairs += 1;
                let mut say =
                    |what: String| lost.push(format!("{name}: {} with {}: {what}", one.name(), other.name()));
                let given = [[*one, *other], [*other, *one]].map(|rules| after(&recorded, &base, &rules));
                let [Ok((step, audits)), Ok((turned, _))] = &given else {
                    let [first, second] = given.map(|given| given.err().map(|refused| refused.to_string()));
                    say(format!("{first:?} {second:?}"));
                    continue;
                };
                let both = Effect::measure(step, &recorded.ops);
                if both != Effect::measure(turned, &recorded.ops) {
                    say("another step in the other order".to_owned());
                }
                for (rule, effect, other) in [(one, effect, other), (other, others, one)] {
                    let narrows = ["bf16", "fp16"].contains(&rule.name());
                    let missing = if found(audits, rule.name()) {
                        Vec::new()
                    } else {
                        effect.lost(&before, &both, other.name(), narrows)
                    };
                    missing.into_iter().for_each(|what| say(format!("{}: {what}", rule.name())));
                }
            }
        }
    }
    assert!(pairs >= least, "{pairs}");
    assert!(lost.is_empty(), "{} of {pairs}:\n{}", lost.len(), lost.join("\n"));
}

#[test]
fn no_pair_of_rules_loses_an_effect_of_a_recording() {
    no_pair_loses_an_effect(&recordings(""), 300);
}

#[test]
fn no_pair_of_rules_loses_an_effect_of_a_probed_recording() {
    no_pair_loses_an_effect(&recordings("probed"), 140);
}

/// Models with the most different descriptions.
const UNLIKE: [&str; 5] =
    ["dcn_v2.toml", "deepfm.toml", "dlrm_ddp.toml", "two_towers.toml", "wide_and_deep.toml"];

fn models(chosen: bool) -> Vec<PathBuf> {
    let is_unlike = |path: &Path| UNLIKE.iter().any(|name| path.ends_with(name));
    examples("models", |path| path.extension().is_some_and(|end| end == "toml") && is_unlike(path) == chosen)
}

#[test]
fn no_pair_of_rules_loses_an_effect_of_a_described_model() {
    no_pair_loses_an_effect(&models(true), 300);
}

#[test]
#[ignore = "takes as long as all others here: cargo test -p steptime --test engine rule_pairs -- --ignored"]
fn no_pair_of_rules_loses_an_effect_of_another_dlrm() {
    no_pair_loses_an_effect(&models(false), 300);
}
