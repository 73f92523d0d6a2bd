//! Columns of the system values of a batch.

/// System values of the rows of a batch. Texts are numbers of the `Codes` that come with the batch.
#[derive(Clone, Debug, Default)]
pub struct SystemColumns {
    /// Nanoseconds since 1970 (UTC).
    pub utc_ns: Vec<i64>,
    /// `EventRecordID`.
    pub record_id: Vec<u64>,
    /// Level.
    pub level: Vec<u8>,
    /// Task.
    pub task: Vec<u16>,
    /// Opcode.
    pub opcode: Vec<u8>,
    /// Version.
    pub version: Vec<u8>,
    /// Keywords.
    pub keywords: Vec<u64>,
    /// Process, 0 if there is none.
    pub process: Vec<u32>,
    /// Thread, 0 if there is none.
    pub thread: Vec<u32>,
    /// Channel.
    pub channel: Vec<u32>,
    /// Computer.
    pub computer: Vec<u32>,
    /// User.
    pub user: Vec<u32>,
    /// Activity as its GUID is stored, zeros if there is none.
    pub activity: Vec<etwhy_base::Guid>,
    /// Bytes of the record.
    pub bytes: Vec<u32>,
}

impl SystemColumns {
    pub(crate) fn clear(&mut self) {
        self.utc_ns.clear();
        self.record_id.clear();
        self.level.clear();
        self.task.clear();
        self.opcode.clear();
        self.version.clear();
        self.keywords.clear();
        self.process.clear();
        self.thread.clear();
        self.channel.clear();
        self.computer.clear();
        self.user.clear();
        self.activity.clear();
        self.bytes.clear();
    }
}

/// System values of a record.
pub(crate) struct Row {
    pub(crate) utc_ns: i64,
    pub(crate) record_id: u64,
    pub(crate) level: u8,
    pub(crate) task: u16,
    pub(crate) opcode: u8,
    pub(crate) version: u8,
    pub(crate) keywords: u64,
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) channel: u32,
    pub(crate) computer: u32,
    pub(crate) user: u32,
    pub(crate) activity: etwhy_base::Guid,
    pub(crate) bytes: u32,
}

impl SystemColumns {
    #[inline]
    pub(crate) fn push(&mut self, row: &Row) {
        self.utc_ns.push(row.utc_ns);
        self.record_id.push(row.record_id);
        self.level.push(row.level);
        self.task.push(row.task);
        self.opcode.push(row.opcode);
        self.version.push(row.version);
        self.keywords.push(row.keywords);
        self.process.push(row.process);
        self.thread.push(row.thread);
        self.channel.push(row.channel);
        self.computer.push(row.computer);
        self.user.push(row.user);
        self.activity.push(row.activity);
        self.bytes.push(row.bytes);
    }
}
