//! CSV (RFC 4180): a header of column names, then values.
//!
//! Times are whole numbers in their column's unit, true and false are `true` and `false`, an empty cell is
//! an empty field (empty text cannot be distinguished from it).
//!
//! Names in a trace are chosen by whoever wrote it, and such files are opened in spreadsheets: text is made [`harmless`].
//! [`Options::exact`] leaves all text as it is.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write;

use etwhy_table::{ColumnType, Selection, TableSpec, Value};

use crate::format::write_at_once;
use crate::{Format, Options, PartWriter, Result, harmless};

pub(super) const FORMATS: &[Format] = &[Format {
    name: "csv",
    extensions: &["csv"],
    about: "comma-separated values with a header; text is harmless in spreadsheets unless --exact",
    binary: false,
    write,
    parts: Some(start),
}];

fn write(selection: &Selection<'_>, options: &Options, out: &mut (dyn Write + Send)) -> Result<()> {
    write_at_once(start, selection, options, out)
}

struct Csv<'o> {
    csv: csv::Writer<&'o mut (dyn Write + Send)>,
    spec: TableSpec,
    exact: bool,
    hex: bool,
    scratch: String,
}

fn start<'o>(
    spec: &TableSpec,
    options: &Options,
    out: &'o mut (dyn Write + Send),
) -> Result<Box<dyn PartWriter + 'o>> {
    let mut csv = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(out);
    csv.write_record(spec.columns.iter().map(|c| c.name.as_ref()))?;
    let Options { exact, hex, .. } = *options;
    Ok(Box::new(Csv { csv, spec: spec.clone(), exact, hex, scratch: String::new() }))
}

impl PartWriter for Csv<'_> {
    fn part(&mut self, rows: &Selection<'_>) -> Result<()> {
        let Csv { csv, spec, exact, hex, scratch } = self;
        let reader = rows.reader();
        let mut digits = itoa::Buffer::new();
        for place in rows.row_ids().filter_map(|row| reader.place(row)) {
            for (shown, column) in spec.columns.iter().enumerate() {
                scratch.clear();
                // Writing into a `String` cannot fail.
                let _ = match reader.value_at(place, shown) {
                    Value::Null => Ok(()),
                    Value::I64(v) if *hex && column.unit.is_hex() => {
                        write!(scratch, "{}", crate::hex::Hex(v, column.ty == ColumnType::I32))
                    }
                    Value::I64(v) => {
                        csv.write_field(digits.format(v))?;
                        continue;
                    }
                    Value::F64(v) => write!(scratch, "{v}"),
                    Value::Bool(v) => write!(scratch, "{v}"),
                    Value::Text(text) => {
                        let text = if *exact { Cow::Borrowed(text) } else { harmless(text) };
                        csv.write_field(text.as_bytes())?;
                        continue;
                    }
                };
                csv.write_field(&*scratch)?;
            }
            csv.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.csv.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::test_table::{sample, text};
    use crate::{Format, Options};

    #[test]
    fn values_are_exact_where_asked() {
        let csv = Format::by_name("csv").unwrap();
        let table = sample();
        let exact = Options { exact: true, ..Options::default() };
        let out = text(csv, &table, &exact);
        let mut lines = out.lines();
        assert_eq!(lines.next(), Some("ts_ns,cpu,wait_ns,size,process,address,status,share,in_dpc,path"));
        assert_eq!(
            lines.next(),
            Some("1500000000,0,1500000,4096,cmd.exe,-8796093022208,-1073741772,12.5,true,\"=a,\"\"b\"\"\"")
        );
        assert_eq!(lines.next(), Some("1500000001,1,,0,,0,0,,,\u{1b}[31mred"));
        let options = Options { hex: true, ..Options::default() };
        let out = text(csv, &table, &options);
        assert!(out.contains(",\"'=a,\"\"b\"\"\"\n"), "{out}");
        assert!(out.contains(",0xfffff80000000000,0xc0000034,"), "{out}");
        assert!(out.contains("␛[31mred"), "{out}");
    }

    #[test]
    fn formulas_are_text() {
        for (text, safe) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("  @SUM(1)", "'  @SUM(1)"),
            ("\t=1", "'␉=1"),
            ("＝1", "'＝1"),
            ("-k netsvcs", "'-k netsvcs"),
            ("a=b", "a=b"),
            ("C:\\a-b", "C:\\a-b"),
        ] {
            assert_eq!(super::harmless(text), safe);
        }
    }
}
