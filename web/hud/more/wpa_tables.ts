/** Graphs of WPA that have a table here: which, and what their columns are called here. Everything else is named to the user. */

/** A column: a key to group by, or a figure with what it is added up by unless the profile says so. */
export interface Column {
  key?: string;
  value?: string;
  fn?: "sum" | "max" | "min" | "avg" | "count" | "unique";
}
export interface Graph {
  title: string;
  table: string;
  columns: Record<string, Column>;
}

const key = (name: string): Column => ({ key: name });
const value = (name: string, fn: Column["fn"] = "sum"): Column => ({ value: name, fn });
const COUNT: Column = { fn: "count" };
/** Whoever an id names: WPA has a column with the name, one with name and number, and one with the number. */
const process = (id: string, prefix = ""): Record<string, Column> => ({ [`${prefix}Process Name`]: key(`${id}.name`), [`${prefix}Process`]: key(id) });
const PROCESS = { ...process("upid"), "Process ID": key("upid.pid"), ProcessID: key("upid.pid"), PID: key("upid.pid") };
const THREAD: Record<string, Column> = { "Thread ID": key("utid"), "Thread Id": key("utid"), ThreadID: key("utid"), ThreadId: key("utid"), Thread: key("utid"), "Thread Name": key("utid.name"), "Thread Start Module": key("utid.start_module"), "Thread Start Function": key("utid.start_function") };
const STACK: Record<string, Column> = { Stack: key("stack_id") };

