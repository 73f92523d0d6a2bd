//! Prints the HTML report of the example, to look at while working on `web/`.

fn main() -> std::io::Result<()> {
    etwhy_report::html::write(&etwhy_report::example::report(), &mut std::io::stdout())
}
