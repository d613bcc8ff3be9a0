//! Word lists for `read_resource_…`: files beside the script, or made-up words where there is none.

use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Lists that workloads ask for by these names. They have no content of ours but made-up words, so that a workload that only
/// wants some text to store and to find again runs anywhere.
const MADE_UP: [&str; 8] = [
    "adventures.txt",
    "careers.txt",
    "companies.txt",
    "jobdescription.txt",
    "lastnames.txt",
    "lorem_ipsum_full.txt",
    "names.txt",
    "variable_words.txt",
];

/// How many made-up words a list has.
const WORDS: usize = 1000;

/// The text of a resource: from the script's folder, from `resources` there or in a folder above it, or made up.
///
/// # Errors
/// A sentence that says where it was looked for.
pub(super) fn resource(folder: &Path, name: &str) -> Result<String, String> {
    if let Some(path) = find(folder, name) {
        return std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()));
    }
    if MADE_UP.contains(&name) {
        return Ok(made_up(name));
    }
    Err(format!("there is no {name} in {} nor in a folder `resources` there or above it", folder.display()))
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let beside = folder.join(name);
    let above = folder.ancestors().map(|folder| folder.join("resources").join(name));
    std::iter::once(beside).chain(above).find(|path| path.is_file())
}

/// A word on each line, the same ones each time; `name` makes lists differ.
fn made_up(name: &str) -> String {
    let seed = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut random = SmallRng::seed_from_u64(seed);
    let words: Vec<String> = (0..WORDS).map(|_| word(&mut random)).collect();
    words.join("\n")
}

fn word(random: &mut SmallRng) -> String {
    const STARTS: [&str; 12] = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t"];
    const VOWELS: [&str; 5] = ["a", "e", "i", "o", "u"];
    let syllables = random.random_range(2..=4);
    (0..syllables)
        .flat_map(|_| [STARTS[random.random_range(0..STARTS.len())], VOWELS[random.random_range(0..VOWELS.len())]])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_beside_the_script_wins() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("names.txt"), "ada\ngrace").unwrap();
        assert_eq!(resource(folder.path(), "names.txt").unwrap(), "ada\ngrace");
        let below = folder.path().join("workloads/sai");
        std::fs::create_dir_all(folder.path().join("resources")).unwrap();
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(folder.path().join("resources/tags.txt"), "a").unwrap();
        assert_eq!(resource(&below, "tags.txt").unwrap(), "a");
    }

    #[test]
    fn made_up_words_are_the_same_each_time_and_unknown_lists_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let words = resource(folder.path(), "variable_words.txt").unwrap();
        assert_eq!(words, resource(folder.path(), "variable_words.txt").unwrap());
        assert_ne!(words, resource(folder.path(), "names.txt").unwrap());
        assert_eq!(words.lines().count(), WORDS);
        assert!(resource(folder.path(), "cities.txt").unwrap_err().contains("no cities.txt"));
    }
}
