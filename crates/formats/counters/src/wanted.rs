//! Counters that findings read.

/// A counter that a finding reads: object, counter, and whether the object has instances.
#[derive(Clone, Copy, Debug)]
pub struct CounterSelection {
    /// English name of the object.
    pub object: &'static str,
    /// English name of the counter.
    pub name: &'static str,
    /// Instances to log, `None` if the object has none.
    pub instances: Option<&'static str>,
}

macro_rules! wanted {
    ($($object:literal $instances:expr => [$($name:literal),+ $(,)?];)+) => {
        &[$($(CounterSelection { object: $object, name: $name, instances: $instances }),+),+]
    };
}

/// All of them, in the order of findings.
pub static WANTED: &[CounterSelection] = wanted! {
    "Processor" Some("*") => ["% Processor Time", "% DPC Time", "% Interrupt Time", "% Privileged Time"];
    "System" None => ["Processor Queue Length", "Context Switches/sec"];
    "PhysicalDisk" Some("*") => ["Avg. Disk sec/Read", "Avg. Disk sec/Write", "Avg. Disk Queue Length"];
    "Memory" None => ["Available MBytes", "Pages/sec", "Pool Nonpaged Bytes", "Pool Paged Bytes"];
    "Network Interface" Some("*") => ["Output Queue Length"];
    "Process" Some("*") => ["Handle Count"];
};

impl CounterSelection {
    /// The path that logs it.
    pub fn path(&self) -> String {
        match self.instances {
            Some(instances) => format!("\\{}({instances})\\{}", self.object, self.name),
            None => format!("\\{}\\{}", self.object, self.name),
        }
    }

    /// A line for the command prompt that logs it, every five seconds until Ctrl+C.
    pub fn command(&self) -> String {
        format!("typeperf \"{}\" -si 5 -o counters.csv", self.path())
    }

    /// True for an object whose counters say the same.
    pub fn is_object(&self, object: &str) -> bool {
        plain(object) == self.object
    }

    /// True for a counter that says the same.
    pub fn is(&self, object: &str, name: &str) -> bool {
        let object = plain(object);
        let name = match (object, name) {
            ("Memory", "Available Bytes" | "Available KBytes") => "Available MBytes",
            ("PhysicalDisk", "Avg. Disk sec/Transfer") if self.name == "Avg. Disk sec/Write" => self.name,
            ("PhysicalDisk", "Avg. Disk sec/Transfer") => "Avg. Disk sec/Read",
            ("PhysicalDisk", "Current Disk Queue Length") => "Avg. Disk Queue Length",
            (_, name) => name,
        };
        object == self.object && name == self.name
    }
}

/// The object of which an object is another form.
fn plain(object: &str) -> &str {
    match object {
        "Processor Information" => "Processor",
        "LogicalDisk" => "PhysicalDisk",
        "Network Adapter" => "Network Interface",
        "Process V2" => "Process",
        object => object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names;
    use crate::path::CounterPath;

    #[test]
    fn their_names_are_known_and_their_paths_are_paths() {
        for wanted in WANTED {
            let path = CounterPath::parse(&wanted.path()).unwrap();
            let object = names::object(&path.object).unwrap();
            let name = names::counter(object, &path.name).unwrap();
            assert_eq!((object, name), (wanted.object, wanted.name));
            assert!(wanted.is(object, name) && wanted.command().contains(&wanted.path()));
        }
    }
}
