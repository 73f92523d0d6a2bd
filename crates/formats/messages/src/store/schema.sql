-- Texts of Windows events. Version 1: PRAGMA user_version = 1, PRAGMA application_id = 0x45575943 ("EWYC").
-- Ids of messages are those of message tables, with severity and facility; languages are LCIDs (1033 is en-US).

-- What the database was made from, and with what.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- A file that programs name, such as adtschema.dll. Its translations (adtschema.dll.mui) belong to it.
CREATE TABLE module (
    module_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE COLLATE NOCASE
);

-- Files that were read; of several with a name the one with the highest version comes first, others fill its gaps.
CREATE TABLE file (
    file_id INTEGER PRIMARY KEY,
    module_id INTEGER NOT NULL REFERENCES module,
    path TEXT NOT NULL,
    version TEXT,
    language TEXT,
    messages INTEGER NOT NULL,
    providers INTEGER NOT NULL,
    damage TEXT
);

-- Texts, as they stand in message tables.
CREATE TABLE message (
    module_id INTEGER NOT NULL,
    id INTEGER NOT NULL,
    language INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (module_id, id, language)
) WITHOUT ROWID;
CREATE INDEX message_id ON message (id);

-- Providers: those of manifests (with a GUID) and classic ones (with the log that they write to).
CREATE TABLE provider (
    provider_id INTEGER PRIMARY KEY,
    name TEXT COLLATE NOCASE,
    guid TEXT,
    log TEXT COLLATE NOCASE,
    kind TEXT NOT NULL CHECK (kind IN ('manifest', 'classic')),
    -- Whose WEVT_TEMPLATE it stands in; none if only the registry names it.
    module_id INTEGER REFERENCES module,
    -- Message with its name in the language of users.
    message_id INTEGER,
    -- Whether the registry names it.
    registered INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX provider_name ON provider (name);
CREATE INDEX provider_guid ON provider (guid);

-- Files that the registry names for a provider: role is resource, message, parameter or category.
CREATE TABLE provider_file (
    provider_id INTEGER NOT NULL REFERENCES provider,
    role TEXT NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL COLLATE NOCASE,
    path TEXT NOT NULL,
    PRIMARY KEY (provider_id, role, position)
) WITHOUT ROWID;

-- Types of events of manifests.
CREATE TABLE event (
    provider_id INTEGER NOT NULL REFERENCES provider,
    id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    channel INTEGER NOT NULL,
    level INTEGER NOT NULL,
    opcode INTEGER NOT NULL,
    task INTEGER NOT NULL,
    keywords INTEGER NOT NULL,
    message_id INTEGER,
    template_id INTEGER REFERENCES template
);
CREATE INDEX event_id ON event (provider_id, id, version);

-- What events carry: fields in the order of %1, %2.
CREATE TABLE template (
    template_id INTEGER PRIMARY KEY,
    provider_id INTEGER NOT NULL REFERENCES provider,
    guid TEXT NOT NULL
);
CREATE TABLE field (
    template_id INTEGER NOT NULL REFERENCES template,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    in_type INTEGER NOT NULL,
    out_type INTEGER NOT NULL,
    map_id INTEGER REFERENCES map,
    PRIMARY KEY (template_id, position)
) WITHOUT ROWID;

-- Tasks, opcodes (opcode << 16 | task), keywords (one bit), levels, channels: kind names which.
CREATE TABLE named (
    provider_id INTEGER NOT NULL REFERENCES provider,
    kind TEXT NOT NULL,
    value INTEGER NOT NULL,
    name TEXT,
    message_id INTEGER
);
CREATE INDEX named_provider ON named (provider_id);

-- valueMap and bitMap of fields.
CREATE TABLE map (
    map_id INTEGER PRIMARY KEY,
    provider_id INTEGER NOT NULL REFERENCES provider,
    name TEXT,
    bits INTEGER NOT NULL
);
CREATE TABLE map_value (map_id INTEGER NOT NULL REFERENCES map, value INTEGER NOT NULL, message_id INTEGER);
CREATE INDEX map_value_map ON map_value (map_id);
