//! How large a decorated name becomes when everything that it refers to is written out.
//!
//! A digit in such a name stands for one of the first names or types. A type of a function may be made of digits and be referred to by others
//! in turn, so that a name of 200 characters would take all memory of the machine. The grammar is that of `msvc_demangler`, which writes it
//! out; each digit weighs as much as the heaviest that it could stand for.

/// Parts of a name that is taken apart: about 100 bytes each.
const MOST_PARTS: u64 = 1 << 20;
/// Types within types; real names have some ten.
const DEEPEST: usize = 400;
/// References of a name that is not understood here: each pair of them can triple it.
const MOST_UNKNOWN: usize = 12;

/// True if a name may be taken apart.
pub fn is_bounded(decorated: &str) -> bool {
    // The text of a string refers to nothing.
    if decorated.starts_with("??_C@_") {
        return true;
    }
    let mut weigher = Weigher { rest: decorated.as_bytes(), most: 1, left: MOST_PARTS, depth: 0 };
    match weigher.symbol() {
        Ok(_) => true,
        Err(Stop::TooLarge) => false,
        Err(Stop::Unknown) => references(decorated) <= MOST_UNKNOWN,
    }
}

/// Digits outside of identifiers. A small letter stands in those only, and an `@` ends them.
fn references(decorated: &str) -> usize {
    let mut is_identifier = false;
    let mut count = 0usize;
    for byte in decorated.bytes() {
        match byte {
            b'@' => is_identifier = false,
            b'a'..=b'z' => is_identifier = true,
            b'0'..=b'9' if !is_identifier => count = count.saturating_add(1),
            _ => {}
        }
    }
    count
}

enum Stop {
    /// Something that is not known here.
    Unknown,
    TooLarge,
}

type Weight = Result<u64, Stop>;

struct Weigher<'n> {
    rest: &'n [u8],
    /// The heaviest that a digit may stand for. A template has references of its own.
    most: u64,
    left: u64,
    depth: usize,
}

