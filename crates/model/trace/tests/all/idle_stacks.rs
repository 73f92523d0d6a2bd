//! Every processor has an idle thread 0: what two of them were hit in at one moment is told apart by the processor.

use crate::support::Are;
use crate::support::written::{Written, shown};

#[test]
fn idle_threads_hit_at_one_moment_have_their_own_stacks() {
    let mut trace = Written::new();
    let places = [(0u16, 0xFFFF_F880_0154_F440u64), (1, 0xFFFF_F880_0427_99C2)];
    let sample = |trace: &mut Written, cpu: u16, ip: u64, flags: u16| {
        trace.perf(100, cpu, 0x0F2E, |r| r.ptr(ip).u32(0).u16(1).u16(flags));
    };
    // Processor 0 runs a DPC; the other idles, and its stack is written first.
    sample(&mut trace, 0, places[0].1, 1);
    sample(&mut trace, 1, places[1].1, 0);
    for (us, (cpu, ip)) in [(101, places[1]), (102, places[0])] {
        let event = trace.ticks(100);
        trace.perf(us, cpu, 0x1820, |r| r.i64(event).u32(0).u32(0).ptr(ip));
    }
    let output = trace.pass("sample stack stack_frame frame");
    let samples = shown(&output, "sample", "cpu in_dpc stack_id");
    assert_eq!(samples, ["0 1 0", "1 0 -"]);
    // The stack of what idles is a stack of the trace, of no sample.
    shown(&output, "stack", "depth leaf_only").are(&["1 0", "1 0"]);
    let mut addresses = shown(&output, "frame", "address");
    addresses.sort();
    let mut expected = places.map(|(_, ip)| (ip as i64).to_string());
    expected.sort();
    assert_eq!(addresses, expected);
}
