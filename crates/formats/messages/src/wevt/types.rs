//! Types of fields, as manifests name them.

/// How a value is stored (`inType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InType(pub u8);

/// How a value is shown (`outType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutType(pub u8);

impl InType {
    /// The name in manifests, such as `win:UInt32`; `win:in(77)` of an unknown one.
    #[must_use]
    pub fn name(self) -> std::borrow::Cow<'static, str> {
        // libfwevt, "Template item input data type".
        const NAMES: [&str; 22] = [
            "",
            "win:UnicodeString",
            "win:AnsiString",
            "win:Int8",
            "win:UInt8",
            "win:Int16",
            "win:UInt16",
            "win:Int32",
            "win:UInt32",
            "win:Int64",
            "win:UInt64",
            "win:Float",
            "win:Double",
            "win:Boolean",
            "win:Binary",
            "win:GUID",
            "win:Pointer",
            "win:FILETIME",
            "win:SYSTEMTIME",
            "win:SID",
            "win:HexInt32",
            "win:HexInt64",
        ];
        named(&NAMES, self.0, "in")
    }
}

impl OutType {
    /// The name in manifests, such as `xs:string`; `win:out(77)` of an unknown one.
    #[must_use]
    pub fn name(self) -> std::borrow::Cow<'static, str> {
        // libfwevt, "Template item output data type".
        const NAMES: [&str; 37] = [
            "",
            "xs:string",
            "xs:dateTime",
            "xs:byte",
            "xs:unsignedByte",
            "xs:short",
            "xs:unsignedShort",
            "xs:int",
            "xs:unsignedInt",
            "xs:long",
            "xs:unsignedLong",
            "xs:float",
            "xs:double",
            "xs:boolean",
            "xs:GUID",
            "xs:hexBinary",
            "win:HexInt8",
            "win:HexInt16",
            "win:HexInt32",
            "win:HexInt64",
            "win:PID",
            "win:TID",
            "win:Port",
            "win:IPv4",
            "win:IPv6",
            "win:SocketAddress",
            "win:CIMDateTime",
            "win:ETWTIME",
            "win:Xml",
            "win:ErrorCode",
            "win:Win32Error",
            "win:NTSTATUS",
            "win:HResult",
            "win:DateTimeCultureInsensitive",
            "win:Json",
            "win:Utf8",
            "win:Pkcs7WithTypeInfo",
        ];
        named(&NAMES, self.0, "out")
    }
}

fn named(names: &'static [&'static str], code: u8, direction: &str) -> std::borrow::Cow<'static, str> {
    match names.get(usize::from(code)) {
        Some(&name) if !name.is_empty() => name.into(),
        _ => format!("win:{direction}({code})").into(),
    }
}
