use super::Mark;
use crate::store::{Cursor, Fault, StoreError};

/// Most marks of a [`MarkPage`].
pub const MARKS_MAX: usize = 1_000;

/// What to do with a mark that cannot be understood, and cannot be mended: for messages.
pub const REMOVE_MARK: &str =
    "remove it and at once run `tenure fence bump`, as without a mark older terms could claim";

/// One mark of a page.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ListedMark {
    /// A mark.
    Mark(Mark),
    /// A mark that cannot be understood: nobody is admitted there until somebody has mended it.
    Unreadable {
        /// The resource, or the key where it is none, as the store shows it, escaped.
        key: String,
        /// Why.
        error: StoreError,
    },
}

impl ListedMark {
    /// What was read of the mark at this key.
    ///
    /// # Errors
    /// Whatever says nothing of the mark itself: any [`Fault`] but [`Fault::Unreadable`].
    pub fn from_read(
        key: impl FnOnce() -> String,
        read: Result<Mark, StoreError>,
    ) -> Result<Self, StoreError> {
        match read {
            Ok(mark) => Ok(Self::Mark(mark)),
            Err(error) if error.fault == Fault::Unreadable => Ok(Self::Unreadable { key: key(), error }),
            Err(error) => Err(error),
        }
    }

    /// The mark, if it was understood.
    #[must_use]
    pub fn understood(&self) -> Option<&Mark> {
        match self {
            Self::Mark(mark) => Some(mark),
            Self::Unreadable { .. } => None,
        }
    }
}

/// The answer to [`Fence::marks`](super::Fence::marks).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MarkPage {
    /// The marks, in the order of their resources.
    pub marks: Vec<ListedMark>,
    /// Where the next page begins. `None` on the last page.
    pub next: Option<Cursor>,
}

impl MarkPage {
    /// The page that begins with what was read of marks, each with its place, in their order. What is beyond
    /// [`MARKS_MAX`], which one more than that shows, is on the next page.
    #[must_use]
    pub fn beginning(read: impl IntoIterator<Item = (Cursor, ListedMark)>) -> Self {
        let mut page = Self {
            marks: Vec::new(),
            next: None,
        };
        let mut end = None;
        for (place, listed) in read {
            if page.marks.len() == MARKS_MAX {
                page.next = end;
                break;
            }
            page.marks.push(listed);
            end = Some(place);
        }
        page
    }

    /// The last page, with marks that were all understood.
    #[must_use]
    pub fn last(marks: impl IntoIterator<Item = Mark>) -> Self {
        Self {
            marks: marks.into_iter().map(ListedMark::Mark).collect(),
            next: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ListedMark, MARKS_MAX, MarkPage};
    use crate::store::{Cursor, Fault, StoreError};

    fn read(many: usize) -> impl Iterator<Item = (Cursor, ListedMark)> {
        (0..many).map(|number| {
            let error = StoreError::not_applied(Fault::Unreadable, "damaged");
            let key = format!("{number:05}");
            (Cursor::behind(&key), ListedMark::Unreadable { key, error })
        })
    }

    #[test]
    fn page_says_where_the_next_begins_only_if_there_is_more() {
        let full = MarkPage::beginning(read(MARKS_MAX));
        assert_eq!((full.marks.len(), full.next), (MARKS_MAX, None));
        let more = MarkPage::beginning(read(MARKS_MAX + 1));
        let last = Cursor::behind(format!("{:05}", MARKS_MAX - 1));
        assert_eq!((more.marks.len(), more.next), (MARKS_MAX, Some(last)));
    }
}
