//! Handles, and tables of rows that are few.

use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

/// A handle: the number of a row, as a type of its own. `Option` of one is 4 bytes too.
pub trait Handle: Copy {
    /// The handle of row `index`. Beyond 2³²−2 rows, the last one's.
    fn at(index: usize) -> Self;
    /// The row.
    fn index(self) -> usize;
}

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(NonZeroU32);

        impl Handle for $name {
            #[inline]
            fn at(index: usize) -> $name {
                let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
                $name(NonZeroU32::new(number).unwrap_or(NonZeroU32::MAX))
            }

            #[inline]
            fn index(self) -> usize {
                self.0.get() as usize - 1
            }
        }

        impl $name {
            /// The handle of row `index`.
            #[inline]
            pub fn at(index: usize) -> $name {
                <$name as Handle>::at(index)
            }

            /// The row.
            #[inline]
            pub fn index(self) -> usize {
                Handle::index(self)
            }
        }
    )*};
}

handles! {
    /// A process.
    ProcessId
    /// A thread.
    ThreadId
    /// A track of the host.
    TrackId
    /// A slice of the host.
    SliceId
    /// A moment.
    InstantId
    /// A device.
    DeviceId
    /// A queue of a device.
    QueueId
    /// A device context.
    ContextId
    /// A kind of device activity.
    StageId
    /// A kernel.
    KernelId
    /// The dimensions of a launch.
    LaunchId
    /// Something that a device did.
    ActivityId
    /// A counter.
    SeriesId
    /// A set of arguments.
    ArgsId
    /// The items of a list or dictionary within arguments.
    ListId
}

/// A table of rows that are few, or read as a whole. Index it with handles.
#[derive(Clone, Debug)]
pub struct Table<H, R> {
    rows: Vec<R>,
    handle: PhantomData<H>,
}

impl<H, R> Default for Table<H, R> {
    fn default() -> Self {
        Table { rows: Vec::new(), handle: PhantomData }
    }
}

impl<H: Handle, R> Table<H, R> {
    /// Adds a row.
    pub fn push(&mut self, row: R) -> H {
        self.rows.push(row);
        H::at(self.rows.len() - 1)
    }

    /// The row, if there is one.
    pub fn get(&self, id: H) -> Option<&R> {
        self.rows.get(id.index())
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All rows and their handles.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (H, &R)> {
        self.rows.iter().enumerate().map(|(index, row)| (H::at(index), row))
    }

    /// All rows and their handles, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (H, &mut R)> {
        self.rows.iter_mut().enumerate().map(|(index, row)| (H::at(index), row))
    }
}

impl<H: Handle, R> Index<H> for Table<H, R> {
    type Output = R;

    fn index(&self, id: H) -> &R {
        &self.rows[id.index()]
    }
}

impl<H: Handle, R> IndexMut<H> for Table<H, R> {
    fn index_mut(&mut self, id: H) -> &mut R {
        &mut self.rows[id.index()]
    }
}
