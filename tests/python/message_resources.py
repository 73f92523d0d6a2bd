"""What a DLL holds of event messages, read without our code: resources by pefile, tables and templates by struct.

Prints JSON: messages (id, language, text, and the text with values v1 … v99 filled in), providers with their events, fields and tasks.
"""

import json
import re
import struct
import sys
import uuid

import pefile


def resources(path):
    pe = pefile.PE(path, fast_load=True)
    pe.parse_data_directories([pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_RESOURCE"]])
    for kind in pe.DIRECTORY_ENTRY_RESOURCE.entries:
        for name in kind.directory.entries:
            for language in name.directory.entries:
                entry = language.data.struct
                yield kind.id if kind.name is None else str(kind.name), language.id, pe.get_data(entry.OffsetToData, entry.Size)


def table(data):
    (blocks,) = struct.unpack_from("<I", data)
    for block in range(blocks):
        low, high, offset = struct.unpack_from("<III", data, 4 + 12 * block)
        for number in range(low, high + 1):
            length, flags = struct.unpack_from("<HH", data, offset)
            text = data[offset + 4 : offset + length].decode("utf-16le" if flags & 1 else "cp1252")
            yield number, text.split("\0")[0]
            offset += length


def filled(text):
    """Escape sequences by one regular expression, line breaks at the end left out."""
    simple = {"n": "\n", "t": "\t", "r": "\r", "b": " "}

    def one(match):
        insert, other = match.groups()
        return f"v{insert}" if insert else simple.get(other, other)

    text = re.sub(r"%0.*", "", text, flags=re.S)
    return re.sub(r"%(?:([1-9][0-9]?)(?:![sS]!)?|(.))", one, text.replace("\r\n", "\n"), flags=re.S).rstrip("\r\n")


def sized(data, offset):
    (size,) = struct.unpack_from("<I", data, offset)
    return data[offset + 4 : offset + size].decode("utf-16le").rstrip("\0")


def providers(data):
    signature, _, _, _, count = struct.unpack_from("<4sIHHI", data)
    assert signature == b"CRIM"
    for index in range(count):
        guid = uuid.UUID(bytes_le=data[16 + 20 * index : 32 + 20 * index])
        (at,) = struct.unpack_from("<I", data, 32 + 20 * index)
        (elements,) = struct.unpack_from("<I", data, at + 12)
        provider = {"guid": "{%s}" % str(guid).upper(), "events": [], "tasks": {}, "keywords": {}, "channels": {}}
        for element in range(elements):
            (offset,) = struct.unpack_from("<I", data, at + 20 + 8 * element)
            kind, _, entries = struct.unpack_from("<4sII", data, offset)
            if kind == b"TASK":
                for entry in range(entries):
                    value, message, name = struct.unpack_from("<II16xI", data, offset + 12 + 28 * entry)
                    provider["tasks"][str(value)] = [sized(data, name), message]
            elif kind == b"KEYW":
                for entry in range(entries):
                    value, message, name = struct.unpack_from("<QII", data, offset + 12 + 16 * entry)
                    provider["keywords"][str(value)] = [sized(data, name), message]
            elif kind == b"CHAN":
                for entry in range(entries):
                    _, name, value, message = struct.unpack_from("<IIII", data, offset + 12 + 16 * entry)
                    provider["channels"][str(value)] = [sized(data, name), message]
            elif kind == b"EVNT":
                for entry in range(entries):
                    event = struct.unpack_from("<HBBBBHQII", data, offset + 16 + 48 * entry)
                    fields = []
                    if event[8]:
                        items, _, descriptors = struct.unpack_from("<III", data, event[8] + 8)
                        for item in range(items):
                            in_type, out_type, name = struct.unpack_from("<4xBB10xI", data, descriptors + 20 * item)
                            fields.append([sized(data, name), in_type, out_type])
                    provider["events"].append([*event[:8], fields])
        yield provider


result = {"messages": [], "providers": []}
for kind, language, data in resources(sys.argv[1]):
    if kind == 11:
        result["messages"] += [[number, language, text, filled(text)] for number, text in table(data)]
    elif kind == "WEVT_TEMPLATE":
        result["providers"] += providers(data)
json.dump(result, sys.stdout)
