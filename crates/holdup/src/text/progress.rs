//! What takes a while and cannot tell how far it is: a line on the terminal that says what goes on, and how much of a
//! file has been read.

use std::fs::File;
use std::io::Seek;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{screen, wrap};

/// Nothing is drawn for what is over sooner.
const PATIENCE: Duration = Duration::from_millis(400);
/// Between two drawings.
const TICK: Duration = Duration::from_millis(200);
/// The longest line, in columns.
const WIDTH: usize = 70;

/// The line, until it is dropped. Silent where nobody watches standard error.
pub struct Progress(Option<Line>);

struct Line {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    step: Mutex<Step>,
    changed: Condvar,
}

#[derive(Default)]
struct Step {
    what: String,
    /// The file that is read, and its length. It shares its position with the one that the reader has, so that no reader
    /// needs to know of this line.
    file: Option<(File, u64)>,
    over: bool,
}

impl Progress {
    /// For a step of unknown length.
    pub fn of_step(what: &str) -> Progress {
        Progress::new(Step { what: what.to_owned(), ..Step::default() })
    }

    /// For the reading of `file` from its beginning to its end.
    pub fn of_file(what: &str, file: &File) -> Progress {
        let length = file.metadata().ok().filter(|m| m.is_file()).map(|m| m.len()).filter(|&length| length > 0);
        let file = length.and_then(|length| Some((file.try_clone().ok()?, length)));
        Progress::new(Step { what: what.to_owned(), file, ..Step::default() })
    }

    /// The file is read; what follows is of unknown length.
    pub fn next(&self, what: &str) {
        if let Some(line) = &self.0 {
            *line.shared.lock() = Step { what: what.to_owned(), ..Step::default() };
        }
    }

    fn new(step: Step) -> Progress {
        if !screen::is_watched() {
            return Progress(None);
        }
        let shared = Arc::new(Shared { step: Mutex::new(step), changed: Condvar::new() });
        let ours = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("progress".into()).spawn(move || ours.draw());
        Progress(thread.ok().map(|thread| Line { shared, thread: Some(thread) }))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(line) = &mut self.0 {
            line.shared.lock().over = true;
            line.shared.changed.notify_all();
            if let Some(thread) = line.thread.take() {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Step> {
        self.step.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn draw(&self) {
        let mut drawn = false;
        let mut pause = PATIENCE;
        let mut step = self.lock();
        loop {
            step = match self.changed.wait_timeout_while(step, pause, |step| !step.over) {
                Ok((step, _)) => step,
                Err(poisoned) => poisoned.into_inner().0,
            };
            if step.over {
                break;
            }
            screen::redraw(&wrap::cut(&step.line(), WIDTH));
            (drawn, pause) = (true, TICK);
        }
        if drawn {
            screen::redraw("");
        }
    }
}

impl Step {
    fn line(&mut self) -> String {
        let percent = self.file.as_mut().and_then(|(file, length)| {
            let at = file.stream_position().ok()?;
            Some((at as f64 / *length as f64 * 100.0).clamp(0.0, 100.0) as u32)
        });
        percent.map_or_else(|| format!("{} …", self.what), |percent| format!("{}: {percent} %", self.what))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn the_share_follows_the_reader() {
        let mut file = tempfile::tempfile().expect("file");
        file.write_all(&[7; 1000]).expect("write");
        file.rewind().expect("seek");
        let mut step =
            Step { what: "reading x".into(), file: Some((file.try_clone().expect("dup"), 1000)), over: false };
        assert_eq!(step.line(), "reading x: 0 %");
        (&file).take(250).read_to_end(&mut Vec::new()).expect("read");
        assert_eq!(step.line(), "reading x: 25 %");
        let mut step = Step { what: "naming".into(), ..Step::default() };
        assert_eq!(step.line(), "naming …");
    }

    #[test]
    fn a_line_ends_when_it_is_dropped() {
        let shared = Arc::new(Shared { step: Mutex::new(Step::default()), changed: Condvar::new() });
        let ours = Arc::clone(&shared);
        let thread = std::thread::spawn(move || ours.draw());
        let kept = Arc::downgrade(&shared);
        drop(Progress(Some(Line { shared, thread: Some(thread) })));
        assert!(kept.upgrade().is_none(), "the thread that draws has ended");
    }
}
