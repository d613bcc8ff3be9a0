//! Enums whose variants have one word each: the same in JSON, in its schema, and where it is printed.

/// Declares an enum of words. Nothing else in the program says or reads them.
///
/// ```
/// holdup_base::named! {
///     /// How sure one is.
///     #[derive(Default)]
///     pub enum Sure {
///         /// Very.
///         High = "high",
///         /// Hardly.
///         #[default]
///         Low = "low",
///     }
/// }
/// assert_eq!(Sure::High.name(), "high");
/// assert_eq!(Sure::ALL, [Sure::High, Sure::Low]);
/// assert_eq!(format!("{:<5}|", Sure::Low), "low  |");
/// ```
///
/// The crate that uses it needs `serde` and `schemars`. Variants are ordered as they are declared.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        $(#[$meta])*
        $vis enum $name { $($(#[$of])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// All of them.
            $vis const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Its word, in JSON and wherever it is printed.
            $vis const fn name(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}
