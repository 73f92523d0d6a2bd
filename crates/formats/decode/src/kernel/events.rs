//! Kernel events by name: `PerfInfo::SampledProfile`, `Thread::CSwitch`. One type for each group, one constant for each
//! event, made from the layout files when the crate is built (`build.rs`), under the names that the files give them,
//! with `_` for `-`.

/// A kernel event, whatever its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KernelEvent {
    /// Group that it belongs to.
    pub group: u8,
    /// Type within the group.
    pub opcode: u8,
    /// Hook id of its records: group and type, but for `Image::Load`, which is logged in the group of processes.
    pub hook: u16,
}

impl From<KernelEvent> for u16 {
    fn from(event: KernelEvent) -> u16 {
        event.hook
    }
}

include!(concat!(env!("OUT_DIR"), "/events.rs"));

#[cfg(test)]
mod tests {
    use super::super::KernelLayouts;
    use super::*;

    #[test]
    fn constants_are_the_events_that_layouts_name() {
        let k = KernelLayouts::builtin();
        for (event, name) in [
            (PerfInfo::SampledProfile, "SampledProfile"),
            (PerfInfo::ISR_MSI, "ISR-MSI"),
            (PerfInfo::BackTrace, "PerfInfo/BackTrace"),
            (Thread::CSwitch, "CSwitch"),
            (TcpIp::SendIPV6, "TcpIp/SendIPV6"),
            (Image::Load, "Image/Load"),
            (Image::UnLoad, "Image/UnLoad"),
        ] {
            assert_eq!(k.event_name(event.group, event.opcode), Some(name));
            let [ty, group] = event.hook.to_le_bytes();
            assert_eq!(k.find(name), Some((group, ty)));
        }
        assert_eq!((PerfInfo::name(50), TcpIp::name(10), Thread::name(255)), ("ISR-MSI", "SendIPV4", ""));
        assert_eq!((Image::GROUP, Image::Load.hook), (0x14, 0x030A));
        assert_eq!(u16::from(PerfInfo::SampledProfile), 0x0F2E);
    }
}
