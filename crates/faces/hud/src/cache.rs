//! What was computed of a trace and is expensive: the latest answers, as long as they are not too large together.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// Values by question, the latest last.
#[derive(Default)]
pub struct Cache {
    kept: Mutex<Vec<Kept>>,
}

struct Kept {
    question: String,
    bytes: usize,
    value: Arc<dyn Any + Send + Sync>,
}

/// Most bytes that are kept of a trace.
const MOST: usize = 1 << 30;
/// Most values.
const VALUES: usize = 512;

impl Cache {
    /// The value that answers a question; `make` also says how many bytes it takes. Two who ask at the same time may both compute.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get<T: Any + Send + Sync, E>(
        &self,
        question: &str,
        make: impl FnOnce() -> Result<(T, usize), E>,
    ) -> Result<Arc<T>, E> {
        if let Some(known) = self.known(question) {
            return Ok(known);
        }
        let (value, bytes) = make()?;
        let value = Arc::new(value);
        if bytes <= MOST / 2 {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.retain(|k| k.question != question);
            kept.push(Kept { question: question.to_owned(), bytes, value: value.clone() });
            let mut sum: usize = kept.iter().map(|k| k.bytes).sum();
            while kept.len() > VALUES || sum > MOST {
                sum -= kept.remove(0).bytes;
            }
        }
        Ok(value)
    }

    fn known<T: Any + Send + Sync>(&self, question: &str) -> Option<Arc<T>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|k| k.question == question)?;
        let found = kept.remove(at);
        let value = found.value.clone();
        kept.push(found);
        value.downcast().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_answered_once_and_the_oldest_goes_first() {
        let cache = Cache::default();
        let ask = |question: &str, bytes: usize| -> Arc<String> {
            cache.get(question, || Ok::<_, ()>((format!("{question} {bytes}"), bytes))).unwrap()
        };
        assert_eq!(*ask("a", 1), "a 1");
        assert_eq!(*ask("a", 2), "a 1", "known");
        ask("b", MOST / 2);
        ask("c", MOST / 2);
        assert_eq!(*ask("a", 3), "a 3", "it was the oldest");
        ask("d", MOST);
        assert_eq!(*ask("d", 7), "d 7", "what is too large is not kept");
    }
}