export const GRAPHS: Record<string, Graph> = {
  "b855361e-7be0-4bc8-a754-3e8507715ca5": {
    title: "CPU Usage (Sampled)", table: "sample",
    columns: { ...PROCESS, ...THREAD, ...STACK, Count: COUNT, Weight: value("weight_ns"), "Weight (in view)": value("weight_ns"), "% Weight": value("weight_ns"), CPU: key("cpu"), Cpu: key("cpu"), Priority: key("priority"), Address: key("ip"), TimeStamp: value("ts_ns", "min") },
  },
  "c58f5fea-0319-4046-932d-e695ebe20b47": {
    title: "CPU Usage (Precise)", table: "cswitch",
    columns: {
      ...process("new_upid", "New "), ...process("old_upid", "Old "), "Readying Process Name": key("readying_upid.name"), "Readying Process": key("readying_upid"), "New Thread Id": key("new_utid"), "Old Thread Id": key("old_utid"), "Readying Thread Id": key("readying_utid"),
      "New Thread Stack": key("stack_id"), "Ready Thread Stack": key("ready_stack_id"), "Thread Name": key("new_utid.name"), "New Thread Start Module": key("new_utid.start_module"), "New Thread Start Function": key("new_utid.start_function"), "Old Thread Start Module": key("old_utid.start_module"), "Old Thread Start Function": key("old_utid.start_function"), "Readying Thread Start Module": key("readying_utid.start_module"), "Readying Thread Start Function": key("readying_utid.start_function"),
      Ready: value("ready_ns"), Waits: value("wait_ns"), "Time Since Last": value("since_last_ns"), "CPU Usage (in view)": value("cpu_ns"), "CPU Usage": value("cpu_ns"), "% CPU Usage": value("cpu_ns"), Count: COUNT, "Switch-In Time": value("ts_ns", "min"), "New Switch-In Time": value("ts_ns", "min"), "Ready Time": value("ready_ts_ns", "min"),
      Cpu: key("cpu"), CPU: key("cpu"), "New Prev State": key("prev_state"), "New Prev Wait Reason": key("prev_wait_reason"), "New In Pri": key("new_priority"), "Ready Thread In DPC": key("readied_in_dpc"), "New State": key("old_state"), "New Wait Reason": key("old_wait_reason"),
    },
  },
  "12c5387c-58ca-45d4-a5c6-450475c30e06": {
    title: "Disk Usage", table: "disk_io",
    columns: { ...PROCESS, ...THREAD, ...STACK, "IO Init Stack": key("stack_id"), "Path Name": key("file_id.path"), "Path Tree": key("file_id.path"), "IO Type": key("op"), Disk: key("disk"), Priority: key("priority"), Count: COUNT, Size: value("size_bytes"), "IO Time": value("dur_ns"), "Disk Service Time": value("service_ns"), "Init Time": value("start_ns", "min"), "Complete Time": value("ts_ns", "max") },
  },
  "e2a7d340-0dbd-4f24-8b26-e5388eeaf562": {
    title: "File I/O", table: "file_io",
    columns: { ...PROCESS, ...THREAD, ...STACK, "File Path": key("path"), "File Name": key("path"), "Event Type": key("op"), Count: COUNT, Size: value("done_bytes"), Duration: value("dur_ns"), Result: key("status_name"), Start: value("start_ns", "min"), End: value("ts_ns", "max") },
  },
  "1fe3bbaa-6738-41b9-941e-7a6825821b35": {
    title: "Mini-Filter Delays", table: "minifilter",
    columns: { ...PROCESS, ...THREAD, ...STACK, "File Name": key("path"), "Mini-Filter Driver": key("module"), "Major Function Name (Count)": key("major"), "Major Function Name": key("major"), Count: COUNT, Duration: value("dur_ns"), NTStatus: key("status_name"), Start: value("start_ns", "min"), End: value("ts_ns", "max") },
  },
  "e97b189d-b977-4e41-9448-8c214c166f84": {
    title: "Registry", table: "registry",
    columns: { ...PROCESS, ...THREAD, ...STACK, Operation: key("op"), "Entire Key (Base+Remainder)": key("key"), "Entire Key (Base+Remainder) Tree": key("key"), Status: key("status_name"), Count: COUNT, "Elapsed Time": value("dur_ns"), "Operation Time": value("ts_ns", "min") },
  },
  "e6a4a964-3a87-46ef-9762-f9d9b9208051": {
    title: "VirtualAlloc Commit Lifetimes", table: "virtual_alloc",
    columns: { ...PROCESS, "Committing ThreadId": key("utid"), "Commit Stack": key("stack_id"), Count: COUNT, Size: value("committed_bytes"), "Commit LifeTime": value("dur_ns", "max"), "Impacting Size": value("outstanding_bytes"), "Commit Time": value("ts_ns", "min"), "Decommit Time": value("freed_ns", "max") },
  },
  "1a64d983-f796-45f8-aa64-ac50b95d0e45": {
    title: "Heap Allocations", table: "heap",
    columns: { ...PROCESS, ...THREAD, ...STACK, Count: COUNT, Size: value("size_bytes"), Handle: key("heap"), Address: key("address"), AllocTime: value("ts_ns", "min"), FreeTime: value("freed_ns", "max"), LifeTime: value("dur_ns", "max") },
  },
  "7b47975b-040d-4901-9a3f-e410228e30df": {
    title: "Handles", table: "handle",
    columns: { ...process("upid", "Creating "), ...process("upid", "Owning "), "Create Stack": key("stack_id"), "Handle Type": key("object_type"), "Object Name": key("name"), Count: COUNT, Lifetime: value("dur_ns", "max"), "Create Time": value("ts_ns", "min"), "Close Time": value("close_ns", "max") },
  },
  "920e6241-3dea-46c4-8e4f-04ce08f62c0a": {
    title: "UI Delays", table: "ui_delay",
    columns: { ...PROCESS, ...THREAD, "Delay Type": key("kind"), "Class Name": key("window_class"), "Top Level Class Name": key("top_level_class"), "Message Id": key("message"), "Image Path": key("image_path"), Count: COUNT, Duration: value("dur_ns"), "Start Time": value("start_ns", "min"), "End Time": value("ts_ns", "max") },
  },
  "04f69f98-176e-4d1c-b44e-97f734996ab8": {
    title: "Generic Events", table: "event",
    columns: { ...PROCESS, ...THREAD, ...STACK, "Provider Name": key("provider"), "Event Name": key("name"), Cpu: key("cpu"), Message: key("message"), Count: COUNT, Time: value("ts_ns", "min") },
  },
  "21214383-88f8-4603-9eac-2a6422756b11": {
    title: "TcpIp", table: "network",
    columns: { ...PROCESS, "Remote Address": key("remote"), "Local Address": key("local"), Protocol: key("protocol"), "Event Type": key("op"), "Connection Id": key("connection"), Count: COUNT, Bytes: value("size_bytes"), Time: value("ts_ns", "min") },
  },
  "a1df89f9-5b2a-449e-aaab-1bcc3fd25c84": {
    title: "Images", table: "image",
    columns: { ...PROCESS, "Image Name": key("name"), "Image Path": key("path"), "Company Name": key("company"), "File Description": key("description"), "File Version": key("file_version"), "Product Version": key("product"), Count: COUNT, ImageSize: value("size_bytes"), "Start Time": value("load_ns", "min"), "End Time": value("unload_ns", "max") },
  },
  "b186f02d-8d06-4bbb-9ad1-abf7985fb61a": {
    title: "Process Lifetimes", table: "process",
    columns: { "Process Name": key("name"), Process: key("upid"), "Process ID": key("pid"), "Parent Process ID": key("parent_pid"), "Command Line": key("command_line"), "Session ID": key("session_id"), "Hosted Services": key("services"), "Package Full Name": key("package"), Count: COUNT, Duration: value("dur_ns"), "Avg Duration": value("dur_ns", "avg"), "Min Duration": value("dur_ns", "min"), "Max Duration": value("dur_ns", "max"), "Start Time": value("start_ns", "min"), "End Time": value("end_ns", "max") },
  },
  "a20f1ccd-d67f-4cdf-a186-0fd3f6535f18": {
    title: "Thread Lifetimes", table: "thread",
    columns: { "Process Name": key("upid.name"), Process: key("upid"), "Thread ID": key("tid"), "Thread Name": key("name"), "Thread Start Module": key("start_module"), "Thread Start Function": key("start_function"), Count: COUNT, Lifetime: value("dur_ns"), "Start Time": value("start_ns", "min"), "End Time": value("end_ns", "max") },
  },
};
