//! Word lists for `read_resource_…`: files beside the script, or made-up words where there is none.

use std::path::{Path, PathBuf};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::beneath::{Files, Refusal};

/// Lists that workloads ask for by these names. They have no content of ours but made-up words, so that a workload that only
/// wants some text to store and to find again runs anywhere.
const MADE_UP: [&str; 10] = [
    "adventures.txt",
    "careers.txt",
    "companies.txt",
    "jobdescription.txt",
    "lastnames.txt",
    "lorem_ipsum_full.txt",
    "names.txt",
    NUMBERS,
    "types5.txt",
    "variable_words.txt",
];

/// The one of them that has numbers.
const NUMBERS: &str = "numbers.txt";

/// How many made-up words a list has.
const WORDS: usize = 1000;

/// The text of a resource of at most `most` bytes: from the script's folder, from `resources` there, or made up. Folders
/// `resources` above it are looked into only if the script may read any file.
///
/// # Errors
/// A sentence that says where it was looked for.
pub(super) fn resource(files: &Files, name: &str, most: usize) -> Result<String, String> {
    for place in [PathBuf::from(name), Path::new("resources").join(name)] {
        match files.text(&place, most) {
            Err(Refusal::Missing(_)) => {}
            found => return found.map_err(Refusal::sentence),
        }
    }
    let folder = std::path::absolute(files.folder()).unwrap_or_else(|_| files.folder().to_owned());
    let above =
        folder.ancestors().skip(1).map(|folder| folder.join("resources").join(name)).find(|path| path.is_file());
    match above {
        Some(path) if files.any() => return files.text(&path, most).map_err(Refusal::sentence),
        // Made-up words in place of real ones would be a quiet change of the workload.
        Some(path) => {
            return Err(format!(
                "{}: is not in the script's folder {}, and a script reads no other files: move it there, or give --allow-fs",
                path.display(),
                files.folder().display()
            ));
        }
        None => {}
    }
    if MADE_UP.contains(&name) {
        return Ok(made_up(name));
    }
    let above = if files.any() { " there or above it" } else { " there" };
    Err(format!("there is no {name} in {} nor in a folder `resources`{above}", files.folder().display()))
}

/// A word on each line, the same ones each time; `name` makes lists differ.
fn made_up(name: &str) -> String {
    let seed = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut random = SmallRng::seed_from_u64(seed);
    let made = |random: &mut SmallRng| match name {
        NUMBERS => random.random_range(0..10_000).to_string(),
        _ => word(random),
    };
    let words: Vec<String> = (0..WORDS).map(|_| made(&mut random)).collect();
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

    fn files(folder: &Path, any: bool) -> Files {
        Files::of(&folder.join("work.rn"), any)
    }

    #[test]
    fn a_file_beside_the_script_wins() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("names.txt"), "ada\ngrace").unwrap();
        assert_eq!(resource(&files(folder.path(), false), "names.txt", 100).unwrap(), "ada\ngrace");
        std::fs::create_dir_all(folder.path().join("resources")).unwrap();
        std::fs::write(folder.path().join("resources/tags.txt"), "a").unwrap();
        assert_eq!(resource(&files(folder.path(), false), "tags.txt", 100).unwrap(), "a");
    }

    #[test]
    fn a_folder_above_counts_only_if_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("workloads/sai");
        std::fs::create_dir_all(folder.path().join("resources")).unwrap();
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(folder.path().join("resources/names.txt"), "ada").unwrap();
        assert_eq!(resource(&files(&below, true), "names.txt", 100).unwrap(), "ada");
        let why = resource(&files(&below, false), "names.txt", 100).unwrap_err();
        assert!(why.contains("resources/names.txt") && why.contains("--allow-fs"), "{why}");
        let why = resource(&files(&below, false), "../../resources/names.txt", 100).unwrap_err();
        assert!(why.contains("--allow-fs"), "{why}");
    }

    #[test]
    fn made_up_words_are_the_same_each_time_and_unknown_lists_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(folder.path(), false);
        let words = resource(&files, "variable_words.txt", 100).unwrap();
        assert_eq!(words, resource(&files, "variable_words.txt", 100).unwrap());
        assert_ne!(words, resource(&files, "names.txt", 100).unwrap());
        assert_eq!(words.lines().count(), WORDS);
        assert!(resource(&files, NUMBERS, 100).unwrap().lines().all(|line| line.parse::<u32>().is_ok()));
        assert!(resource(&files, "cities.txt", 100).unwrap_err().contains("no cities.txt"));
    }
}
