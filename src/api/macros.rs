//! The macros.

/// Opens a [`Scope`](crate::Scope): a slice on this thread until the returned value is
/// dropped.
///
/// ```
/// use kymograph::{Category, scope};
/// static IO: Category = Category::new("io");
///
/// let _scope = scope!("step");
/// let _scope = scope!("load", path = "weights.bin", bytes = 4096, cached = false);
/// let _scope = scope!(IO, "read", offset = 17u64);
/// ```
/// The name is a literal; for names made at run time there is
/// [`Scope::named`](crate::Scope::named). An argument is anything that is a
/// [`Value`](crate::Value); arguments are evaluated only if the category is on. An event
/// takes 33 of them (a flow or track counts as one); what is beyond is left out and counted.
#[macro_export]
macro_rules! scope {
    ($name:literal $($rest:tt)*) => { $crate::scope!($crate::APP, $name $($rest)*) };
    ($category:path, $name:literal $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__event!($category, $name, [$($key = $value),*], $crate::Scope::none(),
            |site, values| $crate::Scope::open(site, values))
    };
}

/// Opens a [`Range`](crate::Range): a slice that may cross others and end on another
/// thread.
///
/// ```
/// use kymograph::{Category, Track, range};
/// static NET: Category = Category::new("net");
/// let row = Track::new("requests");
///
/// let _range = range!("upload");
/// let _range = range!("upload", bytes = 4096, path = "weights.bin");
/// let _range = range!(NET, "GET", id = 7);
/// let _range = range!(track: &row, "GET", id = 7);
/// let range = range!(track: &row, NET, "GET", id = 7);
/// std::thread::spawn(move || range.end_with([("status", &200)])).join().unwrap();
/// ```
/// Without a track it lies on one that is named after its category.
#[macro_export]
macro_rules! range {
    (track: $track:expr, $name:literal $($rest:tt)*) => {
        $crate::range!(track: $track, $crate::APP, $name $($rest)*)
    };
    (track: $track:expr, $category:path, $name:literal $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__event!($category, $name, [$($key = $value),*], $crate::Range::none(),
            |site, values| $crate::Range::open(site, Some($track), values))
    };
    ($name:literal $($rest:tt)*) => { $crate::range!($crate::APP, $name $($rest)*) };
    ($category:path, $name:literal $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__event!($category, $name, [$($key = $value),*], $crate::Range::none(),
            |site, values| $crate::Range::open(site, None, values))
    };
}

/// Records a moment on this thread, or on a track.
///
/// ```
/// use kymograph::{Category, Track, instant};
/// static NET: Category = Category::new("net");
/// let row = Track::new("requests");
///
/// instant!("cache miss");
/// instant!("cache miss", key = "a/b", size = 4096);
/// instant!(NET, "retry", attempt = 2);
/// instant!(track: &row, "dropped");
/// instant!(track: &row, NET, "dropped", id = 7);
/// ```
#[macro_export]
macro_rules! instant {
    (track: $track:expr, $name:literal $($rest:tt)*) => {
        $crate::instant!(track: $track, $crate::APP, $name $($rest)*)
    };
    (track: $track:expr, $category:path, $name:literal $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__event!($category, $name, [$($key = $value),*], (),
            |site, values| $crate::__private::instant(site, Some($track), values))
    };
    ($name:literal $($rest:tt)*) => { $crate::instant!($crate::APP, $name $($rest)*) };
    ($category:path, $name:literal $(, $key:ident = $value:expr)* $(,)?) => {
        $crate::__event!($category, $name, [$($key = $value),*], (),
            |site, values| $crate::__private::instant(site, None, values))
    };
}

/// What the macros share: a static call site, and a look at its category.
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($category:path, $name:literal, [$($key:ident = $value:expr),*], $off:expr, $on:expr) => {{
        static SITE: $crate::__private::Callsite<{ $crate::__count!($($key)*) }> =
            $crate::__private::Callsite::new(&$category, $name, [$(stringify!($key)),*]);
        if $crate::__private::COMPILED_IN && $category.is_enabled() {
            ($on)(&SITE, [$($crate::__private::Value::encode(&$value)),*])
        } else {
            $off
        }
    }};
}

/// The number of its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! __count {
    () => { 0usize };
    ($head:tt $($tail:tt)*) => { 1usize + $crate::__count!($($tail)*) };
}