impl Weigher<'_> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn next(&mut self) -> Result<u8, Stop> {
        let (first, rest) = self.rest.split_first().ok_or(Stop::Unknown)?;
        self.rest = rest;
        Ok(*first)
    }

    fn eat(&mut self, text: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn eat_one_of(&mut self, letters: &[u8]) -> bool {
        let is_there = self.peek().is_some_and(|byte| letters.contains(&byte));
        if is_there {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        is_there
    }

    fn must(&mut self, letters: &[u8]) -> Result<(), Stop> {
        if self.eat_one_of(letters) { Ok(()) } else { Err(Stop::Unknown) }
    }

    fn spend(&mut self, weight: u64) -> Weight {
        self.left = self.left.checked_sub(weight).ok_or(Stop::TooLarge)?;
        Ok(weight)
    }

    /// Something that digits may stand for from now on.
    fn keep(&mut self, weight: u64) -> u64 {
        self.most = self.most.max(weight);
        weight
    }

    /// A whole name: `?method@?$Class@H@ns@@QEAAXH@Z`.
    fn symbol(&mut self) -> Weight {
        self.must(b"?")?;
        if self.eat(b"$") {
            return self.template();
        }
        let mut sum = self.first_name()?;
        let Ok(kind) = self.next() else { return Ok(sum) };
        match kind {
            b'0'..=b'4' => sum += self.type_()?,
            b'9' => {}
            // Those of no class, and static ones.
            b'Y' | b'C' | b'D' | b'K' | b'L' | b'S' | b'T' => sum += self.function()?,
            b'A' | b'B' | b'E' | b'F' | b'I' | b'J' | b'M' | b'N' | b'Q' | b'R' | b'U' | b'V' => {
                let qualifiers: [&[u8]; 4] = [b"E", b"I", b"F", b"GH"];
                for letters in qualifiers {
                    self.eat_one_of(letters);
                }
                self.qualifier();
                sum += self.function()?;
            }
            _ => return Err(Stop::Unknown),
        }
        Ok(sum)
    }

    /// The name of a function or of a type, with what it lies in.
    fn first_name(&mut self) -> Weight {
        let operator = self.rest.first() == Some(&b'?') && self.rest.get(1).is_some_and(|c| *c != b'$');
        let own = if operator {
            self.rest = self.rest.get(1..).unwrap_or_default();
            let kind = self.next()?;
            if !kind.is_ascii_alphanumeric() || kind == b'B' {
                return Err(Stop::Unknown);
            }
            self.spend(1)?
        } else {
            self.part()?
        };
        Ok(own + self.scope()?)
    }

    /// What a name lies in, to the `@` behind it.
    fn scope(&mut self) -> Weight {
        let mut sum = 0;
        while !self.eat(b"@") {
            sum += self.part()?;
        }
        Ok(sum)
    }

    fn part(&mut self) -> Weight {
        self.enter()?;
        let weight = match self.next()? {
            b'0'..=b'9' => self.spend(self.most)?,
            b'?' if self.eat(b"$") => self.template()?,
            b'?' if self.peek() == Some(b'?') => self.symbol()?,
            b'?' if self.eat(b"A") => self.identifier()?,
            b'?' if self.peek() == Some(b'Q') => return Err(Stop::Unknown),
            b'?' => self.number()?,
            b'@' => return Err(Stop::Unknown),
            _ => self.identifier()?,
        };
        self.depth -= 1;
        Ok(self.keep(weight))
    }

    fn identifier(&mut self) -> Weight {
        let end = self.rest.iter().position(|byte| *byte == b'@').ok_or(Stop::Unknown)?;
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        self.spend(1)
    }

    fn number(&mut self) -> Weight {
        self.eat(b"?");
        if !self.eat_one_of(b"0123456789") {
            while self.eat_one_of(b"ABCDEFGHIJKLMNOP") {}
            self.must(b"@")?;
        }
        self.spend(1)
    }

    fn template(&mut self) -> Weight {
        let outside = std::mem::replace(&mut self.most, 1);
        if matches!(self.peek(), Some(b'0'..=b'9' | b'?')) {
            return Err(Stop::Unknown);
        }
        let weight = self.identifier()? + self.list()?;
        self.most = outside;
        Ok(weight)
    }

    /// Parameters, to the `@` or `Z` behind them.
    fn list(&mut self) -> Weight {
        let mut sum = self.spend(1)?;
        while let Some(byte) = self.peek() {
            if self.eat_one_of(b"@Z") {
                break;
            }
            let weight = self.type_()?;
            sum += if byte.is_ascii_digit() { weight } else { self.keep(weight) };
        }
        Ok(sum)
    }

    /// Calling convention, what is returned, parameters.
    fn function(&mut self) -> Weight {
        self.must(b"ABCEGI")?;
        if self.eat(b"?") {
            self.storage();
        }
        let returned = if self.eat(b"@") { 0 } else { self.type_()? };
        let parameters = if self.eat(b"X") { 1 } else { self.list()? };
        self.must(b"Z")?;
        Ok(1 + returned + parameters)
    }

    fn qualifier(&mut self) {
        self.eat_one_of(b"ABCDQRST");
    }

    fn storage(&mut self) {
        self.eat_one_of(b"ABCDEFGHQRST");
    }

    fn enter(&mut self) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > DEEPEST { Err(Stop::TooLarge) } else { Ok(()) }
    }

    fn type_(&mut self) -> Weight {
        self.enter()?;
        let weight = self.type_within()?;
        self.depth -= 1;
        Ok(weight)
    }

    fn type_within(&mut self) -> Weight {
        if self.eat(b"W4") {
            return Ok(1 + self.first_name()?);
        }
        if self.eat(b"A6") || self.eat(b"P6") {
            return self.function();
        }
        if self.eat(b"P8") {
            let class = self.first_name()?;
            self.eat(b"E");
            self.qualifier();
            return Ok(class + self.function()?);
        }
        if self.eat(b"$") {
            if self.eat(b"0") || self.eat(b"D") {
                return self.number();
            }
            if self.eat(b"$Q") {
                return self.pointee();
            }
            // Packs of no parameters, and `nullptr_t`.
            let alone: [&[u8]; 5] = [b"S", b"$V", b"$Z", b"$$V", b"$T"];
            if alone.iter().any(|text| self.eat(text)) {
                return self.spend(1);
            }
            if self.eat(b"$A6") {
                return self.function();
            }
            if !self.eat(b"$C") {
                return Err(Stop::Unknown);
            }
            self.qualifier();
        }
        match self.next()? {
            b'?' => self.number(),
            b'0'..=b'9' => self.spend(self.most),
            b'T' | b'U' | b'V' => Ok(1 + self.first_name()?),
            b'A' | b'B' | b'P'..=b'S' => self.pointee(),
            b'C'..=b'O' | b'X' => self.spend(1),
            b'_' => {
                self.must(b"NJKLMWQSU")?;
                self.spend(1)
            }
            _ => Err(Stop::Unknown),
        }
    }

    fn pointee(&mut self) -> Weight {
        self.eat(b"E");
        self.storage();
        Ok(1 + self.type_()?)
    }
}

