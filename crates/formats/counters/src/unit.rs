//! What a counter is measured in, guessed from its English name.

/// The unit that a counter's name speaks of.
pub fn unit_of(name: &str) -> &'static str {
    let name = name.trim().to_ascii_lowercase();
    let is = |part: &str| name.contains(part);
    if name.starts_with('%') || name.ends_with("(%)") || is("percent") {
        "percent"
    } else if name.ends_with("bytes/sec")
        || name.ends_with("bytes total/sec")
        || name.ends_with("bytes sent/sec")
        || name.ends_with("bytes received/sec")
    {
        "bytes/s"
    } else if is("sec/read")
        || is("sec/write")
        || is("sec/transfer")
        || is("sec/operation")
        || is("(sec)")
        || is("sec/request")
    {
        "seconds"
    } else if name.ends_with("/sec")
        || name.ends_with("/s")
        || name.ends_with("per second")
        || name.ends_with(" rate")
    {
        "per second"
    } else if is("mbytes") || is("megabytes") || is("(mb)") {
        "MiB"
    } else if is("kbytes") || is("kilobytes") || is("(kb)") {
        "KiB"
    } else if is("bytes") || name.starts_with("working set") || name == "commit limit" {
        "bytes"
    } else if name.ends_with("up time") || name.ends_with("elapsed time") {
        "seconds"
    } else if is("bandwidth") {
        "bits/s"
    } else {
        "count"
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn units() {
        let cases = [
            ("% DPC Time", "percent"),
            ("Prozessorzeit (%)", "percent"),
            ("Avg. Disk sec/Read", "seconds"),
            ("Disk Read Bytes/sec", "bytes/s"),
            ("Bytes Total/sec", "bytes/s"),
            ("Context Switches/sec", "per second"),
            ("Available MBytes", "MiB"),
            ("Available Bytes", "bytes"),
            ("Pool Nonpaged Bytes", "bytes"),
            ("Processor Queue Length", "count"),
            ("Current Bandwidth", "bits/s"),
            ("System Up Time", "seconds"),
        ];
        for (name, unit) in cases {
            assert_eq!(super::unit_of(name), unit, "{name}");
        }
    }
}
