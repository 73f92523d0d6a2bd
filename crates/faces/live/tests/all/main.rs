//! Tests of following: what a window says is what a pass over the finished trace says of that part.

mod growing;
mod same_rows;