#[cfg(test)]
mod tests {
    use super::is_bounded;

    #[test]
    fn names_that_unpack_to_all_memory_are_not_taken_apart() {
        let chain =
            |n: usize| -> String { (0..9).map(|k| format!("P6AX{}@Z", k.to_string().repeat(n))).collect() };
        assert!(!is_bounded(&format!("?f@@YAXPAH{}@Z", chain(12))));
        // Names that refer to names, in templates within templates.
        let mut name = format!("U?$A@{}@@", "H".repeat(300));
        for level in ["B", "C", "D"] {
            name = format!("U?${level}@{name}{}@@", "0".repeat(300));
        }
        assert!(!is_bounded(&format!("?f@@YAX{name}@Z")));
        let wide = format!("?f@@YAXV?$A@{}@@V{}@{}@Z", "H".repeat(1000), "0".repeat(1000), "0".repeat(1000));
        assert!(!is_bounded(&wide));
        assert!(!is_bounded(&format!("?f@@YAX{}H@Z", "PA".repeat(2000))), "as deep as it is long");
        // An array is not understood here, and then few references are let through.
        assert!(!is_bounded(&format!("?f@@YAXPAY01H{}@Z", chain(2))));
    }

    #[test]
    fn names_of_programs_are() {
        for name in [
            "?method@?$Class@H@ns@@QEAAXH@Z",
            "??0A@@QEAA@PEBD@Z",
            "?x@@3HA",
            "??4?$vector@HV?$allocator@H@std@@@std@@QEAAAEAV01@AEBV01@@Z",
            "?find@?$map@V?$basic_string@DU?$char_traits@D@std@@V?$allocator@D@2@@std@@HU?$less@V?$basic_string@DU?$char_traits@D@std@@V?$allocator@D@2@@std@@@2@V?$allocator@U?$pair@$$CBV?$basic_string@DU?$char_traits@D@std@@V?$allocator@D@2@@std@@H@std@@@2@@std@@QEAA?AV?$_Tree_iterator@V?$_Tree_val@U?$_Tree_simple_types@U?$pair@$$CBV?$basic_string@DU?$char_traits@D@std@@V?$allocator@D@2@@std@@H@std@@@std@@@std@@@2@AEBV?$basic_string@DU?$char_traits@D@std@@V?$allocator@D@2@@2@@Z",
            "?QueryInterface@?$RuntimeClassImpl@U?$RuntimeClassFlags@$02@WRL@Microsoft@@$00$0A@$0A@UIFoo@@VFtmBase@23@@Details@WRL@Microsoft@@UEAAJAEBU_GUID@@PEAPEAX@Z",
            "?qsort@@YAXPEAX_K1P6AHPEBX2@Z@Z",
            "??_7Foo@bar@@6B@",
            "??_C@_0CF@LABBIIMO@012345678901234567890123456789AB@",
            "?broken",
            "?",
        ] {
            assert!(is_bounded(name), "{name}");
        }
    }
}
