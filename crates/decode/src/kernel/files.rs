//! The text files that ship with the program.

/// One embedded file.
pub(super) struct LayoutFile {
    /// Its name, for messages of tests.
    #[cfg(test)]
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! layout_files {
    ($($name:literal),* $(,)?) => {
        /// All files that declare events.
        pub(super) const LAYOUT_FILES: &[LayoutFile] = &[
            $(LayoutFile {
                #[cfg(test)]
                name: $name,
                text: include_str!(concat!("layouts/", $name)),
            }),*
        ];
    };
}

layout_files![
    "00_eventtrace.txt",
    "01_diskio.txt",
    "02_pagefault.txt",
    "03_process.txt",
    "04_fileio.txt",
    "05_thread.txt",
    "06_tcpip.txt",
    "07_job.txt",
    "08_udpip.txt",
    "09_registry.txt",
    "0a_dbgprint.txt",
    "0b_systemconfig.txt",
    "0c_lbr.txt",
    "0d_wnf.txt",
    "0e_pool.txt",
    "0f_perfinfo.txt",
    "10_heap.txt",
    "11_object.txt",
    "12_power.txt",
    "13_modbound.txt",
    "14_image.txt",
    "15_dpc.txt",
    "16_cc.txt",
    "17_critsec.txt",
    "18_stackwalk.txt",
    "19_ums.txt",
    "1a_alpc.txt",
    "1b_splitio.txt",
    "1c_threadpool.txt",
    "1d_hypervisor.txt",
    "1e_hypervisorx.txt",
    "classes.txt",
];

/// Names of values.
pub(super) const ENUMS: &str = include_str!("layouts/enums.txt");

/// Names of the bits of group masks.
pub(super) const KEYWORDS: &str = include_str!("layouts/keywords.txt");
