//! What table `bill` is made of: charges of CPU time, who they go to, what they cost in energy.

pub(crate) mod charge;
pub(crate) mod energy;
pub(crate) mod party;
pub(crate) mod side;

#[cfg(test)]
mod tests;
