//! The writer accepts what the generator writes.

use etwhy_synth::Scenario;
use etwhy_truth::kinds;
use etwhy_truth::machine::machine;

#[test]
fn each_kind_is_accepted() {
    for (number, kind) in kinds::all().enumerate() {
        for seed in [3, 1000 + number as u64] {
            let text = machine(seed, Some(kind)).scenario;
            let name = format!("{} {seed}", kind.id);
            Scenario::parse(&text, &name).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
}
