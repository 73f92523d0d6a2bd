//! C++ and C made up by number: the same in every run, with everything that debug information has to tell.

use std::fmt::Write as _;
use std::path::Path;

/// A header whose functions are inlined into each other; two files use it.
pub const HEADER: &str = r#"
#pragma once
inline unsigned rot(unsigned x, int n) {
  return (x << n) | (x >> (32 - n));
}
inline unsigned mix(unsigned a, unsigned b) {
  unsigned r = rot(a, 5) + b;
  r ^= rot(b, 11);
  return rot(r, 3) * 0x9E3779B1u;
}
namespace lib {
struct Acc {
  unsigned sum = 0;
  Acc& operator+=(unsigned x) {
    sum = mix(sum, x);
    return *this;
  }
  bool operator<(const Acc& o) const { return sum < o.sum; }
  unsigned operator()(unsigned x) const { return mix(x, sum); }
};
template <class T, int N> struct Ring {
  T items[N];
  unsigned head;
  T& at(unsigned i) { return items[(head + i) % N]; }
  T fold(T x) {
    for (int i = 0; i < N; ++i) {
      x = x * 3 + at(i);
    }
    return x;
  }
};
template <class F> unsigned twice(F f, unsigned x) { return f(f(x)); }
}
"#;

const NOINLINE: &str = "__attribute__((noinline))";

/// Writes `lib.h`, `one.cpp`, `two.cpp` and `three.c` with about `count` functions each.
pub fn write(folder: &Path, count: u32) {
    std::fs::write(folder.join("lib.h"), HEADER).unwrap();
    for (file, space) in [("one.cpp", "one"), ("two.cpp", "two")] {
        std::fs::write(folder.join(file), cpp(space, count)).unwrap();
    }
    std::fs::write(folder.join("three.c"), c(count)).unwrap();
}

