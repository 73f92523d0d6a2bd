//! The two extended items of TraceLogging events: schema and provider traits.

/// One field of a TraceLogging event: name, in-type and out-type (`TlgIn*`, `TlgOut*` numbers).
#[derive(Clone, Debug)]
pub struct TlField {
    /// Field name.
    pub name: String,
    /// In-type, e.g. 1 UTF-16 string, 2 UTF-8 string, 8 u32, 10 u64, 12 f64, 13 bool32. May carry the
    /// array bits 0x20 and 0x40.
    pub in_type: u8,
    /// Out-type, 0 for the default.
    pub out_type: u8,
    /// Element count for constant arrays (in-type bit 0x20).
    pub count: u16,
}

/// The data of an `EVENT_SCHEMA_TL` item.
pub fn tracelogging_schema(event: &str, fields: &[TlField]) -> Vec<u8> {
    let mut data = vec![0, 0, 0];
    data.extend_from_slice(event.as_bytes());
    data.push(0);
    for field in fields {
        data.extend_from_slice(field.name.as_bytes());
        data.push(0);
        if field.out_type == 0 {
            data.push(field.in_type & 0x7F);
        } else {
            data.extend_from_slice(&[field.in_type | 0x80, field.out_type & 0x7F]);
        }
        if field.in_type & 0x60 == 0x20 {
            data.extend_from_slice(&field.count.to_le_bytes());
        }
    }
    set_size(data)
}

/// The data of a `PROV_TRAITS` item that only names the provider.
pub fn tracelogging_traits(provider: &str) -> Vec<u8> {
    let mut data = vec![0, 0];
    data.extend_from_slice(provider.as_bytes());
    data.push(0);
    set_size(data)
}

fn set_size(mut data: Vec<u8>) -> Vec<u8> {
    let size = (data.len() as u16).to_le_bytes();
    if let Some(place) = data.get_mut(..2) {
        place.copy_from_slice(&size);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_starts_with_its_size() {
        let field = TlField { name: "a".into(), in_type: 8, out_type: 4, count: 0 };
        let data = tracelogging_schema("Ev", &[field]);
        assert_eq!(data, [10, 0, 0, b'E', b'v', 0, b'a', 0, 0x88, 4]);
        assert_eq!(tracelogging_traits("P"), [4, 0, b'P', 0]);
    }
}
