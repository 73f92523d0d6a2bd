//! Facts as data: drivers, processes, vendors, stack tags, status codes.
//!
//! The tables in `data/` are compiled in and read on first use. Nothing here knows of traces. Every fact
//! says how sure it is and where it comes from; `data/README.md` lists sources and licences.
#![forbid(unsafe_code)]

mod audit;
mod classify;
mod codes;
mod commands;
mod confidence;
mod crossings;
mod drivers;
mod extend;
mod hosts;
mod linux;
mod owners;
mod processes;
mod stack_tag_files;
mod stack_tags;
mod system_modules;
mod table;
mod wait_classes;
mod watts;
mod work_hosts;

pub use audit::{
    Advice, AuditSubcategory, Pair, Role, SettingName, SettingWord, SubcategoryName, SwitchRule, Volume,
    audit_setting_names, audit_subcategories, audit_subcategory, audit_subcategory_names,
    audit_subcategory_of_task,
};
pub use classify::{Basis, Classification, category_of, is_security};
pub use codes::{ntstatus_codes, ntstatus_name, win32_error_codes, win32_error_name};
pub use commands::{CommandFact, FIRST_BUILD, commands, commands_in, windows_of_build};
pub use confidence::Confidence;
pub use crossings::{LayerCrossing, is_layer_crossing, layer_crossings};
pub use drivers::{DriverFact, DriverKind, drivers};
pub use extend::{Extension, KnowledgeError, driver, extend, process};
pub use hosts::{HOSTS_NEVER_CULPRITS, is_host};
pub use linux::{LinuxProcessFact, linux_process};
pub use owners::{Owner, owner_of_module, owner_of_program};
pub use processes::{ProcessFact, processes};
pub use stack_tag_files::{FileTag, FrameTag, Hint, StackTagFiles, deciding_frame, tag_path, use_stack_tags};
pub use stack_tags::{StackTag, stack_tag, stack_tag_of_frame, stack_tags};
pub use system_modules::{is_disk_driver, is_file_system, is_os_driver, is_system_library, is_thread_start};
pub use wait_classes::{WaitClass, WaitFunction, releases_mutex, wait_function, wait_functions};
pub use watts::{WattGroup, watt_groups, watts_of};
pub use work_hosts::{WorkHost, work_host};