/// A file of functions in the namespace `space`; `run_SPACE` calls them all.
pub fn cpp(space: &str, count: u32) -> String {
    let mut text = format!(
        "#include \"lib.h\"\nextern \"C\" volatile unsigned sink_{space};\nvolatile unsigned sink_{space};\n"
    );
    let mut calls = String::new();
    for i in 0..count {
        let (a, b) = (i * 7 + 3, i * 13 + 1);
        let _ = match i % 8 {
            0 => write!(
                text,
                "namespace {space} {{ namespace deep {{\n{NOINLINE} unsigned free_{i}(unsigned x, const char* s) {{\n  \
                 unsigned r = mix(x, {a}u);\n  for (unsigned k = 0; k < x; ++k) {{\n    r = mix(r, k + {b}u);\n    \
                 sink_{space} = r;\n  }}\n  return r ^ (s ? 1u : 2u);\n}}\n}} }}\n"
            ),
            1 => write!(
                text,
                "namespace {{\n{NOINLINE} unsigned hidden_{i}(unsigned x) {{\n  lib::Acc acc;\n  acc += x;\n  \
                 acc += {a}u;\n  return acc(x) + {b}u;\n}}\n}}\n"
            ),
            2 => write!(
                text,
                "namespace {space} {{\nstruct Shape_{i} {{\n  unsigned v;\n  Shape_{i}(unsigned x);\n  ~Shape_{i}();\n  \
                 virtual unsigned area(unsigned x) const;\n  unsigned operator[](int n);\n}};\n\
                 {NOINLINE} Shape_{i}::Shape_{i}(unsigned x) : v(mix(x, {a}u)) {{}}\n\
                 {NOINLINE} Shape_{i}::~Shape_{i}() {{ sink_{space} = v + {b}u; }}\n\
                 {NOINLINE} unsigned Shape_{i}::area(unsigned x) const {{\n  return mix(v, x) * {a}u;\n}}\n\
                 {NOINLINE} unsigned Shape_{i}::operator[](int n) {{\n  return rot(v, n & 7) + {b}u;\n}}\n}}\n"
            ),
            3 => write!(
                text,
                "namespace {space} {{\ntemplate <class T, int N> {NOINLINE} T templ_{i}(T x) {{\n  lib::Ring<T, N> r;\n  \
                 for (int k = 0; k < N; ++k) r.items[k] = x + k * {a}u;\n  r.head = x % N;\n  return r.fold(x);\n}}\n\
                 template unsigned templ_{i}<unsigned, {}>(unsigned);\n}}\n",
                i % 5 + 2
            ),
            4 => write!(
                text,
                "{NOINLINE} unsigned lambda_{space}_{i}(unsigned x, unsigned y) {{\n  auto f = [=](unsigned z) {{\n    \
                 unsigned q = mix(z, y);\n    return q + {a}u;\n  }};\n  return lib::twice(f, x) + f(y);\n}}\n"
            ),
            5 => write!(
                text,
                "static {NOINLINE} unsigned local_{i}(unsigned x) {{\n  unsigned r = {a}u;\n  while (x > 1) {{\n    \
                 r = mix(r, x);\n    x >>= 1;\n    sink_{space} = r;\n  }}\n  return r;\n}}\n"
            ),
            6 => write!(
                text,
                "namespace {space} {{\n{NOINLINE} unsigned chain_{i}(unsigned x) {{\n  lib::Acc a, b;\n  a += x;\n  \
                 b += {a}u;\n  if (a < b) {{\n    a += mix(x, {b}u);\n  }}\n  return a(b(x));\n}}\n}}\n"
            ),
            _ => write!(
                text,
                "extern \"C\" {NOINLINE} unsigned plain_{space}_{i}(unsigned x) {{\n  sink_{space} = mix(x, {a}u);\n  \
                 return sink_{space} + {b}u;\n}}\n"
            ),
        };
        let _ = match i % 8 {
            0 => writeln!(calls, "  r += {space}::deep::free_{i}(r, \"s\");"),
            1 => writeln!(calls, "  r += hidden_{i}(r);"),
            2 => writeln!(calls, "  {{ {space}::Shape_{i} s(r); r += s.area(r) + s[2]; }}"),
            3 => writeln!(calls, "  r += {space}::templ_{i}<unsigned, {}>(r);", i % 5 + 2),
            4 => writeln!(calls, "  r += lambda_{space}_{i}(r, {i});"),
            5 => writeln!(calls, "  r += local_{i}(r);"),
            6 => writeln!(calls, "  r += {space}::chain_{i}(r);"),
            _ => writeln!(calls, "  r += plain_{space}_{i}(r);"),
        };
    }
    let _ = writeln!(text, "extern \"C\" unsigned run_{space}(unsigned r) {{\n{calls}  return r;\n}}");
    text
}

/// A file with `start`, which calls `run_one` and `run_two`.
pub fn c(count: u32) -> String {
    let mut text = String::from(
        "unsigned run_one(unsigned);\nunsigned run_two(unsigned);\nvolatile unsigned sink_three;\n\
         int _fltused;\nvoid *memset(void *p, int c, __SIZE_TYPE__ n) {\n  volatile char *q = p;\n  \
         while (n--) *q++ = c;\n  return p;\n}\n\
         static inline unsigned step(unsigned x) { return x * 1664525u + 1013904223u; }\n",
    );
    let mut calls = String::new();
    for i in 0..count / 4 {
        let _ = write!(
            text,
            "{NOINLINE} unsigned cfun_{i}(unsigned x) {{\n  unsigned r = step(x);\n  if (r & 1) {{\n    sink_three = r;\n    \
             r = step(r + {i}u);\n  }}\n  return r;\n}}\n"
        );
        let _ = writeln!(calls, "  r += cfun_{i}(r);");
    }
    let _ = write!(
        text,
        "__declspec(dllexport) unsigned exported(unsigned x) {{\n  return step(x) + sink_three;\n}}\n\
         int start(void) {{\n  unsigned r = run_one(1) + run_two(2);\n{calls}  return (int)r;\n}}\n"
    );
    text
}
