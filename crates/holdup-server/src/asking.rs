//! Questions of the page: a few at once, and of one gesture only the newest.
//!
//! Those that follow the whole trace have room of their own: a picture never waits for an explanation that nobody can cancel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use holdup_view::{Answer, Cancel, Error, Gallery, Pace, Question};
use tokio::sync::Semaphore;

/// Questions that may wait for their turn; more are refused.
const MOST_WAITING: usize = 64;
/// Gestures that are remembered.
const MOST_GESTURES: usize = 256;

/// Asks a [`Gallery`].
pub(crate) struct Asking {
    gallery: Arc<Gallery>,
    /// One for each question that is being answered, and is quick.
    quick: Arc<Semaphore>,
    /// The same of those that are slow.
    slow: Arc<Semaphore>,
    /// One for each that is here at all.
    present: Semaphore,
    gestures: Mutex<HashMap<String, (u64, Arc<Cancel>)>>,
}

/// What became of a question.
pub(crate) enum Asked {
    /// Answered, or told why not.
    Answer(Vec<u8>),
    /// A newer one of the same gesture came.
    Cancelled(Vec<u8>),
    /// There are too many.
    Busy,
}

impl Asking {
    /// Answers at most `at_once` questions of each pace at once, by twice as many threads.
    pub(crate) fn new(gallery: Arc<Gallery>, at_once: usize) -> Self {
        Asking {
            gallery,
            quick: Arc::new(Semaphore::new(at_once)),
            slow: Arc::new(Semaphore::new(at_once)),
            present: Semaphore::new(2 * at_once + MOST_WAITING),
            gestures: Mutex::default(),
        }
    }

    /// What there is.
    pub(crate) fn list(&self) -> Vec<u8> {
        self.gallery.list().0
    }

    /// Answers a question as the page sent it.
    pub(crate) async fn ask(&self, bytes: &[u8]) -> Asked {
        let question = match Question::parse(bytes) {
            Ok(question) => question,
            Err(e) => return Asked::Answer(Answer::of(Err(e)).0),
        };
        let Ok(_here) = self.present.try_acquire() else { return Asked::Busy };
        let cancel = Arc::new(Cancel::default());
        if !self.begin(&question, &cancel) {
            return cancelled();
        }
        // A page that is closed drops this future, and with it the question.
        let _gone = CancelOnDrop(cancel.clone());
        let room = match self.gallery.pace(&question) {
            Pace::Quick => &self.quick,
            Pace::Slow => &self.slow,
        };
        let Ok(turn) = room.clone().acquire_owned().await else { return Asked::Busy };
        let gallery = self.gallery.clone();
        let work = move || {
            // Kept until the work is over, even where nobody waits for it any more: there is one thread for each turn.
            let _turn = turn;
            gallery.ask(&question, &cancel)
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(Err(Error::Cancelled)) => cancelled(),
            Ok(result) => Asked::Answer(Answer::of(result).0),
            Err(_) => {
                let what = "this question met a mistake in holdup, please report it".to_owned();
                Asked::Answer(Answer::of(Err(Error::Question(what))).0)
            }
        }
    }

    /// Takes the place of older questions of the same gesture. `false` if a newer one was here before.
    fn begin(&self, question: &Question, cancel: &Arc<Cancel>) -> bool {
        if question.gesture.is_empty() {
            return true;
        }
        let mut gestures = self.gestures.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((turn, running)) = gestures.get(&question.gesture) {
            if *turn > question.turn {
                return false;
            }
            running.cancel();
        } else if gestures.len() >= MOST_GESTURES {
            gestures.clear();
        }
        gestures.insert(question.gesture.clone(), (question.turn, cancel.clone()));
        true
    }
}

fn cancelled() -> Asked {
    Asked::Cancelled(Answer::of(Err(Error::Cancelled)).0)
}

struct CancelOnDrop(Arc<Cancel>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use holdup_analysis::NoDisassembler;
    use holdup_synth::{Shape, Spec, generate};
    use holdup_trace::Destination;
    use holdup_view::{Item, Model};

    use super::*;

    fn made() -> Arc<Gallery> {
        let spec = Spec { shape: Shape::Lock, cpus: 4, threads: 20, events: 5_000, seed: 1, losses: 0 };
        let trace = generate(&spec, &Destination::Memory).unwrap().trace;
        let gallery = Arc::new(Gallery::default());
        let id = gallery.add("made");
        gallery.set(id, Item::Trace(Model::open(trace, "made", Box::new(NoDisassembler)).unwrap().into()));
        gallery
    }

    /// While all that follows the trace is taken, a picture is answered, and a further explanation waits.
    #[test]
    fn a_picture_does_not_wait_for_explanations() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let asking = Asking::new(made(), 2);
            let explanations = asking.slow.clone().acquire_many_owned(2).await.unwrap();
            for question in [r#"{"ask":"summary"}"#, r#"{"ask":"use","window":[0,1e9],"px":100}"#] {
                assert!(matches!(asking.ask(question.as_bytes()).await, Asked::Answer(_)), "{question}");
            }
            let mut explain = std::pin::pin!(asking.ask(br#"{"ask":"explain"}"#));
            assert!(tokio::time::timeout(Duration::from_millis(50), explain.as_mut()).await.is_err());
            drop(explanations);
            assert!(matches!(explain.await, Asked::Answer(_)));
        });
    }
}
